"""Notes on one latency: what its interval does not show (`docs/timing.md`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.hardware.product import Product
from harness.node.telemetry.window_summary import is_same_clock
from harness.wire.messages.clock import ProcessTimes
from harness.wire.messages.timer import LEAD, MOST_LEAD_MS
from harness.wire.results import ratios
from harness.wire.results.latency import Latency, Timed, TimingMethod, Window


def latency_notes(
    latency: Latency, processes: Sequence[ProcessTimes], window: Window, product: Product | None
) -> tuple[str, ...]:
    """Return the notes on a latency that was measured by `processes`; none for a case without a ratio."""
    baseline, candidate = latency.baseline, latency.candidate
    if latency.speedup is None or baseline is None or candidate is None:
        return ()
    return (
        *_on_clock(baseline, candidate, window, product),
        *_on_floor(latency),
        *_on_precision(baseline, candidate),
        *_on_host(latency, processes),
    )


def _on_clock(baseline: Timed, candidate: Timed, window: Window, product: Product | None) -> Iterator[str]:
    """The sides at different clocks, or both below the product's boost clock, else below the usual clock of the window."""
    slow, fast = baseline.clock_mhz, candidate.clock_mhz
    if slow is None or fast is None:
        return
    usual = window.clock_usual_mhz if product is None else product.boost_mhz
    if abs(slow - fast) > ratios.RESOLVED * max(slow, fast):
        yield f"the baseline ran at {slow} MHz, the candidate at {fast} MHz"
    elif usual and fast < usual and not is_same_clock(fast, usual):
        than = "the usual" if product is None else f"the boost clock of {product.name},"
        yield f"both sides ran at {fast} MHz, below {than} {usual} MHz"


def _on_floor(latency: Latency) -> Iterator[str]:
    """The ratio without the floor, if it differs by more than ties do and lies outside the interval."""
    without, with_floor = latency.without_floor, latency.speedup
    if without is None or with_floor is None or latency.ci is None or latency.floor_ms is None:
        return
    low, high = latency.ci
    if not low <= without <= high and abs(without / with_floor - 1) > ratios.TIE:
        yield (
            f"an empty kernel's {latency.floor_ms * 1e3:.3g} us is in both times; "
            f"without it the speedup would be {without:.2f}x"
        )


def _on_precision(baseline: Timed, candidate: Timed) -> Iterator[str]:
    error = max(baseline.median_error or 0.0, candidate.median_error or 0.0)
    if error > ratios.MEDIAN_ERROR:
        yield (
            f"medians are known to {error:.1%}, not to {ratios.MEDIAN_ERROR:.2%}: "
            "rounds, time or undisturbed samples ran out"
        )


def _on_host(latency: Latency, processes: Sequence[ProcessTimes]) -> Iterator[str]:
    host_ms = max(process.host_ms for process in processes)
    if latency.method in (TimingMethod.EVENTS, TimingMethod.BATCH) and host_ms > MOST_LEAD_MS / LEAD:
        yield (
            f"the host needs {host_ms:.1f} ms for a call and gets at most {MOST_LEAD_MS:g} ms ahead of the device: "
            "times may contain host time"
        )
