"""The session of a file of predictions: an instance for each prediction, with one attempt."""

from __future__ import annotations

import hashlib
import os
import socket
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from engine.errors import UsageProblem
from engine.methods import PREDICTIONS
from engine.plan.job import versions
from engine.plan.plan import session_name
from engine.predictions.matching import Sample
from engine.process.process import solved
from harness import Evaluation, StageEntered, StageLeft, Verdict
from sessions.events import (
    AttemptJudged,
    AttemptStarted,
    CandidateProposed,
    EndReason,
    EngineStarted,
    EngineStopped,
    InstanceFinished,
    InstanceStarted,
    Origin,
    SessionFinished,
    SessionStarted,
    StageFinished,
    StageStarted,
)
from sessions.home import Home
from sessions.journal.journal import read_journal
from sessions.names import attempt_name, instance_key
from sessions.settings import MethodOptions, RunSettings
from sessions.store.reconcile import resume
from sessions.store.recorder import Recorder


class PredictionSession:
    """Records how the predictions of one file are judged."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    @property
    def name(self) -> str:
        """Name of the session."""
        return self._recorder.session

    @classmethod
    def open(
        cls,
        home: Home,
        samples: Sequence[Sample],
        *,
        file: str,
        seed: int,
        device: str,
        targets: Sequence[str],
        again: bool = False,
    ) -> PredictionSession:
        """Begin a session, or without `again` continue the unfinished one of the same predictions on this device.

        Raises `UsageProblem` if another process judges them.
        """
        lines = "".join(f"{sample.key('', seed)} {sample.number}\n" for sample in samples)
        digest = hashlib.sha256(lines.encode()).hexdigest()[:16]
        unfinished = "" if again else _find_unfinished(home, digest, device)
        if unfinished:
            recorder = resume(home, unfinished)
        else:
            counts = Counter(sample.public.id for sample in samples)
            started = SessionStarted(
                session=session_name(PREDICTIONS, datetime.now(UTC)),
                settings=RunSettings(
                    method=PREDICTIONS,
                    model=file,
                    tasks=tuple(counts),
                    instances=max(counts.values()),
                    iterations=1,
                    seed=seed,
                    devices=(device,),
                    targets=tuple(targets),
                    review="auto",
                    options=MethodOptions(predictions=digest),
                ),
                versions=versions(),
            )
            recorder = Recorder.begin(home, started)
        recorder.record(EngineStarted(host=socket.gethostname(), pid=os.getpid(), resumed=bool(unfinished)))
        return cls(recorder)

    async def begin(self, sample: Sample) -> None:
        """Record that a prediction goes to the judge; the session may have a part of it already."""
        name, key = self._attempt(sample), self._instance(sample)
        instance = self._recorder.state.instances.get(key)
        if instance is None:
            self._recorder.record(InstanceStarted(task=sample.public.id, instance=sample.number))
        if instance is None or not instance.attempts:
            self._recorder.record(AttemptStarted(attempt=name, origin=Origin.FRESH))
        if self._recorder.state.attempt(name).source is None:
            await self._recorder.record_durable(
                CandidateProposed(attempt=name, source=sample.source, unusable=sample.unusable)
            )

    def note_stage(self, sample: Sample, report: StageEntered | StageLeft) -> None:
        """Record that the judge enters or leaves a stage."""
        name = self._attempt(sample)
        if isinstance(report, StageEntered):
            self._recorder.record(StageStarted(attempt=name, stage=report.stage, device=report.device))
        else:
            self._recorder.record(StageFinished(attempt=name, stage=report.stage))

    async def end(self, sample: Sample, evaluation: Evaluation, device_s: float) -> None:
        """Record a verdict and commit the attempt, unless the session has it."""
        name = self._attempt(sample)
        if self._recorder.state.attempt(name).evaluation is not None:
            return
        await self._recorder.record_durable(
            AttemptJudged(attempt=name, evaluation=evaluation, device_s=device_s)
        )
        await self._recorder.commit_attempt(name)
        best = name if evaluation.verdict is Verdict.CORRECT else None
        await self._recorder.record_durable(
            InstanceFinished(
                task=sample.public.id, instance=sample.number, reason=EndReason.ANSWERED, best=best
            )
        )

    async def finish(self) -> None:
        """Finish the session: every prediction has a verdict."""
        await self._recorder.record_durable(SessionFinished(solved=solved(self._recorder)))
        await self._recorder.finish()

    def stop(self, reason: str, *, failed: bool) -> None:
        """Leave the session unfinished; the same command continues it. Call it when nothing else runs: it waits for the disk."""
        self._recorder.record(EngineStopped(reason=reason, failed=failed))
        self._recorder.now(self._recorder.store_all())
        self._recorder.close()

    @staticmethod
    def _instance(sample: Sample) -> str:
        return instance_key(sample.public.id, sample.number)

    def _attempt(self, sample: Sample) -> str:
        return attempt_name(self._instance(sample), 1)


def _find_unfinished(home: Home, digest: str, device: str) -> str:
    """Return the newest unfinished session of these predictions; empty if there is none. Raises `UsageProblem` if it runs."""
    for live in reversed(home.live_sessions()):
        events = read_journal(live.journal).events if live.journal.exists() else []
        started = events[0] if events else None
        if not isinstance(started, SessionStarted) or started.settings.method != PREDICTIONS:
            continue
        if started.settings.options.predictions != digest or started.settings.devices != (device,):
            continue
        if live.running:
            raise UsageProblem(f"another process judges these predictions, as session {live.session}")
        if not any(isinstance(event, SessionFinished) for event in events):
            return live.session
    return ""
