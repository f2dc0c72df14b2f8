"""The ladder of clocks: how calls are timed, best clock first. Torch-free.

The clock steps down if a player ends, hangs, cannot capture a graph, or reports times that no call has. The table of
`docs/timing.md#the-ladder-of-clocks` says what each clock counts and leaves out.
"""

from __future__ import annotations

from harness.wire.messages.timer import MOST_LAUNCHES, Rung
from harness.wire.results.latency import Method

SMALLER = 8
"""The second graph has so many times fewer nodes than the first."""
WORDS = {
    Method.GRAPH: "in graphs",
    Method.BATCH: "back to back between two events, where host time may count",
    Method.PROFILER: "by the profiler, which leaves out the time between launches",
    Method.EVENTS: "between events",
}
"""Every method in the order of the ladder, in the words of a note."""
UNTRUSTED = "`wavedeck doctor --verify-gpu` found no graph with times to trust on this GPU"

NO_GRAPH_OF_A_SOURCE = (
    "a call has no launch tape, and graphs in a process with a source are not trusted on AMD"
)


EVENTS = Rung(Method.EVENTS)


def list_rungs(trusted_nodes: int | None, *, taped: bool) -> tuple[Rung, ...]:
    """Return the clocks to try, best first; events come last.

    `trusted_nodes` is the size of a graph that worked on the device, 0 if none did, `None` if that was not measured. Calls of a
    source (`taped` False) are timed in graphs or between events: their own process runs the host code and reports the times.
    """
    nodes = MOST_LAUNCHES if trusted_nodes is None else min(trusted_nodes, MOST_LAUNCHES)
    sizes = dict.fromkeys((nodes, nodes // SMALLER)) if taped else (nodes,)
    graphs = tuple(Rung(Method.GRAPH, size) for size in sizes if size)
    return (*graphs, Rung(Method.BATCH), Rung(Method.PROFILER), EVENTS) if taped else (*graphs, EVENTS)
