"""What the judge's pool tells of its devices, as events."""

from __future__ import annotations

from typing import assert_never

from harness.processes.quarantine import DeviceEvent, LeaseAwaited, NodeBack, NodeDown, Quarantined
from sessions.events import DeviceAwaited, DeviceQuarantined, Event, NodePaused, NodeResumed


def device_event(told: DeviceEvent) -> Event:
    """The event that stands for it in the journal."""
    match told:
        case LeaseAwaited():
            return DeviceAwaited(device=told.device, holders=tuple(map(str, told.holders)))
        case Quarantined():
            return DeviceQuarantined(device=told.device, why=told.why)
        case NodeDown():
            return NodePaused(why=told.why, next_probe_s=told.next_probe_s)
        case NodeBack():
            return NodeResumed(seconds=told.seconds)
        case _:
            assert_never(told)
