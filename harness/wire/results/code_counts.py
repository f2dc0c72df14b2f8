"""Counts of a compiled kernel's instructions, for the whole kernel or one loop: plain data that is kept on disk."""

from __future__ import annotations

import msgspec


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
