"""Judges predictions by a benchmark's own definition of correct."""

from __future__ import annotations

from engine.predictions.judging import OnStage, result_of
from engine.predictions.matching import Sample
from engine.predictions.results import ORIGINAL, PredictionResult
from harness import DevicePool, Target
from harness.recording.original import OriginalOutcome, OriginalVerdict, judge_original


class OriginalJudge:
    """Judges by the benchmark's own definition of correct. Nothing is timed, and no session is recorded."""

    def __init__(self, *, pool: DevicePool, target: Target, seed: int) -> None:
        self._pool = pool
        self._target = target
        self._seed = seed

    async def judge(self, sample: Sample, on_stage: OnStage) -> PredictionResult:
        """See `ProtocolJudge`."""
        if sample.unusable:
            verdict = OriginalVerdict(OriginalOutcome.FAILS, sample.message)
        else:
            verdict = await judge_original(sample.public, sample.source, pool=self._pool, target=self._target)
        passes = verdict.outcome is OriginalOutcome.PASSES
        return result_of(
            sample,
            ORIGINAL,
            self._seed,
            device=self._pool.devices[0].name,
            verdict=verdict.outcome.value,
            call=passes or verdict.outcome is OriginalOutcome.DIFFERS,
            execution=passes,
            why=verdict.why,
            printed=verdict.printed,
        )
