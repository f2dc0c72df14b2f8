"""Many calls in graphs, timed together: free of the microseconds that events add to a single call.

On AMD this is a hipGraph, which torch offers by the same names; not verified on AMD hardware.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch.cuda import _POOL_HANDLE

from harness.wire.messages.timer import MOST_LAUNCHES

from .stopwatch import Stopwatch, host_ms

WARM_REPLAYS = 2
"""The first replays of a graph are slow."""


class NotCaptured(Exception):
    """The calls cannot be captured; the message says why, in one line."""


class CallGraph:
    """The calls 0, 1, ... `launches - 1`, captured in graphs of at most `nodes` calls. Raises `NotCaptured`."""

    def __init__(self, call: Callable[[int], Any], launches: int, nodes: int = MOST_LAUNCHES) -> None:
        self.launches = launches
        self.outputs: list[Any] = []
        self._graphs: list[torch.cuda.CUDAGraph] = []
        # The graphs share memory, because they run one after the other in the order of their capture.
        pool = torch.cuda.graph_pool_handle()
        for start in range(0, launches, nodes):
            self._capture(call, range(start, min(start + nodes, launches)), pool)
        for _ in range(WARM_REPLAYS):
            self.replay()
        torch.cuda.synchronize()
        self._host_ms = host_ms(self.replay, WARM_REPLAYS)

    def replay(self, number: int = 0) -> None:
        """Run all calls once more on their inputs, into the same outputs."""
        del number
        for graph in self._graphs:
            graph.replay()

    def sample(self, watch: Stopwatch, count: int, ready: Callable[[], object]) -> tuple[float, ...]:
        """Milliseconds of one call, the mean over each of `count` replays. `ready` runs before each replay.

        The device is idle between two replays: HIP graphs that are launched again while they run can fail (helion 3628).
        """
        watch.leads_by(self._host_ms)
        return tuple(
            watch.sample(self.replay, 1, cold=False, ready=ready)[0] / self.launches for _ in range(count)
        )

    def _capture(self, call: Callable[[int], Any], numbers: range, pool: _POOL_HANDLE) -> None:
        """Capture the calls of these numbers as one graph, without running them, and add their outputs.

        Raises `NotCaptured` with the first error, which may be the candidate's or torch's.
        """
        graph = torch.cuda.CUDAGraph()
        first: Exception | None = None
        try:
            with _captured(graph, pool):
                try:
                    self.outputs += [call(number) for number in numbers]
                except Exception as error:
                    first = error  # the end of the capture fails then too, with an error that says less
                    raise
        except Exception as error:  # noqa: BLE001 -- foreign code may raise anything
            torch.cuda.synchronize()
            cause = first or error
            raise NotCaptured(str(cause).partition("\n")[0] or type(cause).__name__) from cause
        self._graphs.append(graph)


@contextmanager
def _captured(graph: torch.cuda.CUDAGraph, pool: _POOL_HANDLE) -> Iterator[None]:
    """Like `torch.cuda.graph` without its garbage collection and emptying of torch's cache, which take tens of milliseconds."""
    torch.cuda.synchronize()
    collects = gc.isenabled()
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
                _end_failed_capture(pool)
                raise
    finally:
        if collects:
            gc.enable()


def _end_failed_capture(pool: _POOL_HANDLE) -> None:
    """End what a failed capture leaves open: `torch.cuda.empty_cache` and the next random number would raise.

    Source: `CUDAGraph::capture_end` of torch 2.11, which ends neither the pool nor the generator's capture if the stream's
    capture fails. A copy of the generator's state captures nothing. Newer versions end the pool themselves, and then that raises.
    """
    device = torch.cuda.current_device()
    with suppress(RuntimeError):
        torch._C._cuda_endAllocateToPool(device, pool)
    generator = torch.cuda.default_generators[device]
    generator.graphsafe_set_state(generator.clone_state())
