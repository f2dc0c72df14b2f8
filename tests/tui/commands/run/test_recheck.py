"""`wavedeck recheck`: what broke or got slower, which times are compared after an upgrade, and second judgements of attempts."""

from __future__ import annotations

import json

import msgspec
import pytest

from engine.judge.rechecking import Rechecked, RecheckResult
from engine.process import launch
from harness import Evaluation, Latency, Verdict
from harness.wire.results.latency import Bound
from harness.wire.results.provenance import Provenance
from sessions import Home, fold
from sessions.catalog import delete_session, journal_of, list_sessions
from sessions.kept_kernels import KeptKernel, accepted_kernels, session_kernels
from suites import baseline_source, load_task
from tests.support.command_line import ROOT, Shell, one_line
from tests.support.engine.engines import candidate
from tests.support.judge.evaluations import failed, judged
from tests.support.sessions import stored_sessions as stored
from tests.support.sessions.measured_sessions import latency
from tui.commands.run.rejudge import judged_attempts
from tui.diagnostics import ExitCode
from tui.print.plain import json_document
from tui.print.recheck_pages import recheck_rows, recheck_text, versions

VECTOR_ADD = baseline_source(load_task("vector_add"))
THEN = Provenance(product="MI300X", partition="SPX/NPS1", driver="6.12", torch="2.9.0", triton="3.6.0")
NOW = msgspec.structs.replace(THEN, torch="2.10.0", triton="3.7.1")


def timed(*cases: Latency, provenance: Provenance = NOW) -> Evaluation:
    return judged(Verdict.CORRECT, 6, device="0", latency=cases, provenance=provenance)


def rechecked(
    home: Home, now: Evaluation, *then: Latency, provenance: Provenance = THEN, limit: float = 0.03
) -> Rechecked:
    """Return the recheck of an accepted softmax that was timed before."""
    stored.solved(home, {"starter/softmax": stored.FAST}, latency=then, provenance=provenance)
    state = fold(journal_of(home, stored.FIRST).events)
    [kernel] = session_kernels(stored.FIRST, state)
    return Rechecked(kernel, now, limit=limit)


def test_slower_needs_the_whole_interval_beyond_the_limit(home: Home) -> None:
    then = (latency("fp32", 200.0, 100.0, half=0.01), latency("fp16", 200.0, 100.0, half=0.01))
    # fp32: the speedup falls by 5 %, fp16 does not change.
    now = timed(latency("fp32", 190.0, 100.0, half=0.01), latency("fp16", 200.0, 100.0, half=0.01))
    done = rechecked(home, now, *then)
    worst = done.changes[0]
    assert (worst.case, round(worst.value, 3), round(worst.low, 3), round(worst.high, 3)) == (
        "fp32",
        0.95,
        0.937,
        0.964,
    )
    assert done.result is RecheckResult.SLOWER
    assert Rechecked(done.kernel, now, limit=0.04).result is RecheckResult.UNCHANGED, (
        "the interval ends at -3.6 %"
    )
    assert "-5.0 % [-6.3, -3.6]" in recheck_text([done])


def test_faster_is_a_mean_above_the_limit(home: Home) -> None:
    now = timed(latency("fp32", 260.0, 100.0, half=0.01))
    assert rechecked(home, now, latency("fp32", 200.0, 100.0, half=0.01)).result is RecheckResult.FASTER


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"provenance": msgspec.structs.replace(NOW, product="MI325X")}, "other hardware"),
        ({"provenance": msgspec.structs.replace(NOW, partition="CPX/NPS4")}, "other hardware"),
        ({"provenance": Provenance(torch="2.10.0")}, "other hardware"),
        ({"latency": ()}, "not timed now"),
        ({"latency": (msgspec.structs.replace(latency("fp32", 90, 100), against="eager"),)}, "one baseline"),
        ({"latency": (msgspec.structs.replace(latency("fp32", 90, 100), bound=Bound.AT_LEAST),)}, "exact"),
    ],
)
def test_times_of_other_hardware_or_meaning_are_not_divided(
    home: Home, change: dict[str, object], why: str
) -> None:
    now = msgspec.structs.replace(timed(latency("fp32", 90.0, 100.0)), **change)
    done = rechecked(home, now, latency("fp32", 200.0, 100.0))
    assert (done.result, done.changes) == (RecheckResult.STILL_CORRECT, ())
    assert why in done.why


