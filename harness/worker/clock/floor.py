"""Measures what a device resolves and reaches: an empty kernel, copies with cold and hot caches, a large matrix product."""

from __future__ import annotations

import functools
import math
import statistics
from contextlib import suppress

import msgspec
import torch

from harness.wire.messages.clock import Floor
from harness.wire.messages.timer import MOST_LAUNCHES
from harness.worker.kit.call_graph import CallGraph, NotCaptured
from harness.worker.kit.call_series import CallBatch
from harness.worker.kit.stopwatch import Stopwatch, host_ms, launch_empty

SAMPLES = 41
REPLAYS = 9
PRODUCTS = 5
SHARES = (0.25, 1.0, 4.0)
"""Sizes of the copies as shares of the flushed bytes. Without flush, the first stays in the caches, the last does not."""
_EDGES = {"float16": 8192, "bfloat16": 8192, "float32": 4096}
"""Rows and columns of the multiplied matrices, by dtype."""


def measure(flush_bytes: int, matmul_dtype: str, nodes: int) -> Floor:
    """Measure the GPU that this process sees, once until `forget`. Takes tens of milliseconds; a first product some hundred.

    `nodes` is the size of a graph that is safe in the judge's own process; 0: none is.
    """
    floor = _measure_clock(flush_bytes, nodes)
    rate = _measure_matmul(matmul_dtype) if matmul_dtype in _EDGES else None
    return msgspec.structs.replace(floor, matmul_flops_per_s=rate)


def forget() -> None:
    """Forget what was measured, so that the next call of `measure` measures again."""
    _measure_clock.cache_clear()
    _measure_matmul.cache_clear()


@functools.cache
def _measure_clock(flush_bytes: int, nodes: int) -> Floor:
    watch = Stopwatch(flush_bytes)
    watch.leads_by(host_ms(launch_empty))
    empty_ms = statistics.median(watch.sample(launch_empty, SAMPLES, cold=True))
    copies = []
    for share in SHARES:
        source = torch.zeros(int(flush_bytes * share) // 8 * 4, dtype=torch.uint8, device="cuda")
        target = torch.empty_like(source)
        seconds = [
            statistics.median(watch.sample(lambda _: target.copy_(source), SAMPLES, cold=cold)) / 1e3  # noqa: B023
            for cold in (True, False)
        ]
        moved = 2 * source.numel()
        copies.append((moved, moved / seconds[0], moved / seconds[1]))
    graph_ms = None
    if nodes:
        with suppress(NotCaptured):
            graph = CallGraph(launch_empty, MOST_LAUNCHES, nodes)
            graph_ms = statistics.median(graph.sample(watch, REPLAYS, _do_nothing))
    batch_ms = statistics.median(CallBatch(launch_empty, MOST_LAUNCHES).sample(watch, REPLAYS, _do_nothing))
    del watch
    torch.cuda.empty_cache()
    return Floor(empty_ms=empty_ms, copies=tuple(copies), graph_ms=graph_ms, batch_ms=batch_ms)


@functools.cache
def _measure_matmul(dtype: str) -> float | None:
    """FLOP/s of a product of square matrices; with TF32 for float32, as Triton's `tl.dot` has it."""
    edge = _EDGES[dtype]
    tf32 = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        left = torch.randn(edge, edge, device="cuda").to(getattr(torch, dtype))
        watch = Stopwatch(1)
        milliseconds = statistics.median(watch.sample(lambda _: left @ left, PRODUCTS, cold=False))
    except torch.OutOfMemoryError:
        return None
    finally:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.cuda.empty_cache()
    return 2.0 * math.pow(edge, 3) / (milliseconds / 1e3)


def _do_nothing() -> None:
    """Nothing changes between replays."""
