"""How far a task's verdicts can be trusted: its baseline judged, and wrong answers tried on its oracle."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from harness.processes.pool import DevicePool
from harness.wire import limits
from harness.wire.device import Target
from harness.wire.encoding import ENCODER
from harness.wire.errors import WorkerDied
from harness.wire.evaluation import Evaluation, Margin, Verdict, Weakness
from harness.wire.judge_messages import JUDGE_REPORTS, Weigh, Weighed
from suites.dtypes import NoSuchDtype, task_on
from suites.loader import baseline_source
from suites.task import Task

from .cascade import evaluate

_MAX_REPORT_BYTES = 64 << 20
SEED = 0
"""Nothing is to be kept from anybody here, and the same task gets the same answer."""


class OracleReport(msgspec.Struct, frozen=True):
    """What is known of one task's oracle."""

    task: str
    baseline: Verdict
    """Over its open cases and, where they are right, its exam cases."""
    baseline_error: str
    """Why the baseline is not correct; empty when it is."""
    closest: Margin | None
    """Of the baseline's outputs, the one nearest to its tolerance."""
    tried: int
    """Wrong answers that were compared with the oracle's."""
    weaknesses: tuple[Weakness, ...]
    problem: str = ""
    """Why the oracle could not be tried; empty when it was."""

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong; a baseline that this device cannot judge is not."""
        known = self.baseline in (Verdict.CORRECT, Verdict.UNSUPPORTED)
        return known and not self.weaknesses and not self.problem


async def weigh_oracle(task: Task, *, pool: DevicePool, targets: Sequence[Target]) -> OracleReport:
    """Judges the baseline of a task and tries its oracle; `WorkerDied` when a process of ours was lost."""
    baseline = await _judge_baseline(task, pool, targets)
    try:
        weighed = await _weigh(task_on(task, targets[0].name), pool)
    except NoSuchDtype as lacking:
        weighed = Weighed(tried=0, weaknesses=(), problem=str(lacking))
    margins = [one for evaluation in baseline for one in evaluation.margins]
    last = baseline[-1]
    return OracleReport(
        task=task.id,
        baseline=last.verdict,
        baseline_error=last.error.message if last.error is not None else "",
        closest=max(margins, key=lambda one: one.used, default=None),
        tried=weighed.tried,
        weaknesses=weighed.weaknesses,
        problem=weighed.problem,
    )


async def _judge_baseline(task: Task, pool: DevicePool, targets: Sequence[Target]) -> list[Evaluation]:
    """The evaluations of the open cases and, where those are right, of the exam."""
    source = baseline_source(task)
    evaluations = [await evaluate(source, task, pool=pool, targets=targets, seed=SEED)]
    if evaluations[0].verdict is Verdict.CORRECT and task.exam_cases:
        evaluations.append(await evaluate(source, task, pool=pool, targets=targets, seed=SEED, exam=True))
    return evaluations


async def _weigh(task: Task, pool: DevicePool) -> Weighed:
    async with pool.slot() as slot:
        channel = await slot.channel()
        answered = False
        try:
            async with asyncio.timeout(limits.ORACLE_S):
                await channel.send(ENCODER.encode(Weigh(task=task, seed=SEED)))
                report = JUDGE_REPORTS.decode(await channel.receive(_MAX_REPORT_BYTES))
            answered = True
        except (TimeoutError, EOFError) as error:
            raise WorkerDied(
                f"the oracle of {task.id} gave no answer within {limits.ORACLE_S:g} s"
            ) from error
        finally:
            if not answered:
                slot.discard()
    if not isinstance(report, Weighed):
        raise WorkerDied("the judge answered something else than it was asked")
    return report
