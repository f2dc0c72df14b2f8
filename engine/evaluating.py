"""Judges the candidate of an attempt, and records the stages and the busy device while the judge works."""

from __future__ import annotations

from engine.shared import Shared
from harness import STAGES, ErrorReport, Evaluation, Stage, StageEntered, StageLeft, Verdict
from harness.wire.evaluation import SCHEMA
from sessions.events import Notice, StageFinished, StageStarted
from suites import Task

NO_VERDICT = frozenset({Verdict.INFRA_ERROR, Verdict.CANCELLED})
"""Verdicts about the judge, not about the candidate."""


async def evaluate_attempt(
    shared: Shared,
    task: Task,
    attempt: str,
    source: str,
    *,
    exam: bool = False,
    avoid: str = "",
) -> Evaluation:
    """Returns the evaluation of an attempt's candidate.

    If the judge fails, it is asked once more and the second result is returned. Stages are recorded as events, and
    `shared.busy` lists the attempt under its device.
    """

    def on_stage(report: StageEntered | StageLeft) -> None:
        if isinstance(report, StageEntered):
            attempts = shared.busy.setdefault(report.device, [])
            if report.stage != "static" and attempt not in attempts:
                attempts.append(attempt)
            shared.recorder.record(
                StageStarted(attempt=attempt, stage=report.stage, device=report.device, exam=exam)
            )
        else:
            shared.recorder.record(StageFinished(attempt=attempt, stage=report.stage, exam=exam))

    async def once() -> Evaluation:
        try:
            return await shared.judge.evaluate(source, task, exam=exam, avoid=avoid, on_stage=on_stage)
        finally:
            for attempts in shared.busy.values():
                if attempt in attempts:
                    attempts.remove(attempt)

    def failed(evaluation: Evaluation, then: str) -> None:
        on = f"the exam of {attempt}" if exam else attempt
        words = f"the judge failed on {on}: {failure_reason(evaluation)}{then}"
        shared.recorder.record(Notice(level="warning", message=words))

    evaluation = await once()
    if evaluation.verdict in NO_VERDICT:
        failed(evaluation, "; judging it once more")
        evaluation = await once()
        if evaluation.verdict in NO_VERDICT:
            failed(evaluation, "")
    return evaluation


def cancelled_evaluation(task: str, device: str, why: str) -> Evaluation:
    """Returns the evaluation of an attempt that was stopped before the judge finished; no metric counts it."""
    return Evaluation(
        schema=SCHEMA,
        task=task,
        device=device,
        verdict=Verdict.CANCELLED,
        call=False,
        execution=False,
        stages=tuple(Stage(name, None, 0.0) for name in STAGES),
        error=ErrorReport(kind="cancelled", message=why),
    )


def failure_reason(evaluation: Evaluation) -> str:
    """Returns the reason why the judge gave no verdict."""
    return evaluation.error.message if evaluation.error else str(evaluation.verdict)
