"""Measures a device's timing floor (an empty kernel), and whether a flush empties its caches."""

from __future__ import annotations

import functools

import torch

from harness.wire.clock_messages import Floor
from harness.worker.kit.empty_kernel import launch
from harness.worker.kit.stopwatch import Stopwatch, host_ms

SAMPLES = 41
SHARES = (0.25, 1.0, 4.0)
"""Sizes of the copies as shares of the flushed bytes. Without flush, the first stays in the caches, the last does not."""


@functools.cache
def measure(flush_bytes: int) -> Floor:
    """Measure the GPU that this process sees. Takes tens of milliseconds, once per process."""
    watch = Stopwatch(flush_bytes)
    launch(0)
    watch.leads_by(host_ms(launch))
    empty = watch.sample(launch, SAMPLES, cold=True)
    copies = []
    for share in SHARES:
        source = torch.zeros(int(flush_bytes * share) // 8 * 4, dtype=torch.uint8, device="cuda")
        target = torch.empty_like(source)
        seconds = [
            _median(watch.sample(lambda _: target.copy_(source), SAMPLES, cold=cold)) / 1e3  # noqa: B023
            for cold in (True, False)
        ]
        moved = 2 * source.numel()
        copies.append((moved, moved / seconds[0], moved / seconds[1]))
    del watch
    torch.cuda.empty_cache()
    return Floor(empty_ms=_median(empty), copies=tuple(copies))


def _median(samples: tuple[float, ...]) -> float:
    return sorted(samples)[len(samples) // 2]
