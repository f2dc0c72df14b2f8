"""Judges candidates by a benchmark's own definition of correct. Each result is kept at once; no session is recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from engine.predictions.matching import Sample
from engine.predictions.original_verdicts import ORIGINAL
from engine.predictions.results import PredictionResult, ResultLines, judge_each
from harness import DevicePool, Target, WorkerDied
from harness.recording.original import OriginalOutcome, OriginalVerdict, judge_original

Results = ResultLines[PredictionResult]


async def judge_originals(
    samples: Sequence[Sample],
    results: Results,
    judge: Callable[[Sample], Awaitable[OriginalVerdict]],
    *,
    device: str,
    slots: int,
    seed: int,
    again: bool,
    say: Callable[[str], None],
) -> list[Sample]:
    """Judge the samples that have no result, with `again` all of them. Returns the samples on which the judge failed.

    Equal candidates for one task are judged once. `judge` raises `WorkerDied` if a process of ours is lost.
    """
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.key(ORIGINAL, seed), []).append(sample)
    missing = [group for key, group in groups.items() if again or results.find(key) is None]
    lost: list[Sample] = []

    async def judge_group(group: list[Sample]) -> str:
        name = group[0].name
        try:
            verdict = await judge(group[0])
        except WorkerDied as reason:
            lost.extend(group)
            return f"{name}: lost: {reason}"
        results.add(_result(group[0], verdict, seed=seed, device=device))
        return f"{name}: {verdict.outcome}{f': {verdict.why}' if verdict.why else ''}"

    await judge_each(missing, judge_group, slots=slots, say=say)
    return lost


async def judge_by_definition(sample: Sample, *, pool: DevicePool, target: Target) -> OriginalVerdict:
    """Judge one sample in the processes of a pool."""
    if sample.unusable:
        return OriginalVerdict(OriginalOutcome.FAILS, sample.message)
    return await judge_original(sample.public, sample.source, pool=pool, target=target)


def _result(sample: Sample, verdict: OriginalVerdict, *, seed: int, device: str) -> PredictionResult:
    passes = verdict.outcome is OriginalOutcome.PASSES
    return PredictionResult(
        key=sample.key(ORIGINAL, seed),
        task=sample.public.id,
        file=sample.public.file,
        sample=sample.number,
        protocol=ORIGINAL,
        device=device,
        verdict=verdict.outcome.value,
        call=passes or verdict.outcome is OriginalOutcome.DIFFERS,
        execution=passes,
        why=verdict.why,
        printed=verdict.printed,
        difficulty=sample.public.difficulty,
        source=sample.source,
    )
