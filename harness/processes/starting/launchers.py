"""
Launchers: the C extensions that Triton builds for each kernel on a GPU, built once per pool in a process that runs no candidate.

These are Triton's driver module and, in 3.6, a launcher for each sequence of argument types. Without this module every
process builds them again, a quarter of a second each. Extensions that a candidate's process built are never given to another.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from harness.processes.kernel_cache import FOLDER, files_of, put
from harness.wire import limits
from harness.wire.device import Device
from harness.wire.errors import WorkerDied

from .servers import ForkServer

ROLE = "launchers"
BUILT = ".so"
Types = tuple[str, ...]
"""Argument types of a kernel, as Triton names them; every pointer is `POINTER`."""
POINTER = "*i8"
_TYPE = re.compile(r"[a-z][a-z0-9]{1,11}")
MOST_ARGUMENTS = 128
MOST_KERNELS = 64
"""Per pool; processes build any further launchers themselves."""


class Launchers:
    """Built files, copied into the scratch folder of a GPU process before it starts."""

    def __init__(self) -> None:
        self._wanted: dict[str, set[Types]] = {}
        """All three are by target."""
        self._tried: dict[str, set[Types]] = {}
        self._files: dict[str, dict[str, bytes]] = {}

    def want(self, target: str, kernels: Iterable[Types]) -> bool:
        """Note the argument types of compiled kernels; the next `build` for the target includes them. Returns whether any wait.

        Kernels with too many arguments or odd types, and kernels beyond `MOST_KERNELS`, are left out.
        """
        wanted, tried = self._wanted.setdefault(target, set()), self._tried.get(target, set())
        for kernel in kernels:
            types = tuple(POINTER if kind.startswith("*") else kind for kind in kernel)
            fit = len(types) <= MOST_ARGUMENTS and all(
                kind == POINTER or _TYPE.fullmatch(kind) for kind in types
            )
            if fit and types not in tried and len(wanted) + len(tried) < MOST_KERNELS:
                wanted.add(types)
        return bool(wanted)

    async def build(self, server: ForkServer, device: Device) -> None:
        """Build the missing launchers for the target of a GPU. Raises `WorkerDied` if the building process fails.

        The first call for a target builds the driver module alone, which takes a GPU context. Later calls need none.
        """
        target = device.target or ""
        wanted = self._wanted.pop(target, set()) if target in self._tried else set()
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
            # A new dict: another thread may be copying the old one.
            self._files[target] = self._files.get(target, {}) | built
        except (EOFError, TimeoutError) as error:
            raise WorkerDied("the process that builds Triton's launchers ended early") from error
        finally:
            channel.close()
            child.end()

    def lay(self, scratch: Path, device: Device) -> None:
        """Copy the launchers for the target of a GPU into a folder. Blocks on files: not for an event loop."""
        for name, content in self._files.get(device.target or "", {}).items():
            put(scratch, name, content)


def _built_in(scratch: Path) -> dict[str, bytes]:
    return {name: content for name, content in files_of(scratch / FOLDER) if name.endswith(BUILT)}