def test_versions_of_then_and_now_stand_above_the_kernels(home: Home) -> None:
    done = rechecked(home, timed(latency("fp32", 200.0, 100.0)), latency("fp32", 200.0, 100.0))
    rows = {row.part: (row.then, row.now) for row in versions([done])}
    assert rows["triton"] == ("3.6.0", "3.7.1")
    lines = recheck_text([done]).splitlines()
    triton = next(line for line in lines if line.startswith("triton"))
    assert triton.split() == ["triton", "3.6.0", "3.7.1", "changed"]
    assert lines.index(triton) < next(place for place, line in enumerate(lines) if "softmax#1/1" in line)


def test_document_has_the_change_and_both_evaluations(home: Home) -> None:
    done = rechecked(home, timed(latency("fp32", 200.0, 100.0)), latency("fp32", 200.0, 100.0))
    [row] = json.loads(json_document(recheck_rows([done]), indented=False))
    assert (row["attempt"], row["result"], row["why"]) == ("softmax#1/1", "unchanged", None)
    assert (row["change"]["value"], [change["case"] for change in row["changes"]]) == (1.0, ["fp32"])
    assert [row[when]["provenance"]["triton"] for when in ("then", "now")] == ["3.6.0", "3.7.1"]


def test_kernel_that_was_accepted_although_wrong_did_not_break(home: Home) -> None:
    wrong = failed(Verdict.WRONG)
    stored.stopped(home)
    state = fold(journal_of(home, stored.FIRST).events)
    kernel = KeptKernel(stored.FIRST, "starter/softmax", "softmax#1/1", "", state)
    assert Rechecked(kernel, wrong).result is RecheckResult.STILL_WRONG


def test_accepted_kernel_outlives_its_session(home: Home, shell: Shell) -> None:
    stored.solved(home, {"starter/vector_add": VECTOR_ADD})
    assert shell("accept", stored.FIRST, "vector_add#1/1", "--why", "right").code == ExitCode.DONE
    delete_session(home, stored.FIRST)
    [kernel] = accepted_kernels(home)
    assert (kernel.source, kernel.state) == (VECTOR_ADD, None)
    done = Rechecked(kernel, judged(task="starter/vector_add"))
    assert (done.result, done.why) == (RecheckResult.STILL_CORRECT, "times not compared: its session is gone")


@pytest.mark.judge
def test_kernel_that_uses_a_name_that_is_gone_exits_with_1(home: Home, shell: Shell) -> None:
    broken = baseline_source(load_task("softmax")).replace("tl.exp(", "tl.exp_of_an_older_triton(")
    unknown = "other/gone"
    stored.solved(home, {"starter/vector_add": VECTOR_ADD, "starter/softmax": broken, unknown: "x = 1\n"})
    for attempt in ("vector_add#1/1", "softmax#1/1", f"{unknown}#1/1"):
        assert shell("accept", stored.FIRST, attempt).code == ExitCode.DONE
    done = shell("recheck", "--devices", "cpu")
    assert done.code == ExitCode.NO
    rows = [line for line in done.out.splitlines() if "#1/1" in line]
    assert [row.split()[0] for row in rows] == ["softmax", "vector_add", unknown], "the worst first"
    assert "broke" in rows[0]
    assert "exp_of_an_older_triton" in rows[0]
    assert "still correct" in rows[1]
    assert "not judged" in rows[2]


def test_nothing_to_recheck_and_a_wrong_limit_are_one_line(home: Home, shell: Shell) -> None:
    empty = shell("recheck")
    assert empty.code == ExitCode.USAGE
    assert "no kernel is accepted; name a session" in one_line(empty)
    stored.stopped(home)
    assert "has no correct attempt" in one_line(shell("recheck", stored.FIRST))
    for limit in ("3%", "slower=3", "slower=0%", "faster=3%"):
        assert "slower=3%" in one_line(shell("recheck", "--fail-on", limit))


