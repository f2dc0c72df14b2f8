"""The pool: slots on the devices of one engine, in which candidates are judged, and the servers behind them."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType

import msgspec

from harness.failures import first_failure
from harness.hardware.recognition import describe_device
from harness.linux import syscalls
from harness.node.discovery import CPU, choose_devices
from harness.node.leases import Holder, lease, lease_folder
from harness.node.telemetry.watcher import Telemetry
from harness.processes.starting.players import BaselineCalls
from harness.wire.device import Device
from harness.wire.errors import DeviceFull, HarnessError, NoDeviceLeft, WorkerDied, is_out_of_memory
from harness.wire.limits import END_S, ON_CPU, ON_GPU, STARTS_AT_ONCE, TimeLimits
from harness.wire.messages.clock import PLAYERS
from harness.wire.messages.server import Language
from harness.wire.results.evaluation import Evaluation, Verdict
from harness.wire.results.provenance import Provenance, runtime_of
from suites.task import Task

from .binaries import Binaries
from .gpus.capacity import KEPT_CORES, TIMERS_A_CANDIDATE, largest_case_bytes, own_cores, slots_of
from .gpus.gpu_leases import GpuLeases
from .gpus.quarantine import (
    DeviceEvent,
    Health,
    HealthProbe,
    LeaseAwaited,
    OnDevice,
    Quarantined,
    ServerProbe,
)
from .kernel_cache import KernelCache
from .slot import Neighbours, Slot
from .starting.judge_python import OUR_PYTHON, JudgePython
from .starting.launchers import Launchers, Types
from .starting.nursery import Nursery
from .starting.players import Players
from .starting.servers import Child, ForkServer
from .starting.spares import GUEST, TIMER, Spares

SPARE_GUESTS = 2
"""Guests on a GPU that wait for a candidate, at most: more contexts would only delay those that are needed now."""
FILL_PAUSE_S = 0.5
"""Between an evaluation and the start of spares for the next: a pool that closes then starts none."""
_TROUBLE = frozenset({Verdict.CRASH, Verdict.TIMEOUT, Verdict.INFRA_ERROR})
"""After one of these verdicts the GPU is probed."""

TrustedGraphs = Callable[[Provenance], int | None]
"""Returns the size of the largest graph that worked on GPUs of this product and driver, 0 if none did, `None` if unknown."""


class DevicePool:
    """The devices that candidates are judged on. Use it as `async with DevicePool() as pool`.

    `devices` are names, such as `cpu` or `0`. `slots` candidates are judged at once, spread over the devices; by default a
    device `cpu` has one slot per core and a GPU has as many as `slots_of` allows for the largest case of `tasks`, or for
    `case_bytes`. A pool with `timed` False keeps no timers ready. Other users who wait for a GPU read the name `session`.
    `on_device` is called from the event loop with waits, quarantines and pauses. `probe` tests whether a GPU still computes.
    With `node` the pool is one of several of a session on a cluster: its devices are `NODE/0` or `NODE/cpu`, and a GPU that fails
    leaves it at once, because other nodes judge on. `cores`: those that the pool may count on, by default all of this process.
    `trusted_graphs` says which graphs work on a GPU.
    A `nursery` that was opened before saves its start; the pool closes it. Without one, `python` runs the judge's processes.

    Raises `UnknownDevice`, `JudgeExtraMissing` without torch or triton, `WorkerDied` if a server does not start.
    """

    def __init__(
        self,
        devices: Sequence[str] = ("cpu",),
        slots: int | None = None,
        limits: TimeLimits | None = None,
        *,
        tasks: Iterable[Task] = (),
        case_bytes: int | None = None,
        timed: bool = True,
        session: str = "",
        on_device: OnDevice | None = None,
        probe: HealthProbe | None = None,
        nursery: Nursery | None = None,
        python: JudgePython = OUR_PYTHON,
        node: str = "",
        cores: int | None = None,
        trusted_graphs: TrustedGraphs | None = None,
    ) -> None:
        """Prepare the pool; nothing starts before `async with`. Raises `UnknownDevice` for a device that is not here."""
        self.devices: tuple[Device, ...] = choose_devices(devices)
        if node:
            self.devices = tuple(
                msgspec.structs.replace(device, name=f"{node}/{device.name}") for device in self.devices
            )
        if slots is not None and slots < 1:
            raise ValueError("slots must be at least 1")
        self._timed = timed
        self._trusted_graphs = trusted_graphs
        self._graph_nodes: dict[str, int | None] = {}
        cores = own_cores() if cores is None else cores
        self._places = _places(self.devices, slots, tasks, case_bytes, cores=cores, timed=timed)
        self.slots = len(self._places)
        self._limits = limits
        self._launchers = Launchers()
        self._nursery = nursery or Nursery(python)
        self.interpreting = ForkServer(interpret=True, nursery=self._nursery)
        self.compiling = ForkServer(interpret=False, furnish=self._launchers.lay, nursery=self._nursery)
        self._free: asyncio.LifoQueue[Slot | None] = asyncio.LifoQueue()
        """`None` ends the queue: no device is left."""
        self._first_in_line = asyncio.Lock()
        """Held by the caller who waits longest: without it, one who comes when a slot is given back could take that slot."""
        self._freed = asyncio.Event()
        """Set when a slot is given back or a device is lost; `_slot_on` clears it."""
        self._all: list[Slot] = []
        self._lent: frozenset[str] = frozenset()
        self._parked: list[Slot] = []
        """Slots of GPUs that are lent."""
        self.compiles = asyncio.Semaphore(max(self.slots, cores))
        self._servers = (self.interpreting, self.compiling)
        self.spares = Spares(self.compiling)
        self.players = Players(self.spares)
        gpus = sum(device.kind != "cpu" for device in self.devices)
        self.binaries = Binaries(self.compiling, max(1, cores - KEPT_CORES * gpus))
        self.kernels = KernelCache()
        self.baseline_calls = BaselineCalls()
        self.leases = GpuLeases(session, self._report_wait)
        self._neighbours = {device.name: Neighbours() for device in self.devices}
        self._slot_users = Neighbours()
        self._filling: dict[str, asyncio.Task[None]] = {}
        self._opening: list[asyncio.Task[None]] = []
        """Tasks that start the judges of each GPU."""
        self._telemetry: dict[str, Telemetry] = {}
        self._session = session
        self._on_device = on_device
        patience_s = 0.0 if node else None
        self.health = Health(self.devices, probe or ServerProbe(self.compiling), self._report, patience_s)

    async def __aenter__(self) -> DevicePool:
        """Start the servers and open all devices.

        If a server does not start, everything is closed again and the error is raised.
        """
        self._nursery.python.require_judge()
        if any(device.package for device in self.devices):
            lease_folder()  # a folder without write access is an error before anything starts
        syscalls.keep_undumpable()  # before any guest: this process holds keys in its environment
        try:
            await self._start_servers()
        except BaseException:
            await self._close()
            raise
        self._all = [self._slot(device) for device in self._places]
        for slot in self._all:
            self._free.put_nowait(slot)
        for device in self.devices:
            self._fill(device)
            self._opening.append(asyncio.create_task(self._open(device), name=f"open/{device.name}"))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    @property
    def software(self) -> Provenance:
        """Versions of Python, torch, triton, numpy and the Linux kernel."""
        versions = {**self.interpreting.versions, "linux": platform.release()}
        versions["runtime"] = runtime_of(versions.get("torch", ""))
        return msgspec.convert(versions, Provenance)

    @property
    def python(self) -> JudgePython:
        """The interpreter of the judge's processes."""
        return self._nursery.python

    @property
    def language(self) -> Language | None:
        """Names that the installed Triton has and lacks; `None` if the servers do not fork."""
        return self.interpreting.language

    async def provenance(self, device: Device) -> Provenance:
        """Return the hardware and software of evaluations on this device. Its driver is asked once."""
        telemetry = self.telemetry(device)
        if telemetry is not None and telemetry.provenance is None:
            await telemetry.state()
        return describe_device(device, self.software, telemetry.provenance if telemetry else None)

    async def graph_nodes(self, device: Device) -> int | None:
        """Return the size of the largest graph that worked on this GPU, 0 if none did, `None` if that was not measured."""
        if self._trusted_graphs is not None and device.name not in self._graph_nodes:
            provenance = await self.provenance(device)
            self._graph_nodes[device.name] = await asyncio.to_thread(self._trusted_graphs, provenance)
        return self._graph_nodes.get(device.name)

    def limits(self, device: Device) -> TimeLimits:
        """Return the limits of a candidate on this device."""
        return self._limits or (ON_CPU if device.kind == "cpu" else ON_GPU)

    @asynccontextmanager
    async def slot(
        self, avoid: str = "", *, on: str = "", timers: int = 0, alone: bool = False
    ) -> AsyncIterator[Slot]:
        """Wait for a free slot on a device that is not in quarantine. Servers that died are started again first.

        Prefers a device other than `avoid`. With `on`, waits for that device only, ahead of other callers. On a GPU, so many
        `timers` start in the background. With `alone`, waits until no other slot of the pool is in use, and keeps others out.
        Raises `WorkerDied` if `on` is in quarantine or lent, `NoDeviceLeft` if every device is.
        """
        if not self._all:
            raise HarnessError("the pool is not open; use it as `async with DevicePool() as pool`")
        if on:
            slot = await self._slot_on(on)
        else:
            async with self._first_in_line:
                slot = await self._next_slot()
        if slot.device.name == avoid:
            slot = self._elsewhere(slot)
        try:
            async with self._slot_users.alone() if alone else self._slot_users.beside():
                await self._start_servers()
                if slot.device.kind != "cpu":
                    slot.timers_ahead = timers
                    self._fill(slot.device)
                yield slot
        finally:
            slot.timers_ahead = 0
            self._freed.set()
            self._give_back(slot)

    def lend(self, names: Collection[str]) -> None:
        """Start nothing more on these GPUs, and judge on all others again. What runs on them finishes."""
        self._lent = frozenset(names)
        slots = [self._free.get_nowait() for _ in range(self._free.qsize())]
        parked, self._parked = self._parked, []
        for slot in (*reversed(slots), *parked):
            if slot is None:
                self._free.put_nowait(None)
            else:
                self._give_back(slot)
        for device in self.devices:
            if device.name in self._lent:
                self._drop_ready(device)
        self._freed.set()

    def _give_back(self, slot: Slot) -> None:
        """Free a slot for the next candidate.

        The slot of a device that is lent loses its processes and waits for the device.
        """
        if slot.device.name in self._lent:
            slot.discard()
            self._parked.append(slot)
        else:
            self._free.put_nowait(slot)

    async def judge_on(self, slot: Slot, judging: Callable[[], Awaitable[Evaluation]]) -> Evaluation:
        """Await `judging`, which takes the leases that it needs.

        On a GPU a crash, timeout or infra error is followed by a probe. Raises `DeviceFailed` if this GPU or a different GPU
        fails its probe during the evaluation, which then does not count.
        """
        if slot.device.kind == "cpu":
            return await judging()
        async with self._neighbours[slot.device.name].beside():
            return await self._judge_and_probe(slot, judging)

    async def judge_alone(self, slot: Slot, judging: Callable[[], Awaitable[Evaluation]]) -> Evaluation:
        """Like `judge_on`, when no other slot of this GPU judges, with the memory of its judges and spares free.

        It has the exclusive lease, so that no other engine runs a candidate either. When `judging` is called, all memory that is
        in use on the GPU is that of others.
        """
        device = slot.device
        async with self._neighbours[device.name].alone():
            neighbours = [place for place in self._all if place.device == device]
            ending = [place.judge for place in neighbours if place.judge is not None] + self._drop_ready(
                device
            )
            for place in neighbours:
                place.discard()
            if ending:
                await asyncio.wait([child.ended for child in ending], timeout=END_S)
            async with self.leases.alone(slot):
                return await self._judge_and_probe(slot, judging)

    async def memory_used_bytes(self, device: Device) -> int | None:
        """Return how much of a GPU's memory all processes use now; `None` if that is unknown, as for a part of a GPU."""
        telemetry = self.telemetry(device)
        if telemetry is None:
            return None
        state, provenance = await telemetry.state(), telemetry.provenance
        whole = provenance is None or provenance.partition in ("", "SPX/NPS1")
        return state.memory_used_bytes if whole else None

    async def _judge_and_probe(self, slot: Slot, judging: Callable[[], Awaitable[Evaluation]]) -> Evaluation:
        """Judge in a slot. After an evaluation that a broken GPU may explain, probe the GPU before the slot is used again.

        Raises what `judging` raises. A GPU that is only full is not probed, because its probe would find no memory either.
        """
        since = self.health.failures
        try:
            evaluation = await judging()
        except DeviceFull:
            raise  # the GPU computes, and a probe would find it full too
        except WorkerDied:
            self._drop_ready(slot.device)
            async with self.leases.using(slot):
                await self.health.examine(slot.device, since)
            raise
        error, verdict = evaluation.error, evaluation.verdict
        full = verdict is Verdict.INFRA_ERROR and error is not None and is_out_of_memory(error.message)
        if verdict in _TROUBLE and not full:
            self._drop_ready(slot.device)
            async with self.leases.using(slot):
                await self.health.examine(slot.device, since)
        slot.timers_ahead = 0
        self._fill(slot.device, after_s=FILL_PAUSE_S)
        return evaluation

    def expect_timer(self, slot: Slot) -> None:
        """Start a timer in the background beside those that the slot's candidate needs: its baseline is not recorded yet."""
        slot.timers_ahead += 1
        self._fill(slot.device)

    def expect(self, target: str, kernels: Iterable[Types]) -> None:
        """Have launchers built at once for kernels with these argument types, if a GPU of the pool has this target.

        Without them, each recorder of a new autotuned kernel builds them while it holds the exclusive lease.
        """
        if self.is_own(target) and self._launchers.want(target, kernels):
            for device in self.devices:
                if device.target == target:
                    self._fill(device)

    def lay(self, source: str, scratch: Path, device: Device) -> None:
        """Write the compiled kernels of a source, and all launchers, for a GPU process in which no foreign code ran yet.

        Blocks on files: not for an event loop.
        """
        self.kernels.lay(source, scratch)
        self._launchers.lay(scratch, device)

    def is_own(self, target: str | None) -> bool:
        """True if a GPU of the pool has this target."""
        return any(device.kind != "cpu" and device.target == target for device in self.devices)

    def telemetry(self, device: Device) -> Telemetry | None:
        """Return the telemetry of a GPU; `None` if its PCI address is not known."""
        if not device.address:
            return None
        return self._telemetry.setdefault(device.name, Telemetry(device.address, device.kind))

    def _fill(self, device: Device, *, after_s: float = 0.0) -> None:
        """Start the missing spares of a GPU in a background task, after `after_s` seconds.

        Does nothing for `cpu`, for a GPU that is lost or lent, and while such a task runs. The task takes the shared lease, so
        it never starts a process while a kernel is timed.
        """
        before = self._filling.get(device.name)
        if (
            device.kind != "cpu"
            and self.compiling.alive
            and device.name not in self.health.lost
            and device.name not in self._lent
            and (before is None or before.done())
        ):
            self._filling[device.name] = asyncio.create_task(
                self._filled(device, after_s), name=f"spares/{device.name}"
            )

    async def _filled(self, device: Device, after_s: float) -> None:
        """Build the device's launchers and start its missing spares, each time under its lease.

        An error drops the spares and is not raised.
        """
        await asyncio.sleep(after_s)
        try:
            async with lease(device, session=self._session):
                await self._launchers.build(self.compiling, device)
            while roles := self.spares.missing(device, self._wanted_spares(device)):
                # A few at a time, so that a timing does not wait long for the lease.
                async with lease(device, session=self._session):
                    await self._launchers.build(self.compiling, device)
                    await self.spares.fill(device, roles[:STARTS_AT_ONCE])
        except (HarnessError, TimeoutError, OSError):
            self._drop_ready(device)  # the next user starts its own worker and reports the error

    def _drop_ready(self, device: Device | None = None) -> list[Child]:
        """End the spares and the idle players of one GPU, or of all: after trouble they may have lost their context."""
        return [*self.spares.drop(device), *self.players.drop(device)]

    def _wanted_spares(self, device: Device) -> dict[str, int]:
        """Timers for each candidate that may still be timed, or for the first one, and missing players; a few guests."""
        slots = [slot for slot in self._all if slot.device == device]
        timers = sum(slot.timers_ahead for slot in slots) or TIMERS_A_CANDIDATE
        timers += max(PLAYERS - self.players.count(device), 0)
        return {TIMER: timers if self._timed else 0, GUEST: min(len(slots), SPARE_GUESTS)}

    async def _open(self, device: Device) -> None:
        """Start telemetry and judges of a GPU before candidates need them.

        The first slot's judge starts at once, the others after the first spares: a driver makes one context after another.
        """
        if device.kind == "cpu" or not self.compiling.alive:
            return
        try:
            for slot in reversed(self._all):  # the slot that is taken first
                if slot.device == device and device.name not in self._lent:
                    async with lease(device, session=self._session):
                        await slot.channel()
                    await asyncio.wait([self._filling[device.name]])
            if telemetry := self.telemetry(device):
                await telemetry.state()
        except (HarnessError, TimeoutError, OSError):
            return  # the next user of the slot starts its own judge and reports the error

    def _report_wait(self, device: Device, other_sessions: tuple[Holder, ...]) -> None:
        self._report(LeaseAwaited(device.name, other_sessions))

    async def _next_slot(self) -> Slot:
        """Wait for a free slot on a healthy device. Slots of a lost device are discarded. Raises `NoDeviceLeft`."""
        while True:
            await self.health.ready.wait()
            slot = await self._free.get()
            if slot is None:
                self._free.put_nowait(None)  # for the next caller
                lost = "; ".join(f"GPU {name}: {why}" for name, why in sorted(self.health.lost.items()))
                raise NoDeviceLeft(
                    f"every GPU of this run failed ({lost}); see `wavedeck doctor`, then resume, or judge on cpu"
                )
            if slot.device.name in self.health.lost:
                slot.discard()
            elif self.health.ready.is_set():
                return slot
            else:
                self._free.put_nowait(slot)

    async def _slot_on(self, device: str) -> Slot:
        """Wait for a free slot on this device and take it; all other slots stay free, in their order.

        Raises `WorkerDied` if the device is in quarantine or lent.
        """
        while True:
            await self.health.ready.wait()
            if device in self.health.lost:
                raise WorkerDied(f"GPU {device} is in quarantine: {self.health.lost[device]}")
            if device in self._lent:
                raise WorkerDied(f"GPU {device} is lent; take it back first")
            free = [self._free.get_nowait() for _ in range(self._free.qsize())]
            chosen = next((slot for slot in free if slot is not None and slot.device.name == device), None)
            for slot in reversed(free):
                if slot is not chosen or slot is None:
                    self._free.put_nowait(slot)
            if chosen is not None:
                return chosen
            self._freed.clear()
            await self._freed.wait()

    def _elsewhere(self, slot: Slot) -> Slot:
        """Return a free slot on another device, or this one if there is none."""
        free = [self._free.get_nowait() for _ in range(self._free.qsize())]
        elsewhere = next(
            (
                other
                for other in reversed(free)
                if other is not None and other.device.name not in (slot.device.name, *self.health.lost)
            ),
            slot,
        )
        for other in free:
            self._free.put_nowait(slot if other is elsewhere else other)
        return elsewhere

    def _report(self, event: DeviceEvent) -> None:
        """Report a device's event to the run. A quarantine wakes those who wait for a slot, for good if no device is left."""
        if isinstance(event, Quarantined):
            self._freed.set()
        if isinstance(event, Quarantined) and len(self.health.lost) == len(self.devices):
            self._free.put_nowait(None)
        if self._on_device is not None:
            self._on_device(event)

    def _slot(self, device: Device) -> Slot:
        if device.kind == "cpu":
            return Slot(device, self.interpreting)
        sharers = self._places.count(device)
        return Slot(device, self.compiling, interpreter=Slot(CPU, self.interpreting), sharers=sharers)

    async def _start_servers(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for server in self._servers:
                    if not server.alive:
                        group.create_task(server.start(), name=f"start/{server.name}")
        except ExceptionGroup as group_error:
            raise first_failure(group_error) from None

    async def _close(self) -> None:
        """End everything that the pool started: background work, leases, back ends, telemetry, slots, servers and the nursery."""
        preparing = [*self._filling.values(), *self._opening]
        for task in preparing:
            task.cancel()
        if preparing:
            await asyncio.wait(preparing)
        await self.leases.close()
        self._drop_ready()
        await self.binaries.close()
        await self.health.close()
        for telemetry in self._telemetry.values():
            await telemetry.close()
        slots, self._all = self._all, []
        for slot in slots:
            slot.discard()
            if slot.interpreter is not None:
                slot.interpreter.discard()
        async with asyncio.TaskGroup() as group:
            for server in self._servers:
                group.create_task(server.__aexit__(None, None, None), name=f"stop/{server.name}")
        await self._nursery.close()


def _places(
    devices: Sequence[Device],
    slots: int | None,
    tasks: Iterable[Task],
    case_bytes: int | None,
    *,
    cores: int,
    timed: bool,
) -> tuple[Device, ...]:
    """Return the device of each slot, the devices by turns, so that the first candidates go to different devices.

    Without a number of `slots`, each device gets as many as its cores and its memory allow.
    """
    if slots is not None:
        return tuple(devices[number % len(devices)] for number in range(slots))
    gpus = sum(device.kind != "cpu" for device in devices)
    case_bytes = (case_bytes or largest_case_bytes(tasks)) if gpus else 0
    counts = {
        device.name: cores
        if device.kind == "cpu"
        else slots_of(device, gpus=gpus, cores=cores, case_bytes=case_bytes, timed=timed)
        for device in devices
    }
    # Devices by turns, so that the first candidates go to different devices.
    return tuple(
        device for turn in range(max(counts.values())) for device in devices if turn < counts[device.name]
    )
