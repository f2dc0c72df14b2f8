"""Which GPUs of a pool may be judged on: a probe after each trouble, quarantine, and the pause of a node that was reset.

A GPU that does not pass leaves the pool. Where none passes, the node itself is taken to be down - on AMD a queue that does not
let go can reset every GPU of it - and nothing is judged until one passes again, or the patience with it ends. What was judged
while a GPU failed counts against nobody: whose kernel brought the reset cannot be told from whose was hit by it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from harness.node.leases import Holder
from harness.wire.device import Device
from harness.wire.errors import DeviceFailed, WorkerDied

from .servers import ForkServer

PROBE_S = 60.0
"""For a process to initialise its runtime, compute a little and say so."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 60.0
PATIENCE_S = 900.0
"""With a node none of whose GPUs passes: a reboot of its devices takes minutes."""


class LeaseAwaited(msgspec.Struct, frozen=True):
    """A candidate waits for others to be done with a GPU."""

    device: str
    holders: tuple[Holder, ...]


class Quarantined(msgspec.Struct, frozen=True):
    """A GPU left the pool."""

    device: str
    why: str


class NodeDown(msgspec.Struct, frozen=True):
    """No GPU of the pool passes its probe; nothing is judged."""

    why: str
    next_probe_s: float


class NodeBack(msgspec.Struct, frozen=True):
    """At least one passes again."""

    seconds: float


DeviceTold = LeaseAwaited | Quarantined | NodeDown | NodeBack
OnDevice = Callable[[DeviceTold], None]


class HealthProbe(Protocol):
    """Finds out whether a GPU still computes."""

    async def __call__(self, device: Device) -> str:
        """What is wrong with it; empty when nothing is. `WorkerDied` when it could not be asked, through no fault of it."""
        ...


class ServerProbe:
    """Has a fresh process on the GPU allocate, compute and compare."""

    def __init__(self, server: ForkServer) -> None:
        self._server = server

    async def __call__(self, device: Device) -> str:
        """See `HealthProbe`."""
        await self._server.start()
        child, channel = await self._server.spawn("health", device=device)
        try:
            async with asyncio.timeout(PROBE_S):
                said = (await channel.receive()).decode(errors="replace")
        except TimeoutError:
            return f"nothing came back from it within {PROBE_S:g} s"
        except EOFError:
            if not self._server.alive:
                raise WorkerDied(f"the {self._server.name} server died during a health probe") from None
            ended = await child.wait(PROBE_S)
            words = child.printed.text().strip().rpartition("\n")[2]
            return f"a process that only adds on it ended: {words or f'status {ended.status}'}"
        finally:
            channel.close()
            child.end()
        return "" if said == "ok" else said


class Health:
    """The health of a pool's GPUs. One is open for judging while `ready` is set and it is not in `lost`."""

    def __init__(self, devices: Sequence[Device], probe: HealthProbe, tell: OnDevice) -> None:
        self._gpus = [device for device in devices if device.kind != "cpu"]
        self._probe = probe
        self._tell = tell
        self.ready = asyncio.Event()
        self.ready.set()
        self.lost: dict[str, str] = {}
        """By name, why a GPU is in quarantine."""
        self.failures = 0
        """How often a probe found something: who was judged across such a moment is judged again."""
        self._settling: asyncio.Task[None] | None = None

    @property
    def none_left(self) -> bool:
        """Whether there were GPUs, and all are in quarantine."""
        return bool(self._gpus) and len(self.lost) == len(self._gpus)

    async def examine(self, device: Device, since: int) -> None:
        """After trouble on a GPU. `DeviceFailed` when what was judged since `failures` was `since` does not count."""
        if self.failures == since:
            wrong = await self._probe(device)
            if not wrong and self.failures == since:
                return
            if self.failures == since:
                self.failures += 1
                self.ready.clear()
                # In a task of its own: a candidate that is given up meanwhile must not leave the pool shut.
                self._settling = asyncio.create_task(self._settle(device, wrong), name="health/settle")
                await asyncio.shield(self._settling)
                raise DeviceFailed(f"GPU {device.name} fails its health probe: {wrong}")
        raise DeviceFailed(f"a GPU failed while GPU {device.name} judged this")

    async def close(self) -> None:
        """Ends what is under way."""
        if self._settling is not None:
            self._settling.cancel()
            await asyncio.wait([self._settling])

    async def _settle(self, device: Device, wrong: str) -> None:
        """Finds out how many are hit, and waits for the node where all are."""
        try:
            begun, pause = time.monotonic(), FIRST_PAUSE_S
            left = [gpu for gpu in self._gpus if gpu.name not in self.lost]
            others = [gpu for gpu in left if gpu.name != device.name]
            failing = {device.name: wrong, **await self._probed(others)}
            down = len(failing) == len(left)
            while len(failing) == len(left) and time.monotonic() - begun < PATIENCE_S:
                self._tell(NodeDown(why=_words(failing), next_probe_s=pause))
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)
                failing = await self._probed(left)
            for name, why in failing.items():
                self.lost[name] = why
                self._tell(Quarantined(device=name, why=why))
            if down and not self.none_left:
                self._tell(NodeBack(seconds=time.monotonic() - begun))
        finally:
            self.ready.set()

    async def _probed(self, gpus: Sequence[Device]) -> dict[str, str]:
        """What is wrong with those that fail."""
        try:
            async with asyncio.TaskGroup() as group:
                asked = {
                    gpu.name: group.create_task(self._probe(gpu), name=f"health/{gpu.name}") for gpu in gpus
                }
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return {name: task.result() for name, task in asked.items() if task.result()}


def _words(failing: Mapping[str, str]) -> str:
    return "; ".join(f"GPU {name}: {why}" for name, why in failing.items())
