"""The timing baseline in prompts: timed once per session on a GPU, and only its source where it cannot be timed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from engine.judge.baseline_timing import known_baseline
from engine.judge.bench import Bench
from harness import Device, Evaluation, Latency
from sessions import Home, fold
from sessions.events import BaselineMeasured, CallStarted, Event, Notice
from suites import baseline_source, load_task
from suites.task import RecordedScript
from tests.support.engine.engines import ScriptedJudge, failed, plan, play, scripted_model
from tests.support.judge.evaluations import correct

BASELINE = baseline_source(load_task("vector_add"))
GPU = Device(name="0", kind="cuda", target="sm_90", description="scripted")


class TimingJudge(ScriptedJudge):
    """Judge on one GPU that times the baseline after `failures` failures, but not in the cases `not_timed`."""

    def __init__(self, *, failures: int = 0, not_timed: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.devices = (GPU,)
        self.failures = failures
        self._not_timed = not_timed

    async def evaluate(self, source: str, *arguments: Any, **options: Any) -> Evaluation:
        """See `Judge`."""
        evaluation = await super().evaluate(source, *arguments, **options)
        if source != BASELINE:
            return evaluation
        if self.failures:
            self.failures -= 1
            return failed(evaluation.verdict.INFRA_ERROR, "the GPU is full")
        row = Latency("0", "fp32", 0.2, 0.2, 1.0, (0.99, 1.01), "tape")
        return msgspec.structs.replace(
            correct(speedup=1.0),
            device="0",
            latency=(row,),
            not_timed=self._not_timed,
            notes=("90 samples were disturbed",) if self._not_timed else (),
        )


def first_prompts(events: list[Event]) -> set[str]:
    """Return the first prompt of each instance."""
    calls = [event for event in events if isinstance(event, CallStarted) and "/1/generator" in event.call]
    return {call.messages[-1].content for call in calls}


async def played(home: Home, judge: TimingJudge) -> list[Event]:
    session_plan = plan(targets=("sm_90",), instances=3, iterations=1)
    return await play(home, scripted_model("correct 1.5"), session_plan=session_plan, judge=judge)


async def test_all_instances_see_the_baseline_and_its_times_after_one_timing(home: Home) -> None:
    judge = TimingJudge()
    events = await played(home, judge)
    assert judge.evaluated.count(BASELINE) == 1
    assert sum(isinstance(event, BaselineMeasured) for event in events) == 1
    [prompt] = first_prompts(events)
    assert BASELINE.strip() in prompt
    assert "| needs | baseline, us |" in prompt
    assert "| 200 |" in prompt
    state = fold(events)  # type: ignore[arg-type]
    assert set(state.baselines) == {"starter/vector_add"}
    assert len(list(state.attempts())) == 3, "the baseline is no attempt"


@pytest.mark.parametrize(
    ("judge", "words"),
    [
        (
            TimingJudge(failures=2),
            "the baseline of vector_add was not timed, so prompts show only its source: the GPU is full",
        ),
        (
            TimingJudge(not_timed=("fp16-ragged",)),
            "the baseline of vector_add got no time in fp16-ragged, so prompts lack it: 90 samples were disturbed",
        ),
    ],
    ids=["not timed", "no time in a case"],
)
async def test_person_learns_once_what_prompts_lack_of_the_baselines_times(
    home: Home, judge: TimingJudge, words: str
) -> None:
    fails = judge.failures > 0
    events = await played(home, judge)
    assert [event.message for event in events if isinstance(event, Notice)] == [words]
    assert judge.evaluated.count(BASELINE) == (2 if fails else 1), (
        "a failure is kept, too: prompts of a resume must not change"
    )
    [prompt] = first_prompts(events)
    assert BASELINE.strip() in prompt
    assert ("baseline, us" in prompt) is not fails


async def test_nothing_is_timed_on_cpu(home: Home) -> None:
    judge = ScriptedJudge()
    events = await play(home, scripted_model("correct"), session_plan=plan(iterations=1), judge=judge)
    assert BASELINE not in judge.evaluated
    assert all(BASELINE.strip() in prompt for prompt in first_prompts(events))


@pytest.mark.parametrize(
    ("hides", "shows", "seen"), [(True, False, ""), (True, True, BASELINE), (False, False, BASELINE)]
)
async def test_a_hidden_reference_is_shown_on_request(*, hides: bool, shows: bool, seen: str) -> None:
    script = RecordedScript("wavedeck_call(call, x=None)", hides_baseline=hides)
    task = msgspec.structs.replace(load_task("vector_add"), script=script)
    bench = cast("Bench", SimpleNamespace(judge=ScriptedJudge()))
    facts = await known_baseline(bench, task, show_reference=shows)
    assert (facts.reference, facts.source) == (seen, ""), "shown once, as what is computed"
