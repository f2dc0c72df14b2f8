"""The kept sessions of `tests/fixtures/methods`: a model's own replies to each method's own prompts, and what came of them.

`told_again` runs the engine over one of them anew: replies come from its recording, verdicts from its journal.
"""

from __future__ import annotations

import asyncio
import dataclasses
import gzip
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from engine.job import corpus_for, plan_of, session_started
from engine.judging import OnStage
from engine.models import Piece, RecordedClient, Reply, Request
from harness import Evaluation
from sessions import Home, Recorder, SessionState, fold
from sessions.events import AnyEvent, EngineStarted, SessionFinished, SessionStarted
from sessions.journal import parse, read_journal
from sessions.names import attempt_name, call_name, instance_key
from sessions.recording import load_recording
from suites import Task, load_task

from .engines import ToldJudge, run, shared

FOLDER = Path(__file__).resolve().parent.parent / "fixtures" / "methods"
METHODS = ("direct", "reflexion", "kernelagent", "geak", "geak-evolve")
TASKS = ("starter/rms_norm_residual", "starter/matmul_w8a8")


@dataclass(frozen=True, slots=True)
class Kept:
    """A kept session; only to be read, for all tests have the same one."""

    method: str
    events: Sequence[AnyEvent]
    state: SessionState

    @property
    def started(self) -> SessionStarted:
        """Its first event."""
        assert self.state.started is not None
        return self.state.started

    @property
    def folder(self) -> Path:
        """Where it lies, its recording and its journal side by side."""
        return FOLDER / self.method


@cache
def kept(method: str) -> Kept:
    """The session of this method."""
    journal = parse(gzip.decompress((FOLDER / method / "journal.jsonl.gz").read_bytes()))
    return Kept(method, journal.events, fold(journal.events))


def recording_in(home: Home, method: str) -> str:
    """Put a kept session's recording among a person's own; returns the model that plays it."""
    home.ensure()
    shutil.copytree(
        FOLDER / method, home.recordings / method, ignore=shutil.ignore_patterns("journal.jsonl.gz")
    )
    return f"recorded:{method}"


class KeptClient:
    """Answers from the recording. A call that was cancelled before its reply had come waits until it is cancelled again."""

    def __init__(self, of: Kept) -> None:
        self._recorded = RecordedClient(load_recording(of.folder), pieces_a_second=None)
        self.model = self._recorded.model
        self._never = {
            call.call
            for attempt in of.state.attempts()
            for call in attempt.calls
            if call.failed.startswith("cancelled:")
        }

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """See `Client`."""
        key = request.key
        attempt = attempt_name(instance_key(key.task, key.instance), key.attempt)
        if call_name(attempt, key.role, key.n) in self._never:
            await asyncio.Event().wait()
        return await self._recorded.reply(request, on_piece)

    async def close(self) -> None:
        """See `Client`."""


class KeptJudge(ToldJudge):
    """Says of a candidate what was said of it in the kept session; of one that was not examined there, the same as of its open cases."""

    def __init__(self, of: Kept) -> None:
        super().__init__()
        self._verdicts: dict[tuple[str, str, bool], Evaluation] = {}
        for instance in of.state.instances.values():
            for attempt in instance.attempts:
                for found in (attempt.evaluation, attempt.exam):
                    if attempt.source and found is not None:
                        self._verdicts[instance.task, attempt.source, found is attempt.exam] = found

    async def evaluate(
        self,
        source: str,
        task: Task,
        *,
        rival: str | None,
        on_stage: OnStage,
        exam: bool = False,
        avoid: str = "",
    ) -> Evaluation:
        """See `Judge`; `KeyError` for a candidate that was never judged there."""
        await asyncio.sleep(0)
        known = self._verdicts.get((task.id, source, exam))
        return known or msgspec.structs.replace(self._verdicts[task.id, source, False], exam=True)


async def told_again(of: Kept, home: Home, **changes: object) -> list[AnyEvent]:
    """The events of the same session run anew, with `changes` to its plan; the judge is not asked."""
    plan = msgspec.structs.replace(plan_of(of.started), **changes)
    tasks = [load_task(name) for name in plan.tasks]
    with Recorder.begin(home, session_started(plan)) as recorder:
        recorder.record(EngineStarted(host="host", pid=1))
        with_ = shared(recorder, plan, KeptClient(of), KeptJudge(of))
        await run(dataclasses.replace(with_, corpus=corpus_for(tasks, home)))
        recorder.record(SessionFinished())
        return list(read_journal(recorder.live.journal).events)
