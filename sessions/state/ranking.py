"""The rank that says which of two attempts is better, and by which figure: the speedup, else what is known without timing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness import Evaluation, Verdict
from harness.wire.results.evaluation import KernelResources
from harness.wire.results.ratios import TIE

from .speed import Speed, speed_of

UNKNOWN = -math.inf
EXCESS_TIE = 0.05
"""Excesses that differ by less are equal: caches decide the rest."""
ENOUGH_WAVES = 4.0
"""Occupancy beyond this is not better: memory-bound kernels need about four waves per SIMD, others fewer."""
FILL_STEPS = 4
"""Shares of a filled device are compared in steps of a quarter."""
WIDEST_BITS = 128
"""Loads of more bits per lane are not better."""

FIGURES = {
    "speedup": "{}",
    "excess": "{} times the needed bytes",
    "spills": "spilled registers: {}",
    "fill": "{} of the units filled",
    "load_bits": "widest loads, geometric mean of the kernels: {} bits",
    "occupancy": "occupancy {}",
    "launches": "launches: {}",
}
"""Words for each figure of a rank."""


class Rank(NamedTuple):
    """Sort key of the evaluations of one task, most important field first; greater is better.

    A figure that is unknown, or that does not count, has its default.
    """

    standing: int
    """3 correct and timed, 2 correct, 1 failed, 0 not counted."""
    stages_passed: int = 0
    """Stages that a failed candidate passed; 0 for correct candidates."""
    speedup: float = UNKNOWN
    """`Speed.value`, in steps of 1 %; `-inf` if nothing was measured."""
    excess: float = UNKNOWN
    """Minus `traffic_excess` in steps of 5 %. This field and those below are of the first target."""
    spills: float = UNKNOWN
    """Minus the spilled registers of all kernels, plus spilled bytes on targets that count bytes."""
    fill: float = UNKNOWN
    """Workgroups per compute unit in the emptiest long case, at most 1, in quarters."""
    load_bits: float = UNKNOWN
    """Width of the widest global loads in powers of two, averaged over cases by needed bytes."""
    occupancy: float = UNKNOWN
    """The lowest of its kernels, at most `ENOUGH_WAVES`."""
    launches: float = UNKNOWN
    """Minus the launches of all cases. Last, because a second launch often fills the device."""


def rank(evaluation: Evaluation) -> Rank:
    """Returns the rank of an evaluation: correct before failed, and of timed ones the measured speed alone.

    Without timings the order is a guess about speed, and every display labels it as a guess. The source has no part in
    it: its length says nothing about speed.
    """
    return rank_at_speed(evaluation, speed_of(evaluation))


def rank_at_speed(evaluation: Evaluation, speed: Speed | None) -> Rank:
    """Returns `rank` for a caller that knows the `speed_of` the evaluation."""
    if evaluation.verdict is not Verdict.CORRECT:
        passed = sum(stage.ok is True for stage in evaluation.stages)
        standing = 1 if evaluation.verdict.counted else 0
        return Rank(standing, passed)
    if speed is not None:  # no other figure breaks a tie of what was measured
        return Rank(3, speedup=in_steps(speed.value, TIE))
    excess, occupancy = traffic_excess(evaluation), lowest_occupancy(evaluation)
    launches = [row.launches for row in evaluation.traffic]
    return Rank(
        2,
        excess=UNKNOWN if excess is None else -in_steps(excess, EXCESS_TIE),
        spills=_spill_rank(evaluation),
        fill=_fill_rank(evaluation),
        load_bits=load_bits(evaluation),
        occupancy=UNKNOWN if occupancy is None else min(ENOUGH_WAVES, occupancy),
        launches=float(-sum(launches)) if launches else UNKNOWN,
    )


def why_below(evaluation: Evaluation, better: Evaluation) -> str:
    """Returns the first figure by which a correct evaluation ranks below another: `1.31x against 1.44x`."""
    lower, higher = rank(evaluation), rank(better)
    if lower.standing != higher.standing:
        return "it has no ratio to the baseline"
    field = next((name for name in FIGURES if getattr(lower, name) != getattr(higher, name)), "")
    if not field:
        return "no figure differs, and the earlier attempt is kept"
    figures = f"{_figure(evaluation, lower, field)} against {_figure(better, higher, field)}"
    return FIGURES[field].format(figures)


def improvable(evaluation: Evaluation) -> list[str]:
    """Returns the figures of a correct evaluation that was not timed, and that can still get better, as words."""
    best = {
        "excess": 0.0,
        "spills": 0.0,
        "fill": 1.0,
        "load_bits": math.log2(WIDEST_BITS),
        "occupancy": ENOUGH_WAVES,
        "launches": -len(evaluation.traffic),
    }
    own = rank(evaluation)
    return [
        FIGURES[name].format(_figure(evaluation, own, name))
        for name, value in best.items()
        if UNKNOWN < getattr(own, name) < value
    ]


def _figure(evaluation: Evaluation, own: Rank, field: str) -> str:
    """Returns the value of one figure of the rank `own`, as people read it."""
    value = getattr(own, field)
    if value == UNKNOWN:
        return "unknown"
    if field == "speedup":
        return "1.00x" if (speed := speed_of(evaluation)) is None else speed.figure
    if field == "excess":
        return f"{traffic_excess(evaluation):.2f}"
    if field == "load_bits":
        return f"{2**value:.0f}"
    if field == "fill":
        return f"{value:.0%}"
    return f"{abs(value):g}"


def in_steps(ratio: float, step: float) -> float:
    """Returns the logarithm of a ratio in whole steps, so that ratios which differ by less are equal."""
    return float(round(math.log(ratio) / math.log1p(step)))


def traffic_excess(evaluation: Evaluation) -> float | None:
    """Returns requested over needed bytes at `cpu` sizes, averaged over cases by what they need at `gpu` sizes; at least 1.

    Cases of which the needed bytes are unknown do not count; `None` if no case is left.
    """
    weights = needed_bytes(evaluation)
    pairs = [
        (row.excess, weights.get(row.case) or row.minimal_bytes)
        for row in evaluation.traffic
        if row.excess is not None
    ]
    total = sum(weight for _, weight in pairs)
    return math.fsum(excess * weight for excess, weight in pairs) / total if total else None


def needed_bytes(evaluation: Evaluation) -> dict[str, int]:
    """Returns the needed bytes of each case at its `gpu` sizes."""
    return {row.case: row.needed_bytes for row in evaluation.full_sizes}


def long_cases(evaluation: Evaluation) -> dict[str, int]:
    """Returns the needed bytes of the cases that take longer than their launch; of all cases if none does."""
    long = {row.case: row.needed_bytes for row in evaluation.full_sizes if row.is_long}
    return long or needed_bytes(evaluation)


def load_bits(evaluation: Evaluation) -> float:
    """Returns the width of each kernel's widest global loads as a power of two, averaged over long cases by needed bytes.

    The average is rounded. Narrower loads beside wide ones are edges, which take little time.
    """
    weights = long_cases(evaluation)
    total = weighted = 0.0
    for kernel in own_kernels(evaluation):
        weight = sum(weights.get(case, 0) for case in kernel.cases)
        if kernel.load_widths and weight:
            total += weight
            weighted += weight * math.log2(max(map(int, kernel.load_widths)))
    return float(round(weighted / total)) if total else UNKNOWN


def own_kernels(evaluation: Evaluation) -> Iterator[KernelResources]:
    """Yield the compiled kernels of the first target."""
    own = next(iter(evaluation.resources.values()), ())
    return (kernel for kernel in own if not kernel.failure)


def is_chosen(evaluation: Evaluation, kernel: KernelResources, case: str) -> bool | None:
    """True if the autotuner chose this binary's config in a timed case; `None` if no choice is known."""
    texts = [latency.configs.get(kernel.kernel, "") for latency in evaluation.latency if latency.case == case]
    chosen = next(filter(None, texts), "")
    if kernel.autotune_index is None or not chosen:
        return None
    return kernel.autotune_config == chosen


