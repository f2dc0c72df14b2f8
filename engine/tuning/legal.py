"""The launch options and constants that a sweep may change on a target, and the values that it may try.

Names, defaults and values are those of the pinned Triton (3.7.1: `HIPOptions`, `CUDAOptions`); a test compares them.
Sources of their meaning: AMD, "Optimizing Triton kernels" (ROCm documentation, inference optimization); NVIDIA, PTX
ISA, performance-tuning directives.

Options that change results (`enable_fp_fusion`, `allow_flush_denorm`) are never changed. Settings of a whole process
(`TRITON_HIP_USE_BLOCK_PINGPONG` and similar) are not changed either, because a kernel file cannot carry them.
"""

from __future__ import annotations

import re

import msgspec

from harness import Target
from harness.hardware.targets import hardware

MAX_THREADS = 1024
"""Largest workgroup, on every target."""
MOST_STAGES = 5
"""Longest software pipeline: local memory does not fit more stages of a useful tile."""
REACH = 4
"""Largest factor by which a constant is changed."""
LARGEST_TILE = 1 << 16
LARGEST_DOT_TILE = 256
"""`LARGEST_TILE` limits the elements along one axis of a tile, this constant those of a tile in a matrix product."""


class Option(msgspec.Struct, frozen=True):
    """A launch option that a sweep may set."""

    name: str
    default: int | str | None
    """The value of a launch without the option."""
    values: tuple[int | str, ...]
    """Values to try; empty: powers of two around the present value."""
    needs: str = ""
    """`dot` or `loop`: a kernel without it cannot profit from the option."""


def launch_options(target: Target) -> tuple[Option, ...]:
    """Returns the options of the target's compiler that are worth sweeping, the most useful first."""
    if target.backend == "hip":
        stages = Option("num_stages", 2, tuple(range(1, MOST_STAGES)), needs="loop")
        kpack = (Option("kpack", 1, (1, 2), needs="dot"),) if target.name != "gfx950" else ()
        return (
            Option("num_warps", 4, ()),
            stages,
            Option("waves_per_eu", 0, (0, 1, 2, 3, 4)),
            Option("matrix_instr_nonkdim", 0, (0, 16, 32), needs="dot"),
            *kpack,  # gfx950 takes 1 alone
            Option("schedule_hint", "none", ("none", "attention", "memory-bound-attention"), needs="dot"),
        )
    clusters = (Option("num_ctas", 1, (1, 2), needs="dot"),) if capability(target) >= 90 else ()
    return (
        Option("num_warps", 4, ()),
        Option("num_stages", 3, tuple(range(1, MOST_STAGES + 1)), needs="loop"),
        Option("maxnreg", None, (64, 128)),
        *clusters,
    )


def capability(target: Target) -> int:
    """Returns 90 for `sm_90`."""
    return int(target.name.removeprefix("sm_"))


def most_warps(target: Target) -> int:
    """Returns the warps (waves) of the largest workgroup: 16 if a wave has 64 lanes."""
    return MAX_THREADS // target.wave_size


_XCD = re.compile(r"XCD", re.IGNORECASE)
_STAGES = re.compile(r"STAGES$", re.IGNORECASE)
_GROUP = re.compile(r"GROUP|SPLIT|UNROLL", re.IGNORECASE)
_TILE = re.compile(r"BLOCK|TILE|CHUNK|(^|_)B[MNK](_|$)|(^|_)XBLOCK|(^|_)[RXY]BLOCK", re.IGNORECASE)
_SIZE_OF_THE_TASK = re.compile(r"DIM|HEAD|HIDDEN|STRIDE|NUM_BLOCKS|N_BLOCKS|BLOCKS$", re.IGNORECASE)
"""Constants that define the computation, whatever else their name says."""


def constant_values(name: str, present: int, target: Target, *, dots: bool) -> tuple[int, ...]:
    """Returns the values to try for a constant, nearest first; empty if its name does not mark a free choice."""
    if _XCD.search(name):
        return tuple(value for value in dict.fromkeys((hardware(target).dies, 1)) if value != present)
    if _STAGES.search(name):
        return tuple(value for value in (present + 1, present - 1, present + 2) if 1 <= value <= MOST_STAGES)
    if _SIZE_OF_THE_TASK.search(name) or not is_power_of_two(present):
        return ()
    if _GROUP.search(name):
        return powers_around(present, 1, 64)
    if _TILE.search(name):
        return powers_around(present, min(present, 16), LARGEST_DOT_TILE if dots else LARGEST_TILE)
    return ()


def powers_around(present: int, least: int, most: int) -> tuple[int, ...]:
    """Returns powers of two up to `REACH` times smaller and larger, nearest first."""
    steps = [present * 2, present // 2, present * REACH, present // REACH]
    return tuple(value for value in steps if least <= value <= most and value != present)


def is_power_of_two(number: int) -> bool:
    """True if the number is 1, 2, 4, ..."""
    return number > 0 and number & (number - 1) == 0
