"""Makes calls of a source as a server makes them: without waits, in a graph, and again on equal inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from harness.wire.results.served_calls import REPEATS, ServedCall
from harness.worker.candidate import outputs
from harness.worker.kit.call_graph import CallGraph, NotCaptured
from harness.worker.kit.stopwatch import Stopwatch

OTHER_BITS = "the graph, replayed on new values, gives different bits than a call"


def try_serving(
    call: Callable[[], Any],
    memory: torch.Tensor,
    other_values: torch.Tensor,
    watch: Stopwatch,
    *,
    host_ms: float,
) -> ServedCall:
    """Return what calls on the inputs in `memory`, which is overwritten, show. `other_values`: bytes of other such inputs."""
    waits = watch.host_waits(call, host_ms)

    def bits(values: torch.Tensor) -> list[torch.Tensor]:
        memory.copy_(values)
        return _bits(call())

    same: bool | None
    try:
        values = memory.clone()
        first = bits(values)
        same = all(_are_equal(first, bits(values)) for _ in range(REPEATS - 1))
    except torch.OutOfMemoryError:
        same = None
    return ServedCall(
        case="",
        host_us=host_ms * 1e3,
        no_graph=_why_no_graph(call, memory, other_values, bits if same else None),
        host_waits=waits,
        same_bits=same,
    )


def _why_no_graph(
    call: Callable[[], Any],
    memory: torch.Tensor,
    values: torch.Tensor,
    bits: Callable[[torch.Tensor], list[torch.Tensor]] | None,
) -> str | None:
    """Return why no graph holds the call; empty if one does, `None` if memory is too small to know, and on AMD.

    AMD's graphs can end a process or give wrong bits (helion 3471, clr 279), which would count against the candidate here.
    Without `bits`, a replay is not compared with a call.
    """
    if torch.version.hip:
        return None
    try:
        graph = CallGraph(lambda _: call(), 1)
        if bits is None:
            return ""
        memory.copy_(values)
        graph.replay()
        replayed = _bits(graph.outputs[0])
        return "" if _are_equal(replayed, bits(values)) else OTHER_BITS
    except NotCaptured as why:
        return None if isinstance(why.__cause__, torch.OutOfMemoryError) else str(why)
    except torch.OutOfMemoryError:
        return None


def _bits(value: Any) -> list[torch.Tensor]:
    """Return copies of the bytes of a call's outputs."""
    tensors = outputs.plain(outputs.parts_of(value)[1])
    return [tensor.detach().contiguous().flatten().view(torch.uint8).clone() for tensor in tensors]


def _are_equal(first: list[torch.Tensor], second: list[torch.Tensor]) -> bool:
    return len(first) == len(second) and all(map(torch.equal, first, second))
