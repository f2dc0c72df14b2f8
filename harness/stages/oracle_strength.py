"""How far a task's verdicts can be trusted: its baseline judged, and wrong answers tried on its oracle."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.processes.pool import DevicePool
from harness.wire.device import Target
from harness.wire.messages.judge import Weigh, Weighed
from harness.wire.results.evaluation import Evaluation, Margin, Verdict, Weakness
from suites.dtypes import NoSuchDtype
from suites.loader import baseline_source
from suites.task import Task

from .cascade import evaluate
from .judged_task import ask_judge, resolve_task
from .modes import Exam

SEED = 0
"""Fixed, so that the same task gets the same answer; no candidate could use it."""


class OracleReport(msgspec.Struct, frozen=True):
    """Strength of one task's oracle."""

    task: str
    baseline: Verdict
    """Over its open cases and, if they are right, its exam cases."""
    baseline_error: str
    """Why the baseline is not correct; empty when it is."""
    refusing_target: str
    """See `ErrorReport.target`."""
    closest: Margin | None
    """The baseline's output that is nearest to its tolerance."""
    tried: int
    """Wrong answers that were compared with the oracle's."""
    weaknesses: tuple[Weakness, ...]
    problem: str = ""
    """Why the oracle could not be tried; empty when it was."""

    @property
    def sound(self) -> bool:
        """True if the baseline is correct and no weakness was found."""
        return self.baseline is Verdict.CORRECT and not self.weaknesses and not self.problem


async def weigh_oracle(task: Task, *, pool: DevicePool, targets: Sequence[Target]) -> OracleReport:
    """Judge the baseline of a task and try its oracle; `WorkerDied` if a process of ours is lost."""
    evaluations = await _judge_baseline(task, pool, targets)
    try:
        here = resolve_task(task, targets[0].name, on_gpu=False)
        async with pool.slot() as slot:
            weighed = await ask_judge(slot, Weigh(task=here, seed=SEED), Weighed, targets[0].name)
    except NoSuchDtype as lacking:
        weighed = Weighed(tried=0, weaknesses=(), problem=str(lacking))
    margins = [margin for evaluation in evaluations for margin in evaluation.margins]
    last = evaluations[-1]
    return OracleReport(
        task=task.id,
        baseline=last.verdict,
        baseline_error=last.error.first_line if last.error is not None else "",
        refusing_target=last.error.target if last.error is not None else "",
        closest=max(margins, key=lambda margin: margin.used, default=None),
        tried=weighed.tried,
        weaknesses=weighed.weaknesses,
        problem=weighed.problem,
    )


async def _judge_baseline(task: Task, pool: DevicePool, targets: Sequence[Target]) -> list[Evaluation]:
    """Judge the task's baseline on the open cases and, if it is correct there, on the exam cases; return the evaluations."""
    source = baseline_source(task)
    evaluations = [await evaluate(source, task, pool, targets=targets, seed=SEED)]
    if evaluations[0].verdict is Verdict.CORRECT and task.exam_cases:
        evaluations.append(await evaluate(source, task, pool, Exam(), targets=targets, seed=SEED))
    return evaluations
