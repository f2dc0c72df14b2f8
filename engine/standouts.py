"""Picks the figures of a kernel that are worth acting on, as few sentences, each about the case where it costs most."""

from __future__ import annotations

from collections.abc import Sequence

from harness import Evaluation, KernelResources

from .figures import TrafficFacts, case_us, grid_fits

NARROW_BITS = 64
"""Loads with fewer bits per lane waste bandwidth."""
MUCH_TRAFFIC = 1.5
"""Smallest ratio of requested to minimal bytes that is reported."""
MUCH_IDLE = 0.25
"""Smallest idle share of a device's places that is reported."""
CLOSE = 0.8
"""Smallest used share of a tolerance that is reported."""
MOST = 6
"""Highest number of notes, findings or failed configs that are reported."""


def standouts(evaluation: Evaluation, traffic: Sequence[TrafficFacts]) -> list[str]:
    """Returns the sentences for a prompt."""
    words = []
    worst = max((case for case in traffic if case.ratio), key=lambda case: case.ratio or 0.0, default=None)
    if worst and worst.ratio and worst.ratio >= MUCH_TRAFFIC:
        again = worst.requested_bytes / max(1, worst.unique_bytes)
        least = "at least " if evaluation.sampled else ""
        words.append(
            f"Case {worst.case} requests {worst.ratio:.2f} times the minimal bytes; "
            f"each distinct byte is requested {least}{again:.2f} times on average."
        )
    kernels = [(target, kernel) for target, rows in evaluation.resources.items() for kernel in rows]
    for target, kernel in kernels:
        if kernel.vgpr_spills or kernel.spill_bytes:
            amount = (
                f"{kernel.vgpr_spills} vector registers"
                if kernel.vgpr_spills
                else f"{kernel.spill_bytes} bytes"
            )
            words.append(
                f"`{kernel.kernel}` spills {amount} on {target}: a smaller tile or more warps would avoid it."
            )
            break
    words += narrow_loads(kernels)
    words += empty_places(evaluation)
    words += close_calls(evaluation)
    words += [
        f"{name} of `{kernel.kernel}` on {target}: {kernel.failure}"
        for target, kernel in kernels
        if kernel.failure and (name := config_name(kernel))
    ][:MOST]
    words += [finding.text for finding in evaluation.findings][:MOST]
    words += evaluation.notes[:MOST]
    if any(case.dot_flops for case in evaluation.traffic):
        for target, kernel in kernels:
            if (
                kernel.matrix_instructions == 0
                and sum(k.matrix_instructions or 0 for t, k in kernels if t == target) == 0
            ):
                words.append(
                    f"No matrix instruction was generated on {target} although the kernel uses tl.dot."
                )
                break
    return words


def narrow_loads(kernels: Sequence[tuple[str, KernelResources]]) -> list[str]:
    """Returns one sentence per kernel about the cases in which even its widest loads are narrow."""
    cases: dict[tuple[str, str, int], list[str]] = {}
    for target, kernel in kernels:
        widest = max((int(bits) for bits in kernel.load_widths), default=None)
        if widest is not None and widest < NARROW_BITS:
            cases.setdefault((target, kernel.kernel, widest), []).append(kernel.case)
    return [
        f"In {', '.join(dict.fromkeys(named))} the widest global load of `{name}` on {target} is {widest} bits a lane "
        "(128 is possible): offsets are not seen to be contiguous and aligned there, or the block is too small."
        for (target, name, widest), named in cases.items()
    ]


def config_name(kernel: KernelResources) -> str:
    """Returns the name of a config: `Config BLOCK=64 num_warps=4`."""
    return "Config " + " ".join(f"{name}={value}" for name, value in kernel.config.items())


def empty_places(evaluation: Evaluation) -> list[str]:
    """Returns a sentence about the grid with the costliest idle places, if they are many; only for the first target."""
    own = next(iter(evaluation.resources), "")
    costs = case_us(evaluation)
    # Below a microsecond the launch itself costs most, and no grid changes that.
    wasteful = [
        facts
        for facts in grid_fits(evaluation)
        if facts.target == own and facts.fit.idle >= MUCH_IDLE and costs.get((own, facts.fit.case), 0.0) >= 1
    ]
    if not wasteful:
        return []
    kernel, fit = wasteful[0].kernel, wasteful[0].fit
    if fit.workgroups < fit.compute_units:
        words = f"Case {fit.case} launches {fit.workgroups} workgroups of `{kernel}` on {fit.compute_units} units of {own}"
        return [f"{words}: the others do nothing."]
    rounds = f"{fit.rounds} rounds, the last of them" if fit.rounds > 1 else "one round, which is"
    words = f"Case {fit.case} fills {own} with `{kernel}` in {rounds} {fit.tail_idle:.0%} empty"
    return [f"{words}; over all, {fit.idle:.0%} of the places have no work."]


def close_calls(evaluation: Evaluation) -> list[str]:
    """Returns a sentence about the output that uses most of its tolerance, if it uses much."""
    worst = max(evaluation.margins, key=lambda margin: margin.used, default=None)
    if worst is None or worst.used < CLOSE:
        return []
    return [
        f"Output `{worst.output}` of case {worst.case} uses {worst.used:.0%} of its tolerance: any less precision fails."
    ]
