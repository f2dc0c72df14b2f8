"""Judges the candidate of an attempt, and records the stages and the busy device while the judge works."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from engine.errors import BudgetSpent
from engine.judge.bench import Bench
from engine.judge.judging import OnStage
from harness import STAGES, ErrorReport, Evaluation, Stage, StageEvent
from harness.stages.retries import ask_twice
from harness.stages.verdicts import conclude
from harness.wire.results.evaluation import SCHEMA
from sessions.events import Notice, StageFinished, StageStarted
from suites import Task


class Judgement(NamedTuple):
    """The judge's answer about an attempt."""

    evaluation: Evaluation
    device_s: float
    """Seconds in which the judge held a device."""
    spent: BudgetSpent | None = None
    """The spent budget that cancelled the evaluation."""


async def evaluate_attempt(
    bench: Bench, task: Task, attempt: str, source: str, *, exam: bool = False, avoid: str = ""
) -> Judgement:
    """Returns the judgement of an attempt's candidate.

    If the judge fails, it is asked once more and the second result is returned, unless it has judged twice by itself.
    Stages are recorded as events, and `bench.busy` lists the attempt under its device. If the device time of the
    budget ends, the evaluation is cancelled. If no judgement is returned, `bench.unrecorded_s` gets the device seconds,
    except those of an exam.
    """
    held_s = 0.0 if exam else bench.unrecorded_s.pop(attempt, 0.0)

    def on_stage(enter: OnStage, report: StageEvent) -> None:
        enter(report)
        if report.result is None:
            bench.recorder.record(
                StageStarted(attempt=attempt, stage=report.stage, device=report.device, exam=exam)
            )
        else:
            bench.recorder.record(StageFinished(attempt=attempt, stage=report.result, exam=exam))

    async def once() -> Evaluation:
        nonlocal held_s
        use = None
        try:
            async with bench.turn(attempt) as (use, enter):
                return await bench.judge.evaluate(
                    source, task, exam=exam, avoid=avoid, on_stage=partial(on_stage, enter), name=attempt
                )
        finally:
            held_s += use.seconds if use is not None else 0.0

    def failed(evaluation: Evaluation, then: str) -> None:
        on = f"the exam of {attempt}" if exam else attempt
        words = f"the judge failed on {on}: {failure_reason(evaluation)}{then}"
        bench.recorder.record(Notice(level="warning", message=words))

    try:
        evaluation = await ask_twice(once, failed)
    except BudgetSpent as spent:
        device = bench.judge.devices[0].name
        return Judgement(cancelled_evaluation(task.id, device, str(spent)), held_s, spent)
    except BaseException:  # a cancellation too
        if not exam:
            bench.unrecorded_s[attempt] = held_s
        raise
    return Judgement(evaluation, held_s)


def evaluation_without_stages(task: str, device: str, kind: str, why: str) -> Evaluation:
    """Returns the evaluation of a candidate that the judge did not judge, or not to the end."""
    error = ErrorReport(kind=kind, message=why)
    return Evaluation(
        schema=SCHEMA,
        task=task,
        device=device,
        verdict=conclude(error),
        call=False,
        execution=False,
        stages=tuple(Stage(name, None, 0.0) for name in STAGES),
        error=error,
    )


def cancelled_evaluation(task: str, device: str, why: str) -> Evaluation:
    """Returns the evaluation of an attempt that was stopped before the judge finished; no metric counts it."""
    return evaluation_without_stages(task, device, "cancelled", why)


def failure_reason(evaluation: Evaluation) -> str:
    """Returns the reason why the judge gave no verdict."""
    return evaluation.error.message if evaluation.error else str(evaluation.verdict)
