"""The exam at the end of an instance: its winner is judged on cases that no feedback mentions.

The result is an event for people. No method, prompt or history can read it: no function here returns a result to a
`Context`.
"""

from __future__ import annotations

from engine.judge.bench import Bench
from engine.judge.evaluating import evaluate_attempt
from sessions.events import WinnerExamined
from sessions.state.state import Confirmation
from sessions.state.winners import contenders
from suites import Task

EXAMINED_AT_MOST = 3
"""Attempts of an instance that are examined, best first, until one passes. Each exam is a complete evaluation."""


async def examine(bench: Bench, task: Task, key: str) -> None:
    """Examine the instance's best correct attempt; if it fails, the next best, at most `EXAMINED_AT_MOST` attempts.

    An exam with a result in the journal is not repeated. The loop ends at the first attempt that passes, or that
    gets no verdict. Copies of a source that failed are skipped.
    """
    instance = bench.recorder.state.instances[key]
    failed: list[str | None] = []
    for attempt in contenders(instance.attempts):
        if attempt.source in failed:
            continue
        if len(failed) == EXAMINED_AT_MOST:
            break
        if attempt.exam is None:
            judged_on = attempt.evaluation.device if attempt.evaluation is not None else ""
            judgement = await evaluate_attempt(
                bench, task, attempt.attempt, attempt.source or "", exam=True, avoid=judged_on
            )
            await bench.recorder.record_durable(
                WinnerExamined(
                    attempt=attempt.attempt, evaluation=judgement.evaluation, device_s=judgement.device_s
                )
            )
        if attempt.confirmation is not Confirmation.NOT_CONFIRMED:
            break
        failed.append(attempt.source)
