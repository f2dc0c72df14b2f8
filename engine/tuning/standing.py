"""How good a variant looks before it was judged, of what compiling and sampling told: a guess, and called one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from harness import Evaluation, KernelResources, Target, Verdict
from harness.stages.survey import Compiled, Sampled
from harness.wire.evaluation import SCHEMA
from sessions.metrics import rank

RANKED_BY = (
    "roofline estimate, bytes requested, spills and occupancy; none of it was timed, so the choice is a guess"
)

RESOLUTION = 0.05
"""Ratios nearer than this are equal: a few programs were sampled for all."""

TOO_LARGE = "do not fit the device"
FAILED = "do not compile"
SPILLS = "spill where the start does not"
SAME_CODE = "give the same code as another"
CURABLE = frozenset({TOO_LARGE, SPILLS})
"""What another change beside it may cure: more warps, fewer stages, a smaller tile the other way."""
NOT_SAMPLED = "were left out, as enough were tried"


class Code(NamedTuple):
    """What a device would load and launch of one kernel."""

    kernel: str
    digest: str
    grids: tuple[tuple[int, int, int], ...]
    autotune_index: int | None


class Standing(NamedTuple):
    """What decides between two variants that nobody timed, most important first; greater is better.

    The order is that of `sessions.metrics.rank`, but for three things. Scalar registers that spill do not count: they go to
    lanes of vector registers, not to memory. What was only sampled is compared in steps of
    `RESOLUTION`. Where matrix instructions do the work occupancy does not count: two waves a SIMD are often right there.
    """

    estimate: float
    traffic: float
    spills: float
    occupancy: float


def standing(task: str, target: Target, compiled: Compiled, sampled: Sampled) -> Standing:
    """Where a variant would stand if it turned out to be correct."""
    supposed = Evaluation(
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
        sampled=sampled.traffic,
        estimate=sampled.estimate,
    )
    found = rank(supposed)
    matrix = any(row.matrix_instructions for row in compiled.resources)
    return Standing(
        _step(found.estimate), _step(found.traffic), found.spills, 0.0 if matrix else found.occupancy
    )


def _step(ratio: float) -> float:
    """A ratio that is given as its negative, in whole steps: greater is better still."""
    return -float(round(math.log(-ratio) / RESOLUTION)) if -math.inf < ratio < 0 else ratio


def fault(compiled: Compiled, start: Compiled) -> str:
    """Why a variant is not worth a judgement; empty where it may be."""
    if compiled.error:
        too_large = any("too_large" in row.flags for row in compiled.resources)
        return TOO_LARGE if too_large else FAILED
    if spilled(compiled.resources) > spilled(start.resources):
        return SPILLS
    return ""


def spilled(resources: Sequence[KernelResources]) -> int:
    """Vector registers spilled, and bytes where a target counts those, by all that was compiled and runs."""
    return sum(
        count or 0 for row in resources if not row.failure for count in (row.vgpr_spills, row.spill_bytes)
    )


def code(compiled: Compiled) -> frozenset[Code]:
    """What would run; two sources with equal code are one."""
    return frozenset(
        Code(row.kernel, row.code_sha256, tuple(fit.grid for fit in row.fits), row.autotune_index)
        for row in compiled.resources
    )
