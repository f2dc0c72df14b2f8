"""Reads Nsight Compute's `--csv --page raw`: a row of names, a row of units, then one row for each launch.

Source of the metrics: Nsight Compute's documentation (Kernel Profiling Guide, Metrics Reference) and its section files.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping

from harness.wire.results.kernel_counts import KernelProfile

from .launches import ProfileFailed, ordered

_TIME = "gpu__time_duration.sum"
_READ, _WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
_MEMORY = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
_L2 = "lts__t_sector_hit_rate.pct"
_OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
_MATRIX = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
_VECTOR = (
    "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed",
)
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
_PASSES = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
_REGISTERS = "launch__registers_per_thread"
_STATE, _OF_ISSUE = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"
STATES = {
    "long_scoreboard": "a load from L2 or memory",
    "short_scoreboard": "shared memory or a slow operation",
    "lg_throttle": "the queue of loads and stores",
    "mio_throttle": "the queue of shared memory",
    "tex_throttle": "the queue of textures",
    "barrier": "a barrier",
    "membar": "a memory fence",
    "gmma": "a matrix product (wgmma)",
    "math_pipe_throttle": "a busy arithmetic pipe",
    "wait": "a fixed latency",
    "not_selected": "its turn among other warps",
    "no_instruction": "an instruction fetch",
    "imc_miss": "a constant",
    "branch_resolving": "a branch",
    "dispatch_stall": "the dispatcher",
    "drain": "stores at the exit",
    "sleeping": "sleep",
    "misc": "other causes",
}
"""States of a warp that does not issue, and the words for them. `selected`, in which it issues, is part of the sum alone."""
_SELECTED = f"{_STATE}selected{_OF_ISSUE}"
METRICS = (
    _TIME, _READ, _WRITTEN, _MEMORY, _L2, _OCCUPANCY, _MATRIX, *_VECTOR, _CONFLICTS, _PASSES, _REGISTERS, _SELECTED,
    *(f"{_STATE}{state}{_OF_ISSUE}" for state in STATES),
)  # fmt: skip
_SCALES = {
    "nsecond": 1e-3, "ns": 1e-3, "usecond": 1.0, "us": 1.0, "msecond": 1e3, "ms": 1e3, "second": 1e6, "s": 1e6,
    "byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "%": 1e-2,
}  # fmt: skip
"""Factors to microseconds, bytes and shares."""


def read_ncu(text: str) -> list[KernelProfile]:
    """Return the launches of a report in their order. Raises `ProfileFailed` if the text has no table."""
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise ProfileFailed("ncu wrote no table of metrics; see its own messages in the raw file")
    rows = csv.reader(line for line in lines[start:] if line.startswith('"'))
    names = next(rows)
    units = dict(zip(names, next(rows, []), strict=False))
    return [_launch(dict(zip(names, row, strict=False)), units) for row in rows]


def _launch(row: Mapping[str, str], units: Mapping[str, str]) -> KernelProfile:
    """Return a row of Nsight Compute's table as a launch, with metrics in bytes, microseconds and shares.

    A metric that is absent or `n/a` becomes `None`. Stalls are shares of all sampled warp states.
    """

    def value(name: str) -> float | None:
        """Return a metric in its base unit; `None` if it is absent, or `n/a` on this GPU."""
        try:
            number = float(row[name].replace(",", ""))
        except (KeyError, ValueError):  # the metric is absent, or `n/a` on this GPU
            return None
        return number * _SCALES.get(units.get(name, ""), 1.0)

    vector = [share for share in map(value, _VECTOR) if share is not None]
    conflicts, passes, registers = value(_CONFLICTS), value(_PASSES), value(_REGISTERS)
    states = {words: value(f"{_STATE}{state}{_OF_ISSUE}") or 0.0 for state, words in STATES.items()}
    total = sum(states.values()) + (value(_SELECTED) or 0.0)
    return KernelProfile(
        name=row.get("Kernel Name", "").partition("(")[0],
        us=value(_TIME),
        read_bytes=value(_READ),
        written_bytes=value(_WRITTEN),
        l2_hit=value(_L2),
        occupancy=value(_OCCUPANCY),
        memory=value(_MEMORY),
        matrix=value(_MATRIX),
        vector=max(vector, default=None),
        stalls=ordered({words: share / total for words, share in states.items()}) if total else {},
        conflicts=conflicts / passes if conflicts is not None and passes else None,
        registers=None if registers is None else int(registers),
    )
