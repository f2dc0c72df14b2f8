"""The interface between a run and what judges for it: `Evaluator`, and its implementation on this machine's devices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from harness.processes.pool import DevicePool
from harness.wire.device import Device, Target
from harness.wire.messages.server import Language
from harness.wire.results.evaluation import Evaluation
from harness.wire.results.provenance import Provenance
from suites.task import Task

from .cascade import evaluate
from .modes import USUAL_MODE, Mode
from .sheet import OnEvent
from .survey import Survey, Surveying
from .timing.baselines import USUAL, Against

KeepTexts = Callable[[Mapping[str, bytes]], None]


class Evaluator(Protocol):
    """Judges candidates on its devices: on this machine, or on the nodes of a cluster."""

    @property
    def devices(self) -> Sequence[Device]:
        """The devices, also those that failed."""

    @property
    def language(self) -> Language | None:
        """Names that the installed Triton has and lacks; `None` if unknown."""

    async def evaluate(
        self,
        candidate: str,
        task: Task,
        mode: Mode = USUAL_MODE,
        *,
        targets: Sequence[Target],
        seed: int,
        against: Against | None = USUAL,
        on_event: OnEvent | None = None,
        keep_texts: KeepTexts | None = None,
        name: str = "",
    ) -> Evaluation:
        """See `harness.stages.cascade.evaluate`. `name` is different for equal candidates of a session."""

    def survey(self, task: Task, target: Target) -> Surveying:
        """Return a survey of a task."""

    def lend(self, names: Collection[str]) -> None:
        """Start nothing more on these devices, and judge on all others again."""

    async def provenance(self, device: Device) -> Provenance:
        """Return the hardware and software of evaluations on this device."""


class LocalEvaluator:
    """The devices of a pool on this machine."""

    def __init__(self, pool: DevicePool) -> None:
        self.pool = pool

    @property
    def devices(self) -> Sequence[Device]:
        """See `Evaluator`."""
        return self.pool.devices

    @property
    def language(self) -> Language | None:
        """See `Evaluator`."""
        return self.pool.language

    async def evaluate(
        self,
        candidate: str,
        task: Task,
        mode: Mode = USUAL_MODE,
        *,
        targets: Sequence[Target],
        seed: int,
        against: Against | None = USUAL,
        on_event: OnEvent | None = None,
        keep_texts: KeepTexts | None = None,
        name: str = "",
    ) -> Evaluation:
        """See `Evaluator`."""
        return await evaluate(
            candidate,
            task,
            self.pool,
            mode,
            targets=targets,
            seed=seed,
            against=against,
            on_event=on_event,
            keep_texts=keep_texts,
        )

    def survey(self, task: Task, target: Target) -> Surveying:
        """See `Evaluator`."""
        return Survey(self.pool, task, target)

    def lend(self, names: Collection[str]) -> None:
        """See `Evaluator`."""
        self.pool.lend(names)

    async def provenance(self, device: Device) -> Provenance:
        """See `Evaluator`."""
        return await self.pool.provenance(device)
