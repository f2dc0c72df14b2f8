"""Counts of a kernel: its instructions in the compiled text, and what a vendor's profiler counted in one call. Torch-free.

All profilers are read into one form, and it is kept on disk.
"""

from __future__ import annotations

import msgspec


class KernelProfile(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel in one call, all its launches together. A field that the tool did not report is `None`.

    Shares are from 0 to 1; of several launches they are means weighted by time.
    """

    name: str
    launches: int = 1
    us: float | None = None
    read_bytes: float | None = None
    """Bytes that were read from device memory."""
    written_bytes: float | None = None
    l2_hit: float | None = None
    """Share of the L2 cache's lookups that hit."""
    occupancy: float | None = None
    """Warps or waves that were resident, over those that fit."""
    memory: float | None = None
    """Traffic with device memory, over its peak."""
    matrix: float | None = None
    """Share of the time in which the matrix units worked."""
    vector: float | None = None
    """Share of the time in which the busiest vector pipe (NVIDIA: ALU or FMA) or the vector units (AMD) worked."""
    stalls: dict[str, float] = {}
    """Share of a resident warp's time by its state, without the time in which it issues; greatest first."""
    conflicts: float | None = None
    """NVIDIA: share of the passes over shared memory that bank conflicts cost. AMD: share of the time with LDS conflicts."""
    registers: int | None = None


class ProfiledLaunch(msgspec.Struct, frozen=True):
    """One launch of a call."""

    kernel: str
    us: float | None


class Roofline(msgspec.Struct, frozen=True, kw_only=True):
    """The work of the task's cost model in the profiled case, at the vendor's peaks of the device."""

    bytes: int
    """0: not known."""
    flops: int
    memory_us: float
    compute_us: float | None
    """`None` if the device has no peak for the dtype."""

    @property
    def limit(self) -> str:
        """`memory` or `compute`; empty if the bytes are not known."""
        if not self.bytes:
            return ""
        return "compute" if (self.compute_us or 0.0) > self.memory_us else "memory"


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One call of one source in one case, under a profiler: evidence, because the source's code ran in the profiled process."""

    tool: str
    """Name and version."""
    how: str
    """State of caches and clocks, in words."""
    case: str
    device: str
    product: str
    kernels: tuple[KernelProfile, ...]
    """In the order of their first launch."""
    launches: tuple[ProfiledLaunch, ...] = ()
    """The first launches of the call in their order; empty if the tool gives times by kernel alone."""
    roofline: Roofline | None = None
    """`None` if the product is not in the tables."""
    notes: tuple[str, ...] = ()
    """Why a better tool was not used, and passes that failed."""
    opened: tuple[str, ...] = ()
    """Layers of a guest's sandbox that the profiled process did not have."""
    raw: dict[str, str] = {}
    """SHA-256 of the tool's own files, as gzip, by file name."""


class CodeCounts(msgspec.Struct, frozen=True, omit_defaults=True):
    """Instructions of a whole kernel, or of one loop with its inner loops, as they are in the text."""

    instructions: int
    depth: int = 0
    """0: the whole kernel; 1: an outermost loop."""
    line: int | None = None
    """The smallest source line of its instructions."""
    loads: dict[str, int] = {}
    """Global loads by width in bits; 0 for an unknown width."""
    stores: dict[str, int] = {}
    past_registers: int = 0
    """Loads that write into local memory; `loads` has them too."""
    tile_loads: int = 0
    """Copies of tiles by a descriptor (TMA), not in `loads`."""
    atomics: int = 0
    lds: int = 0
    """Accesses to local memory, which NVIDIA calls shared memory."""
    matrix: int = 0
    waits: int = 0
    barriers: int = 0
    spills: int = 0
    """Instructions that spill registers or read them back."""
    wait_distance: int | None = None
    """The fewest instructions between a global load and the wait for it; `None` on NVIDIA, where hardware waits."""
