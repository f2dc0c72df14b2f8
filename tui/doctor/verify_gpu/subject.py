"""The GPUs of one product on this machine, and what a check may ask of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack

from harness import Device, DevicePool, Evaluation, evaluate, target
from harness.hardware.recognition import describe_device
from harness.node.telemetry.samples import StateReport
from harness.node.telemetry.watcher import ask_once
from harness.processes.gpus.quarantine import ServerProbe
from harness.processes.starting.judge_python import JudgePython
from harness.profiling.clock_comparison import ClockTrial, compare_clocks
from harness.stages.modes import Attempt
from harness.wire.results.provenance import Provenance
from suites import Task, load_suite

SEED = 1


class GpusUnderTest:
    """The devices under test, on a pool of their own, which `start` opens and `close` ends.

    Every method may raise `HarnessError`.
    """

    def __init__(self, devices: Sequence[Device], provenance: Provenance, python: JudgePython) -> None:
        self.devices = devices
        self.provenance = provenance
        """Without software until `start` has returned."""
        self.evaluations: dict[str, Evaluation] = {}
        """All evaluations so far, by name."""
        self.graph_nodes: int | None = None
        """See `Verification`; set by the check `clocks`."""
        self._tasks = tuple(load_suite("starter"))
        self._python = python
        self._stack = AsyncExitStack()
        self._open: DevicePool | None = None

    @property
    def tasks(self) -> Sequence[Task]:
        """The tasks; their baselines are judged."""
        return self._tasks

    @property
    def _pool(self) -> DevicePool:
        assert self._open is not None, "the check `start` opens it"
        return self._open

    async def ask_driver(self, device: Device) -> StateReport:
        """Return what the driver reports about a GPU. Works before `start`."""
        return await asyncio.to_thread(ask_once, device.address, device.kind)

    async def start(self) -> None:
        """Start the judge. The methods below need it."""
        pool = DevicePool([device.name for device in self.devices], tasks=self._tasks, python=self._python)
        self._open = await self._stack.enter_async_context(pool)
        self.provenance = await pool.provenance(self.devices[0])

    async def compute(self, device: Device) -> str:
        """Compute in a new process with a context on the GPU; return what is wrong, or an empty string."""
        return await ServerProbe(self._pool.compiling)(device)

    async def compare_clocks(self, device: Device) -> ClockTrial:
        """Return the times of kernels of known lengths by each clock of the GPU."""
        return await compare_clocks(self._pool, device)

    async def judge(
        self, name: str, source: str, task: Task, *, seed: int = SEED, on: str = ""
    ) -> Evaluation:
        """Judge a candidate and keep its evaluation under `name`; with `on`, on this GPU."""
        own = self.devices[0].target
        evaluation = await evaluate(
            source, task, self._pool, Attempt(on), targets=(target(own or "gfx942"),), seed=seed
        )
        self.evaluations[name] = evaluation
        return evaluation

    async def close(self) -> None:
        """End the judge's processes."""
        await self._stack.aclose()


def by_product(devices: Iterable[Device], python: JudgePython) -> list[GpusUnderTest]:
    """Return a subject for each product and driver. Asks the driver about each GPU."""
    groups: dict[tuple[str, str, str], list[Device]] = {}
    provenances: dict[tuple[str, str, str], Provenance] = {}
    for device in devices:
        answer = ask_once(device.address, device.kind) if device.address else None
        provenance = describe_device(device, Provenance(), answer.provenance if answer else None)
        key = provenance.product, provenance.partition, provenance.driver
        groups.setdefault(key, []).append(device)
        provenances.setdefault(key, provenance)
    return [GpusUnderTest(group, provenances[key], python) for key, group in groups.items()]
