"""Guests and timers started ahead of need on GPUs, where a process wants half a second before it can do anything.

A spare is sandboxed and has its GPU's context; no foreign code ran in it. It serves one candidate and ends.
"""

from __future__ import annotations

import asyncio
import socket
from typing import NamedTuple

from . import limits
from .device import Device
from .ratios import PAIRS_A_LOOK
from .servers import Child, ForkServer

GUEST, TIMER = "guest", "timer"
COUNTS = {GUEST: limits.GPU_SLOTS, TIMER: 2 * PAIRS_A_LOOK + 1}
"""A guest for each slot; timers of two sides, and one that plays the tape, for the one slot that times."""


class Worker(NamedTuple):
    """A process that runs, and the end of its channel for whoever shall speak with it."""

    child: Child
    pid: int
    end: socket.socket


class Spares:
    """Of the GPUs of one pool."""

    def __init__(self, server: ForkServer) -> None:
        self._server = server
        self._waiting: dict[tuple[str, str], list[Worker]] = {}

    async def take(self, role: str, device: Device) -> Worker:
        """One that waits, or a new one; `WorkerDied` when none can be had."""
        waiting = self._waiting.get((role, device.name), [])
        while waiting:
            worker = waiting.pop(0)
            if not worker.child.ended.done():
                return worker
            worker.end.close()
        return await self._start(role, device)

    async def fill(self, device: Device) -> None:
        """Starts what is missing, and waits until all are ready: the GPU must be this pool's to use meanwhile."""
        started: list[tuple[str, Worker]] = []
        try:
            for role, count in COUNTS.items():
                for _ in range(count - len(self._waiting.get((role, device.name), ()))):
                    started.append((role, await self._start(role, device)))  # noqa: PERF401 -- ended when one fails
            async with asyncio.timeout(limits.GUEST_START_S):
                while started:
                    role, worker = started[0]
                    await _readable(worker.end)
                    self._waiting.setdefault((role, device.name), []).append(started.pop(0)[1])
        finally:
            for _, worker in started:
                _end(worker)

    def drop(self, device: Device | None = None) -> None:
        """Ends those of one GPU, or of all: one of them may have lost its context."""
        for (_, name), waiting in self._waiting.items():
            if device is None or device.name == name:
                while waiting:
                    _end(waiting.pop())

    async def _start(self, role: str, device: Device) -> Worker:
        return Worker(
            *await self._server.spawn_for_another(
                role, cpu_limit_s=limits.GPU_WORKER_CPU_S, sandboxed=True, device=device
            )
        )


def _end(worker: Worker) -> None:
    worker.end.close()
    worker.child.end()


async def _readable(end: socket.socket) -> None:
    """Until its first words are there, or its end."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(end.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(end.fileno())
