"""Method `tune`: its attempts, their order, its rungs, and a resume from any event."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from engine.errors import UsageProblem
from engine.judge.judging import OnStage
from engine.models import NoModel
from engine.plan.plan import SessionPlan, resolve
from engine.plan.request import RunPlan
from engine.tuning.rungs import FIELD
from harness import ROUGH, Evaluation, Latency, Verdict
from harness.stages.modes import Rough
from harness.stages.timing.baselines import Baseline
from sessions import Home, fold
from sessions.events import AnyEvent, AttemptSwept, CallStarted, EndReason, Origin, SweepRung
from sessions.settings import MethodOptions
from sessions.state.state import SessionState
from suites import Task
from tests.support.engine.engines import cut, plan, play, resume_to_end
from tests.support.engine.surveys import ScriptedSurvey
from tests.support.engine.tuning import BASELINE, TuningJudge, attempts_of, notices, speed
from tests.support.judge.evaluations import one_case
from tui.print.narrate import Narrator

TUNE = plan("20260101-000000-tune-0000", method="tune", model="none", iterations=5)


async def tuned(
    home: Path, judge: TuningJudge, session_plan: SessionPlan = TUNE
) -> tuple[SessionState, list[AnyEvent]]:
    events: list[AnyEvent] = [*await play(Home(home), NoModel(), session_plan=session_plan, judge=judge)]  # type: ignore[list-item]
    return fold(events), events


async def test_tune_starts_with_the_baseline_and_derives_all_variants_from_it(tmp_path: Path) -> None:
    judge = TuningJudge()
    state, events = await tuned(tmp_path, judge)
    first, *variants = attempts_of(state)
    assert (first.source, first.base, first.origin) == (BASELINE, None, Origin.TUNE)
    assert 0 < len(variants) <= 4
    for variant in variants:
        assert (variant.origin, variant.base) == (Origin.TUNE, "vector_add#1/1")
        assert variant.source != BASELINE
        assert re.search(r"(num_warps|BLOCK) \d+ to \d+", variant.strategy)
        assert "none of it was timed, so the choice is a guess" in variant.strategy
        assert (
            f"{first.sweep.tried if first.sweep else 0} variants of vector_add#1/1 were compiled"
            in variant.strategy
        )
    assert judge.evaluated == [attempt.source for attempt in attempts_of(state)], (
        "each source is judged fully and once"
    )
    assert not [event for event in events if isinstance(event, CallStarted)], "no model was called"


async def test_timed_tune_uses_half_of_its_attempts_around_the_best(tmp_path: Path) -> None:
    judge = TuningJudge(timed=True)
    state, events = await tuned(
        tmp_path, judge, plan(TUNE.session, method="tune", model="none", iterations=9)
    )
    swept = [event.attempt for event in events if isinstance(event, AttemptSwept)]
    assert swept[0] == "vector_add#1/1"
    bases = [attempt.base for attempt in attempts_of(state)[1:]]
    assert len(bases) == 8, "every iteration makes a timed attempt"
    assert bases[:4] == ["vector_add#1/1"] * 4
    assert {*bases[4:]} == {swept[1]}
    first = max(
        attempts_of(state)[:5],
        key=lambda attempt: attempt.evaluation.speedup or 0 if attempt.evaluation else 0,
    )
    assert swept[1] == first.attempt
    assert len({attempt.source for attempt in attempts_of(state)}) == 9, "no source twice"


async def test_tune_skips_a_change_that_was_wrong(tmp_path: Path) -> None:
    session_plan = plan(TUNE.session, method="tune", model="none", iterations=20)
    right, _ = await tuned(tmp_path / "right", TuningJudge(timed=True), session_plan)
    assert sum("BLOCK 1024 to 4096" in attempt.strategy for attempt in attempts_of(right)) > 1
    judge = TuningJudge(timed=True, wrong=(4096,))
    judge.seen_by_rungs = False
    state, _ = await tuned(tmp_path / "wrong", judge, session_plan)
    alone = next(
        attempt for attempt in attempts_of(state) if attempt.strategy.startswith("BLOCK 1024 to 4096.")
    )
    assert alone.verdict is Verdict.WRONG
    assert not any("BLOCK 1024 to 4096" in attempt.strategy for attempt in attempts_of(state)[alone.number :])


async def test_timed_tune_judges_only_the_survivors_of_its_rungs(tmp_path: Path) -> None:
    judge = TuningJudge(timed=True, wrong=(2048,))
    session_plan = plan(TUNE.session, method="tune", model="none", iterations=9)
    state, events = await tuned(tmp_path, judge, session_plan)
    first, *_ = attempts_of(state)
    rungs = [event for event in events if isinstance(event, SweepRung) and event.attempt == first.attempt]
    assert [(rung.rung, rung.pairs) for rung in rungs] == [(1, ROUGH[0].pairs), (2, ROUGH[1].pairs)]
    fields = [{entry.changes for entry in rung.entries} for rung in rungs]
    kept = [{entry.changes for entry in rung.entries if entry.kept} for rung in rungs]
    assert fields[0] == {variant.changes for variant in first.sweep.variants}
    assert fields[1] == kept[0]
    assert len(kept[0]) <= 8
    assert len(kept[1]) == 4
    for rung in rungs:
        wrong = [entry for entry in rung.entries if entry.verdict != "correct"]
        assert not any(entry.kept for entry in wrong)
        assert all(entry.why for entry in wrong)
        worst = min(entry.estimate or 0 for entry in rung.entries if entry.kept)
        dropped = [entry for entry in rung.entries if not entry.kept and entry.estimate is not None]
        assert all((entry.estimate or 0) <= worst for entry in dropped)
    assert any(entry.verdict == "wrong" for entry in rungs[0].entries)
    narrator = Narrator()
    lines = [
        line for event in events for line in narrator.lines(event) if "rung 1" in line or "rung 2" in line
    ]
    assert len(lines) >= 2
    assert all(" kept" in line and "best estimate" in line for line in lines)
    by_strategy = [attempt for attempt in attempts_of(state) if attempt.base == first.attempt]
    assert [attempt.strategy.partition(".")[0] for attempt in by_strategy] == [
        "; ".join(entry.changes) for entry in rungs[1].entries if entry.kept
    ], "the best by estimate first"
    for attempt in by_strategy:
        assert "an estimate from 20 samples" in attempt.strategy
        assert attempt.evaluation.speedup == pytest.approx(speed(attempt.source or "")), (
            "the judge's figure, not the estimate"
        )
    assert not {source for source, _ in judge.estimated[: len(fields[0])]} & {first.source}
    assert len(judge.estimated) <= 2 * 2 * FIELD * 4
    first_sweep = judge.had_passed[: len(fields[0]) + len(fields[1])]
    assert first_sweep == [False] * len(fields[0]) + [True] * len(fields[1]), "all passed the first rung"


async def test_judge_without_any_estimate_ends_the_instance_as_infra_error(tmp_path: Path) -> None:
    judge = TuningJudge(timed=True)
    judge.unable = 1000
    state, _ = await tuned(tmp_path, judge)
    instance = state.instances["vector_add#1"]
    assert instance.finished == EndReason.INFRA_ERROR
    assert "could estimate no variant of vector_add#1/1" in instance.message


async def test_failed_estimate_is_repeated_once(tmp_path: Path) -> None:
    judge = TuningJudge(timed=True)
    judge.unable = 1
    state, events = await tuned(tmp_path, judge)
    rung = next(event for event in events if isinstance(event, SweepRung))
    assert {entry.verdict for entry in rung.entries} == {"correct"}
    assert len({attempt.source for attempt in attempts_of(state)}) == 5


async def test_tune_ends_early_if_no_variant_looks_better(tmp_path: Path) -> None:
    judge = TuningJudge()
    judge.surveying = ScriptedSurvey()
    state, _ = await tuned(tmp_path, judge)
    assert len(attempts_of(state)) == 1
    assert "vector_add#1/1: none of" in notices(state)
    assert state.instances["vector_add#1"].finished == EndReason.NOTHING_LEFT


async def test_wrong_start_is_not_swept(tmp_path: Path) -> None:
    judge = TuningJudge("wrong")
    state, events = await tuned(tmp_path, judge)
    assert len(attempts_of(state)) == 1
    assert "vector_add#1/1 is wrong; only a correct kernel can be tuned" in notices(state)
    assert state.instances["vector_add#1"].finished == EndReason.START_FAILED
    assert not judge.scripted_survey.compiles
    assert not [event for event in events if isinstance(event, AttemptSwept)]


async def test_tune_starts_from_the_named_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(BASELINE.replace("1024", "512"), encoding="utf-8")
    session_plan = plan(TUNE.session, method="tune", model="none", options=MethodOptions(start=str(file)))
    state, _ = await tuned(tmp_path / "home", TuningJudge(), session_plan)
    assert attempts_of(state)[0].source == file.read_text(encoding="utf-8")
    assert str(file) in attempts_of(state)[0].strategy


async def test_tune_resumed_at_any_line_makes_the_same_attempts_without_a_second_sweep(
    tmp_path: Path,
) -> None:
    whole = Home(tmp_path / "whole")
    uninterrupted, events = await tuned(whole.root, TuningJudge(timed=True))
    made = [(attempt.source, attempt.strategy) for attempt in attempts_of(uninterrupted)]
    for count in range(2, len(events), 9):
        home = Home(tmp_path / f"cut-{count}")
        before = cut(whole, home, TUNE.session, count)
        swept_before = [event.attempt for event in before if isinstance(event, AttemptSwept)]
        judge = TuningJudge(timed=True)
        resumed = await resume_to_end(home, TUNE, NoModel(), judge)
        state = fold(resumed)
        assert [(attempt.source, attempt.strategy) for attempt in attempts_of(state)] == made
        swept = [event.attempt for event in resumed if isinstance(event, AttemptSwept)]
        assert len(swept) == len({*swept}), "answered from the journal"
        assert bool(judge.scripted_survey.compiles) == (len(swept) > len(swept_before))
        assert {words for _, words in state.notices} == {words for _, words in uninterrupted.notices}


class EqualSpeedJudge(TuningJudge):
    """Judge whose variants are all as fast as their start; rungs return `estimate` for each variant."""

    def __init__(self, estimate: float | None) -> None:
        super().__init__(timed=True)
        self._estimate = estimate

    async def evaluate(self, source: str, task: Task, **rest: object) -> Evaluation:
        evaluation = await super().evaluate(source, task, **rest)
        return msgspec.structs.replace(evaluation, latency=one_case(1.0))

    async def estimate(
        self, source: str, task: Task, rough: Rough, *, start: Baseline, on_stage: OnStage
    ) -> Evaluation:
        evaluation = await super().estimate(source, task, rough, start=start, on_stage=on_stage)
        times = tuple(
            msgspec.structs.replace(estimate, ratio=self._estimate) for estimate in evaluation.rough
        )
        return msgspec.structs.replace(evaluation, rough=times)


def rungs_of(events: Sequence[AnyEvent]) -> list[tuple[str, int, frozenset[tuple[str, ...]]]]:
    return [
        (event.attempt, event.rung, frozenset(entry.changes for entry in event.entries))
        for event in events
        if isinstance(event, SweepRung)
    ]


NINE = plan(TUNE.session, method="tune", model="none", iterations=9)


async def test_second_half_uses_the_remaining_variants_if_the_first_half_gains_nothing(
    tmp_path: Path,
) -> None:
    uninterrupted, events = await tuned(tmp_path, EqualSpeedJudge(1.0), NINE)
    first = attempts_of(uninterrupted)[0]
    assert [attempt.base for attempt in attempts_of(uninterrupted)[1:]] == [first.attempt] * 8
    assert len({attempt.source for attempt in attempts_of(uninterrupted)}) == 9
    assert uninterrupted.instances["vector_add#1"].finished == EndReason.ITERATIONS
    rungs = rungs_of(events)
    assert [rung for _, rung, _ in rungs] == [1, 2, 1, 2]
    judged = {attempt.strategy.partition(".")[0] for attempt in attempts_of(uninterrupted)[1:5]}
    assert not judged & {"; ".join(changes) for changes in rungs[2][2]}, (
        "the second half has only unjudged variants"
    )
    assert [(rung.attempt, rung.rung) for rung in first.rungs] == [
        (attempt, rung) for attempt, rung, _ in rungs
    ]


async def test_variants_estimated_as_slower_are_not_judged(tmp_path: Path) -> None:
    judge = EqualSpeedJudge(0.72)
    state, events = await tuned(tmp_path, judge, NINE)
    assert judge.evaluated == [BASELINE]
    assert [rung for _, rung, _ in rungs_of(events)] == [1, 2], "no second estimate"
    assert (
        "vector_add#1/1: none of its variants is judged: the rungs estimate the best at 0.72x its speed"
        in notices(state)
    )
    assert state.instances["vector_add#1"].finished == EndReason.NOTHING_LEFT


@pytest.mark.parametrize("estimate", [0.995, None])
async def test_variants_with_equal_or_no_estimate_are_judged(tmp_path: Path, estimate: float | None) -> None:
    state, _ = await tuned(tmp_path, EqualSpeedJudge(estimate), NINE)
    assert len(attempts_of(state)) == 9
    assert "none of its variants is judged" not in notices(state)


async def test_start_without_a_ratio_is_tuned_like_an_untimed_start(tmp_path: Path) -> None:
    class ShortTimingJudge(TuningJudge):
        async def evaluate(self, source: str, task: Task, **rest: object) -> Evaluation:
            evaluation = await super().evaluate(source, task, **rest)
            row = Latency("0", "fp32", 0.004, 0.004, None, None, "tape")
            return msgspec.structs.replace(evaluation, speedup=None, latency=(row,))

    judge = ShortTimingJudge()
    state, _ = await tuned(tmp_path, judge)
    assert not judge.estimated
    assert "vector_add#1/1: no case has a ratio to the baseline;" in notices(state)


# Settings


def resolved(home: Path, **settings: object) -> SessionPlan:
    fields = {"tasks": ("softmax",), "method": "tune", "devices": ("cpu",), **settings}
    return resolve(RunPlan(**fields), home=Home(home), environ={})  # type: ignore[arg-type]


def test_tune_needs_no_model_and_runs_once(tmp_path: Path) -> None:
    session_plan = resolved(tmp_path)
    assert (session_plan.model, session_plan.instances, session_plan.iterations) == ("none", 1, 10)


def test_path_of_the_start_file_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(BASELINE)
    monkeypatch.chdir(tmp_path)
    assert resolved(tmp_path, start="mine.py").options.start == str(tmp_path / "mine.py")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": "anthropic:test"}, "asks no model; leave --model out"),
        ({"instances": 3}, "all instances would be the same; leave it out"),
        ({"tune": True}, "--tune is an option of geak.*, not of tune"),
        ({"start": "gone.py"}, "gone.py cannot be read: No such file"),
        ({"start": "/dev/null"}, "is empty"),
        (
            {"tasks": ("softmax", "matmul"), "start": "a.py"},
            "a kernel of one task, but the run has 2",
        ),
    ],
)
def test_impossible_setting_is_a_one_line_error(
    tmp_path: Path, settings: dict[str, object], words: str
) -> None:
    with pytest.raises(UsageProblem, match=words) as caught:
        resolved(tmp_path, **settings)
    assert "\n" not in str(caught.value)
