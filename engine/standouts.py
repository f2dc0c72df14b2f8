"""What in a kernel's figures is worth acting on, in sentences: few, each about the case where it costs most."""

from __future__ import annotations

from collections.abc import Sequence

from harness import Evaluation, KernelResources

from .figures import TrafficFacts, case_us, grid_fits

NARROW_BITS = 64
"""Loads of fewer bits a lane leave bandwidth unused."""
MUCH_TRAFFIC = 1.5
"""Requested over minimal bytes from which the ratio is worth a word."""
MUCH_IDLE = 0.25
"""Share of a device's places that a grid leaves empty from which it is worth a word."""
CLOSE = 0.8
"""Share of a tolerance in use from which it is worth a word."""
MOST = 6
"""Notes, or configs that cannot run, that are told."""


def standouts(evaluation: Evaluation, traffic: Sequence[TrafficFacts]) -> list[str]:
    """What in the figures is worth acting on."""
    words = []
    worst = max((each for each in traffic if each.ratio), key=lambda each: each.ratio or 0.0, default=None)
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
    if any(each.dot_flops for each in evaluation.traffic):
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
    """One sentence a kernel about the cases in which even its widest loads are narrow."""
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
    """`Config BLOCK=64 num_warps=4`."""
    return "Config " + " ".join(f"{name}={value}" for name, value in kernel.config.items())


def empty_places(evaluation: Evaluation) -> list[str]:
    """The grid of the first target whose empty places cost most, where they are many."""
    own = next(iter(evaluation.resources), "")
    costs = case_us(evaluation)
    # Where a microsecond is the least, launching is what costs, and no grid changes that.
    found = [
        each
        for each in grid_fits(evaluation)
        if each.target == own and each.fit.idle >= MUCH_IDLE and costs.get((own, each.fit.case), 0.0) >= 1
    ]
    if not found:
        return []
    kernel, fit = found[0].kernel, found[0].fit
    if fit.workgroups < fit.compute_units:
        words = f"Case {fit.case} launches {fit.workgroups} workgroups of `{kernel}` on {fit.compute_units} units of {own}"
        return [f"{words}: the others do nothing."]
    rounds = f"{fit.rounds} rounds, the last of them" if fit.rounds > 1 else "one round, which is"
    words = f"Case {fit.case} fills {own} with `{kernel}` in {rounds} {fit.tail_idle:.0%} empty"
    return [f"{words}; over all, {fit.idle:.0%} of the places have no work."]


def close_calls(evaluation: Evaluation) -> list[str]:
    """The output that uses most of its tolerance, where it is much."""
    worst = max(evaluation.margins, key=lambda each: each.used, default=None)
    if worst is None or worst.used < CLOSE:
        return []
    return [
        f"Output `{worst.output}` of case {worst.case} uses {worst.used:.0%} of its tolerance: any less precision fails."
    ]
