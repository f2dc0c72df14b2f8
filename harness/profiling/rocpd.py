"""Reads rocprofv3's databases (rocpd, SQLite): the views `kernels` and `pmc_events`. Unverified on AMD.

Source of the schema: ROCm's rocprofiler-sdk documentation. Source of the counters: its list for gfx942.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from harness.wire.messages.profiled import MARK
from harness.wire.results.kernel_counts import KernelProfile

from .launches import ProfileFailed

PASSES = (
    ("FETCH_SIZE", "VALUBusy", "MfmaUtil"),
    ("WRITE_SIZE", "TCC_HIT_sum", "TCC_MISS_sum", "OccupancyPercent"),
    ("LDSBankConflict", "SQ_WAIT_ANY", "SQ_WAVE_CYCLES"),
)
"""Counters of each run of the tool. A run takes at most four counters of the L2 cache (TCC) and four of the compute units
(SQ); a derived counter such as FETCH_SIZE needs several."""
_KIB = 1024
"""FETCH_SIZE and WRITE_SIZE are in KiB."""
_KERNELS = "SELECT * FROM kernels ORDER BY start, dispatch_id"
_REGISTERS = ("vgpr_count", "accum_vgpr_count")
"""Columns that older versions of the schema lack."""
_COUNTERS = (
    "SELECT dispatch_id, counter_name, SUM(counter_value) FROM pmc_events GROUP BY dispatch_id, counter_name"
)

_READ_S, _STEPS = 20.0, 10_000
"""Foreign code can write the file, and a view can run without end: checked after so many instructions of SQLite."""


class _Dispatch(msgspec.Struct):
    name: str
    ns: int
    registers: int
    counters: dict[str, float]


def read_rocpd(passes: Sequence[Path]) -> list[KernelProfile]:
    """Return the launches between the last two marks, with the counters of all passes.

    Every pass ran the program once. The first one gives the times. Counters of a pass with other launches are left out. Raises
    `ProfileFailed` if a file is no such database, or has no marks.
    """
    first, *further = (_dispatches(file) for file in passes)
    for dispatches in further:
        if [dispatch.name for dispatch in dispatches] == [dispatch.name for dispatch in first]:
            for dispatch, same in zip(first, dispatches, strict=True):
                dispatch.counters |= same.counters
    return [_launch(dispatch) for dispatch in first]


def read_durations(file: Path, name: str) -> list[float]:
    """Return the microseconds of each launch of a kernel with `name` in its name. Raises `ProfileFailed`."""
    return [row["duration"] / 1e3 for row in _read(file)[0] if name in row["name"]]


def _read(file: Path) -> tuple[list[dict[str, Any]], dict[int, dict[str, float]]]:
    """Return the launches in their order, and the counters of each by its dispatch."""
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            end_by = time.monotonic() + _READ_S
            database.set_progress_handler(lambda: time.monotonic() > end_by, _STEPS)
            counters: dict[int, dict[str, float]] = {}
            for dispatch, name, value in database.execute(_COUNTERS):
                counters.setdefault(dispatch, {})[name] = value
            rows = [dict(row) for row in database.execute(_KERNELS)]
    except sqlite3.Error as error:
        raise ProfileFailed(f"{file.name} is no rocpd database that can be read: {error}") from error
    return rows, counters


def _dispatches(file: Path) -> list[_Dispatch]:
    """Return the launches between the last two marks, which enclose the profiled call.

    Raises `ProfileFailed` without two marks.
    """
    rows, counters = _read(file)
    marks = [number for number, row in enumerate(rows) if MARK in row["name"]]
    if len(marks) < 2:
        raise ProfileFailed(f"{file.name} has no launches between two marks")
    return [
        _Dispatch(
            row["name"].removesuffix(".kd"),
            row["duration"],
            sum(row.get(name) or 0 for name in _REGISTERS),
            counters.get(row["dispatch_id"], {}),
        )
        for row in rows[marks[-2] + 1 : marks[-1]]
    ]


def _launch(dispatch: _Dispatch) -> KernelProfile:
    """Return a launch with its counters in bytes, microseconds and shares; `None` for a counter that was not read."""
    counted = dispatch.counters
    waits = _ratio(counted, "SQ_WAIT_ANY", ("SQ_WAVE_CYCLES",))
    return KernelProfile(
        name=dispatch.name,
        us=dispatch.ns / 1e3,
        read_bytes=_scaled(counted, "FETCH_SIZE", _KIB),
        written_bytes=_scaled(counted, "WRITE_SIZE", _KIB),
        l2_hit=_ratio(counted, "TCC_HIT_sum", ("TCC_HIT_sum", "TCC_MISS_sum")),
        occupancy=_scaled(counted, "OccupancyPercent", 1e-2),
        matrix=_scaled(counted, "MfmaUtil", 1e-2),
        vector=_scaled(counted, "VALUBusy", 1e-2),
        stalls={"any cause": waits} if waits else {},
        conflicts=_scaled(counted, "LDSBankConflict", 1e-2),
        registers=dispatch.registers or None,
    )


def _scaled(counted: Mapping[str, float], name: str, factor: float) -> float | None:
    return counted[name] * factor if name in counted else None


def _ratio(counted: Mapping[str, float], name: str, of: Sequence[str]) -> float | None:
    whole = sum(counted.get(part, 0.0) for part in of)
    return counted[name] / whole if name in counted and whole else None
