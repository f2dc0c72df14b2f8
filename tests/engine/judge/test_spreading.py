"""`--against` and `--spread`: timing baseline, winners measured on every GPU, resume and display."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.errors import UsageProblem
from engine.judge.judging import Judge, OnStage
from engine.plan.job import plan_of, session_started
from engine.plan.plan import SessionPlan, resolve
from engine.plan.request import RunPlan
from harness import Device, Evaluation, HarnessError, Latency, Outcome, Verdict, target
from harness.stages.evaluator import LocalEvaluator
from harness.stages.modes import Attempt
from harness.stages.timing.baselines import USUAL
from sessions import Home, fold
from sessions.events import (
    ALL_GPUS,
    EngineStarted,
    MeasureAsked,
    SessionFinished,
    WinnerMeasured,
    checked,
)
from sessions.metrics.attempt_row import attempt_rows
from sessions.store.attempt_commits import attempt_message
from sessions.store.reconcile import take_up
from suites import Task, baseline_source, load_task
from tests.support.engine.engines import (
    ScriptedJudge,
    cut,
    plan,
    play,
    resume_to_end,
    run,
    scripted_model,
    shared,
)
from tests.support.judge.evaluations import correct, failed
from tests.support.judge.judged_attempts import judge_again
from tui.cockpit.draw.lines import plain
from tui.cockpit.screens.agent.page import PageSubject
from tui.cockpit.screens.agent.tabs import page_of
from tui.cockpit.screens.header import header_line
from tui.facts.evaluation.spread import spread_lines
from tui.facts.instance import FactsCache
from tui.facts.report.metrics import task_metrics
from tui.facts.settings_words import timing_words
from tui.print.narrate import Narrator
from tui.print.summary import summary

GPUS = tuple(Device(name=name, kind="cuda", target="sm_90") for name in ("0", "1", "2"))
SPREAD = plan(iterations=1, spread=True, against="eager")


def timed(device: str, speedup: float) -> Evaluation:
    latency = Latency(device, "small", speedup, 1.0, speedup, None, "tape", Outcome.FASTER, against="eager")
    return msgspec.structs.replace(correct(speedup=speedup), device=device, latency=(latency,))


class GpuJudge(ScriptedJudge):
    """Judge with three GPUs; measurements on the third GPU fail."""

    def __init__(self) -> None:
        super().__init__()
        self.devices = GPUS

    async def measure(self, source: str, task: Task, *, device: str, on_stage: OnStage) -> Evaluation:
        self.measured.append((source, device))
        if device == "2":
            return failed(Verdict.INFRA_ERROR, "GPU 2 is in quarantine: it hangs")
        return timed(device, 1.5 - 0.1 * int(device))


async def spread(
    home: Path, *verdicts: str, session_plan: SessionPlan = SPREAD, judge: ScriptedJudge | None = None
) -> Any:
    judge = judge or GpuJudge()
    events = await play(Home(home), scripted_model(*verdicts), session_plan=session_plan, judge=judge)
    return events, fold(events), judge  # type: ignore[arg-type]


async def test_winner_is_measured_on_every_gpu_after_its_exam(tmp_path: Path) -> None:
    events, state, judge = await spread(tmp_path, "correct 1.2")
    assert sorted(device for _, device in judge.measured) == ["0", "1", "2", "2"], (
        "a failed measurement is repeated once"
    )
    winner = state.attempt(state.instances["vector_add#1"].best or "")
    assert sorted(measurement.device for measurement in winner.spread) == ["0", "1", "2"]
    assert judge.examined == [winner.source]
    assert spread_lines(winner) == [
        "GPU 0: 1.50x against eager",
        "GPU 1: 1.40x against eager",
        "GPU 2: infra error: GPU 2 is in quarantine: it hangs",
    ]
    assert "vector_add#1/1 on GPU 1: 1.40x against eager" in summary(state)
    assert task_metrics(state, list(attempt_rows(state)))[0].best_spread == "0 1.50x, 1 1.40x, 2 -"
    pane = "\n".join(map(plain, page_of("speed", PageSubject(winner), 160)))
    assert "timed again on these GPUs, in new processes" in pane
    assert re.search(r"^small +1 .* 1\.40x ", pane, re.MULTILINE), "one row per GPU"
    assert "eager" in pane
    assert "GPU 2: infra error: GPU 2 is in quarantine: it hangs" in pane
    facts = FactsCache().all(state)
    header = header_line(state, facts, name=SPREAD.session, status=(), concerns=(), width=300)
    assert "against eager" in plain(header)
    narrated = Narrator()
    words = [line for event in events for line in [narrated.lines(event)] if line]
    assert any("measured on GPU 1: 1.40x against eager" in str(line) for line in words)


@pytest.mark.parametrize(
    ("session_plan", "verdicts"),
    [(SPREAD, ("wrong",)), (plan(iterations=1), ("correct 1.2",))],
    ids=["no winner", "no spread"],
)
async def test_nothing_is_measured_without_a_winner_or_without_spread(
    tmp_path: Path, session_plan: SessionPlan, verdicts: tuple[str, ...]
) -> None:
    _, _, judge = await spread(tmp_path, *verdicts, session_plan=session_plan)
    assert not judge.measured


async def test_resume_does_not_repeat_recorded_measurements(tmp_path: Path) -> None:
    events, whole, _ = await spread(tmp_path / "whole", "correct 1.2")
    first = next(number for number, event in enumerate(events) if isinstance(event, WinnerMeasured))
    home = Home(tmp_path / "again")
    cut(Home(tmp_path / "whole"), home, SPREAD.session, first + 1)
    judge = GpuJudge()
    resumed = await resume_to_end(home, SPREAD, scripted_model("correct 1.2"), judge)
    measured = [event.device for event in resumed if isinstance(event, WinnerMeasured)]
    assert sorted(measured) == ["0", "1", "2"]
    assert events[first].device not in {device for _, device in judge.measured}
    assert fold(resumed).instances["vector_add#1"].best == whole.instances["vector_add#1"].best


# Settings


def resolved(home: Path, **settings: object) -> SessionPlan:
    fields = {"tasks": ("vector_add",), "method": "tune", "devices": ("cpu",), **settings}
    return resolve(RunPlan(**fields), home=Home(home), environ={})  # type: ignore[arg-type]


def test_session_contains_the_source_of_its_timing_baseline(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    source = baseline_source(load_task("vector_add"))
    file.write_text(source, encoding="utf-8")
    session_plan = resolved(tmp_path, against=str(file))
    assert (session_plan.against, session_plan.against_source) == ("mine.py", source)
    file.unlink()
    again = plan_of(session_started(session_plan).describe())
    assert (again.against, again.against_source, again.spread) == ("mine.py", source, False)
    assert timing_words(session_plan) == "timed against mine.py"
    default = resolved(tmp_path)
    assert (default.against, timing_words(default)) == ("", "")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"spread": True},
            r"--spread compares GPUs, but no GPU is selected; name them, for example --devices 0,1",
        ),
        ({"against": "gone.py"}, r"--against gone.py: neither one of task, eager, compile nor a kernel file"),
        ({"against": "/dev/null"}, r"--against /dev/null is empty"),
        ({"against": __file__}, r"defines no function `vector_add`"),
        (
            {"against": __file__, "tasks": ("vector_add", "softmax")},
            r"a kernel of one task, but the run has 2 tasks",
        ),
    ],
)
def test_impossible_setting_is_a_one_line_error(
    tmp_path: Path, settings: dict[str, object], words: str
) -> None:
    with pytest.raises((UsageProblem, HarnessError), match=words) as raised:
        resolved(tmp_path, **settings)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("how", ["evaluate", "measure"])
async def test_judge_uses_the_timing_baseline_of_the_session(
    how: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[dict[str, Any]] = []

    arguments: list[tuple[object, ...]] = []

    async def evaluate(*positional: object, **options: Any) -> Evaluation:
        arguments.append(positional)
        calls.append(options)
        return correct()

    monkeypatch.setattr("harness.stages.evaluator.evaluate", evaluate)
    task = load_task("vector_add")
    module = "class Model: pass\n"
    (tmp_path / "module.py").write_text(module, encoding="utf-8")
    with_module = msgspec.structs.replace(task, folder=tmp_path)

    class Pool:
        devices = GPUS

    for settings in ({}, {"against": "eager"}, {"against": "mine.py", "against_source": "x = 1"}):
        judge = Judge(LocalEvaluator(Pool()), targets=[target("sm_90")], seed=1, **settings)  # type: ignore[arg-type]
        rest: dict[str, Any] = {} if how == "evaluate" else {"device": "1"}
        await getattr(judge, how)("source", with_module, on_stage=print, **rest)
    usual, eager, mine = (options["against"] for options in calls)
    assert usual == USUAL
    assert (eager.baseline.name, module in eager.baseline.source) == ("eager", True)
    assert (mine.baseline.name, mine.baseline.source) == ("mine.py", "x = 1")
    assert [positional[3] for positional in arguments] == [Attempt("1" if how == "measure" else "")] * 3


async def test_commit_names_the_baseline_of_its_speedup(tmp_path: Path) -> None:
    _, state, _ = await spread(tmp_path, "correct 1.2")
    attempt = state.attempt("vector_add#1/1")
    judge_again(attempt, timed("0", 1.25))
    assert re.search(
        r"^Speedup: 1\.25x\n.*^Against: eager$", attempt_message(attempt), re.MULTILINE | re.DOTALL
    )
    judge_again(attempt, correct())
    assert "Against" not in attempt_message(attempt)


async def test_attempt_is_measured_again_on_request_after_the_end(tmp_path: Path) -> None:
    session_plan = plan(iterations=1, devices=("0", "1", "2"))
    home = Home(tmp_path)
    await play(home, scripted_model("correct 1.2"), session_plan=session_plan, judge=GpuJudge())
    judge = GpuJudge()
    for devices in (("1",), ALL_GPUS):
        command = MeasureAsked(attempt="vector_add#1/1", devices=devices)
        with take_up(home, session_plan.session) as recorder:
            recorder.record(checked(command, recorder.state))
            assert not command.refusal(recorder.state), "at rest the same command starts an engine"
            recorder.record(EngineStarted(host="here", pid=2, resumed=True))
            assert "already being measured" in command.refusal(recorder.state)
            await run(shared(recorder, session_plan, scripted_model("correct"), judge))
            recorder.record(SessionFinished())
            state = recorder.state
    assert [device for _, device in judge.measured] == ["1", "0", "1", "2", "2"]
    assert sorted(each.device for each in state.attempt("vector_add#1/1").spread) == ["0", "1", "2"]
    assert not state.measures


async def test_measurement_that_fails_is_over(tmp_path: Path) -> None:
    class Failing(GpuJudge):
        async def measure(self, source: str, task: Task, *, device: str, on_stage: OnStage) -> Evaluation:
            raise HarnessError("the process ended")

    session_plan = plan(iterations=1, devices=("0", "1", "2"))
    home, name = Home(tmp_path), "vector_add#1/1"
    await play(home, scripted_model("correct 1.2"), session_plan=session_plan, judge=GpuJudge())
    with take_up(home, session_plan.session) as recorder:
        recorder.record(MeasureAsked(attempt=name, devices=("1", "9"), by="ann"))
        recorder.record(EngineStarted(host="here", pid=2, resumed=True))
        await run(shared(recorder, session_plan, scripted_model("correct"), Failing()))
        state = recorder.state
    assert not state.measures
    assert [level for level, _ in state.notices] == ["error"] * 2
    assert spread_lines(state.attempt(name)) == [
        "GPU 1: cancelled: the process ended",
        "GPU 9: cancelled: the session runs on 0, 1, 2 now",
    ]
