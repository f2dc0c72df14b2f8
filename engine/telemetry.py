"""Samples of the devices, for people to watch; nothing decides by them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import psutil

from harness import Device
from sessions.events import DeviceSampled

UTILISATION_STEP = 0.05
MEMORY_STEP = 0.01
"""Share of the whole. Smaller changes are not told: an idle session should not fill its journal."""


class DeviceSampler:
    """Samples of an engine's devices that differ from the last ones told."""

    def __init__(self, devices: Sequence[Device], busy: Mapping[str, Sequence[str]]) -> None:
        self._devices = devices
        self._busy = busy
        self._told: dict[str, DeviceSampled] = {}
        # The first reading of the processor is over no time at all and says nothing.
        psutil.cpu_percent()

    def changed(self) -> list[DeviceSampled]:
        """The devices that changed since they were last told, with their state now."""
        found = []
        for device in self._devices:
            sample = self._sample(device)
            before = self._told.get(device.name)
            if before is None or _differs(before, sample):
                self._told[device.name] = sample
                found.append(sample)
        return found

    def _sample(self, device: Device) -> DeviceSampled:
        busy = tuple(self._busy.get(device.name, ()))
        if device.kind != "cpu":
            return DeviceSampled(device=device.name, description=device.description, busy_with=busy)
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
    if before.utilisation is None or now.utilisation is None:
        return before.utilisation is not now.utilisation
    if abs(before.utilisation - now.utilisation) >= UTILISATION_STEP:
        return True
    total = now.memory_total_bytes or 1
    return abs((before.memory_used_bytes or 0) - (now.memory_used_bytes or 0)) / total >= MEMORY_STEP
