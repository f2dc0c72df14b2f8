"""The pool: slots on the devices of one engine, in which candidates are judged, and the servers behind them."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import platform
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from types import TracebackType

from harness.linux import syscalls
from harness.node.discovery import CPU, choose_devices
from harness.node.leases import Holder, Lease, lease_folder, take
from harness.node.telemetry.watcher import Telemetry
from harness.wire.async_channel import AsyncChannel
from harness.wire.device import Device
from harness.wire.errors import HarnessError, JudgeExtraMissing, NoDeviceLeft, WorkerDied
from harness.wire.evaluation import Evaluation, Verdict
from harness.wire.limits import ON_CPU, ON_GPU, TimeLimits
from suites.task import Task

from .capacity import largest_case_bytes, own_cores, slots_of
from .kernel_cache import KernelCache
from .launchers import Launchers, Types
from .nursery import Nursery
from .quarantine import DeviceEvent, Health, HealthProbe, LeaseAwaited, OnDevice, Quarantined, ServerProbe
from .servers import Child, ForkServer
from .spares import Spares

_TROUBLE = frozenset({Verdict.CRASH, Verdict.TIMEOUT, Verdict.INFRA_ERROR})
"""After one of these verdicts the GPU is probed."""


class Slot:
    """A place for one candidate on one device. Its judge starts when it is first needed and is replaced when it is lost."""

    def __init__(
        self, device: Device, server: ForkServer, interpreter: Slot | None = None, *, sharers: int = 1
    ) -> None:
        """`sharers`: slots of the same GPU, whose judges share its memory."""
        self.device = device
        self.server = server
        self.interpreter = interpreter
        """For a GPU: the slot on `cpu` that judges the same candidate."""
        self.lease: Lease | None = None
        self._sharers = sharers
        self._judge: Child | None = None
        self._channel: AsyncChannel | None = None

    @property
    def judge(self) -> Child | None:
        """The judge's process; `None` before it starts."""
        return self._judge

    async def channel(self) -> AsyncChannel:
        """Return the channel of a judge that is ready for a candidate."""
        if self._judge is None or self._channel is None or self._judge.ended.done():
            self.discard()
            self._judge, self._channel = await self.server.spawn(
                "judge", device=self.device, sharers=self._sharers
            )
        return self._channel

    def discard(self) -> None:
        """End the judge, whatever it does. The next candidate gets a new one."""
        if self._channel is not None:
            self._channel.close()
        if self._judge is not None:
            self._judge.end()
        self._judge = self._channel = None


