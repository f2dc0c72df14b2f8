"""Rules of `tune` and `geak --tune` that hold for any verdicts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from engine.methods import Start
from engine.methods.geak import Geak
from engine.methods.tune import Tune
from engine.tuning.rungs import PlannedRung, mark_kept
from harness import Verdict
from sessions.events import AttemptSwept, Origin, RungEntry, SweepRung, SweptVariant
from sessions.settings import MethodOptions
from sessions.state.ranking import rank
from tests.support.engine.engines import candidate
from tests.support.engine.scripted_context import ScriptedAttempt, ScriptedContext

VERDICTS = st.one_of(
    st.sampled_from(("wrong", "compile_error", "timeout", "unsupported", "correct")),
    st.floats(min_value=0.1, max_value=9, allow_nan=False).map(lambda speedup: f"correct {speedup:.2f}"),
)
VARIANTS = st.lists(
    st.tuples(VERDICTS, st.booleans(), st.sets(st.sampled_from("abcd"), min_size=1)), max_size=12
)


class SweepContext(ScriptedContext):
    """`ScriptedContext` whose sweep n returns the variants of `sweeps[n]`."""

    def __init__(
        self, *verdicts: str, sweeps: list[list[tuple[str, bool, set[str]]]], start: str = ""
    ) -> None:
        super().__init__(*verdicts)
        self.notices: list[str] = []
        self._sweeps, self._start = sweeps, start
        self._swept: dict[str, AttemptSwept] = {}
        self._words: dict[str, str] = {}
        """The verdict of each variant, by its source."""

    def start(self) -> Start | None:
        source = candidate(self._start, "start")
        return Start(source, Origin.HUMAN, "the start") if self._start else None

    async def sweep(self, attempt: str, *, most: int) -> AttemptSwept:
        if attempt not in self._swept:
            number = len(self._swept)
            entries = self._sweeps[number % len(self._sweeps)] if self._sweeps else []
            variants = [
                SweptVariant(tuple(sorted(changes)), candidate(verdict, f"{number}.{index}"), better)
                for index, (verdict, better, changes) in enumerate(entries)
            ]
            self._words |= {
                variant.source: verdict for variant, (verdict, _, _) in zip(variants, entries, strict=True)
            }
            self._swept[attempt] = AttemptSwept(
                attempt=attempt, target="gfx942", tried=len(entries), variants=tuple(variants[:most])
            )
        return self._swept[attempt]

    async def rung(self, attempt: str, variants: Sequence[SweptVariant], rung: PlannedRung) -> SweepRung:
        entries = [self._entry(variant) for variant in variants]
        return SweepRung(
            attempt=attempt, rung=rung.number, pairs=rung.effort.pairs, entries=mark_kept(entries, rung.keeps)
        )

    def _entry(self, variant: SweptVariant) -> RungEntry:
        verdict, _, speedup = self._words[variant.source].partition(" ")
        return RungEntry(variant.changes, verdict, float(speedup) if speedup else None, 10)

    def notify(self, words: str) -> None:
        self.notices.append(words)


def passed(attempt: ScriptedAttempt) -> bool:
    return attempt.evaluation is not None and attempt.evaluation.verdict is Verdict.CORRECT


def check_lineage(attempts: list[ScriptedAttempt]) -> None:
    """Assert that each variant has a correct earlier base and no model call."""
    before: dict[str, ScriptedAttempt] = {}
    for attempt in attempts:
        if attempt.origin is Origin.TUNE and attempt.base is not None:
            assert passed(before[attempt.base])
            assert not attempt.calls
        before[attempt.name] = attempt


@given(
    st.integers(min_value=1, max_value=9),
    st.sampled_from(("correct", "correct 1.00", "wrong")),
    st.lists(VARIANTS, min_size=1, max_size=3),
)
def test_tune_stays_within_its_iterations_and_never_ends_below_its_start(
    iterations: int, start: str, sweeps: list[list[tuple[str, bool, set[str]]]]
) -> None:
    context = SweepContext(*["-"] * iterations, sweeps=sweeps, start=start)
    asyncio.run(Tune().run(context))
    first, *variants = context.attempts
    assert (first.origin, first.base) == (Origin.TUNE, None)
    assert len(variants) < iterations
    check_lineage(context.attempts)
    if not passed(first):
        assert not variants
        assert context.notices
        return
    assert all(attempt.base is not None for attempt in variants)
    evaluations = [attempt.evaluation for attempt in context.attempts if attempt.evaluation]
    assert max(map(rank, evaluations)) >= rank(evaluations[0])
    untimed = first.evaluation is not None and first.evaluation.speedup is None
    if untimed:
        assert len(variants) <= sum(better for _, better, _ in sweeps[0]), (
            "only variants that look better are judged"
        )


@given(
    st.lists(st.one_of(VERDICTS, st.just("prose")), min_size=1, max_size=10), st.lists(VARIANTS, max_size=3)
)
def test_geak_keeps_all_its_iterations_with_sweeps(
    verdicts: list[str], sweeps: list[list[tuple[str, bool, set[str]]]]
) -> None:
    context = AlternatingContext(*verdicts, sweeps=sweeps)
    context.options = MethodOptions(tune=True)
    asyncio.run(Geak().run(context))
    model_attempts = [attempt for attempt in context.attempts if attempt.origin is not Origin.TUNE]
    assert len(model_attempts) == len(verdicts)
    check_lineage(context.attempts)
    for attempt, following in zip(context.attempts, context.attempts[1:], strict=False):
        if following.origin is Origin.TUNE:
            assert attempt.origin is not Origin.TUNE
            assert (following.base, passed(attempt)) == (attempt.name, True)
        if following.origin is Origin.REPAIR:
            repaired = next(attempt for attempt in context.attempts if attempt.name == following.base)
            assert repaired.origin is not Origin.TUNE, "a failed variant is never repaired"


class AlternatingContext(SweepContext):
    """Context whose verdicts count only attempts with model calls."""

    @property
    def _verdict(self) -> str:
        model_attempts = [attempt for attempt in self.attempts if attempt.origin is not Origin.TUNE]
        return self.world.verdicts[len(model_attempts) - 1]
