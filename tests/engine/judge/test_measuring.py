"""`--against` and a person's order to measure: timing baseline, attempts measured on every GPU, and their display."""

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
from sessions import Home, SessionState, fold, journal_of
from sessions.events import (
    ALL_GPUS,
    EngineStarted,
    MeasureAsked,
    SessionFinished,
    checked,
)
from sessions.store.attempt_commits import attempt_message
from sessions.store.reconcile import take_up
from suites import Task, baseline_source, load_task
from tests.support.engine.engines import (
    ScriptedJudge,
    plan,
    play,
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
from tui.facts.evaluation.spread import by_gpu_words, spread_lines
from tui.facts.instance import FactsCache
from tui.facts.settings_words import timing_words
from tui.print.narrate import Narrator
from tui.print.summary import summary

GPUS = tuple(Device(name=name, kind="cuda", target="sm_90") for name in ("0", "1", "2"))
PLAN = plan(iterations=1, against="eager", devices=("0", "1", "2"))
ATTEMPT = "vector_add#1/1"


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


async def measured(home: Home, judge: ScriptedJudge, devices: tuple[str, ...] = ALL_GPUS) -> SessionState:
    """Open the finished session again for one order to measure its attempt, and run it to its end."""
    command = MeasureAsked(attempt=ATTEMPT, devices=devices)
    with take_up(home, PLAN.session) as recorder:
        recorder.record(checked(command, recorder.state))
        assert not command.refusal(recorder.state), "at rest the same command starts an engine"
        recorder.record(EngineStarted(host="here", pid=2, resumed=True))
        assert "already being measured" in command.refusal(recorder.state)
        await run(shared(recorder, PLAN, scripted_model("correct"), judge))
        recorder.record(SessionFinished())
        return recorder.state


async def test_attempt_is_measured_on_every_gpu_after_the_end(tmp_path: Path) -> None:
    home, judge = Home(tmp_path), GpuJudge()
    await play(home, scripted_model("correct 1.2"), session_plan=PLAN, judge=GpuJudge())
    await measured(home, judge, ("1",))
    state = await measured(home, judge)
    assert [device for _, device in judge.measured] == ["1", "0", "1", "2", "2"], (
        "a failed measurement is repeated once"
    )
    assert not state.measures
    winner = state.attempt(ATTEMPT)
    assert sorted(measurement.device for measurement in winner.spread) == ["0", "1", "2"]
    assert spread_lines(winner) == [
        "GPU 0: 1.50x against eager",
        "GPU 1: 1.40x against eager",
        "GPU 2: infra error: GPU 2 is in quarantine: it hangs",
    ]
    assert "vector_add#1/1 on GPU 1: 1.40x against eager" in summary(state)
    assert by_gpu_words(winner) == "0 1.50x, 1 1.40x, 2 -"
    pane = "\n".join(map(plain, page_of("speed", PageSubject(winner), 160)))
    assert "timed again on these GPUs, in new processes" in pane
    assert re.search(r"^small +1 .* 1\.40x ", pane, re.MULTILINE), "one row per GPU"
    assert "GPU 2: infra error: GPU 2 is in quarantine: it hangs" in pane
    facts = FactsCache().all(state)
    header = header_line(state, facts, name=PLAN.session, status=(), concerns=(), width=300)
    assert "against eager" in plain(header)
    narrator = Narrator()
    words = [line for event in journal_of(home, PLAN.session).events for line in narrator.lines(event)]
    assert any("measured on GPU 1: 1.40x against eager" in line for line in words)


async def test_measurement_that_fails_is_over(tmp_path: Path) -> None:
    class Failing(GpuJudge):
        async def measure(self, source: str, task: Task, *, device: str, on_stage: OnStage) -> Evaluation:
            raise HarnessError("the process ended")

    home = Home(tmp_path)
    await play(home, scripted_model("correct 1.2"), session_plan=PLAN, judge=GpuJudge())
    with take_up(home, PLAN.session) as recorder:
        recorder.record(MeasureAsked(attempt=ATTEMPT, devices=("1", "9"), by="ann"))
        recorder.record(EngineStarted(host="here", pid=2, resumed=True))
        await run(shared(recorder, PLAN, scripted_model("correct"), Failing()))
        state = recorder.state
    assert not state.measures
    assert [level for level, _ in state.notices] == ["error"] * 2
    assert spread_lines(state.attempt(ATTEMPT)) == [
        "GPU 1: cancelled: the process ended",
        "GPU 9: cancelled: the session runs on 0, 1, 2 now",
    ]


async def test_commit_names_the_baseline_of_its_speedup(tmp_path: Path) -> None:
    state = fold(await play(Home(tmp_path), scripted_model("correct 1.2"), session_plan=PLAN))
    attempt = state.attempt(ATTEMPT)
    judge_again(attempt, timed("0", 1.25))
    assert re.search(
        r"^Speedup: 1\.25x\n.*^Against: eager$", attempt_message(attempt), re.MULTILINE | re.DOTALL
    )
    judge_again(attempt, correct())
    assert "Against" not in attempt_message(attempt)


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
    assert (again.against, again.against_source) == ("mine.py", source)
    assert timing_words(session_plan) == "timed against mine.py"
    default = resolved(tmp_path)
    assert (default.against, timing_words(default)) == ("", "")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
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
