"""Times kernels of known lengths by one clock, and prints microseconds as JSON: the arguments are HOW and numbers.

| HOW | numbers | work |
| --- | --- | --- |
| events | microseconds | kernels that spin so long, between two events; also prints their cycles |
| graph | nodes, cycles | the same kernels in a graph of so many nodes, and a counter that each replay must raise by the nodes |
| profiled | cycles | only launches the kernels: a profiler times them |
| process | | one kernel that adds two tensors, between two events |
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Iterable

import torch

from .call_graph import CallGraph
from .stopwatch import Stopwatch, host_ms

SAMPLES = 21
REPLAYS = 100
ADDED = 1 << 24
"""Elements of each added tensor: together they exceed the caches of most GPUs."""


def main(how: str, numbers: list[int]) -> dict[str, list[float]]:
    """Run one trial of a clock and return its figures, in lists by name: times in microseconds, cycles, lost replays.

    `how` names the clock: `events`, `graph`, `profiled` or, for anything else, an addition between events. `numbers` depend on
    it.
    """
    watch = Stopwatch(1)
    if how == "events":
        cycles = [round(us * watch._cycles_per_ms / 1e3) for us in numbers]
        return {"cycles": list(cycles), "us": [_median(watch, _spin(count)) for count in cycles]}
    if how == "graph":
        nodes, *lengths = numbers
        return {"us": list(_graph_times(watch, nodes, lengths)), "lost": [_lost_replays(nodes)]}
    if how == "profiled":
        for count in numbers:
            for _ in range(SAMPLES):
                _spin(count)(0)
        torch.cuda.synchronize()
        return {}
    left, right = torch.rand(2, ADDED, device="cuda")
    total = torch.empty_like(left)
    return {"us": [_median(watch, lambda _: torch.add(left, right, out=total))]}


def _spin(cycles: int) -> Callable[[int], object]:
    return lambda _: torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call]


def _median(watch: Stopwatch, call: Callable[[int], object]) -> float:
    watch.leads_by(host_ms(call))
    return statistics.median(watch.sample(call, SAMPLES, cold=False)) * 1e3


def _graph_times(watch: Stopwatch, nodes: int, lengths: Iterable[int]) -> Iterable[float]:
    for cycles in lengths:
        samples_ms = CallGraph(_spin(cycles), nodes).sample(watch, SAMPLES, lambda: None)
        yield statistics.median(samples_ms) * 1e3


def _lost_replays(nodes: int) -> float:
    """Replays of a graph of `nodes` additions that did not add so much."""
    counter = torch.zeros((), dtype=torch.int64, device="cuda")
    graph = CallGraph(lambda _: counter.add_(1), nodes)
    lost = 0
    for _ in range(REPLAYS):
        before = int(counter)
        graph.replay()
        lost += int(counter) - before != nodes
    return float(lost)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1], [int(text) for text in sys.argv[2:]])))