def chosen_cases(evaluation: Evaluation, kernel: KernelResources) -> list[str]:
    """Returns the cases that launch this code, without those in which the autotuner chose another config."""
    return [case for case in kernel.cases if is_chosen(evaluation, kernel, case) is not False]


def _spill_rank(evaluation: Evaluation) -> float:
    counts = [min(spill_count(kernel) or 0 for kernel in configs) for configs in _launched(evaluation)]
    return float(-sum(counts)) if counts else UNKNOWN


def lowest_occupancy(evaluation: Evaluation) -> float | None:
    """Returns the lowest occupancy of all launches of the first target; of an autotuned kernel its best config counts."""
    best = [
        max(kernel.occupancy for kernel in configs if kernel.occupancy is not None)
        for configs in _launched(evaluation)
        if any(kernel.occupancy is not None for kernel in configs)
    ]
    return min(best, default=None)


def _fill_rank(evaluation: Evaluation) -> float:
    long = long_cases(evaluation)
    shares = [
        min(1.0, fit.workgroups / fit.compute_units)
        for kernel in own_kernels(evaluation)
        for fit in kernel.fits
        if fit.case in long
    ]
    return math.floor(min(shares) * FILL_STEPS) / FILL_STEPS if shares else UNKNOWN


def _launched(evaluation: Evaluation) -> list[Sequence[KernelResources]]:
    """Configs that run, by launch; for an autotuned kernel the best config counts, because a device would choose it."""
    launches: dict[tuple[str, str, str], list[KernelResources]] = {}
    for kernel in own_kernels(evaluation):
        alone = "" if kernel.autotune_index is not None else kernel.binary_sha256
        launches.setdefault((kernel.kernel, kernel.case, alone), []).append(kernel)
    return list(launches.values())


def spill_count(kernel: KernelResources) -> int | None:
    """Returns the spilled registers, or bytes on targets that count bytes; `None` if the target has no count."""
    counts = (kernel.vgpr_spills, kernel.sgpr_spills, kernel.spill_bytes)
    target_counts = [count for count in counts if count is not None]
    return sum(target_counts) if target_counts else None
