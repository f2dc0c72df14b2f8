"""Spare guests and timers: started in advance on GPUs, where a process needs a second before it can work.

A spare is sandboxed and has a context on its GPU. No foreign code ran in it. It serves one candidate and ends.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness.failures import first_failure
from harness.wire import limits
from harness.wire.device import Device
from suites.source.package import PackageView

from .servers import Child, ForkServer

GUEST, TIMER = "guest", "timer"


class Worker(NamedTuple):
    """A running process, and the socket for the process that will talk to it."""

    child: Child
    pid: int
    end: socket.socket


class Spares:
    """The spares of one pool, by role and GPU."""

    def __init__(self, server: ForkServer) -> None:
        self._server = server
        self._waiting: dict[tuple[str, str], list[Worker]] = {}
        self._starting: dict[int, asyncio.Event] = {}
        """Spares that are not ready yet, by pid; set when a spare is ready, taken or dropped."""

    async def take(self, role: str, device: Device, package: PackageView | None = None) -> Worker:
        """Return a spare, a ready one first, or a new worker. Raises `WorkerDied` if none can be started.

        A worker with a package is always new: the sandbox of a spare hides the package.
        """
        if package is not None:
            return await self._start(role, device, package)
        waiting = self._waiting.get((role, device.name), [])
        while waiting:
            worker = next((spare for spare in waiting if spare.pid not in self._starting), waiting[0])
            waiting.remove(worker)
            self._settle(worker)
            if not worker.child.ended.done():
                return worker
            worker.end.close()
        return await self._start(role, device)

    def missing(self, device: Device, wanted: Mapping[str, int]) -> list[str]:
        """Return the role of each spare that is missing: first one of each role that has none, then in the order of `wanted`.

        `wanted` has the number of spares by role.
        """
        waiting = {role: len(self._waiting.get((role, device.name), ())) for role in wanted}
        first = [role for role, count in wanted.items() if count and not waiting[role]]
        more = [
            role for role, count in wanted.items() for _ in range(count - waiting[role] - first.count(role))
        ]
        return first + more

    async def fill(self, device: Device, roles: Sequence[str]) -> None:
        """Start one spare for each role, side by side; return when all are ready or taken.

        The caller holds the GPU's shared lease. Raises `TimeoutError` or the first error of a start; spares that are not ready
        are ended then.
        """
        started: list[Worker] = []
        try:
            async with asyncio.timeout(limits.GUEST_START_S):
                async with asyncio.TaskGroup() as group:
                    for role in roles:
                        group.create_task(self._add(role, device, started), name=f"spare/{role}")
                for worker in started:
                    if ready := self._starting.get(worker.pid):
                        await ready.wait()
        except ExceptionGroup as failures:
            raise first_failure(failures) from None
        finally:
            for worker in started:
                if worker.pid in self._starting:
                    self._forget(worker)

    def drop(self, device: Device | None = None) -> list[Child]:
        """End the spares of one GPU, or of all, and return them: after trouble they may have lost their context."""
        dropped = [
            worker
            for (_, name), waiting in self._waiting.items()
            if device is None or device.name == name
            for worker in waiting
        ]
        for worker in dropped:
            self._forget(worker)
        return [worker.child for worker in dropped]

    async def _add(self, role: str, device: Device, started: list[Worker]) -> None:
        worker = await self._start(role, device)
        self._await(worker)
        self._waiting.setdefault((role, device.name), []).append(worker)
        started.append(worker)

    async def _start(self, role: str, device: Device, package: PackageView | None = None) -> Worker:
        return Worker(
            *await self._server.spawn_for_another(
                role, cpu_limit_s=limits.GPU_WORKER_CPU_S, sandboxed=True, device=device, package=package
            )
        )

    def _await(self, worker: Worker) -> None:
        """Watch for the worker's first message, or its end."""
        self._starting[worker.pid] = asyncio.Event()
        asyncio.get_running_loop().add_reader(worker.end.fileno(), self._settle, worker)

    def _settle(self, worker: Worker) -> None:
        """Stop waiting for a worker that is ready, taken or dropped."""
        ready = self._starting.pop(worker.pid, None)
        if ready is not None:
            asyncio.get_running_loop().remove_reader(worker.end.fileno())
            ready.set()

    def _forget(self, worker: Worker) -> None:
        """End a spare or a worker that was taken, and drop it from the spares that wait."""
        self._settle(worker)
        for waiting in self._waiting.values():
            if worker in waiting:
                waiting.remove(worker)
        worker.end.close()
        worker.child.end()
