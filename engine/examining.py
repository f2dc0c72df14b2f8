"""The exam at the end of an instance: its winner, judged on cases that no feedback is about.

What comes of it is an event for people. No method, prompt or history can read it: nothing here answers a `Context`.
"""

from __future__ import annotations

from engine.evaluating import evaluated
from engine.shared import Shared
from sessions.events import WinnerExamined
from sessions.state import Confirmation
from sessions.winners import contenders
from suites import Task

EXAMINED_AT_MOST = 3
"""Attempts of an instance, best first, until one passes: an exam is a whole evaluation."""


async def examine(shared: Shared, task: Task, key: str) -> None:
    """Examine the instance's best correct attempt; where it fails the next best, and so on, at most `EXAMINED_AT_MOST`.

    An exam whose result is in the journal is not held again. The first that passes, or that nobody can say anything of,
    is the last. A source that failed fails again, so its copies are passed over.
    """
    instance = shared.recorder.state.instances[key]
    failed: list[str | None] = []
    for attempt in contenders(instance.attempts):
        if attempt.source in failed:
            continue
        if len(failed) == EXAMINED_AT_MOST:
            break
        if attempt.exam is None:
            found_on = attempt.evaluation.device if attempt.evaluation is not None else ""
            evaluation = await evaluated(
                shared, task, attempt.attempt, attempt.source or "", rival=None, exam=True, avoid=found_on
            )
            await shared.recorder.record_durable(
                WinnerExamined(attempt=attempt.attempt, evaluation=evaluation)
            )
        if attempt.confirmation is not Confirmation.NOT_CONFIRMED:
            break
        failed.append(attempt.source)
