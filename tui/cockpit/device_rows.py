"""Rows of devices: one device in one line."""

from __future__ import annotations

from sessions.state import DeviceState
from tui import vocabulary
from tui.tables import Cell, Column, Row

DEVICE_COLUMNS = (
    Column("device", 6, 8),
    Column("what it is", 8, 40, drop=4),
    Column("busy with", 11, 26),
    Column("use", 4, 11, right=True, if_known=True),
    Column("memory", 12, 17, right=True, drop=1, if_known=True),
    Column("temp", 5, 5, right=True, drop=3, if_known=True),
    Column("power", 6, 6, right=True, drop=2, if_known=True),
    Column("clock", 8, 8, right=True, drop=5, if_known=True),
)


def device_row(device: DeviceState, *, lent: bool = False) -> Row:
    """One device in one line; what it does not tell is said to be not visible."""
    if device.quarantined:
        # Its last sample is from before it was lost.
        device = DeviceState(
            device.device, device.description, (), *(None,) * 6, quarantined=device.quarantined
        )
    unseen = Cell(vocabulary.UNKNOWN, "dim")
    memory = unseen
    if device.memory_used_bytes is not None and device.memory_total_bytes is not None:
        used, total = device.memory_used_bytes / 2**30, device.memory_total_bytes / 2**30
        memory = Cell(f"{used:.1f}/{total:.0f} GiB")
    elif device.memory_total_bytes is not None:
        memory = Cell(f"?/{device.memory_total_bytes / 2**30:.0f} GiB", "dim")
    busy = ", ".join(device.busy_with)
    doing = Cell(busy or "idle", "busy" if busy else "dim")
    if device.quarantined:
        doing = Cell(f"lost: {device.quarantined}", "bad")
    elif lent:
        doing = Cell(f"lent, finishes {busy}" if busy else "lent to others", "dim")
    elif device.waits_for:
        doing = Cell(f"waits: {'; '.join(device.waits_for)}", "busy")
    known = device.utilisation is not None
    return Row(
        device.device,
        (
            Cell(device.device),
            Cell(device.description, "dim"),
            doing,
            Cell(f"{device.utilisation:.0%}")
            if known and device.utilisation is not None
            else Cell(vocabulary.NOT_VISIBLE, "dim"),
            memory,
            unseen if device.temperature_c is None else Cell(f"{device.temperature_c:.0f} C"),
            unseen if device.power_w is None else Cell(f"{device.power_w:.0f} W"),
            unseen if device.clock_mhz is None else Cell(f"{device.clock_mhz:.0f} MHz"),
        ),
    )
