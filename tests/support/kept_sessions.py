"""Kept sessions of `tests/fixtures/methods`: real replies of a model to the prompts of each method.

`replay_session` runs the engine again over a kept session: replies come from its recording, verdicts from its journal.
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

from .engines import ScriptedJudge, run, shared

FOLDER = Path(__file__).resolve().parent.parent / "fixtures" / "methods"
METHODS = ("direct", "reflexion", "kernelagent", "geak", "geak-evolve")
TASKS = ("starter/rms_norm_residual", "starter/matmul_w8a8")


@dataclass(frozen=True, slots=True)
class KeptSession:
    """Kept session; read-only, because all tests share the same object."""

    method: str
    events: Sequence[AnyEvent]
    state: SessionState

    @property
    def started(self) -> SessionStarted:
        """First event of the session."""
        assert self.state.started is not None
        return self.state.started

    @property
    def folder(self) -> Path:
        """Folder with the recording and the journal."""
        return FOLDER / self.method


@cache
def kept_session(method: str) -> KeptSession:
    """Load the kept session of a method."""
    journal = parse(gzip.decompress((FOLDER / method / "journal.jsonl.gz").read_bytes()))
    return KeptSession(method, journal.events, fold(journal.events))


def recording_in(home: Home, method: str) -> str:
    """Copy the recording of a kept session into `home` and return the name of the model that plays it."""
    home.ensure()
    shutil.copytree(
        FOLDER / method, home.recordings / method, ignore=shutil.ignore_patterns("journal.jsonl.gz")
    )
    return f"recorded:{method}"


class KeptClient:
    """Client that answers from the recording.

    A call that was cancelled before its reply arrived waits here until its next cancellation.
    """

    def __init__(self, session: KeptSession) -> None:
        self._recorded = RecordedClient(load_recording(session.folder), pieces_a_second=None)
        self.model = self._recorded.model
        self._never = {
            call.call
            for attempt in session.state.attempts()
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


class KeptJudge(ScriptedJudge):
    """Judge that repeats the verdicts of the kept session.

    The exam of a candidate without a recorded exam gets the verdict of the open cases.
    """

    def __init__(self, session: KeptSession) -> None:
        super().__init__()
        self._verdicts: dict[tuple[str, str, bool], Evaluation] = {}
        for instance in session.state.instances.values():
            for attempt in instance.attempts:
                for evaluation in (attempt.evaluation, attempt.exam):
                    if attempt.source and evaluation is not None:
                        is_exam = evaluation is attempt.exam
                        self._verdicts[instance.task, attempt.source, is_exam] = evaluation

    async def evaluate(
        self,
        source: str,
        task: Task,
        *,
        on_stage: OnStage,
        exam: bool = False,
        avoid: str = "",
    ) -> Evaluation:
        """See `Judge`; raises `KeyError` for a candidate that the kept session never judged."""
        await asyncio.sleep(0)
        recorded = self._verdicts.get((task.id, source, exam))
        return recorded or msgspec.structs.replace(self._verdicts[task.id, source, False], exam=True)


async def replay_session(session: KeptSession, home: Home, **changes: object) -> list[AnyEvent]:
    """Run a kept session again with `changes` to its plan and return its events; no real judge runs."""
    plan = msgspec.structs.replace(plan_of(session.started), **changes)
    tasks = [load_task(name) for name in plan.tasks]
    with Recorder.begin(home, session_started(plan)) as recorder:
        recorder.record(EngineStarted(host="host", pid=1))
        shared_state = shared(recorder, plan, KeptClient(session), KeptJudge(session))
        await run(dataclasses.replace(shared_state, corpus=corpus_for(tasks, home)))
        recorder.record(SessionFinished())
        return list(read_journal(recorder.live.journal).events)
