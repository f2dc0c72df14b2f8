"""The method `tune`: a sweep over a kernel's launch parameters, without a model; the best variants are judged in turn.

Attempt 1 is the start kernel, unchanged, so the best attempt is never worse than the start. Each later attempt is a
variant of the sweep (`engine.tuning.sweep`), best first, and gets the complete judgement of any other candidate. One
iteration is one evaluated candidate; the sweep compiles many more variants than it proposes. If a variant is not
correct, other variants with the same changes are skipped.

With timing, the sweep names several variants for each that may be judged. Rungs with few and then more samples keep
the better variants (`engine.tuning.rungs`). A variant is not judged if the last rung estimates it as slower than its
parent. When half of the iterations are used, the sweep is repeated around the best attempt. With `--by case` the rungs keep
the best variants of each case.

Without timing, only variants that look better than the start by their resources are judged. Each says that
this is a guess, and the method ends early when no such variant is left.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from engine.methods.context import Context
from engine.methods.proposing import judge_candidate
from engine.prompting.judged import JudgedCandidate
from engine.reply.candidate import Candidate
from engine.tuning.rungs import FIELD, rungs, survivors
from harness import Verdict
from harness.wire.results.ratios import TIE
from sessions.events import METHOD_FACTS, AttemptSwept, EndReason, Origin, SweepRung, SweptVariant
from sessions.state.figure_words import ratio_words
from sessions.state.speed import speed_of
from suites.loader import baseline_source

SPARE = 2
"""Variants that a sweep names for each that can be judged; some are skipped."""


class Tune:
    """The method `tune`."""

    name = "tune"
    asks_model = False
    takes = frozenset({"start", "by"})
    modules: frozenset[str] = frozenset()
    roles, iterations = METHOD_FACTS["tune"]

    async def run(self, context: Context) -> EndReason:
        """See `Method`."""
        start = context.start()
        source = start.source if start is not None else baseline_source(context.task)
        strategy = strategy_of_start(
            context.options.start or f"the timing baseline of {context.task.short_id}"
        )
        attempt = await context.attempt(Origin.TUNE, None)
        best = JudgedCandidate(await context.judge(source, strategy))
        evaluation = best.evaluation
        if evaluation.verdict is not Verdict.CORRECT:
            context.notify(f"{attempt} is {evaluation.verdict}; only a correct kernel can be tuned")
            return EndReason.START_FAILED
        timed = speed_of(evaluation) is not None
        if evaluation.latency and not timed:
            context.notify(
                f"{attempt}: no case has a ratio to the baseline; variants are ranked by counts and resources instead"
            )
        remaining = context.iterations - 1
        tried = {source}
        best = await best_of_sweep(
            context, best, -(-remaining // 2) if timed else remaining, tried, timed=timed
        )
        if timed and len(tried) > 1:
            best = await best_of_sweep(context, best, context.iterations - len(tried), tried, timed=timed)
        return EndReason.ITERATIONS if len(tried) >= context.iterations else EndReason.NOTHING_LEFT


async def best_of_sweep(
    context: Context, start: JudgedCandidate, most: int, tried: set[str], *, timed: bool
) -> JudgedCandidate:
    """Sweep `start` and judge at most `most` variants; returns the best of these and the start.

    `tried` holds the sources that were judged, and grows.
    """
    if most < 1:
        return start
    swept = await context.sweep(start.attempt, most=(FIELD if timed else SPARE) * most)
    best, judged = start, 0
    failed: list[frozenset[str]] = []
    field = [variant for variant in worth_judging(swept, timed=timed) if variant.source not in tried]
    reports: list[SweepRung] = []
    if timed:
        finals = await finalists(context, start.attempt, field, most, reports)
        by_case = context.options.by == "case"
        field = [variant for variant in finals if _may_be_as_fast(reports, variant, by_case=by_case)]
        if finals and not field:
            fastest = max(_estimate(reports, variant) or 0.0 for variant in finals)
            context.notify(
                f"{start.attempt}: none of its variants is judged: the rungs estimate the best at {ratio_words(fastest)} its speed"
            )
    for variant in field:
        changes = frozenset(variant.changes)
        if any(changes >= failure for failure in failed):
            continue
        if judged == most:
            break
        tried.add(variant.source)
        judged += 1
        tuned = await judge_variant(context, start.attempt, swept, variant, best=best, reports=reports)
        if tuned is None:
            failed.append(changes)
        elif tuned.rank > best.rank:
            best = tuned
    if not judged and not timed:
        context.notify(
            f"{start.attempt}: none of {swept.tried} variants looks better; ranked by {swept.ranked_by}"
        )
    return best


async def finalists(
    context: Context, base: str, variants: Sequence[SweptVariant], most: int, reports: list[SweepRung]
) -> list[SweptVariant]:
    """Returns at most `most` variants of an attempt, best first, chosen by rungs with more and more samples.

    The report of each rung is appended to `reports`.
    """
    remaining = list(variants)
    for rung in rungs(len(remaining), most):
        reports.append(await context.rung(base, remaining, rung))
        remaining = survivors(reports[-1], remaining)
    return remaining


async def judge_variant(
    context: Context,
    base: str,
    swept: AttemptSwept,
    variant: SweptVariant,
    *,
    best: JudgedCandidate,
    reports: Sequence[SweepRung],
) -> JudgedCandidate | None:
    """Make an attempt of a variant; returns it, or `None` if the judge or a reviewing person did not pass it."""
    strategy = strategy_of_variant(swept, variant, reports)
    await context.attempt(Origin.TUNE, base)
    judged = await judge_candidate(context, Candidate(variant.source, strategy), best=best)
    return judged if judged.passed else None


async def better_variant(
    context: Context, correct: JudgedCandidate, best: JudgedCandidate
) -> JudgedCandidate | None:
    """Make an attempt of the best variant of a correct attempt; `None` if no variant looks better or it fails.

    With timing, the variant must be faster by estimate of the rungs, by more than the smallest difference that timing
    can resolve.
    """
    timed = speed_of(correct.evaluation) is not None
    swept = await context.sweep(correct.attempt, most=FIELD if timed else 1)
    field = list(worth_judging(swept, timed=timed))
    reports: list[SweepRung] = []
    if timed:
        field = [
            variant
            for variant in await finalists(context, correct.attempt, field, 1, reports)
            if (_estimate(reports, variant) or math.inf) > 1 + TIE
        ]
    if not field:
        return None
    return await judge_variant(context, correct.attempt, swept, field[0], best=best, reports=reports)


def _estimate(reports: Sequence[SweepRung], variant: SweptVariant) -> float | None:
    """The estimate of the last rung; `None` if there is none."""
    entries = reports[-1].entries if reports else ()
    return next((entry.estimate for entry in entries if entry.changes == variant.changes), None)


def _may_be_as_fast(reports: Sequence[SweepRung], variant: SweptVariant, *, by_case: bool) -> bool:
    """True unless the estimate, over all cases or of every case, is slower than the parent by more than timing can resolve."""
    entries = reports[-1].entries if reports else ()
    entry = next((entry for entry in entries if entry.changes == variant.changes), None)
    if entry is None or entry.estimate is None:
        return True
    return max([entry.estimate, *entry.by_case.values()] if by_case else [entry.estimate]) >= 1 - TIE


def worth_judging(swept: AttemptSwept, *, timed: bool) -> Iterator[SweptVariant]:
    """Returns the variants that may be judged: all of them with timing, else only those that look better."""
    return (variant for variant in swept.variants if timed or variant.better)


def strategy_of_start(name: str) -> str:
    """Returns the strategy of the first attempt of a sweep."""
    return f"The start of the sweep, unchanged: {name}."


def strategy_of_variant(swept: AttemptSwept, variant: SweptVariant, rungs: Sequence[SweepRung] = ()) -> str:
    """Returns the strategy of a variant; claims only what was compiled or timed."""
    dropped = ", ".join(f"{count} {why}" for why, count in swept.pruned.items())
    return (
        f"{'; '.join(variant.changes)}. A sweep without a model: {swept.tried} variants of {swept.attempt} were compiled "
        f"for {swept.target}"
        + (f", of which {dropped}" if dropped else "")
        + (f". Named by {swept.ranked_by}." if rungs else f". Chosen by {swept.ranked_by}.")
        + "".join(f" {_rung_words(rung, variant)}" for rung in rungs)
    )


def _rung_words(rung: SweepRung, variant: SweptVariant) -> str:
    """The variant's result in a rung, and how many variants the rung had."""
    entry = next(entry for entry in rung.entries if entry.changes == variant.changes)
    words = f"Rung {rung.rung} kept {sum(entry.kept for entry in rung.entries)} of {len(rung.entries)}"
    if entry.estimate is None:
        return f"{words}, this one without an estimate."
    return f"{words}, this one at about {ratio_words(entry.estimate)} of {rung.attempt}: an estimate from {entry.samples} samples."
