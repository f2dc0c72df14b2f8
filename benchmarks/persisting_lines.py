"""Whether lines that a kernel asks the L2 cache to keep (`evict_last`) survive the flush between samples.

    python -m benchmarks.persisting_lines

A kernel reads 16 MiB, cold and with hot caches, with and without `evict_last`; and with such lines made normal before each
sample. The cache is emptied if the policy makes no cold read faster.
"""

from __future__ import annotations

import statistics

import torch
import triton
import triton.language as tl
from rich.console import Console
from rich.table import Table

from benchmarks.usage import arguments
from harness.worker.kit.stopwatch import Stopwatch, host_ms

ELEMENTS = 4 << 20
BLOCK = 2048
SAMPLES = 101


@triton.jit
def read(x, sums, policy: tl.constexpr, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """Add up a block."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(sums + tl.program_id(0), tl.sum(tl.load(x + at, eviction_policy=policy), axis=0))


def main() -> None:
    """Print the medians."""
    x = torch.randn(ELEMENTS, device="cuda")
    sums = torch.empty(ELEMENTS // BLOCK, device="cuda")
    watch = Stopwatch(2 * torch.cuda.get_device_properties(0).L2_cache_size)
    table = Table("eviction policy", "cold, us", "hot, us")
    for policy, releases in (("", False), ("evict_last", False), ("evict_last", True)):
        watch.releases_lines = releases

        def call(_number: int, policy: str = policy) -> None:
            read[(ELEMENTS // BLOCK,)](x, sums, policy, BLOCK)

        call(0)
        watch.leads_by(host_ms(call))
        medians_ms = [statistics.median(watch.sample(call, SAMPLES, cold=cold)) for cold in (True, False)]
        table.add_row(
            f"{policy or 'none'}{', released' if releases else ''}",
            *(f"{median_ms * 1e3:.2f}" for median_ms in medians_ms),
        )
    Console().print(table)


if __name__ == "__main__":
    arguments(__doc__)
    main()
