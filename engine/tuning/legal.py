"""Which launch options a sweep may try on a target, and how far constants of a kernel are moved.

Names, defaults and values are those of the pinned Triton (3.7.1: `HIPOptions`, `CUDAOptions`), which a test compares; what
they mean is the vendors': AMD, "Optimizing Triton kernels" (ROCm documentation, inference optimization); NVIDIA, PTX ISA,
performance-tuning directives. Options that change results (`enable_fp_fusion`, `allow_flush_denorm`) are never touched,
nor is what holds for a whole process (`TRITON_HIP_USE_BLOCK_PINGPONG` and its like): a kernel file cannot carry it.
"""

from __future__ import annotations

import re

import msgspec

from harness import Target, hardware

MAX_THREADS = 1024
"""Of a workgroup, on every target."""
MOST_STAGES = 5
"""Of a software pipeline: local memory holds no more of any tile worth having."""
REACH = 4
"""How many times larger or smaller than now a constant may become."""
LARGEST_TILE = 1 << 16
LARGEST_DOT_TILE = 256
"""Elements along one axis of a tile, and of one that goes into a matrix product."""


class Option(msgspec.Struct, frozen=True):
    """A launch option that a sweep may set."""

    name: str
    default: int | str | None
    """What a launch without it gets."""
    values: tuple[int | str, ...]
    """To be tried; empty: powers of two around the present one."""
    needs: str = ""
    """`dot`, `loop`: what a kernel without cannot profit from."""


def launch_options(target: Target) -> tuple[Option, ...]:
    """Options of the target's compiler that are worth sweeping, the most telling first."""
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
    """90 of `sm_90`."""
    return int(target.name.removeprefix("sm_"))


def most_warps(target: Target) -> int:
    """Warps (waves) of the largest workgroup: 16 where a wave has 64 lanes."""
    return MAX_THREADS // target.wave_size


_XCD = re.compile(r"XCD", re.IGNORECASE)
_STAGES = re.compile(r"STAGES$", re.IGNORECASE)
_GROUP = re.compile(r"GROUP|SPLIT|UNROLL", re.IGNORECASE)
_TILE = re.compile(r"BLOCK|TILE|CHUNK|(^|_)B[MNK](_|$)|(^|_)XBLOCK|(^|_)[RXY]BLOCK", re.IGNORECASE)
_SIZE_OF_THE_TASK = re.compile(r"DIM|HEAD|HIDDEN|STRIDE|NUM_BLOCKS|N_BLOCKS|BLOCKS$", re.IGNORECASE)
"""Constants that say what is computed, whatever else is in their name."""


def constant_values(name: str, present: int, target: Target, *, dots: bool) -> tuple[int, ...]:
    """What a constant of a kernel may become, nearest first; nothing where its name does not say that it is a free choice."""
    if _XCD.search(name):
        return tuple(value for value in dict.fromkeys((hardware(target).dies, 1)) if value != present)
    if _STAGES.search(name):
        return tuple(value for value in (present + 1, present - 1, present + 2) if 1 <= value <= MOST_STAGES)
    if _SIZE_OF_THE_TASK.search(name) or not is_power_of_two(present):
        return ()
    if _GROUP.search(name):
        return around(present, 1, 64)
    if _TILE.search(name):
        return around(present, min(present, 16), LARGEST_DOT_TILE if dots else LARGEST_TILE)
    return ()


def around(present: int, least: int, most: int) -> tuple[int, ...]:
    """Powers of two up to `REACH` times smaller and larger, nearest first."""
    steps = [present * 2, present // 2, present * REACH, present // REACH]
    return tuple(value for value in steps if least <= value <= most and value != present)


def is_power_of_two(number: int) -> bool:
    """Whether a number is 1, 2, 4, ..."""
    return number > 0 and number & (number - 1) == 0
