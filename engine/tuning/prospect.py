"""The prospect of a variant before it is judged: a guess from compiling it, always labelled as a guess."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from harness import Evaluation, KernelResources, Target, Verdict
from harness.stages.survey import Compiled
from harness.wire.results.evaluation import SCHEMA, FullSize
from sessions.state.ranking import lowest_occupancy, rank

RANKED_BY = "spills, grid, load widths and occupancy; none of it was timed, so the choice is a guess"

TOO_LARGE = "do not fit the device"
FAILED = "do not compile"
SPILLS = "spill where the start does not"
SAME_CODE = "give the same code as another"
FORBIDDEN = "break the task's constraint"


class Code(NamedTuple):
    """The code that a device would load and launch for one kernel."""

    kernel: str
    digest: str
    grids: tuple[tuple[int, int, int], ...]
    autotune_index: int | None


class Prospect(NamedTuple):
    """Compares variants without timings, most important field first; greater is better.

    The order is that of `sessions.state.ranking.rank`, with four differences:

    - Memory traffic does not count: no program has run.
    - Scalar registers that spill do not count: they go to lanes of vector registers, not to memory.
    - Occupancy counts beyond four waves too, because a variant that may be better is only tried.
    - If matrix instructions do the work, occupancy does not count: two waves per SIMD are often right there.
    """

    spills: float
    fill: float
    load_bits: float
    occupancy: float


def prospect_of(task: str, target: Target, compiled: Compiled, full_sizes: tuple[FullSize, ...]) -> Prospect:
    """Returns the prospect of a variant, assuming that it is correct; `full_sizes` are the task's open cases."""
    evaluation = Evaluation(
        schema=SCHEMA,
        task=task,
        device="cpu",
        verdict=Verdict.CORRECT,
        call=True,
        execution=True,
        stages=(),
        resources={
            target.name: tuple(msgspec.structs.replace(row, sgpr_spills=None) for row in compiled.resources)
        },
        full_sizes=full_sizes,
    )
    ranked = rank(evaluation)
    matrix = any(row.matrix_instructions for row in compiled.resources)
    return Prospect(
        ranked.spills,
        ranked.fill,
        ranked.load_bits,
        0.0 if matrix else lowest_occupancy(evaluation) or 0.0,
    )


def fault(compiled: Compiled, start: Compiled) -> str:
    """Returns why a compiled variant of a sweep is not worth judging: an error, or more spills than `start`; else empty."""
    if compiled.error:
        too_large = any("too_large" in row.flags for row in compiled.resources)
        return TOO_LARGE if too_large else FAILED
    if spill_count(compiled.resources) > spill_count(start.resources):
        return SPILLS
    return ""


def spill_count(resources: Sequence[KernelResources]) -> int:
    """Returns the spilled vector registers, plus bytes on targets that count bytes, of all kernels that run."""
    return sum(
        count or 0 for row in resources if not row.failure for count in (row.vgpr_spills, row.spill_bytes)
    )


def code(compiled: Compiled) -> frozenset[Code]:
    """Returns the code that would run; two sources with equal code are the same variant."""
    return frozenset(
        Code(row.kernel, row.code_sha256, tuple(fit.grid for fit in row.fits), row.autotune_index)
        for row in compiled.resources
    )
