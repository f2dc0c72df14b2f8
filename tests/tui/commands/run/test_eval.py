"""`wavedeck eval`: output, exit codes and options, partly with the real judge, also in another Python."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import msgspec
import pytest

from engine.prompting.facts import error_facts
from harness import (
    STAGES,
    Device,
    ErrorReport,
    Evaluation,
    Latency,
    Outcome,
    Stage,
    Target,
    Verdict,
)
from harness.stages.cascade import refuse_text
from harness.stages.modes import Attempt, Cases, Exam
from harness.wire.limits import SOURCE_BYTES
from harness.worker.oracle.comparison import mismatch_wording
from harness.worker.oracle.comparison.mismatch_wording import CaseError
from sessions import Home
from suites import baseline_source, load_task
from tests.support.command_line import Shell, one_line
from tests.support.judge.evaluations import correct as correct_evaluation
from tests.support.judge.evaluations import failed, traffic
from tests.support.judge.judged_candidates import failing, mismatch
from tui.commands.options import say_default_target
from tui.commands.run import eval as evaluate
from tui.commands.run.eval import EXIT_CODES, read_candidate
from tui.diagnostics import ExitCode, say
from tui.facts.evaluation.page import evaluation_tables
from tui.facts.evaluation.verdict import headline
from tui.print.plain import tables_text
from tui.print.waiting_line import WaitingLine


@pytest.mark.judge
def test_correct_kernel_exits_with_0_and_one_document(shell: Shell) -> None:
    Path("kernel.py").write_text(baseline_source(load_task("vector_add")))
    options = ("--task", "vector_add", "--targets", "gfx942,sm_90", "--seed", "3", "--json")
    correct = shell("eval", "kernel.py", *options)
    assert correct.code == ExitCode.DONE
    assert correct.out.count("\n") == 1
    evaluation = json.loads(correct.out)
    assert set(evaluation) == set(Evaluation.__struct_encode_fields__)
    assert (evaluation["verdict"], evaluation["call"], evaluation["execution"], evaluation["error"]) == (
        "correct",
        True,
        True,
        None,
    )
    assert [stage["name"] for stage in evaluation["stages"]] == list(STAGES)
    assert [stage["ok"] for stage in evaluation["stages"]] == [True] * 5 + [None]
    assert set(evaluation["resources"]) == {"gfx942", "sm_90"}
    assert (evaluation["latency"], evaluation["speedup"]) == ([], None)
    assert correct.err == "wavedeck: seed 3; judge these inputs again with --seed 3\n"


@pytest.mark.parametrize(
    ("source", "verdict", "line"),
    [
        ("def vector_add(x, y:\n", "call_error", "kernel.py line 1"),
        ("import triton\n", "call_error", "vector_add"),
        ("", "no_code", "no_code"),
    ],
)
def test_source_without_a_kernel_gets_a_verdict_before_the_judge_starts(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, source: str, verdict: str, line: str
) -> None:
    monkeypatch.setattr(evaluate, "judged", None)
    Path("kernel.py").write_text(source)
    done = shell("eval", "kernel.py", "--task", "vector_add")
    assert done.code == ExitCode.NO
    first = done.out.splitlines()[0]
    assert first.startswith(f"starter/vector_add: {verdict}: ")
    assert line in first
    assert done.err == "", "no seed: no inputs were drawn"


def test_refused_text_names_the_chosen_cases_and_the_exam() -> None:
    task = load_task("vector_add")
    name = task.open_cases[0].name
    examined, reproduced = refuse_text("", task, Exam()), refuse_text("", task, Cases((name,)))
    assert examined is not None
    assert reproduced is not None
    assert (examined.exam, examined.only_cases) == (True, ())
    assert (reproduced.exam, reproduced.only_cases) == (False, (name,))
    assert refuse_text(baseline_source(task), task, Attempt()) is None


class ScriptedTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_terminal_shows_the_stage_on_one_line_that_is_gone_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = ScriptedTerminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("tui.print.waiting_line.TICK_S", 3600.0)
    with WaitingLine("starting the judge") as status:
        status.show("softmax: compile")
        say("GPU 0: waits")
    erase = "\r\x1b[K"
    assert terminal.getvalue() == (
        f"{erase}starting the judge, 0:00{erase}softmax: compile, 0:00{erase}wavedeck: GPU 0: waits\n{erase}"
    )
    say("seed 3")
    assert terminal.getvalue().endswith(f"{erase}wavedeck: seed 3\n")


@pytest.mark.parametrize(("is_terminal", "wanted"), [(False, True), (True, False)])
def test_no_line_without_a_terminal_or_with_json(
    monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool, wanted: bool
) -> None:
    terminal = ScriptedTerminal() if is_terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", terminal)
    with WaitingLine("starting the judge", wanted=wanted) as status:
        status.show("softmax: compile")
        say("GPU 0: waits")
    assert terminal.getvalue() == "wavedeck: GPU 0: waits\n"


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        (Verdict.CORRECT, ExitCode.DONE),
        (Verdict.WRONG, ExitCode.NO),
        (Verdict.UNSUPPORTED, ExitCode.NO),
        (Verdict.TIMEOUT, ExitCode.NO),
        (Verdict.INFRA_ERROR, ExitCode.FAILED),
    ],
)
def test_exit_code_separates_candidate_errors_from_judge_errors(verdict: Verdict, code: ExitCode) -> None:
    assert EXIT_CODES.get(verdict, ExitCode.NO) is code


def page(evaluation: Evaluation, *, baseline: str = "") -> str:
    return tables_text(evaluation_tables(evaluation, baseline=baseline))


def judged(verdict: Verdict, **facts: object) -> Evaluation:
    evaluation = correct_evaluation() if verdict is Verdict.CORRECT else failed(verdict)
    return msgspec.structs.replace(evaluation, task="starter/softmax", **facts)


def test_wrong_output_report_has_index_and_size_of_the_error_once() -> None:
    wrong = mismatch(expected="0.25", got="nan", max_abs=None, wrong_share=0.125, nan_got=7)
    text = page(judged(Verdict.WRONG, error=mismatch_wording.mismatch(wrong)))
    first, *details = text.splitlines()
    assert first.startswith(
        "starter/softmax on cpu: wrong: case fp32-ragged: output `out` is wrong at index [3, 780]"
    )
    for fact in ("expected 0.25, got nan", "12.50% of the elements", "7 NaN where 0 are expected"):
        assert text.count(fact) == 1
        assert fact in first
    assert "  shape  [37, 781]" in details


def failing_cases(count: int) -> Evaluation:
    """An evaluation in which `count` cases have a wrong sum, and the last one raises."""
    wrong = [
        mismatch(case=f"fp32-{n}", pattern=(f"wrong elements: the last {n} columns",)) for n in range(count)
    ]
    errors = [CaseError(failure.case, mismatch_wording.mismatch(failure)) for failure in wrong]
    raised = ErrorReport("exception", "case fp16: TypeError: no half")
    further = mismatch_wording.further_lines(errors[0], (*errors[1:], CaseError("fp16", raised)))
    cases = "fails: all cases that were judged"
    return judged(Verdict.WRONG, error=errors[0].error.with_further(further, cases))


def test_every_failing_case_has_a_line_in_the_report_and_in_the_prompt() -> None:
    few = failing_cases(3)
    prompt = error_facts(failing(error=few.error)).message
    for text in (page(few), prompt):
        for line in (
            "case fp32-1: output `out` is wrong",
            "case fp32-2: output `out` is wrong",
            "TypeError: no half",
        ):
            assert text.count(line) == 1


def test_cases_that_fail_in_the_same_way_share_a_line() -> None:
    lines = failing_cases(10).error.further
    assert lines == (
        "9 more cases fail in the same way: fp32-1, fp32-2, fp32-3, fp32-4, ...",
        "case fp16: TypeError: no half",
    )


def test_error_is_printed_once_under_the_name_of_the_file() -> None:
    trace = 'Traceback (most recent call last):\n  File "kernel.py", line 9, in f\n    g()\nTypeError: no g\n'
    error = ErrorReport("exception", "case fp32: TypeError: no g", trace=trace, line=9)
    evaluation = msgspec.structs.replace(
        judged(Verdict.CALL_ERROR, error=error),
        stages=(Stage("call", False, 0.1, "case fp32: TypeError: no g"),),
    )
    text = tables_text(evaluation_tables(evaluation, file="syn.py"))
    assert text.splitlines()[0] == (
        "starter/softmax on cpu: call_error: case fp32: TypeError: no g (syn.py line 9)"
    )
    assert text.count("no g") == 1
    assert '  File "syn.py", line 9, in f' in text
    assert "kernel.py" not in text


def test_compile_error_is_printed_once() -> None:
    message = "out of resources: shared memory, required 300000"
    error = ErrorReport("compile", f"sm_90: {message}", trace=f"{message}\n")
    evaluation = msgspec.structs.replace(
        judged(Verdict.COMPILE_ERROR, error=error), compile_errors={"sm_90": message}
    )
    text = page(evaluation)
    assert text.count("300000") == 1
    assert "sm_90, compiled at GPU sizes\n  does not compile" in text


def test_speedup_names_its_baseline_and_traffic_is_no_time() -> None:
    measured = judged(
        Verdict.CORRECT,
        speedup=1.42,
        latency=(Latency("0", "fp32", 0.0142, 0.01, 1.42, (1.40, 1.44), "tape", Outcome.FASTER),),
    )
    assert headline(measured, baseline="triton") == "correct, 1.42x [1.40, 1.44] against triton"
    assert "triton us" in page(measured, baseline="triton")
    counted = judged(Verdict.CORRECT, traffic=(traffic("fp32", 300, 100, minimal=200),))
    assert headline(counted) == "correct"
    assert "bytes moved, counted by the interpreter at CPU sizes" in page(counted)
    assert re.search(r"^ +fp32 .* 2\.00 ", page(counted), re.MULTILINE)
    assert " us" not in page(counted)


def test_candidate_is_read_without_bom_and_with_a_size_limit(tmp_path: Path) -> None:
    marked = tmp_path / "marked.py"
    marked.write_bytes(b"\xef\xbb\xbfimport triton\n")
    assert read_candidate(str(marked)) == "import triton\n"
    assert len(read_candidate("/dev/zero")) == SOURCE_BYTES + 1


@pytest.mark.parametrize(
    ("arguments", "targets"),
    [
        (("--devices", "all"), ["gfx90a"]),
        (("--devices", "all", "--exam"), ["gfx90a"]),
        (("--devices", "all", "--targets", "gfx942"), ["gfx942"]),
    ],
)
def test_targets_default_to_the_targets_of_the_devices_and_an_exam_is_one(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], targets: list[str]
) -> None:
    gpus = (Device(name="0", kind="hip", target="gfx90a"), Device(name="1", kind="cuda", target="sm_90"))
    used: list[str] = []

    async def judging(*_: object, targets: Sequence[Target], **how: object) -> Evaluation:
        used.extend(target.name for target in targets)
        assert isinstance(how.get("mode"), Exam) is ("--exam" in arguments)
        return judged(Verdict.CORRECT)

    async def choose(asked: object, *, on_wait: object) -> Sequence[Device]:
        return gpus

    monkeypatch.setattr(evaluate, "wait_for_devices", choose)
    monkeypatch.setattr(evaluate, "DevicePool", lambda *_, **__: nullcontext())
    monkeypatch.setattr(evaluate, "evaluate", judging)
    Path("kernel.py").write_text(baseline_source(load_task("vector_add")))
    assert shell("eval", "kernel.py", "--task", "vector_add", *arguments).code == ExitCode.DONE
    assert used == targets


@pytest.mark.parametrize(
    ("refusing", "targets", "hinted"),
    [(["", "gfx942"], (), True), (["gfx942"], ("gfx942",), False), ([""], (), False)],
)
def test_refusal_by_the_default_target_names_the_option_for_nvidia(
    capsys: pytest.CaptureFixture[str], refusing: list[str], targets: tuple[str, ...], *, hinted: bool
) -> None:
    say_default_target(refusing, targets)
    assert ("--targets sm_90" in capsys.readouterr().err) is hinted


def test_wrong_python_is_wrong_usage_and_leaves_nothing(
    shell: Shell, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kernel.py").touch()
    for command in ("eval kernel.py --task softmax", "task check softmax", "task new kernel.py", "recheck"):
        done = shell(*command.split(), "--python", "nosuch")
        assert done.code == ExitCode.USAGE
        assert "--python nosuch: no such program" in one_line(done)
    assert not home.root.exists() or not list(home.root.iterdir())


@pytest.mark.judge
@pytest.mark.soak
def test_verdict_and_versions_are_those_of_the_named_python(shell: Shell, home: Home, tmp_path: Path) -> None:
    import triton

    folder = tmp_path / "theirs"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    theirs = packages / "triton"
    shutil.copytree(Path(str(triton.__file__)).parent, theirs, copy_function=os.symlink)
    text = (theirs / "__init__.py").read_text().replace(triton.__version__, "3.7.99")
    (theirs / "__init__.py").unlink()
    (theirs / "__init__.py").write_text(text)
    (packages / "rest.pth").write_text(sysconfig.get_path("purelib"))

    kernel = load_task("softmax").folder / "baseline.py"
    done = shell(
        "eval", str(kernel), "--task", "softmax", "--python", str(folder / "bin" / "python"), "--json"
    )
    assert done.code == ExitCode.DONE, done.err
    assert json.loads(done.out)["provenance"]["triton"] == "3.7.99"
