"""Which GPUs of a pool are fit to judge on: a probe after each crash, quarantine, and a pause if the whole node is down.

A GPU that fails its probe leaves the pool. If every GPU fails, the node counts as down: on AMD one stuck queue can reset
all GPUs of a node. Judging then pauses until a GPU passes again or `PATIENCE_S` is over. Verdicts from such a moment do
not count: the kernel that caused a reset cannot be told apart from the kernels that it hit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

from harness.failures import first_failure
from harness.node.leases import Holder, take
from harness.processes.starting.servers import ForkServer
from harness.wire.device import Device
from harness.wire.errors import DeviceFailed, DeviceFull, WorkerDied, is_out_of_memory
from harness.wire.limits import GUEST_START_S
from harness.wire.messages.server import HAS_CONTEXT

PROBE_S = 60.0
"""For a probe to compute and report, once it has a GPU context. For the context it has `GUEST_START_S`, as all processes have."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 60.0
PATIENCE_S = 900.0
"""Longest pause while no GPU passes: resetting the devices of a node takes minutes."""


class LeaseAwaited(msgspec.Struct, frozen=True, tag=True):
    """A candidate waits for the lease of a GPU."""

    device: str
    holders: tuple[Holder, ...]


class Quarantined(msgspec.Struct, frozen=True, tag=True):
    """A GPU failed its probe and left the pool."""

    device: str
    why: str


class NodeDown(msgspec.Struct, frozen=True):
    """No GPU of the pool passes its probe; judging pauses."""

    why: str
    next_probe_s: float


class NodeBack(msgspec.Struct, frozen=True):
    """A GPU passes its probe again."""

    seconds: float


DeviceEvent = LeaseAwaited | Quarantined | NodeDown | NodeBack
OnDevice = Callable[[DeviceEvent], None]


class HealthProbe(Protocol):
    """Tests whether a GPU still computes."""

    async def __call__(self, device: Device) -> str:
        """Return what is wrong with the GPU, or an empty string.

        `WorkerDied` if the test itself could not run, `DeviceFull` if that is because others fill the GPU's memory.
        """


class ServerProbe:
    """Probes a GPU in a new process, which allocates, computes and compares."""

    def __init__(self, server: ForkServer) -> None:
        self._server = server

    async def __call__(self, device: Device) -> str:
        """Start a process that adds two tensors on the GPU; return what is wrong with the GPU, or nothing.

        Raises `WorkerDied` if the fork server is lost, `DeviceFull` if the GPU has no memory left. See `HealthProbe`.
        """
        await self._server.start()
        child, channel = await self._server.spawn("health", device=device)
        limit_s = GUEST_START_S
        try:
            async with asyncio.timeout(limit_s):
                reply = bytes(await channel.receive())
            if reply == HAS_CONTEXT:
                limit_s = PROBE_S
                async with asyncio.timeout(limit_s):
                    reply = bytes(await channel.receive())
        except TimeoutError:
            return f"nothing came back from it within {limit_s:g} s"
        except EOFError:
            if not self._server.alive:
                raise WorkerDied(f"the {self._server.name} server died during a health probe") from None
            ended = await child.wait(PROBE_S)
            printed = child.printed.text().strip()
            check_full(printed)
            words = printed.rpartition("\n")[2]
            return f"a process that only adds on it ended: {words or f'status {ended.status}'}"
        finally:
            channel.close()
            child.end()
        words = reply.decode(errors="replace")
        check_full(words)
        return "" if words == "ok" else words


def check_full(reply: str) -> None:
    """Raise `DeviceFull` if a probe's words say that the GPU's memory is full: that is no fault of the GPU."""
    if is_out_of_memory(reply):
        raise DeviceFull("a health probe found the GPU's memory full")


class Health:
    """The health of a pool's GPUs. A GPU may be judged on while `ready` is set and it is not in `lost`."""

    def __init__(
        self, devices: Sequence[Device], probe: HealthProbe, report: OnDevice, patience_s: float | None = None
    ) -> None:
        self._patience_s = PATIENCE_S if patience_s is None else patience_s
        self._gpus = [device for device in devices if device.kind != "cpu"]
        self._probe = probe
        self._report = report
        self.ready = asyncio.Event()
        self.ready.set()
        self.lost: dict[str, str] = {}
        """Why a GPU is in quarantine, by name."""
        self.failures = 0
        """Number of failed probes. If it changed during an evaluation, the candidate is judged again."""
        self._settling: asyncio.Task[None] | None = None

    @property
    def none_left(self) -> bool:
        """True if the pool has GPUs and all are in quarantine."""
        return bool(self._gpus) and len(self.lost) == len(self._gpus)

    async def examine(self, device: Device, since: int) -> None:
        """Probe a GPU after trouble. Raises `DeviceFailed` if a GPU failed since `failures` was `since`."""
        if self.failures == since:
            wrong = await self._probe(device)
            if not wrong and self.failures == since:
                return
            if self.failures == since:
                self.failures += 1
                self.ready.clear()
                # In its own task: cancelling the candidate must not leave the pool closed.
                self._settling = asyncio.create_task(self._settle(device, wrong), name="health/settle")
                await asyncio.shield(self._settling)
                raise DeviceFailed(f"GPU {device.name} fails its health probe: {wrong}")
        raise DeviceFailed(f"a GPU failed while GPU {device.name} judged this")

    async def close(self) -> None:
        """Cancel a pause that is under way."""
        if self._settling is not None:
            self._settling.cancel()
            await asyncio.wait([self._settling])

    async def _settle(self, device: Device, wrong: str) -> None:
        """Probe the GPUs besides `device`, which failed with `wrong`; quarantine those that fail, and report each.

        If all fail, the node may be at fault: all are probed again after pauses, until one works or the patience is over. The
        pool may judge again when this ends.
        """
        try:
            begun, pause = time.monotonic(), FIRST_PAUSE_S
            pool = [gpu for gpu in self._gpus if gpu.name not in self.lost]
            untested = [gpu for gpu in pool if gpu.name != device.name]
            failing = {device.name: wrong, **await self._probed(untested, own=device)}
            down = len(failing) == len(pool)
            while len(failing) == len(pool) and time.monotonic() - begun < self._patience_s:
                self._report(NodeDown(why=_words(failing), next_probe_s=pause))
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)
                failing = await self._probed(pool, own=device)
            for name, why in failing.items():
                self.lost[name] = why
                self._report(Quarantined(device=name, why=why))
            if down and not self.none_left:
                self._report(NodeBack(seconds=time.monotonic() - begun))
        finally:
            self.ready.set()

    async def _probed(self, gpus: Sequence[Device], *, own: Device) -> dict[str, str]:
        """Return what is wrong, for each GPU that fails; a full GPU does not. The caller holds the lease of `own`."""

        async def probe(gpu: Device) -> str:
            lease = None
            try:
                if gpu != own:  # the start of the probe's context would delay what others time there
                    with suppress(TimeoutError):  # its holder may hang: the probe shows it
                        async with asyncio.timeout(PROBE_S):
                            lease = await take(gpu)
                return await self._probe(gpu)
            except DeviceFull:
                return ""
            finally:
                if lease is not None:
                    lease.release()

        try:
            async with asyncio.TaskGroup() as group:
                probes = {gpu.name: group.create_task(probe(gpu), name=f"health/{gpu.name}") for gpu in gpus}
        except ExceptionGroup as failures:
            raise first_failure(failures) from None
        return {name: task.result() for name, task in probes.items() if task.result()}


def _words(failing: Mapping[str, str]) -> str:
    return "; ".join(f"GPU {name}: {why}" for name, why in failing.items())
