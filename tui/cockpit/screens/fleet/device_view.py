"""The GPU pane of Fleet: a line a GPU, or a compact strip where there is little room or are many GPUs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.wire.device import is_cpu
from sessions.state.state import DeviceState, SessionState
from tui.cockpit.draw.grid import heading, places, row_line
from tui.cockpit.draw.lines import Line, Span, clean, fit, wrap_phrases
from tui.cockpit.screens.fleet.fleet_cells import last_minute
from tui.facts import vocabulary
from tui.facts.attention import foreign_words
from tui.facts.tables import Cell, Column, Number, Row

COLUMNS = (
    Number("#", 1, 16),
    Column("state", 6, 10),
    Column("attempt", 8, 24),
    Number("busy", 4, 5, drop=4, if_known=True),
    Number("memory", 6, 9, drop=6, if_known=True),
    Number("power", 5, 6, drop=7, if_known=True),
    Number("clock", 5, 5, drop=5, if_known=True),
    Number("temp", 4, 5, drop=3, if_known=True),
    Column("last minute", 11, 11, drop=8, if_known=True),
)
MOST_LINES = 16
"""With more GPUs the pane is a strip, and names no attempts."""
STATES = {
    "timing": ("t", "busy"),
    "judge": ("j", "busy"),
    "idle": ("-", "dim"),
    "lost": ("!", "bad"),
    "throttled": ("!", "warn"),
    "lent": ("l", "dim"),
    "used": ("!", "warn"),
}
"""Letter and style of the states of a GPU."""
LEGEND = "t timing  j judging  - idle  l lent  ! trouble"


def gpu_names(state: SessionState) -> list[str]:
    """Return the names of the GPUs that judge for the session."""
    reported = [name for name in state.devices if not is_cpu(name)]
    started = state.started.devices if state.started is not None else ()
    return sorted({*reported, *(name for name in started if not is_cpu(name))}, key=_by_number)


def gpu_state(state: SessionState, device: DeviceState) -> str:
    """Return the state of a GPU: a word of `STATES`."""
    session = state.started.session if state.started is not None else ""
    if device.quarantined:
        return "lost"
    if device.device in state.lent and not device.busy_with:
        return "lent"
    if foreign_words(device, session):
        return "used"
    if device.throttled:
        return "throttled"
    if not device.busy_with:
        return "idle"
    return "timing" if any(_is_timed(state, name) for name in device.busy_with) else "judge"


def gpu_table(state: SessionState, *, now_wall: float, width: int) -> list[Line]:
    """Return titles and a line for each GPU that was sampled; `-` is not visible, never 0."""
    rows = [_row(state, state.devices[name], now_wall) for name in gpu_names(state) if name in state.devices]
    placed = places(COLUMNS, rows, width)
    return [heading(COLUMNS, placed), *(row_line(COLUMNS, placed, row) for row in rows)]


def gpu_strip(state: SessionState, *, now_wall: float, width: int) -> list[Line]:
    """Return the GPUs side by side, by number: `0t softmax#2/8   1j 5 attempts   2-   7! lost 0:40 ago: the probe hung`.

    In a cluster the first GPU of each node has the node before it: `node1/0t   1j   node2/0-`.
    """
    parts: list[Span] = []
    node = ""
    for name in gpu_names(state):
        if name in state.devices:
            part = _short(state, state.devices[name], now_wall)
            own_node = name.rpartition("/")[0]
            if own_node and own_node == node:
                part = part._replace(text=part.text.removeprefix(f"{node}/"))
            parts.append(part)
            node = own_node
    return wrap_phrases(
        [part._replace(text=fit(part.text, width).rstrip()) for part in parts], width, Span("   ")
    )


def gpu_words(state: SessionState) -> str:
    """Return why no GPU is listed; empty if there are GPUs with samples."""
    if any(name in state.devices for name in gpu_names(state)):
        return ""
    return "no sample yet: no engine judges on a GPU now"


def _row(state: SessionState, device: DeviceState, now_wall: float) -> Row:
    word = gpu_state(state, device)
    if trouble := _trouble(state, device, now_wall):
        # The last figures of such a GPU say nothing of the session's work.
        return Row(device.device, (Cell(device.device), Cell(trouble, STATES[word][1])))
    unknown = Cell(vocabulary.UNKNOWN, "dim")
    memory = unknown
    if device.memory_used_bytes is not None and device.memory_total_bytes is not None:
        memory = Cell(f"{_gib(device.memory_used_bytes)}/{_gib(device.memory_total_bytes)}G")
    return Row(
        device.device,
        (
            Cell(device.device),
            Cell(word, STATES[word][1]),
            Cell(_attempts(device.busy_with) or vocabulary.UNKNOWN, "" if device.busy_with else "dim"),
            unknown if device.utilisation is None else Cell(f"{device.utilisation * 100:.0f} %"),
            memory,
            unknown if device.power_w is None else Cell(f"{device.power_w:.0f} W"),
            unknown if device.clock_mhz is None else Cell(f"{device.clock_mhz / 1000:.2f}G"),
            unknown if device.temperature_c is None else Cell(f"{device.temperature_c:.0f} C"),
            Cell(last_minute(device.recent, now_wall), "dim"),
        ),
    )


def _trouble(state: SessionState, device: DeviceState, now_wall: float) -> str:
    """What to know of a GPU that does not do the session's work; empty if it does."""
    session = state.started.session if state.started is not None else ""
    if device.quarantined:
        again = (
            f"; {vocabulary.counted(len(device.requeued), 'attempt')} queued again" if device.requeued else ""
        )
        ago = vocabulary.clock(now_wall - device.lost_wall)
        return clean(f"lost {ago} ago: {device.quarantined}{again}")
    if others := foreign_words(device, session):
        known = device.memory_used_bytes is not None and " G" not in others
        return clean(f"{others}, {_gib(device.memory_used_bytes or 0)}G used" if known else others)
    if device.device in state.lent:
        return f"lent, finishes {_attempts(device.busy_with)}" if device.busy_with else "lent to others"
    return ""


def _short(state: SessionState, device: DeviceState, now_wall: float) -> Span:
    word = gpu_state(state, device)
    letter, style = STATES[word]
    attempts = _attempts(device.busy_with) if len(state.devices) <= MOST_LINES else ""
    words = _trouble(state, device, now_wall) or attempts
    if word == "throttled":
        words = f"throttled {words}".rstrip()
    return Span(f"{device.device}{letter} {words}".rstrip(), style)


def _attempts(names: Sequence[str]) -> str:
    """`softmax#2/8`, or `5 attempts`."""
    return f"{len(names)} attempts" if len(names) > 1 else clean(names[0]) if names else ""


def _is_timed(state: SessionState, name: str) -> bool:
    try:
        attempt = state.attempt(name)
    except KeyError:
        return False
    return "performance" in (attempt.word, attempt.stage, attempt.examining)


def _gib(number: int) -> str:
    return f"{number / 2**30:.0f}"


def _by_number(name: str) -> str:
    """Sort key: `2` before `10`, `node2/0` before `node10/0`."""
    return re.sub(r"\d+", lambda number: number[0].zfill(9), name)