@pytest.fixture
def source(home: Home) -> str:
    """A session of three attempts. Its sources name their verdicts of now: the third is no longer correct."""
    recorder = stored.begin(home)
    stored.attempt(recorder, 1, Verdict.WRONG, message="it differs", source=candidate("correct", "1"))
    stored.attempt(recorder, 2, Verdict.CORRECT, source=candidate("correct", "2"))
    stored.attempt(recorder, 3, Verdict.CORRECT, source=candidate("rejected", "3"))
    stored.finish(recorder)
    return stored.FIRST


def test_second_judgement_is_a_session_and_is_compared(
    home: Home, shell: Shell, source: str, engines: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "ENGINE", "tests.support.engine.quick_engine")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    before = journal_of(home, source).events
    done = shell("recheck", source, "--attempts", "all", "--devices", "cpu")
    assert done.code == ExitCode.NO, "attempt 3 was correct"
    again = next(info for info in list_sessions(home) if info.name != source)
    assert (again.state, again.settings.method, again.settings.options.rejudges) == (
        "finished",
        "rejudge",
        source,
    )
    assert journal_of(home, source).events == before
    state = fold(journal_of(home, again.name).events)
    assert [(attempt.attempt, attempt.origin, attempt.base) for attempt in state.attempts()] == [
        ("softmax#1/1", "fresh", None),
        ("softmax#1/2", "repair", "softmax#1/1"),
        ("softmax#1/3", "repair", "softmax#1/2"),
    ]
    assert all(not attempt.calls for attempt in state.attempts())
    lines = done.out.splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("then \\ now"))
    assert [line.split() for line in lines[place : place + 3]] == [
        ["then", "\\", "now", "correct", "rejected"],
        ["correct", "1", "1"],
        ["wrong", "1"],
    ]
    assert "3 attempts judged again: 1 unchanged, 2 with another verdict" in lines
    assert [line.split() for line in lines if "softmax#1/" in line] == [
        ["softmax", "softmax#1/3", "broke", "correct", "rejected", "scripted", "verdict:", "rejected"],
        ["softmax", "softmax#1/1", "now", "correct", "wrong", "correct", "then:", "it", "differs"],
    ]
    document = json.loads(shell("recheck", again.name, "--attempts", "all", "--json").out)
    assert (document["session"], document["rejudges"]) == (again.name, source)
    assert {(cell["then"], cell["now"]): cell["attempts"] for cell in document["matrix"]} == {
        ("correct", "correct"): 1,
        ("correct", "rejected"): 1,
        ("wrong", "correct"): 1,
    }
    assert len(list_sessions(home)) == 2, "the second judgement is read, not made again"


def test_attempt_without_a_verdict_is_not_judged_again(home: Home, source: str) -> None:
    state = fold(journal_of(home, source).events)
    state.attempt("softmax#1/3").judged = None
    assert [attempt.attempt for attempt in judged_attempts(state)] == ["softmax#1/1", "softmax#1/2"]


def test_every_session_of_a_study_is_tried(home: Home, shell: Shell) -> None:
    for cell, name in enumerate((stored.FIRST, stored.SECOND), start=1):
        stored.finish(stored.begin(home, name, series=f"plan-123abc/{cell}"), best="")
    done = shell("recheck", "plan", "--attempts", "all", "--devices", "cpu")
    assert done.code == ExitCode.USAGE
    for number, name in enumerate((stored.FIRST, stored.SECOND), start=1):
        assert f"session {number} of 2: {name}" in done.err
        assert f"session {name} has no attempt with a verdict and a reply to judge again" in done.err


def test_what_cannot_be_judged_again_is_one_line(home: Home, shell: Shell, source: str) -> None:
    assert "no verdict on a task of a benchmark" in one_line(shell("export", source, "out", "--results"))
    assert "rejudge needs candidates" in one_line(shell("run", "softmax", "--method", "rejudge"))
