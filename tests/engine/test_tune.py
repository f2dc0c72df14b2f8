"""The method `tune`: what becomes an attempt, in which order, and what a resumed session makes again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from engine.errors import UsageProblem
from engine.models import NoModel
from engine.plan import RunPlan, SessionPlan, resolve
from engine.reviewing import Decisions
from engine.tuning import FIELD
from harness import ROUGH, Evaluation, Latency, Verdict
from sessions import Home, fold, resume
from sessions.events import (
    AnyEvent,
    AttemptSwept,
    CallStarted,
    EndReason,
    EngineStarted,
    MethodOptions,
    Origin,
    SessionFinished,
    SweepRung,
)
from sessions.journal import read_journal
from sessions.state import SessionState
from suites import Task
from tests.support.engines import plan, play, run, shared
from tests.support.surveys import ToldSurvey
from tests.support.tuning import BASELINE, Judging, notices, only, speed
from tui.narrate import Narrator

TUNE = plan("20260101-000000-tune-0000", method="tune", model="none", iterations=5)


async def tuned(home: Path, judge: Judging, of: SessionPlan = TUNE) -> tuple[SessionState, list[AnyEvent]]:
    events: list[AnyEvent] = [*await play(Home(home), NoModel(), of=of, judge=judge)]  # type: ignore[list-item]
    return fold(events), events


async def test_it_starts_with_the_baseline_unchanged_and_derives_every_variant_from_it(
    tmp_path: Path,
) -> None:
    judge = Judging()
    state, events = await tuned(tmp_path, judge)
    first, *variants = only(state)
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
    assert judge.evaluated == [attempt.source for attempt in only(state)], "each by the whole judge, once"
    assert not [event for event in events if isinstance(event, CallStarted)], "no model was asked"


async def test_the_best_is_never_worse_than_the_start(tmp_path: Path) -> None:
    for name, wrong in (("some", ()), ("none", (256, 512, 2048, 4096))):
        state, _ = await tuned(tmp_path / name, Judging(timed=True, wrong=wrong))
        speedups = {
            attempt.attempt: attempt.evaluation.speedup for attempt in only(state) if attempt.evaluation
        }
        best = state.instances["vector_add#1"].best
        assert best is not None
        assert (speedups[best] or 0) >= (speedups["vector_add#1/1"] or 0)


async def test_where_attempts_are_timed_half_of_them_go_around_the_best_so_far(tmp_path: Path) -> None:
    judge = Judging(timed=True)
    state, events = await tuned(
        tmp_path, judge, plan(TUNE.session, method="tune", model="none", iterations=9)
    )
    swept = [event.attempt for event in events if isinstance(event, AttemptSwept)]
    assert swept[0] == "vector_add#1/1"
    bases = [attempt.base for attempt in only(state)[1:]]
    assert len(bases) == 8, "every iteration is spent where a measurement comes of it"
    assert bases[:4] == ["vector_add#1/1"] * 4
    assert {*bases[4:]} == {swept[1]}
    first = max(
        only(state)[:5], key=lambda attempt: attempt.evaluation.speedup or 0 if attempt.evaluation else 0
    )
    assert swept[1] == first.attempt
    assert len({attempt.source for attempt in only(state)}) == 9, "no source twice"


async def test_a_change_that_was_wrong_is_passed_over_in_others(tmp_path: Path) -> None:
    of = plan(TUNE.session, method="tune", model="none", iterations=20)
    right, _ = await tuned(tmp_path / "right", Judging(timed=True), of)
    assert sum("BLOCK 1024 to 4096" in attempt.strategy for attempt in only(right)) > 1
    judge = Judging(timed=True, wrong=(4096,))
    judge.seen_by_rungs = False
    state, _ = await tuned(tmp_path / "wrong", judge, of)
    alone = next(attempt for attempt in only(state) if attempt.strategy.startswith("BLOCK 1024 to 4096."))
    assert alone.verdict is Verdict.WRONG
    assert not any("BLOCK 1024 to 4096" in attempt.strategy for attempt in only(state)[alone.number :])


async def test_where_attempts_are_timed_only_what_rungs_of_few_samples_leave_is_judged(
    tmp_path: Path,
) -> None:
    judge = Judging(timed=True, wrong=(2048,))
    of = plan(TUNE.session, method="tune", model="none", iterations=9)
    state, events = await tuned(tmp_path, judge, of)
    first, *_ = only(state)
    assert first.sweep is not None
    told = [event for event in events if isinstance(event, SweepRung) and event.attempt == first.attempt]
    assert [(rung.rung, rung.pairs) for rung in told] == [(1, ROUGH[0].pairs), (2, ROUGH[1].pairs)]
    fields = [{entry.changes for entry in rung.entries} for rung in told]
    kept = [{entry.changes for entry in rung.entries if entry.kept} for rung in told]
    assert fields[0] == {variant.changes for variant in first.sweep.variants}
    assert fields[1] == kept[0]
    assert len(kept[0]) <= 8
    assert len(kept[1]) == 4
    for rung in told:
        wrong = [entry for entry in rung.entries if entry.verdict != "correct"]
        assert not any(entry.kept for entry in wrong)
        assert all(entry.why for entry in wrong)
        worst = min(entry.estimate or 0 for entry in rung.entries if entry.kept)
        left = [entry for entry in rung.entries if not entry.kept and entry.estimate is not None]
        assert all((entry.estimate or 0) <= worst for entry in left)
    assert any(entry.verdict == "wrong" for entry in told[0].entries)
    narrator = Narrator()
    lines = [
        line for event in events for line in narrator.tell(event) if "rung 1" in line or "rung 2" in line
    ]
    assert len(lines) >= 2
    assert all(" go on" in line and "an estimate" in line for line in lines)
    by_strategy = [attempt for attempt in only(state) if attempt.base == first.attempt]
    assert [attempt.strategy.partition(".")[0] for attempt in by_strategy] == [
        "; ".join(entry.changes) for entry in told[1].entries if entry.kept
    ], "the best by estimate first"
    for attempt in by_strategy:
        assert "an estimate from 20 samples" in attempt.strategy
        assert attempt.evaluation is not None
        assert attempt.evaluation.speedup == pytest.approx(speed(attempt.source or "")), "the judge's own"
    assert not {source for source, _ in judge.estimated[: len(fields[0])]} & {first.source}
    assert len(judge.estimated) <= 2 * 2 * FIELD * 4
    first_sweep = judge.known[: len(fields[0]) + len(fields[1])]
    assert first_sweep == [False] * len(fields[0]) + [True] * len(fields[1]), "right in the first rung"


async def test_a_judge_that_can_estimate_nothing_ends_the_instance_as_our_failure(tmp_path: Path) -> None:
    judge = Judging(timed=True)
    judge.unable = 1000
    state, _ = await tuned(tmp_path, judge)
    instance = state.instances["vector_add#1"]
    assert instance.finished == EndReason.INFRA_ERROR
    assert "could estimate no variant of vector_add#1/1" in instance.message


async def test_an_estimate_that_failed_is_asked_for_once_more(tmp_path: Path) -> None:
    judge = Judging(timed=True)
    judge.unable = 1
    state, events = await tuned(tmp_path, judge)
    rung = next(event for event in events if isinstance(event, SweepRung))
    assert {entry.verdict for entry in rung.entries} == {"correct"}
    assert len({attempt.source for attempt in only(state)}) == 5


async def test_it_ends_early_and_says_so_where_nothing_looks_better(tmp_path: Path) -> None:
    judge = Judging()
    judge.surveying = ToldSurvey()
    state, _ = await tuned(tmp_path, judge)
    assert len(only(state)) == 1
    assert "vector_add#1/1: none of" in notices(state)
    assert state.instances["vector_add#1"].finished == EndReason.NOTHING_LEFT


async def test_a_start_that_is_wrong_is_not_swept(tmp_path: Path) -> None:
    judge = Judging("wrong")
    state, events = await tuned(tmp_path, judge)
    assert len(only(state)) == 1
    assert "vector_add#1/1 is wrong; only a correct kernel can be tuned" in notices(state)
    assert state.instances["vector_add#1"].finished == EndReason.START_FAILED
    assert not judge.survey_told.compiles
    assert not [event for event in events if isinstance(event, AttemptSwept)]


async def test_it_starts_from_the_file_that_was_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(BASELINE.replace("1024", "512"), encoding="utf-8")
    of = plan(TUNE.session, method="tune", model="none", options=MethodOptions(start=str(file)))
    state, _ = await tuned(tmp_path / "home", Judging(), of)
    assert only(state)[0].source == file.read_text(encoding="utf-8")
    assert str(file) in only(state)[0].strategy


async def test_resumed_at_any_line_it_meets_the_same_attempts_and_sweeps_no_attempt_twice(
    tmp_path: Path,
) -> None:
    whole = Home(tmp_path / "whole")
    undisturbed, events = await tuned(whole.root, Judging(timed=True))
    lines = whole.live(TUNE.session).journal.read_bytes().splitlines(keepends=True)
    for count in range(2, len(events), 4):
        home = Home(tmp_path / f"cut-{count}")
        live = home.live(TUNE.session)
        live.folder.mkdir(parents=True)
        live.journal.write_bytes(b"".join(lines[:count]))
        known = [
            event.attempt for event in read_journal(live.journal).events if isinstance(event, AttemptSwept)
        ]
        judge = Judging(timed=True)
        with resume(home, TUNE.session) as recorder:
            recorder.record(EngineStarted(host="here", pid=2, resumed=True))
            await run(shared(recorder, TUNE, NoModel(), judge, Decisions()))
            recorder.record(SessionFinished())
            state = recorder.state
            assert [each.source for each in only(state)] == [each.source for each in only(undisturbed)]
            assert [each.strategy for each in only(state)] == [each.strategy for each in only(undisturbed)]
            swept = [
                event.attempt
                for event in read_journal(live.journal).events
                if isinstance(event, AttemptSwept)
            ]
        assert len(swept) == len({*swept}), "answered from the journal"
        assert bool(judge.survey_told.compiles) == (len(swept) > len(known))
        assert {words for _, words in state.notices} == {words for _, words in undisturbed.notices}


class Level(Judging):
    """Whose variants are all as fast as their start; rungs estimate them as told, or not at all."""

    def __init__(self, estimate: float | None) -> None:
        super().__init__(timed=True)
        self._estimate = estimate

    async def evaluate(self, source: str, task: Task, **rest: object) -> Evaluation:
        said = await super().evaluate(source, task, **rest)
        return msgspec.structs.replace(said, speedup=1.0)

    async def estimate(self, source: str, task: Task, **rest: object) -> Evaluation:
        said = await super().estimate(source, task, **rest)  # type: ignore[arg-type]
        rough = tuple(msgspec.structs.replace(one, ratio=self._estimate) for one in said.rough)
        return msgspec.structs.replace(said, rough=rough)


def rungs_of(events: Sequence[AnyEvent]) -> list[tuple[str, int, frozenset[tuple[str, ...]]]]:
    return [
        (event.attempt, event.rung, frozenset(entry.changes for entry in event.entries))
        for event in events
        if isinstance(event, SweepRung)
    ]


NINE = plan(TUNE.session, method="tune", model="none", iterations=9)


async def test_where_the_first_half_brings_nothing_better_the_second_is_of_the_variants_that_are_left(
    tmp_path: Path,
) -> None:
    whole = Home(tmp_path / "whole")
    undisturbed, events = await tuned(whole.root, Level(1.0), NINE)
    first = only(undisturbed)[0]
    assert [attempt.base for attempt in only(undisturbed)[1:]] == [first.attempt] * 8
    assert len({attempt.source for attempt in only(undisturbed)}) == 9
    assert undisturbed.instances["vector_add#1"].finished == EndReason.ITERATIONS
    rungs = rungs_of(events)
    assert [rung for _, rung, _ in rungs] == [1, 2, 1, 2]
    judged = {attempt.strategy.partition(".")[0] for attempt in only(undisturbed)[1:5]}
    assert not judged & {"; ".join(changes) for changes in rungs[2][2]}, "of others than were judged"
    assert [(each.attempt, each.rung) for each in first.rungs] == [
        (attempt, rung) for attempt, rung, _ in rungs
    ]
    lines = whole.live(NINE.session).journal.read_bytes().splitlines(keepends=True)
    for count in range(2, len(events), 5):
        home = Home(tmp_path / f"cut-{count}")
        live = home.live(NINE.session)
        live.folder.mkdir(parents=True)
        live.journal.write_bytes(b"".join(lines[:count]))
        with resume(home, NINE.session) as recorder:
            recorder.record(EngineStarted(host="here", pid=2, resumed=True))
            await run(shared(recorder, NINE, NoModel(), Level(1.0), Decisions()))
            recorder.record(SessionFinished())
            again = recorder.state
        assert [each.strategy for each in only(again)] == [each.strategy for each in only(undisturbed)]
        assert rungs_of(read_journal(live.journal).events) == rungs, "none is climbed twice"


async def test_what_rungs_estimate_as_slower_is_not_judged(tmp_path: Path) -> None:
    judge = Level(0.72)
    state, events = await tuned(tmp_path, judge, NINE)
    assert judge.evaluated == [BASELINE]
    assert [rung for _, rung, _ in rungs_of(events)] == [1, 2], "and not estimated again"
    assert (
        "vector_add#1/1: none of its variants is judged: the rungs estimate the best at 0.72x its speed"
        in notices(state)
    )
    assert state.instances["vector_add#1"].finished == EndReason.NOTHING_LEFT


@pytest.mark.parametrize("estimate", [0.995, None])
async def test_what_may_be_as_fast_or_has_no_estimate_is_judged(
    tmp_path: Path, estimate: float | None
) -> None:
    state, _ = await tuned(tmp_path, Level(estimate), NINE)
    assert len(only(state)) == 9
    assert "none of its variants is judged" not in notices(state)


async def test_a_start_whose_timing_was_not_whole_is_tuned_as_where_nothing_is_timed(
    tmp_path: Path,
) -> None:
    class Partly(Judging):
        async def evaluate(self, source: str, task: Task, **rest: object) -> Evaluation:
            said = await super().evaluate(source, task, **rest)
            row = Latency("0", "fp32", 1.0, 1.0, 1.0, None, "graph")
            return msgspec.structs.replace(said, speedup=None, latency=(row,), not_timed=("fp16",))

    judge = Partly()
    state, _ = await tuned(tmp_path, judge)
    assert not judge.estimated
    assert "vector_add#1/1: timing not whole: 1 of 2 cases;" in notices(state)


# What may be asked for


def resolved(home: Path, **asked: object) -> SessionPlan:
    fields = {"tasks": ("softmax",), "method": "tune", "devices": ("cpu",), **asked}
    return resolve(RunPlan(**fields), home=Home(home), environ={})  # type: ignore[arg-type]


def test_it_needs_no_model_and_runs_once(tmp_path: Path) -> None:
    found = resolved(tmp_path)
    assert (found.model, found.instances, found.iterations) == ("none", 1, 10)


def test_the_start_is_found_wherever_the_engine_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(BASELINE)
    monkeypatch.chdir(tmp_path)
    assert resolved(tmp_path, options=MethodOptions(start="mine.py")).options.start == str(
        tmp_path / "mine.py"
    )


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"model": "anthropic:test"}, "asks no model; leave --model out"),
        ({"instances": 3}, "all instances would be the same; leave it out"),
        ({"options": MethodOptions(tune=True)}, "--tune is an option of geak.*, not of tune"),
        ({"options": MethodOptions(start="gone.py")}, "gone.py cannot be read: No such file"),
        ({"options": MethodOptions(start="/dev/null")}, "is empty"),
        (
            {"tasks": ("softmax", "matmul"), "options": MethodOptions(start="a.py")},
            "a kernel of one task, but the run has 2",
        ),
    ],
)
def test_what_cannot_be_is_one_line_with_the_remedy(
    tmp_path: Path, asked: dict[str, object], words: str
) -> None:
    with pytest.raises(UsageProblem, match=words) as told:
        resolved(tmp_path, **asked)
    assert "\n" not in str(told.value)
