"""Miniature engine that the kill tests run and kill: `python -m tests.sessions.storyteller HOME`.

The program starts or resumes the session, records the missing events and finishes. For each durable event it prints a
line after the acknowledgement: number, tag and subject of the event.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from harness import Verdict
from sessions import Home, Recorder, resume
from sessions import events as ev
from sessions.errors import NoSuchSession, NothingToResume
from sessions.journal.codec import tag_of
from tests.support import story

INSTANCES = 3
PLAN = (
    (Verdict.WRONG, ev.Origin.FRESH, None),
    (Verdict.CORRECT, ev.Origin.REPAIR, 1),
    (Verdict.CORRECT, ev.Origin.OPTIMIZE, 2),
)


def say(event: ev.Event) -> None:
    """Print an acknowledged event for the test."""
    subject = getattr(event, "call", "") or getattr(event, "attempt", "") or getattr(event, "instance", "")
    sys.stdout.write(f"{event.seq} {tag_of(event)} {subject}\n")
    sys.stdout.flush()


async def record(recorder: Recorder, event: ev.Event) -> None:
    if isinstance(event, ev.DurableEvent):
        say(await recorder.record_durable(event))
    else:
        recorder.record(event)
        await asyncio.sleep(0)


async def play_attempt(
    recorder: Recorder, name: str, verdict: Verdict, origin: ev.Origin, base: str | None
) -> None:
    """Record the missing events of an attempt; finished calls are not repeated."""
    recorded = {attempt.attempt: attempt for attempt in recorder.state.attempts()}.get(name)
    done = {call.call for call in recorded.calls if call.finished} if recorded else set()
    proposed = recorded is not None and recorded.source is not None
    judged = recorded is not None and recorded.evaluation is not None
    for event in story.attempt(name, verdict, origin=origin, base=base):
        if getattr(event, "call", None) in done:
            continue
        if isinstance(event, ev.CandidateProposed) and proposed:
            continue
        if isinstance(event, ev.StageStarted | ev.StageFinished | ev.AttemptJudged) and judged:
            continue
        await record(recorder, event)
    await recorder.commit_attempt(name)


async def play_exams(recorder: Recorder, key: str) -> None:
    """The winner fails its exam and the next best attempt passes; a recorded exam is not repeated."""
    for index, verdict in ((3, Verdict.WRONG), (2, Verdict.CORRECT)):
        if recorder.state.attempt(f"{key}/{index}").exam is None:
            for event in story.exam(f"{key}/{index}", verdict):
                await record(recorder, event)


async def play_instance(recorder: Recorder, number: int) -> None:
    key = f"softmax#{number}"
    recorded = recorder.state.instances.get(key)
    if recorded is None:
        await record(recorder, ev.InstanceStarted(task="starter/softmax", instance=number))
    elif recorded.finished:
        return
    for index, (verdict, origin, base) in enumerate(PLAN, start=1):
        await play_attempt(recorder, f"{key}/{index}", verdict, origin, f"{key}/{base}" if base else None)
    await play_exams(recorder, key)
    decided = {attempt.attempt for attempt in recorder.state.attempts() if attempt.decision}
    if f"{key}/3" not in decided:
        decision = ev.DecisionMade(attempt=f"{key}/3", accepted=True, by="ada")
        say(await recorder.decide(decision))
    await record(recorder, ev.InstanceFinished(task="starter/softmax", instance=number, reason="iterations"))


async def record_session(home: Home) -> None:
    try:
        recorder = resume(home, story.SESSION)
        resumed = True
    except NothingToResume:
        return  # killed while the session moved to the store; `resume` completed the move
    except NoSuchSession:
        recorder = Recorder.begin(home, story.started(instances=INSTANCES))
        resumed = False
    recorder.record(ev.EngineStarted(host="node", pid=1, resumed=resumed))
    async with asyncio.TaskGroup() as group:
        for number in range(1, INSTANCES + 1):
            group.create_task(play_instance(recorder, number), name=f"instance {number}")
    await record(recorder, ev.SessionFinished(solved=("starter/softmax",)))
    await recorder.finish()


if __name__ == "__main__":
    asyncio.run(record_session(Home(Path(sys.argv[1]))))
