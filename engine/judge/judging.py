"""The judge as the engine asks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harness import Device, Evaluation, StageEvent, Target, target
from harness.hardware.product import Product
from harness.hardware.recognition import product_of
from harness.profiling.launches import ProfileFailed
from harness.profiling.taking import take_profile
from harness.stages.evaluator import Evaluator, LocalEvaluator
from harness.stages.modes import Attempt, Exam, Mode, Rough
from harness.stages.survey import Surveying
from harness.stages.timing.baselines import USUAL, Against, Baseline, timing_baseline
from harness.wire.messages.server import Language
from harness.wire.results.kernel_counts import Profile
from suites import Task

OnStage = Callable[[StageEvent], None]


class Judge:
    """Gives verdicts by the harness, on the devices of an evaluator. Calls beyond its capacity wait.

    `against` names the timing baseline on a GPU: one of `harness.stages.timing.baselines.KINDS`, or empty for the
    task's own. With `against_source` it names that kernel.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        *,
        targets: Sequence[Target],
        seed: int,
        against: str = "",
        against_source: str = "",
        keep_texts: Callable[[Mapping[str, bytes]], None] | None = None,
    ) -> None:
        """`keep_texts` gets the compiler's texts of each evaluation, but of no estimate: see `harness.evaluate`."""
        self.devices: Sequence[Device] = evaluator.devices
        self._evaluator = evaluator
        self._targets = targets
        self._seed = seed
        self._against = against
        self._against_source = against_source
        self._keep_texts = keep_texts

    def _baseline(self, task: Task) -> Against:
        if self._against_source:
            return Against(Baseline(self._against, self._against_source))
        return Against(timing_baseline(task, self._against)) if self._against else USUAL

    @property
    def language(self) -> Language | None:
        """Names that the installed Triton has and lacks; `None` if unknown."""
        return self._evaluator.language

    def baseline(self, task: Task) -> Baseline:
        """Returns the kernel that candidates are timed against. Reads files."""
        return self._baseline(task).baseline or timing_baseline(task)

    def survey(self, task: Task) -> Surveying:
        """Returns a survey that compiles candidates of a task, without judging.

        It compiles for the device's own target.
        """
        return self._evaluator.survey(task, own_target(self.devices, self._targets))

    async def evaluate(
        self,
        source: str,
        task: Task,
        *,
        on_stage: OnStage,
        exam: bool = False,
        avoid: str = "",
        name: str = "",
    ) -> Evaluation:
        """Returns the evaluation of a candidate; with `exam`, on the task's exam cases instead of the open cases.

        Uses another device than `avoid` if one is free. A failure of the judge itself gives the verdict
        `infra_error`. `name` is different for equal candidates of a session.
        """
        mode = Exam(avoid) if exam else Attempt()
        return await self._evaluate(source, task, mode, self._baseline(task), on_stage, name)

    async def measure(self, source: str, task: Task, *, device: str, on_stage: OnStage) -> Evaluation:
        """Returns the evaluation of a winner on this one device."""
        return await self._evaluate(source, task, Attempt(device), self._baseline(task), on_stage)

    async def profile(
        self,
        source: str,
        task: Task,
        *,
        case: str,
        device: str,
        configs: Mapping[str, str],
        on_stage: OnStage,
    ) -> Profile:
        """Returns what a profiler counts; raises as `take_profile`."""
        if not isinstance(self._evaluator, LocalEvaluator):
            raise ProfileFailed(
                "on a cluster no profiler runs; judge the kernel on a GPU of this machine first"
            )
        return await take_profile(
            self._evaluator.pool,
            source,
            task,
            case=case,
            device=device,
            seed=self._seed,
            keep=self._keep_texts or (lambda _: None),
            configs=configs,
            on_stage=on_stage,
        )

    async def estimate(
        self, source: str, task: Task, rough: Rough, *, start: Baseline, on_stage: OnStage
    ) -> Evaluation:
        """Returns estimates of a variant of `start`, timed against it; the verdict is not recorded."""
        return await self._evaluate(source, task, rough, Against(start), on_stage)

    async def _evaluate(
        self, source: str, task: Task, mode: Mode, against: Against, on_stage: OnStage, name: str = ""
    ) -> Evaluation:
        return await self._evaluator.evaluate(
            source,
            task,
            mode,
            targets=self._targets,
            seed=self._seed,
            against=against,
            on_event=on_stage,
            keep_texts=None if isinstance(mode, Rough) else self._keep_texts,
            name=name,
        )


def own_target(devices: Sequence[Device], targets: Sequence[Target]) -> Target:
    """Returns the target on which a compile error is fatal: the devices' own, on `cpu` the first compile target."""
    own = devices[0].target
    return target(own) if own is not None else targets[0]


def own_product(devices: Sequence[Device]) -> Product | None:
    """Returns the product of all devices; `None` for `cpu`, if the devices differ, or if a product is unknown."""
    first, *rest = (product_of(device).product for device in devices)
    return first if all(product == first for product in rest) else None
