"""One candidate before the judge, as the journal and the devices see it."""

from __future__ import annotations

from engine.shared import Shared
from harness import STAGES, ErrorReport, Evaluation, Stage, StageEntered, StageLeft, Verdict
from harness.wire.evaluation import SCHEMA
from sessions.events import Notice, StageFinished, StageStarted
from suites import Task

NO_VERDICT = frozenset({Verdict.INFRA_ERROR, Verdict.CANCELLED})
"""What says something of the judge and nothing of the candidate."""


async def evaluated(
    shared: Shared,
    task: Task,
    attempt: str,
    source: str,
    *,
    rival: str | None,
    exam: bool = False,
    avoid: str = "",
) -> Evaluation:
    """The evaluation of an attempt's candidate. A judge that fails is asked once more; its last word comes back.

    Stages are recorded as they pass, and the attempt stands with the device that it is judged on.
    """

    def on_stage(told: StageEntered | StageLeft) -> None:
        if isinstance(told, StageEntered):
            attempts = shared.busy.setdefault(told.device, [])
            if told.stage != "static" and attempt not in attempts:
                attempts.append(attempt)
            shared.recorder.record(
                StageStarted(attempt=attempt, stage=told.stage, device=told.device, exam=exam)
            )
        else:
            shared.recorder.record(StageFinished(attempt=attempt, stage=told.stage, exam=exam))

    async def once() -> Evaluation:
        try:
            return await shared.judge.evaluate(
                source, task, rival=rival, exam=exam, avoid=avoid, on_stage=on_stage
            )
        finally:
            for attempts in shared.busy.values():
                if attempt in attempts:
                    attempts.remove(attempt)

    def failed(evaluation: Evaluation, then: str) -> None:
        on = f"the exam of {attempt}" if exam else attempt
        words = f"the judge failed on {on}: {why_not(evaluation)}{then}"
        shared.recorder.record(Notice(level="warning", message=words))

    evaluation = await once()
    if evaluation.verdict in NO_VERDICT:
        failed(evaluation, "; judging it once more")
        evaluation = await once()
        if evaluation.verdict in NO_VERDICT:
            failed(evaluation, "")
    return evaluation


def abandoned(task: str, device: str, why: str) -> Evaluation:
    """What stands for the evaluation of an attempt that was ended before it had one; counted nowhere."""
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


def why_not(evaluation: Evaluation) -> str:
    """Why there is no verdict on the candidate."""
    return evaluation.error.message if evaluation.error else str(evaluation.verdict)
