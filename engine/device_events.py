"""Reports of the device pool as events of the journal."""

from __future__ import annotations

from typing import assert_never

from harness.processes.quarantine import DeviceEvent, LeaseAwaited, NodeBack, NodeDown, Quarantined
from sessions.events import DeviceAwaited, DeviceQuarantined, Event, NodePaused, NodeResumed


def device_event(report: DeviceEvent) -> Event:
    """Returns the event for a report of the device pool."""
    match report:
        case LeaseAwaited():
            return DeviceAwaited(device=report.device, holders=tuple(map(str, report.holders)))
        case Quarantined():
            return DeviceQuarantined(device=report.device, why=report.why)
        case NodeDown():
            return NodePaused(why=report.why, next_probe_s=report.next_probe_s)
        case NodeBack():
            return NodeResumed(seconds=report.seconds)
        case _:
            assert_never(report)