class DevicePool:
    """The devices that candidates are judged on. Use it as `async with DevicePool() as pool`.

    `devices` are names, such as `cpu` or `0`. `slots` candidates are judged at once, spread over the devices; by default a
    device `cpu` has one slot per core and a GPU has as many as `slots_of` allows for the largest case of `tasks`. Other users
    who wait for a GPU read the name `session`.
    `on_device` is called from the event loop with waits, quarantines and pauses. `probe` tests whether a GPU still computes.

    Raises `UnknownDevice`, `JudgeExtraMissing` without torch or triton, `WorkerDied` if a server does not start.
    """

    def __init__(
        self,
        devices: Sequence[str] = ("cpu",),
        slots: int | None = None,
        limits: TimeLimits | None = None,
        *,
        tasks: Iterable[Task] = (),
        session: str = "",
        on_device: OnDevice | None = None,
        probe: HealthProbe | None = None,
    ) -> None:
        self.devices: tuple[Device, ...] = choose_devices(devices)
        if slots is not None and slots < 1:
            raise ValueError("slots must be at least 1")
        self._places = _places(self.devices, slots, tasks)
        self.slots = len(self._places)
        self._limits = limits
        self._launchers = Launchers()
        self._nursery = Nursery()
        self.interpreting = ForkServer(interpret=True, nursery=self._nursery)
        self.compiling = ForkServer(interpret=False, furnish=self._launchers.lay, nursery=self._nursery)
        self._free: asyncio.LifoQueue[Slot | None] = asyncio.LifoQueue()
        """`None` ends the queue: no device is left."""
        self._freed = asyncio.Event()
        """Set when a slot is given back or a device is lost; `_slot_on` clears it."""
        self._all: list[Slot] = []
        self.compiles = asyncio.Semaphore(max(self.slots, own_cores()))
        self._servers = (self.interpreting, self.compiling)
        self.spares = Spares(self.compiling)
        self.kernels = KernelCache()
        self._filling: dict[str, asyncio.Task[None]] = {}
        self._releasing: dict[asyncio.Task[None], str] = {}
        """Tasks that give a lease back once its timers ended, with the name of the GPU."""
        self._telemetry: dict[str, Telemetry] = {}
        self._session = session
        self._on_device = on_device
        self.health = Health(self.devices, probe or ServerProbe(self.compiling), self._report)

    async def __aenter__(self) -> DevicePool:
        for package in ("torch", "triton"):
            if importlib.util.find_spec(package) is None:
                raise JudgeExtraMissing(
                    f"{package} is not installed, so nothing can be judged; pip install 'wavedeck[judge]'"
                )
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
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    @property
    def versions(self) -> dict[str, str]:
        """Versions of Python, torch, triton, numpy and the Linux kernel."""
        return {**self.interpreting.versions, "linux": platform.release()}

    def limits(self, device: Device) -> TimeLimits:
        """Return the limits of a candidate on this device."""
        return self._limits or (ON_CPU if device.kind == "cpu" else ON_GPU)

    @asynccontextmanager
    async def slot(self, avoid: str = "", *, on: str = "") -> AsyncIterator[Slot]:
        """Wait for a free slot on a device that is not in quarantine. Servers that died are started again first.

        Prefers a device other than `avoid`. With `on`, waits for that device only, ahead of other callers.
        Raises `WorkerDied` if `on` is in quarantine, `NoDeviceLeft` if every device is.
        """
        if not self._all:
            raise HarnessError("the pool is not open; use it as `async with DevicePool() as pool`")
        slot = await self._next_slot() if not on else await self._slot_on(on)
        if slot.device.name == avoid:
            slot = self._elsewhere(slot)
        try:
            await self._start_servers()
            yield slot
        finally:
            self._freed.set()
            self._free.put_nowait(slot)

    async def judge_on(self, slot: Slot, judging: Callable[[], Awaitable[Evaluation]]) -> Evaluation:
        """Await `judging` under the shared lease of the slot's GPU; on `cpu` there is no lease.

        A crash, timeout or infra error is followed by a probe of the GPU. Raises `DeviceFailed` if this GPU or a different GPU
        fails its probe during the evaluation, which then does not count.
        """
        if slot.device.kind == "cpu":
            return await judging()
        async with self.using(slot):
            since = self.health.failures
            try:
                evaluation = await judging()
                if evaluation.verdict in _TROUBLE:
                    self.spares.drop(slot.device)
            except WorkerDied:
                self.spares.drop(slot.device)
                async with self.using(slot):
                    await self.health.examine(slot.device, since)
                raise
            if evaluation.verdict in _TROUBLE:
                async with self.using(slot):
                    await self.health.examine(slot.device, since)
            self._fill(slot.device)
            return evaluation

    @asynccontextmanager
    async def using(self, slot: Slot) -> AsyncIterator[None]:
        """Hold the shared lease of the slot's GPU, unless the slot already has a lease."""
        if slot.lease is not None:
            yield
            return
        await self._lease(slot, exclusive=False)
        try:
            yield
        finally:
            self._release(slot)

    @asynccontextmanager
    async def timing(self, slot: Slot) -> AsyncIterator[None]:
        """Hold the exclusive lease of the slot's GPU, among all engines of the node.

        The shared lease is given back first, so that two slots of one GPU never wait for each other. It is not taken again;
        later work on the GPU uses `using`.
        """
        self._release(slot)
        await self._lease(slot, exclusive=True)
        try:
            yield
        finally:
            self._release(slot)

    def expect(self, target: str, kernels: Iterable[Types]) -> None:
        """Have launchers built for kernels with these argument types, if a GPU of the pool has this target."""
        if self.is_own(target):
            self._launchers.want(target, kernels)

    def is_own(self, target: str | None) -> bool:
        """True if a GPU of the pool has this target."""
        return any(device.kind != "cpu" and device.target == target for device in self.devices)

    def release_after(self, slot: Slot, ending: Coroutine[None, None, None]) -> None:
        """Give the slot's lease back once `ending` is done, without waiting for it."""
        lease, slot.lease = slot.lease, None

        async def release() -> None:
            try:
                await ending
            finally:
                if lease is not None:
                    lease.release()

        task = asyncio.create_task(release(), name=f"release/{slot.device.name}")
        self._releasing[task] = slot.device.name
        task.add_done_callback(self._releasing.pop)

    def telemetry(self, device: Device) -> Telemetry | None:
        """Return the telemetry of a GPU; `None` if its PCI address is not known."""
        if not device.address:
            return None
        return self._telemetry.setdefault(device.name, Telemetry(device.address, device.kind))

    def _fill(self, device: Device) -> None:
        """Start new spares in the background, under the shared lease: never while a kernel is timed."""
        before = self._filling.get(device.name)
        if device.kind != "cpu" and device.name not in self.health.lost and (before is None or before.done()):
            self._filling[device.name] = asyncio.create_task(
                self._filled(device), name=f"spares/{device.name}"
            )

    async def _filled(self, device: Device) -> None:
        lease = None
        try:
            lease = await take(device, session=self._session)
            await self._launchers.build(self.compiling, device)
            await self.spares.fill(device)
        except (HarnessError, TimeoutError, OSError):
            self.spares.drop(device)  # the next user starts its own worker and reports the error
        finally:
            if lease is not None:
                lease.release()

    async def _lease(self, slot: Slot, *, exclusive: bool) -> None:
        if own := [task for task, name in self._releasing.items() if name == slot.device.name]:
            await asyncio.wait(own)  # our own timing is no wait to report
        slot.lease = await take(
            slot.device,
            exclusive=exclusive,
            session=self._session,
            on_wait=lambda holders: self._report_wait(slot.device, holders),
        )

    def _report_wait(self, device: Device, holders: tuple[Holder, ...]) -> None:
        """Report a wait for other sessions; waiting for one of our own slots is no news."""
        others = tuple(
            holder for holder in holders if (holder.pid, holder.session) != (os.getpid(), self._session)
        )
        if others:
            self._report(LeaseAwaited(device.name, others))

    def _release(self, slot: Slot) -> None:
        lease, slot.lease = slot.lease, None
        if lease is not None:
            lease.release()

    async def _next_slot(self) -> Slot:
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
        while True:
            await self.health.ready.wait()
            if device in self.health.lost:
                raise WorkerDied(f"GPU {device} is in quarantine: {self.health.lost[device]}")
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
            raise group_error.exceptions[0] from None

    async def _close(self) -> None:
        for filling in self._filling.values():
            filling.cancel()
        if waited := {*self._filling.values(), *self._releasing}:
            await asyncio.wait(waited)
        self.spares.drop()
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


def _places(devices: Sequence[Device], slots: int | None, tasks: Iterable[Task]) -> tuple[Device, ...]:
    """The device of each slot."""
    if slots is not None:
        return tuple(devices[number % len(devices)] for number in range(slots))
    cores, case_bytes = own_cores(), largest_case_bytes(tasks)
    gpus = sum(device.kind != "cpu" for device in devices)
    counts = {
        device.name: cores
        if device.kind == "cpu"
        else slots_of(device, gpus=gpus, cores=cores, case_bytes=case_bytes)
        for device in devices
    }
    # Devices by turns, so that the first candidates go to different devices.
    return tuple(
        device for turn in range(max(counts.values())) for device in devices if turn < counts[device.name]
    )
