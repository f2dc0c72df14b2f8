"""Many calls timed together by a clock of the ladder (`messages/timer.py`): in graphs, in a batch, or by the profiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from harness.wire.messages.timer import LEAD, MOST_LEAD_MS
from harness.wire.results.latency import TimingMethod

from .call_graph import CallGraph, NotCaptured
from .stopwatch import Stopwatch, host_ms

MOST_QUEUED_MS = MOST_LEAD_MS / LEAD
"""Host time of a part of a batch at most: then all of its launches wait in the queue before the first one runs."""


class CallBatch:
    """The calls 0, 1, ... `launches - 1` back to back. Raises `NotCaptured` if they do not fit into the device's memory."""

    def __init__(self, call: Callable[[int], Any], launches: int) -> None:
        self.launches = launches
        self.outputs: list[Any] = [None] * launches
        """The output of each call in the last replay."""
        self._call = call
        try:
            self.replay()
            self._host_ms = host_ms(lambda _: self._run_all(range(1)))
        except torch.OutOfMemoryError as error:
            raise NotCaptured(str(error).partition("\n")[0]) from error

    def replay(self) -> None:
        """Run all calls once more."""
        self._run_all(range(self.launches))

    def sample(self, watch: Stopwatch, count: int, ready: Callable[[], object]) -> tuple[float, ...]:
        """Milliseconds of one call, the mean over each of `count` replays. `ready` runs before each replay.

        A batch is timed in parts, between two events each: the host is ahead of the device in each part.
        """
        return tuple(self._sample_batch(watch, ready) / self.launches for _ in range(count))

    def _sample_batch(self, watch: Stopwatch, ready: Callable[[], object]) -> float:
        """Time all calls once, part by part; return the milliseconds of all parts together. `ready` runs before the first part.

        A part is so small that the host has queued all of its launches before the device begins.
        """
        ready()
        spent_ms = 0.0
        size = max(1, int(MOST_QUEUED_MS / max(self._host_ms, 1e-4)))
        for start in range(0, self.launches, size):
            part = range(start, min(start + size, self.launches))
            watch.leads_by(self._host_ms * len(part))
            spent_ms += watch.sample(lambda _: self._run_all(part), 1, cold=False)[0]  # noqa: B023 -- called at once
        return spent_ms

    def _run_all(self, numbers: range) -> None:
        for number in numbers:
            self.outputs[number] = self._call(number)


class CallProfile(CallBatch):
    """Calls back to back, timed by the timestamps that the profiler takes of their kernels."""

    def _sample_batch(self, watch: Stopwatch, ready: Callable[[], object]) -> float:
        """Replay all calls once under the profiler; return the milliseconds of their kernels and copies, without gaps."""
        ready()
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as profiled:
            self.replay()
            torch.cuda.synchronize()
        durations_us = (
            event.time_range.elapsed_us()
            for event in profiled.events()
            if event.device_type.name == "CUDA"  # on AMD too
        )
        return float(sum(durations_us)) / 1e3


CallSeries = CallGraph | CallBatch


def make_series(method: TimingMethod, call: Callable[[int], Any], launches: int, nodes: int) -> CallSeries:
    """Return a series of calls that this method times. Raises `NotCaptured`."""
    if method is TimingMethod.GRAPH:
        return CallGraph(call, launches, nodes)
    return (CallProfile if method is TimingMethod.PROFILER else CallBatch)(call, launches)
