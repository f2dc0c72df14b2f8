"""Judges predictions, several at a time. Each result is kept at once, so that the same command continues an interrupted run."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec

from engine.judge.evaluating import NO_VERDICT, evaluation_without_stages
from engine.predictions.matching import Sample
from engine.predictions.results import WAVEDECK, PredictionResult, ResultFile
from engine.predictions.session import PredictionSession
from harness import (
    DevicePool,
    Evaluation,
    StageEntered,
    StageLeft,
    Target,
    Verdict,
    WorkerDied,
    evaluate,
)
from harness.recording.errors import NotRecorded
from harness.recording.recorder import find_or_record
from suites import Task

OnStage = Callable[[StageEntered | StageLeft], None]


class ProtocolJudge(Protocol):
    """Judges predictions by one protocol."""

    async def judge(self, sample: Sample, on_stage: OnStage) -> PredictionResult:
        """Return the result of a prediction. Raises `WorkerDied` if a process of ours is lost."""
        ...


def result_of(sample: Sample, protocol: str, seed: int, **outcome: Any) -> PredictionResult:
    """Returns the result of a prediction; `outcome` has the fields that do not follow from the prediction."""
    return PredictionResult(
        key=sample.key(protocol, seed),
        task=sample.public.id,
        file=sample.public.file,
        sample=sample.number,
        protocol=protocol,
        difficulty=sample.public.difficulty,
        source=sample.source,
        **outcome,
    )


class WavedeckJudge:
    """The usual judge. The calls of a task's test are recorded once; each candidate is judged on these calls."""

    def __init__(self, registry: Path, *, pool: DevicePool, targets: Sequence[Target], seed: int) -> None:
        self._registry = registry
        self._pool = pool
        self._targets = targets
        self._seed = seed
        self._recording: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._not_recorded: dict[str, str] = {}

    async def judge(self, sample: Sample, on_stage: OnStage) -> PredictionResult:
        """See `ProtocolJudge`."""
        evaluation = await self._evaluate(sample, on_stage)
        if evaluation.verdict in NO_VERDICT:
            raise WorkerDied(evaluation.error.first_line if evaluation.error else evaluation.verdict)
        error = evaluation.error
        return result_of(
            sample,
            WAVEDECK,
            self._seed,
            device=evaluation.device,
            verdict=evaluation.verdict.value,
            call=evaluation.call,
            execution=evaluation.verdict is Verdict.CORRECT,
            kind=error.kind if error is not None else "",
            why=error.first_line if error is not None else "",
            printed=evaluation.printed,
            evaluation=evaluation,
        )

    async def _evaluate(self, sample: Sample, on_stage: OnStage) -> Evaluation:
        if sample.unusable:
            return self._not_judged(sample, "no_code", sample.message)
        try:
            task = await self._recorded(sample)
        except NotRecorded as reason:
            self._not_recorded[sample.public.id] = str(reason)
            return self._not_judged(sample, "recording", str(reason))
        return await evaluate(
            sample.source, task, self._pool, targets=self._targets, seed=self._seed, on_event=on_stage
        )

    async def _recorded(self, sample: Sample) -> Task:
        """Return the recorded task. Predictions for one task wait for one recording."""
        public = sample.public
        async with self._recording[public.id]:
            if public.id in self._not_recorded:
                raise NotRecorded(self._not_recorded[public.id])
            return await find_or_record(public, self._registry, pool=self._pool, target=self._targets[0])

    def _not_judged(self, sample: Sample, kind: str, message: str) -> Evaluation:
        device = self._pool.devices[0].name
        return evaluation_without_stages(sample.public.id, device, kind, message)


async def judge_samples(
    samples: Sequence[Sample],
    judge: ProtocolJudge,
    results: ResultFile,
    *,
    key_of: Callable[[Sample], str],
    again: bool,
    slots: int,
    session: PredictionSession | None,
    say: Callable[[str], None],
) -> list[Sample]:
    """Judge the samples that have no result, with `again` all samples. Return the samples on which the judge failed.

    Equal candidates for one task are judged once. The session is finished, or is left so that the same command continues it.
    """
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(key_of(sample), []).append(sample)
    missing = {key: group for key, group in groups.items() if again or results.find(key) is None}
    try:
        if session is not None:
            for key, group in groups.items():
                if key not in missing:
                    await _record_verdicts(session, group, results.find(key))
        lost = await _judge_groups(missing, judge, results, slots=slots, session=session, say=say)
    except BaseException:
        if session is not None:
            session.stop("interrupted", failed=False)
        say("stopped; the results so far are kept, and the same command judges the rest")
        raise
    if session is not None and lost:
        session.stop(f"the judge failed on {len(lost)} predictions", failed=True)
    elif session is not None:
        await session.finish()
    return lost


async def _judge_groups(
    missing: Mapping[str, Sequence[Sample]],
    judge: ProtocolJudge,
    results: ResultFile,
    *,
    slots: int,
    session: PredictionSession | None,
    say: Callable[[str], None],
) -> list[Sample]:
    waiting = iter(missing.values())
    lost: list[Sample] = []
    done = 0

    async def judge_next() -> None:
        nonlocal done
        for group in waiting:
            result = await _judge_group(group, judge, session)
            done += 1
            if isinstance(result, str):
                lost.extend(group)
                say(f"{done} of {len(missing)}: {group[0].name}: lost: {result}")
                continue
            results.add(result)
            reason = f": {result.why}" if result.why else ""
            say(
                f"{done} of {len(missing)}: {group[0].name}: {result.verdict}{reason} ({result.seconds:.0f} s)"
            )

    async with asyncio.TaskGroup() as tasks:
        for number in range(slots):
            tasks.create_task(judge_next(), name=f"predictions/{number}")
    return lost


async def _judge_group(
    group: Sequence[Sample], judge: ProtocolJudge, session: PredictionSession | None
) -> PredictionResult | str:
    """Judge equal candidates once and record the verdict for each. Return the result, or why the judge was lost."""
    began = time.monotonic()
    first = group[0]
    if session is not None:
        await session.begin(first)
    try:
        on_stage: OnStage = partial(session.note_stage, first) if session is not None else _ignore_stage
        result = await judge.judge(first, on_stage)
    except WorkerDied as reason:
        return str(reason)
    seconds = round(time.monotonic() - began, 2)
    result = msgspec.structs.replace(
        result, seconds=seconds, session=session.name if session is not None else ""
    )
    if session is not None:
        await _record_verdicts(session, group, result)
    return result


async def _record_verdicts(
    session: PredictionSession, group: Sequence[Sample], result: PredictionResult | None
) -> None:
    """Record the verdict for each of equal candidates. The time on a device counts only for the candidate that was judged."""
    if result is None or result.evaluation is None:
        return
    judged_s = sum(stage.seconds for stage in result.evaluation.stages if stage.name != "static")
    for sample in group:
        await session.begin(sample)
        was_judged = sample is group[0] and result.session == session.name
        await session.end(sample, result.evaluation, judged_s if was_judged else 0.0)


def _ignore_stage(_: StageEntered | StageLeft) -> None:
    pass
