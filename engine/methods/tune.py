"""`tune`: no model. A sweep of a kernel's launch parameters, the best variants judged one after the other.

Attempt 1 is the start itself, unchanged, so the best attempt never does worse than it. Each later attempt is a variant that
the sweep names (`engine.tuning.sweep`), best first, judged by the whole judge like any other candidate; one iteration is one
evaluated candidate, and the sweep compiles many more than it proposes. What a verdict teaches is used: changes whose variant
was not correct are passed over in others. Where attempts are timed, the sweep names several variants for each that may be
judged, rungs of few samples and then more (`engine.tuning.rungs`) leave the better ones, and the sweep is made again around
the best attempt once half of the iterations are spent; what the last rung estimates as slower than the attempt that it varies is not judged. Where nothing is timed, only variants are judged that look better than the start by estimate and
resources; each says that this is a guess, and the method ends early when there are no more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from engine.tuning import FIELD, rungs, strategy_of_start, strategy_of_variant, survivors
from harness import Verdict
from harness.wire.ratios import SMALLEST
from sessions.events import AttemptSwept, EndReason, Origin, Role, SweepRung, SweptVariant

from .context import Context
from .history import Ancestor

SPARE = 2
"""Variants that a sweep names for each that can be judged: some are passed over."""


class Tune:
    """The method `tune`."""

    name = "tune"
    asks_model = False
    takes = frozenset({"start"})
    roles: frozenset[Role] = frozenset()
    modules: frozenset[str] = frozenset()
    iterations: int | None = None

    async def run(self, context: Context) -> EndReason:
        """See `Method`."""
        source = context.start()
        strategy = strategy_of_start(
            context.options.start or f"the timing baseline of {context.task.short_id}"
        )
        attempt = await context.attempt(Origin.TUNE, None)
        evaluation = await context.judge(source, strategy, rival=None)
        if evaluation.verdict is not Verdict.CORRECT:
            context.tell(f"{attempt} is {evaluation.verdict}, and only a correct kernel can be tuned")
            return EndReason.START_FAILED
        best = Ancestor(attempt, source, strategy, evaluation)
        timed = evaluation.speedup is not None
        if evaluation.in_part:
            context.tell(
                f"{attempt}: timing {evaluation.in_part}; variants are ranked as where nothing is timed"
            )
        left = context.iterations - 1
        tried = {source}
        best = await best_of_sweep(context, best, -(-left // 2) if timed else left, tried, timed=timed)
        if timed and len(tried) > 1:
            best = await best_of_sweep(context, best, context.iterations - len(tried), tried, timed=timed)
        return EndReason.ITERATIONS if len(tried) >= context.iterations else EndReason.NOTHING_LEFT


async def best_of_sweep(
    context: Context, start: Ancestor, most: int, tried: set[str], *, timed: bool
) -> Ancestor:
    """The best of a start and of at most `most` variants that a sweep over it names. `tried` holds sources, and grows."""
    if most < 1:
        return start
    swept = await context.sweep(start.attempt, most=(FIELD if timed else SPARE) * most)
    best, judged = start, 0
    failed: list[frozenset[str]] = []
    field = [variant for variant in worth_judging(swept, timed=timed) if variant.source not in tried]
    told: list[SweepRung] = []
    if timed:
        left = await finalists(context, start.attempt, field, most, told)
        field = [variant for variant in left if _may_be_as_fast(told, variant)]
        if left and not field:
            fastest = max(_estimate(told, variant) or 0.0 for variant in left)
            context.tell(
                f"{start.attempt}: none of its variants is judged: rungs estimate the best at about {fastest:.2f}x of it"
            )
    for variant in field:
        changes = frozenset(variant.changes)
        if any(changes >= known for known in failed):
            continue
        if judged == most:
            break
        tried.add(variant.source)
        judged += 1
        found = await judged_variant(context, start.attempt, swept, variant, rival=best, told=told)
        if found is None:
            failed.append(changes)
        elif found.rank > best.rank:
            best = found
    if not judged and not timed:
        context.tell(
            f"{start.attempt}: none of {swept.tried} variants looks better; ranked by {swept.ranked_by}"
        )
    return best


async def finalists(
    context: Context, base: str, variants: Sequence[SweptVariant], most: int, told: list[SweepRung]
) -> list[SweptVariant]:
    """At most `most` of an attempt's variants, best first, by rungs of few samples and then more. `told` gets what each rung said."""
    left = list(variants)
    for number, (effort, keeps) in enumerate(rungs(len(left), most), 1):
        told.append(await context.rung(base, left, number=number, effort=effort, most=keeps))
        left = survivors(told[-1], left)
    return left


async def judged_variant(
    context: Context,
    base: str,
    swept: AttemptSwept,
    variant: SweptVariant,
    *,
    rival: Ancestor,
    told: Sequence[SweepRung] = (),
) -> Ancestor | None:
    """A variant as the next attempt; `None` where the judge, or in manual review a person, did not let it pass."""
    strategy = strategy_of_variant(swept, variant, told)
    attempt = await context.attempt(Origin.TUNE, base)
    evaluation = await context.judge(variant.source, strategy, rival=rival.source)
    if evaluation.verdict is not Verdict.CORRECT or not (await context.review()).accepted:
        return None
    return Ancestor(attempt, variant.source, strategy, evaluation)


async def better_variant(context: Context, correct: Ancestor, best: Ancestor) -> Ancestor | None:
    """The best variant of an attempt that passed, as one more attempt; `None` where none looks better, or it did not pass.

    Where attempts are timed it is the best by rungs of few samples, if that estimates it as faster than the attempt by more than two kernels must
    differ to be told apart.
    """
    timed = correct.evaluation.speedup is not None
    swept = await context.sweep(correct.attempt, most=FIELD if timed else 1)
    field = list(worth_judging(swept, timed=timed))
    told: list[SweepRung] = []
    if timed:
        field = [
            variant
            for variant in await finalists(context, correct.attempt, field, 1, told)
            if (_estimate(told, variant) or math.inf) > 1 + SMALLEST
        ]
    if not field:
        return None
    return await judged_variant(context, correct.attempt, swept, field[0], rival=best, told=told)


def _estimate(told: Sequence[SweepRung], variant: SweptVariant) -> float | None:
    """The last rung's; `None` where there was none or it could not say."""
    entries = told[-1].entries if told else ()
    return next((entry.estimate for entry in entries if entry.changes == variant.changes), None)


def _may_be_as_fast(told: Sequence[SweepRung], variant: SweptVariant) -> bool:
    """Whether no estimate says that it is slower than what it varies, by more than two kernels must differ to be told apart."""
    estimate = _estimate(told, variant)
    return estimate is None or estimate >= 1 - SMALLEST


def worth_judging(swept: AttemptSwept, *, timed: bool) -> Iterator[SweptVariant]:
    """Variants that an attempt may be spent on: where the judge times, all of them; else those that look better."""
    return (variant for variant in swept.variants if timed or variant.better)
