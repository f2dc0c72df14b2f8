"""What events say of a device: its samples over the last minute, its throttling, and how it was lost."""

from __future__ import annotations

from collections.abc import Iterable

from harness import Evaluation
from harness.wire.results.latency import Window
from sessions.events import DeviceQuarantined, DeviceSampled

from .state import DeviceState

MINUTE_S = 60.0
CLOCK_DROP = 0.97
"""A clock below this share of the usual clock counts as throttled: less moves a time by under the resolved 2 to 3 %."""


def take_sample(device: DeviceState, event: DeviceSampled) -> None:
    """Replace the device's values, and keep its utilisation over the last minute."""
    device.description, device.busy_with = event.description, event.busy_with
    device.utilisation = event.utilisation
    device.memory_used_bytes, device.memory_total_bytes = event.memory_used_bytes, event.memory_total_bytes
    device.temperature_c, device.power_w = event.temperature_c, event.power_w
    device.clock_mhz = event.clock_mhz
    recent = [sample for sample in device.recent if sample[0] > event.wall - MINUTE_S]
    device.recent = (*recent, (event.wall, event.utilisation))


def quarantine(device: DeviceState, event: DeviceQuarantined) -> None:
    """Mark the device as lost; the judge repeats its attempts on other devices."""
    if not device.quarantined:
        device.lost_wall, device.requeued = event.wall, device.busy_with
    device.quarantined, device.waits_for, device.users = event.why, (), ()


def note_timings(devices: dict[str, DeviceState], evaluation: Evaluation, wall: float) -> Iterable[str]:
    """Note for each sampled device that timed cases whether it was throttled; returns the devices that changed."""
    windows: dict[str, list[Window]] = {}
    for latency in evaluation.latency:
        if latency.window is not None and latency.device in devices:
            windows.setdefault(latency.device, []).append(latency.window)
    changed = []
    for name, timed in windows.items():
        device = devices[name]
        throttled = next((reason for window in timed if (reason := _throttling(window))), "")
        if throttled != device.throttled:
            device.throttled_wall = device.throttled_wall if device.throttled and throttled else wall
            device.throttled = throttled
            changed.append(name)
    return changed


def _throttling(window: Window) -> str:
    """The main reason that held the clock back; empty if the clock did not drop."""
    known = window.clock_mhz is not None and window.clock_usual_mhz is not None
    if not window.throttled or (
        known and (window.clock_mhz or 0) >= CLOCK_DROP * (window.clock_usual_mhz or 0)
    ):
        return ""
    return max(window.throttled, key=lambda reason: window.throttled[reason])
