"""Made-up times of processes, in the form that the clock reports them."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.wire.device import Device
from harness.wire.limits import TimeLimits
from harness.wire.messages.clock import BASELINE, CANDIDATE, Block, Measure, ProcessTimes
from harness.wire.results.latency import Window
from suites import load_task

TASK = load_task("vector_add")
GPU = Device(name="0", kind="cuda", target="sm_90")
MEASURE = Measure(
    task=TASK,
    sources={BASELINE: "b", CANDIDATE: "c"},
    seed=1,
    target="sm_90",
    limits=TimeLimits(),
    cold=True,
    against="triton",
    flush_bytes=1 << 20,
    budget_s=1.0,
)
QUIET = Window(source="", seconds=0.0)


def process(
    side: str, pair: int, ms: float, *, case: str = "fp32", began_s: float = 0.0, **changes: Any
) -> ProcessTimes:
    """Times of one process: ten samples of about `ms` in two blocks."""
    samples = tuple(ms * (1 + 0.0001 * number) for number in range(-2, 3))
    blocks = tuple(Block(began_s + at, began_s + at + 0.5, samples) for at in (0.0, 1.0))
    usual = ProcessTimes(
        side=side,
        pair=pair,
        case=case,
        blocks=blocks,
        wall_ms=None,
        plain_ms=None,
        peak_bytes=100 * (pair + 1),
        configs={},
    )
    return msgspec.structs.replace(usual, **changes)


def times(case: str = "fp32", *, pairs: int = 3, **by_side: float) -> tuple[ProcessTimes, ...]:
    return tuple(process(side, pair, ms, case=case) for pair in range(pairs) for side, ms in by_side.items())
