"""The engine's seam to the judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from harness import Device, DevicePool, Evaluation, StageEntered, StageLeft, Target, evaluate
from suites import Task

OnStage = Callable[[StageEntered | StageLeft], None]


class Judge(Protocol):
    """Whoever gives verdicts; asked for many candidates at once, it makes those wait that it has no place for."""

    devices: Sequence[Device]

    async def evaluate(
        self, source: str, task: Task, *, rival: str | None, on_stage: OnStage, exam: bool = False
    ) -> Evaluation:
        """The evaluation of a candidate, with `exam` on the task's exam cases in place of the open ones.

        Failures of the judge's own are the verdict `infra_error`.
        """
        ...


class PoolJudge:
    """The harness, on the devices of a pool."""

    def __init__(self, pool: DevicePool, *, targets: Sequence[Target], seed: int) -> None:
        self.devices: Sequence[Device] = pool.devices
        self._pool = pool
        self._targets = targets
        self._seed = seed

    async def evaluate(
        self, source: str, task: Task, *, rival: str | None, on_stage: OnStage, exam: bool = False
    ) -> Evaluation:
        """See `Judge`."""
        return await evaluate(
            source,
            task,
            pool=self._pool,
            targets=self._targets,
            seed=self._seed,
            exam=exam,
            rival=rival,
            on_event=on_stage,
        )
