"""Exam and measurement of the winner of an instance, for people.

In the exam a winner is judged on cases that no feedback mentions. At a person's request, chosen GPUs time an attempt,
each against the timing baseline on the same chip: chips are compared and not assumed to be equal.

No method, prompt or history can read these results: no function here returns a result to a `Context`.
"""

from __future__ import annotations

from functools import partial

from engine.judge.bench import Bench
from engine.judge.evaluating import evaluate_attempt
from harness import Device
from harness.stages.retries import ask_twice
from sessions.events import WinnerExamined, WinnerMeasured
from sessions.state.state import AttemptState, Confirmation
from sessions.state.winners import contenders
from suites import Task

EXAMINED_AT_MOST = 3
"""Attempts of an instance that are examined, best first, until one passes. Each exam is a complete evaluation."""


async def examine(bench: Bench, task: Task, key: str) -> None:
    """Examine the instance's best correct attempt; if it fails, the next best, at most `EXAMINED_AT_MOST` attempts.

    An exam with a result in the journal is not repeated. The loop ends at the first attempt that passes, or that
    gets no verdict. Copies of a source that failed are skipped. A decision of a person during an exam counts at once.
    """
    failed: list[str | None] = []
    while len(failed) < EXAMINED_AT_MOST:
        rivals = contenders(bench.recorder.state.instances[key].attempts)
        attempt = next((attempt for attempt in rivals if attempt.source not in failed), None)
        if attempt is None:
            return
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
        elif attempt.confirmation is Confirmation.NOT_CONFIRMED:
            failed.append(attempt.source)
        else:
            return


async def measure_on(bench: Bench, task: Task, winner: AttemptState, device: Device) -> None:
    """Measure and record; if the judge fails, it is asked once more."""
    source = winner.source or ""
    async with bench.turn(winner.attempt) as (use, enter):
        measure = partial(bench.judge.measure, source, task, device=device.name, on_stage=enter)
        evaluation = await ask_twice(measure)
    await bench.recorder.record_durable(
        WinnerMeasured(
            attempt=winner.attempt, device=device.name, evaluation=evaluation, device_s=use.seconds
        )
    )
