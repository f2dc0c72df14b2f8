"""The engine's seam to the judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from engine.tuning import Surveying
from harness import (
    WHOLE,
    WITH_ENERGY,
    Device,
    DevicePool,
    Effort,
    Evaluation,
    StageEntered,
    StageLeft,
    Target,
    evaluate,
    target,
)
from harness.hardware.product import Product
from harness.hardware.recognition import product_of
from harness.stages.survey import Survey
from harness.stages.timing.baselines import USUAL, Against, Baseline, timing_baseline
from suites import Task

OnStage = Callable[[StageEntered | StageLeft], None]


class Judge(Protocol):
    """Whoever gives verdicts; asked for many candidates at once, it makes those wait that it has no place for."""

    devices: Sequence[Device]

    def survey(self, task: Task) -> Surveying:
        """What compiles and samples a task's candidates for the device's own target, and judges nothing."""
        ...

    async def evaluate(
        self,
        source: str,
        task: Task,
        *,
        rival: str | None,
        on_stage: OnStage,
        exam: bool = False,
        avoid: str = "",
    ) -> Evaluation:
        """The evaluation of a candidate, with `exam` on the task's exam cases in place of the open ones.

        On another device than `avoid` where one is free.

        Failures of the judge's own are the verdict `infra_error`.
        """
        ...

    async def estimate(
        self,
        source: str,
        task: Task,
        *,
        start: Baseline,
        effort: Effort,
        passed: Evaluation | None,
        on_stage: OnStage,
    ) -> Evaluation:
        """What few samples say of a variant beside the kernel that it varies: estimates, and no verdict to keep.

        `passed` is what this said of it with less effort.
        """
        ...

    async def measure(self, source: str, task: Task, *, device: str, on_stage: OnStage) -> Evaluation:
        """The evaluation of a winner on this device alone."""
        ...


class PoolJudge:
    """The harness, on the devices of a pool.

    `against` names what a GPU times candidates against: one of `harness.stages.timing.baselines.KINDS`, empty for the task's own, or with
    `against_source` a kernel of that name.
    """

    def __init__(
        self,
        pool: DevicePool,
        *,
        targets: Sequence[Target],
        seed: int,
        against: str = "",
        against_source: str = "",
    ) -> None:
        self.devices: Sequence[Device] = pool.devices
        self._pool = pool
        self._targets = targets
        self._seed = seed
        self._against = against
        self._against_source = against_source

    def _timing(self, task: Task) -> Against:
        if self._against_source:
            return Against(Baseline(self._against, self._against_source))
        return Against(timing_baseline(task, self._against)) if self._against else USUAL

    def survey(self, task: Task) -> Surveying:
        """See `Judge`."""
        return Survey(self._pool, task, own_target(self.devices, self._targets), own_product(self.devices))

    async def evaluate(
        self,
        source: str,
        task: Task,
        *,
        rival: str | None,
        on_stage: OnStage,
        exam: bool = False,
        avoid: str = "",
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
            against=self._timing(task),
            avoid=avoid,
            effort=WITH_ENERGY if exam else WHOLE,
            on_event=on_stage,
        )

    async def measure(self, source: str, task: Task, *, device: str, on_stage: OnStage) -> Evaluation:
        """See `Judge`."""
        return await evaluate(
            source,
            task,
            pool=self._pool,
            targets=self._targets,
            seed=self._seed,
            against=self._timing(task),
            on=device,
            effort=WITH_ENERGY,
            on_event=on_stage,
        )

    async def estimate(
        self,
        source: str,
        task: Task,
        *,
        start: Baseline,
        effort: Effort,
        passed: Evaluation | None,
        on_stage: OnStage,
    ) -> Evaluation:
        """See `Judge`."""
        return await evaluate(
            source,
            task,
            pool=self._pool,
            targets=self._targets,
            seed=self._seed,
            against=Against(start),
            effort=effort,
            passed=passed,
            on_event=on_stage,
        )


def own_target(devices: Sequence[Device], targets: Sequence[Target]) -> Target:
    """What a compile error is fatal on: the devices' own target, on `cpu` the first that is compiled for."""
    own = devices[0].target
    return target(own) if own is not None else targets[0]


def own_product(devices: Sequence[Device]) -> Product | None:
    """What all of the devices are; `None` for `cpu`, where they differ, and where the table does not know one."""
    first, *others = (product_of(device).product for device in devices)
    return first if all(other == first for other in others) else None
