"""Many calls in one graph, timed together: free of the microseconds that events add to a single call.

On AMD this is a hipGraph, which torch offers by the same names; not verified on AMD hardware.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch

from .stopwatch import Stopwatch, host_ms

WARM_REPLAYS = 2
"""The first replays of a graph are slow."""


class NotCaptured(Exception):
    """The calls cannot be captured; the message says why, in one line."""


class CallGraph:
    """A captured graph of the calls 0, 1, ... `launches - 1`, with the output of each. Raises `NotCaptured`."""

    def __init__(self, call: Callable[[int], Any], launches: int) -> None:
        self.launches = launches
        self._graph = torch.cuda.CUDAGraph()
        first: Exception | None = None
        try:
            with _captured(self._graph):
                try:
                    self.outputs = [call(number) for number in range(launches)]
                except Exception as error:
                    first = error  # the end of the capture fails then too, with an error that says less
                    raise
        except Exception as error:  # noqa: BLE001 -- foreign code may raise anything
            torch.cuda.synchronize()
            cause = first or error
            raise NotCaptured(str(cause).partition("\n")[0] or type(cause).__name__) from cause
        for _ in range(WARM_REPLAYS):
            self.replay()
        torch.cuda.synchronize()
        self._host_ms = host_ms(self.replay, WARM_REPLAYS)

    def replay(self, number: int = 0) -> None:
        """Run all calls once more on their inputs, into the same outputs."""
        del number
        self._graph.replay()

    def sample(self, watch: Stopwatch, count: int, ready: Callable[[], object]) -> tuple[float, ...]:
        """Milliseconds of one call, the mean over each of `count` replays. `ready` runs before each replay."""
        watch.leads_by(self._host_ms)
        replays_ms = watch.sample(self.replay, count, cold=False, ready=ready)
        return tuple(replay_ms / self.launches for replay_ms in replays_ms)


@contextmanager
def _captured(graph: torch.cuda.CUDAGraph) -> Iterator[None]:
    """Like `torch.cuda.graph` without its garbage collection and emptying of torch's cache, which take tens of milliseconds."""
    torch.cuda.synchronize()
    collects = gc.isenabled()
    pool = torch.cuda.graph_pool_handle()
    gc.disable()  # freeing a tensor during the capture would end it
    try:
        with torch.cuda.stream(torch.cuda.Stream()):  # type: ignore[no-untyped-call]
            try:
                graph.capture_begin(pool=pool)
                try:
                    yield
                finally:
                    graph.capture_end()
            except BaseException:
                _end_allocation(pool)
                raise
    finally:
        if collects:
            gc.enable()


def _end_allocation(pool: tuple[int, int]) -> None:
    """End what a failed capture leaves open in torch's allocator: the next `torch.cuda.empty_cache` would fail.

    Source: `CUDAGraph::capture_end` of torch 2.11; newer versions end it themselves, and then the call raises.
    """
    with suppress(RuntimeError):
        torch._C._cuda_endAllocateToPool(torch.cuda.current_device(), pool)
