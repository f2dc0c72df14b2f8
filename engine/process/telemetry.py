"""Samples the devices for people to watch, and turns reports of the pool into events. No decision uses a sample."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import assert_never

import psutil

from harness import Device
from harness.cluster.cluster_pool import ClusterPool
from harness.node.leases import plain_word
from harness.processes.gpus.quarantine import DeviceEvent, LeaseAwaited, NodeBack, NodeDown, Quarantined
from harness.wire.results.latency import DeviceReading
from sessions.events import (
    DeviceAwaited,
    DeviceQuarantined,
    DeviceSampled,
    DeviceUser,
    Event,
    NodePaused,
    NodeResumed,
)

UTILISATION_STEP = 0.05
MEMORY_STEP = 0.01
"""Share of the total. Smaller changes are not recorded: an idle session should not fill its journal."""
POWER_STEP_W = 25.0
CLOCK_STEP_MHZ = 100.0
TEMPERATURE_STEP_C = 3.0


ReadState = Callable[[], Awaitable[DeviceReading]]
"""Reads the state of one device."""


async def state_on_node(pool: ClusterPool, name: str) -> DeviceReading:
    """Returns the state of a device of a cluster: its node reads it once a second."""
    return pool.state(name)


class DeviceSampler:
    """Samples an engine's devices and returns the samples that changed."""

    def __init__(
        self,
        devices: Sequence[Device],
        busy: Mapping[str, Sequence[str]],
        telemetry: Mapping[str, ReadState],
    ) -> None:
        """`telemetry` reads the state of each device that has a source; the caller closes it. `cpu` needs none."""
        self._devices = devices
        self._busy = busy
        self._telemetry = telemetry
        self._last: dict[str, DeviceSampled] = {}
        # The first reading covers no time, so it is discarded.
        psutil.cpu_percent()

    async def changed(self) -> list[DeviceSampled]:
        """Returns a sample of each device that changed since its last returned sample."""
        samples = []
        for device in self._devices:
            sample = await self._sample(device)
            before = self._last.get(device.name)
            if before is None or _differs(before, sample):
                self._last[device.name] = sample
                samples.append(sample)
        return samples

    async def _sample(self, device: Device) -> DeviceSampled:
        busy = tuple(self._busy.get(device.name, ()))
        telemetry = self._telemetry.get(device.name)
        if device.kind != "cpu" or telemetry is not None:
            state = DeviceReading() if telemetry is None else await telemetry()
            return DeviceSampled(
                device=device.name,
                description=device.description,
                busy_with=busy,
                utilisation=None if state.busy_percent is None else state.busy_percent / 100,
                memory_used_bytes=state.memory_used_bytes,
                memory_total_bytes=state.memory_total_bytes,
                temperature_c=state.hotspot_c,
                power_w=state.power_w,
                clock_mhz=state.clock_mhz,
            )
        memory = psutil.virtual_memory()
        cores = len(os.sched_getaffinity(0))
        return DeviceSampled(
            device=device.name,
            description=f"{device.description}, {cores} cores",
            busy_with=busy,
            utilisation=psutil.cpu_percent() / 100,
            memory_used_bytes=memory.total - memory.available,
            memory_total_bytes=memory.total,
        )


def _differs(before: DeviceSampled, now: DeviceSampled) -> bool:
    if before.busy_with != now.busy_with:
        return True
    memory_step = MEMORY_STEP * (now.memory_total_bytes or 1)
    return any(
        _moved(old, new, step)
        for old, new, step in (
            (before.utilisation, now.utilisation, UTILISATION_STEP),
            (before.memory_used_bytes, now.memory_used_bytes, memory_step),
            (before.power_w, now.power_w, POWER_STEP_W),
            (before.clock_mhz, now.clock_mhz, CLOCK_STEP_MHZ),
            (before.temperature_c, now.temperature_c, TEMPERATURE_STEP_C),
        )
    )


def _moved(old: float | None, new: float | None, step: float) -> bool:
    if old is None or new is None:
        return old is not new
    return abs(old - new) >= step


def device_event(report: DeviceEvent) -> Event:
    """Returns the event for a report of the device pool."""
    match report:
        case LeaseAwaited():
            users = (
                DeviceUser(plain_word(holder.user), holder.pid, plain_word(holder.session))
                for holder in report.holders
            )
            holders = tuple(map(str, report.holders))
            return DeviceAwaited(device=report.device, holders=holders, users=tuple(users))
        case Quarantined():
            return DeviceQuarantined(device=report.device, why=report.why)
        case NodeDown():
            return NodePaused(why=report.why, next_probe_s=report.next_probe_s)
        case NodeBack():
            return NodeResumed(seconds=report.seconds)
        case _:
            assert_never(report)
