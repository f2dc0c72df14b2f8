"""Times the configs of an autotuned kernel before its calls are timed, in the place of the benchmark of Triton's autotuner.

Triton's own runs each config for 125 ms between events, which cannot separate the configs of short kernels: the choice, and
with it the measured speed of the same source, then changes from process to process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch
from triton.testing import do_bench

from harness.wire.messages.timer import MOST_LAUNCHES
from harness.worker.kit.call_graph import CallGraph, NotCaptured

LOOK_MS = 2
"""How long each config runs first."""
TUNED_MS = 15
"""How long a config runs again, twice, if it may be the fastest."""
HOPELESS = 1.25
"""A config that takes so many times longer than the fastest so far is not run again."""
SHORT_HOPELESS = 4.0
"""The same for short kernels. Their times between events are mostly the time of the events."""
SHORT_MS = 0.03
"""Below this time between events, the time in a graph decides."""
GRAPH_CALLS = 64
REPLAYS = 5
_EVENT: Any = torch.cuda.Event


class ConfigRace:
    """The configs of one launch after another. AMD's graphs can end a process (helion 3471), so none are used there."""

    def __init__(self) -> None:
        self.nodes = MOST_LAUNCHES
        """Calls in one graph at most; 0: no graph is trusted."""
        self._fastest_ms = math.inf
        self._captures = self._in_graphs = False

    def run(self, launch: Callable[[], Any]) -> Any:
        """Return what `launch` returns, which may call `time` for each config.

        If a config is not captured, the launch is made again and all configs are timed between events: times in graphs and
        between events cannot be compared.
        """
        for captures in dict.fromkeys((self.nodes > 0 and not torch.version.hip, False)):
            self._captures, self._in_graphs, self._fastest_ms = captures, False, math.inf
            with suppress(NotCaptured):
                return launch()
        raise AssertionError("without graphs, every config is timed")

    def time(self, call: Callable[[], Any], quantiles: Sequence[float]) -> list[float]:
        """Return these quantiles of a config's time in milliseconds, as Triton's benchmark does.

        A short look comes first. Only a config that may be the fastest so far is timed precisely; a slower one keeps its rough
        times. From the first short config on, times in graphs decide: earlier configs took longer than it between events, so
        none of them is chosen. Times in a graph are the same number for each quantile. Raises what `call` raises, and
        `NotCaptured`.
        """
        looked_ms: list[float] = do_bench(call, warmup=LOOK_MS, rep=LOOK_MS, quantiles=quantiles)
        self._in_graphs |= self._captures and looked_ms[0] < SHORT_MS
        hopeless = SHORT_HOPELESS if self._in_graphs else HOPELESS
        if looked_ms[0] > hopeless * self._fastest_ms:
            return looked_ms
        self._fastest_ms = min(self._fastest_ms, looked_ms[0])
        if not self._in_graphs:
            return do_bench(call, warmup=TUNED_MS, rep=TUNED_MS, quantiles=quantiles)  # type: ignore[no-any-return]
        return [_time_in_graph(call, self.nodes)] * len(quantiles)


def _time_in_graph(call: Callable[[], Any], nodes: int) -> float:
    """Return the least time of a call in milliseconds, of several replays of many calls. Raises `NotCaptured`."""
    graph = CallGraph(lambda _: call(), GRAPH_CALLS, nodes)
    events = [(_EVENT(enable_timing=True), _EVENT(enable_timing=True)) for _ in range(REPLAYS)]
    for start, end in events:
        start.record()
        graph.replay()
        end.record()
    torch.cuda.synchronize()
    return min(float(start.elapsed_time(end)) for start, end in events) / GRAPH_CALLS
