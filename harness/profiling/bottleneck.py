"""Names the bottleneck of a profiled kernel in words, with its figures, and compares it with the roofline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness.wire.results.kernel_counts import KernelProfile, Profile

BUSY = 0.6
"""A unit above this share limits. Below it latency does. Source: the rule "SpeedOfLight" of Nsight Compute."""
SOME = 0.05
"""Smallest share of bank conflicts that is reported."""
MORE = 1.2
"""More than this multiple of the cost model's bytes is worth a word."""
MOST_KERNELS = 3
"""Kernels in the paragraph of `profile_words`."""
MEMORY, MATRIX, VECTOR, LATENCY = "memory", "matrix units", "vector units", "latency"


class Limit(NamedTuple):
    """The limit of a kernel."""

    name: str
    """One of the names above; empty if the tool counted nothing that says it."""
    words: str


def limit_of(kernel: KernelProfile) -> Limit:
    """Return what limits a kernel: its busiest unit, or latency if no unit is busy."""
    shares = {MEMORY: kernel.memory, MATRIX: kernel.matrix, VECTOR: kernel.vector}
    measured = {name: share for name, share in shares.items() if share is not None}
    if not measured:
        return Limit("", "what limits is not known: the tool counted no unit")
    busiest = max(measured, key=lambda name: measured[name])
    figures = ", ".join(f"{name} {_percent(share)}" for name, share in measured.items())
    if measured[busiest] >= BUSY:
        verb = "limit" if busiest.endswith("s") else "limits"
        return Limit(busiest, f"{busiest} {verb}: {figures}")
    reasons = [f"no unit is busy for {_percent(BUSY)} or more: {figures}", *_longest_stall(kernel)]
    if kernel.occupancy is not None:
        reasons.append(f"occupancy {_percent(kernel.occupancy)}")
    return Limit(LATENCY, f"latency limits: {'; '.join(reasons)}")


def _longest_stall(kernel: KernelProfile) -> Iterator[str]:
    for cause, share in list(kernel.stalls.items())[:1]:
        yield f"a resident warp waits for {cause} in {_percent(share)} of its time"


def longest(profile: Profile) -> KernelProfile:
    """Return the kernel that takes the most time of the call."""
    return max(profile.kernels, key=lambda kernel: kernel.us or 0.0)


def total(values: Sequence[float | None]) -> float | None:
    """Return the sum; `None` if a value is not known."""
    present = [value for value in values if value is not None]
    return sum(present) if len(present) == len(values) else None


def moved_bytes(profile: Profile) -> float | None:
    """Return the bytes of the whole call between memory and the device; `None` if they are not known."""
    return total([count for kernel in profile.kernels for count in (kernel.read_bytes, kernel.written_bytes)])


def bytes_words(profile: Profile) -> str:
    """Return the bytes of the call beside those of the task's cost model; empty if either is not known."""
    moved, roofline = moved_bytes(profile), profile.roofline
    if moved is None or roofline is None or not roofline.bytes:
        return ""
    cached = "; writes may still be in the caches" if moved < roofline.bytes else ""
    return (
        f"the call moves {moved / 1e6:.4g} MB between memory and the GPU, {moved / roofline.bytes:.2f} times the "
        f"{roofline.bytes / 1e6:.4g} MB of the task's cost model{cached}"
    )


def roofline_words(profile: Profile) -> str:
    """Return what the roofline says, and why the counters say something else; empty without a roofline."""
    roofline = profile.roofline
    if roofline is None or not roofline.limit:
        return ""
    needed = roofline.memory_us if roofline.limit == MEMORY else roofline.compute_us or 0.0
    us = total([kernel.us for kernel in profile.kernels])
    taken = f", and the call took {us:.4g} us under the tool" if us is not None else ""
    words = f"the roofline names {roofline.limit}: the least work needs {needed:.4g} us at the vendor's peak{taken}"
    counted = limit_of(longest(profile)).name
    if not counted or ((counted == MEMORY) == (roofline.limit == MEMORY) and counted != LATENCY):
        return words
    return f"{words}; the counters name {counted}, because {_difference(profile, counted)}"


def _difference(profile: Profile, counted: str) -> str:
    """Explain in words why the counters name another bottleneck (`counted`) than the roofline."""
    moved, roofline = moved_bytes(profile), profile.roofline
    if counted == LATENCY:
        return "the units wait for most of the time, which a roofline does not count"
    if counted == MEMORY:
        if moved is not None and roofline is not None and moved > MORE * roofline.bytes:
            return f"{moved / roofline.bytes:.2f} times the bytes of the cost model move"
        return "the arithmetic does not reach its peak, so that the time of the bytes shows"
    if counted == VECTOR:
        return "addresses, conversions and special functions are vector work too, which the task's model does not count"
    return "the matrix units work longer than the task's FLOPs need at their peak"


def profile_words(profile: Profile) -> str:
    """Return the facts of a profile as one paragraph: by kernel, the longest first, its limit and then its figures."""
    kernels = sorted(profile.kernels, key=lambda kernel: -(kernel.us or 0.0))
    call_us = total([kernel.us for kernel in kernels])
    sentences = [
        f"`{kernel.name}`{_time(kernel, call_us)}: {'; '.join(_facts(kernel))}."
        for kernel in kernels[:MOST_KERNELS]
    ]
    if len(kernels) > MOST_KERNELS:
        sentences.append(f"Further kernels that take less time: {len(kernels) - MOST_KERNELS}.")
    sentences += [
        f"{text[0].upper()}{text[1:]}." for text in (bytes_words(profile), roofline_words(profile)) if text
    ]
    return f"Counted by {profile.tool} in case {profile.case}: {' '.join(sentences)}"


def _facts(kernel: KernelProfile) -> Iterator[str]:
    """Yield the facts about a kernel in words: its bottleneck, then the longest stall and figures that its counters give."""
    limit = limit_of(kernel)
    yield limit.words
    if limit.name != LATENCY:
        yield from _longest_stall(kernel)
    figures = {"L2 hits": kernel.l2_hit}
    if limit.name != LATENCY:  # the words for latency have it
        figures["occupancy"] = kernel.occupancy
    if kernel.conflicts is not None and kernel.conflicts >= SOME:
        figures["bank conflicts"] = kernel.conflicts
    facts = [f"{name} {_percent(share)}" for name, share in figures.items() if share is not None]
    if facts:
        yield ", ".join(facts)


def _time(kernel: KernelProfile, call_us: float | None) -> str:
    if kernel.us is None:
        return ""
    share = f", {_percent(kernel.us / call_us)} of the call" if call_us and kernel.us < call_us else ""
    return f" ({kernel.us:.4g} us{share})"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
