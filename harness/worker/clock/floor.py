"""What a device's clock is worth: its floor, and whether flushing empties its caches. Measured once a process."""

from __future__ import annotations

import functools

import torch

from harness.wire.clock_messages import Floor
from harness.worker.kit.empty_kernel import launch
from harness.worker.kit.stopwatch import Stopwatch, host_ms

SAMPLES = 41
SHARES = (0.25, 1.0, 4.0)
"""Sizes of the copies, in parts of what is flushed: hot copies of the first stay in the caches, of the last in none."""


@functools.cache
def measure(flush_bytes: int) -> Floor:
    """The floor of the GPU that this process sees; tens of milliseconds, once a process."""
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
