"""The interface between a run and what judges for it: `Evaluator`, and its implementation on this machine's devices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

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
    """The devices of a pool on this machine; see `Evaluator`."""

    def __init__(self, pool: DevicePool) -> None:
        self.pool = pool
        self.devices: Sequence[Device] = pool.devices

    @property
    def language(self) -> Language | None:
        """Names that the installed Triton has and lacks; `None` if unknown."""
        return self.pool.language

    async def evaluate(
        self, candidate: str, task: Task, mode: Mode = USUAL_MODE, *, name: str = "", **options: Any
    ) -> Evaluation:
        """Evaluate on a free slot of the pool; `options` are those of `harness.stages.cascade.evaluate`."""
        return await evaluate(candidate, task, self.pool, mode, **options)

    def survey(self, task: Task, target: Target) -> Surveying:
        """Return a survey of a task."""
        return Survey(self.pool, task, target)

    def lend(self, names: Collection[str]) -> None:
        """Start nothing more on these devices."""
        self.pool.lend(names)

    async def provenance(self, device: Device) -> Provenance:
        """Return the hardware and software of evaluations on this device."""
        return await self.pool.provenance(device)
