"""
What Triton builds with the host's C compiler for every kernel on a GPU, built once a pool, by a process that runs nothing else.

Triton's driver module, and in 3.6 a launcher for each sequence of argument types, which are no candidate's secret. Each
process would build them again, a quarter of a second a piece. What a candidate's own processes built is never handed to
another's.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from harness.wire import limits
from harness.wire.device import Device
from harness.wire.errors import WorkerDied

from .kernel_cache import FOLDER, files_of, put
from .servers import ForkServer

ROLE = "launchers"
BUILT = ".so"
Types = tuple[str, ...]
"""Of a kernel's arguments, as Triton names them; pointers as `POINTER`, whatever they point to."""
POINTER = "*i8"
_TYPE = re.compile(r"[a-z][a-z0-9]{1,11}")
MOST_ARGUMENTS = 128
MOST_KERNELS = 64
"""Of a pool; beyond them processes build their own."""


class Launchers:
    """Files by name, laid into the scratch folder of a process on a GPU before it starts."""

    def __init__(self) -> None:
        self._wanted: dict[str, set[Types]] = {}
        """By target, as all that follows."""
        self._tried: dict[str, set[Types]] = {}
        self._files: dict[str, dict[str, bytes]] = {}

    def want(self, target: str, kernels: Iterable[Types]) -> None:
        """Kernels with such arguments were compiled; the next `build` for the target is for them too."""
        wanted, tried = self._wanted.setdefault(target, set()), self._tried.get(target, set())
        for kernel in kernels:
            types = tuple(POINTER if one.startswith("*") else one for one in kernel)
            fit = len(types) <= MOST_ARGUMENTS and all(
                one == POINTER or _TYPE.fullmatch(one) for one in types
            )
            if fit and types not in tried and len(wanted) + len(tried) < MOST_KERNELS:
                wanted.add(types)

    async def build(self, server: ForkServer, device: Device) -> None:
        """Builds what a GPU's target wants and has not; `WorkerDied` where no process says that it did."""
        target = device.target or ""
        wanted = self._wanted.pop(target, set())
        if target in self._tried and not wanted:
            return
        self._tried.setdefault(target, set()).update(wanted)
        child, channel = await server.spawn(
            ROLE, cpu_limit_s=limits.GPU_WORKER_CPU_S, sandboxed=True, device=device
        )
        try:
            async with asyncio.timeout(limits.GUEST_START_S):
                await channel.send(msgspec.msgpack.encode(tuple(sorted(wanted))))
                await channel.receive()
            assert child.scratch is not None
            built = await asyncio.to_thread(_built_in, child.scratch)
            # Not in place: another thread may be laying those of before.
            self._files[target] = self._files.get(target, {}) | built
        except (EOFError, TimeoutError) as error:
            raise WorkerDied("the process that builds Triton's launchers ended early") from error
        finally:
            channel.close()
            child.end()

    def lay(self, scratch: Path, device: Device) -> None:
        """Puts all that was built for a GPU's target into a folder that belongs to no process yet. Writes files: not for an event loop."""
        for name, content in self._files.get(device.target or "", {}).items():
            put(scratch, name, content)


def _built_in(scratch: Path) -> dict[str, bytes]:
    return {name: content for name, content in files_of(scratch / FOLDER) if name.endswith(BUILT)}
