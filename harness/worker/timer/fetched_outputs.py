"""Takes parts of the outputs of timed calls, for the clock to compare: pieces from every call, put together as one output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from harness.wire.messages.guest import OutputData, Returned
from harness.wire.messages.timer import Fetch, pieces
from harness.wire.results.evaluation import Traffic
from harness.worker.candidate import outputs
from harness.worker.kit import arena


def returned(request: Fetch, kept: Sequence[Any]) -> Returned:
    """Return the wanted parts of the outputs of the last calls, `kept` in their order."""
    fetched = [len(kept) - 1 - back for back in request.calls]
    split = [outputs.parts_of(kept[call]) for call in fetched]
    structure, parts = split[0]
    other_outputs = [
        tensor
        for number, value in enumerate(kept)
        if number != fetched[0]
        for tensor in outputs.plain(outputs.parts_of(value)[1])
    ]
    by_output = [
        [call_parts[number] for _, call_parts in split if number < len(call_parts)]
        for number in range(len(parts))
    ]
    return Returned(
        structure=structure,
        outputs=tuple(
            _output(of_calls, part, other_outputs)
            for of_calls, part in zip(by_output, request.parts, strict=False)
        ),
        operators=(),
        host_elements=0,
        kernels=(),
        traffic=Traffic(""),
        unsupported="",
        changed_output=False,
    )


def _output(
    of_calls: Sequence[Any], part: tuple[int, int], other_outputs: Sequence[torch.Tensor]
) -> OutputData:
    """A part of an output, in pieces from several calls. The first call's output may share no memory with other outputs."""
    first = of_calls[0]
    odd = next((output for output in of_calls if not _is_like(output, first)), first)
    kind = type(odd)
    name = "torch.Tensor" if kind is torch.Tensor else f"{kind.__module__}.{kind.__qualname__}"
    problem = outputs.problem(odd) if isinstance(odd, torch.Tensor) else ""
    if not isinstance(odd, torch.Tensor) or problem:
        return OutputData(type=name, problem=problem)
    elements = torch.cat(
        [
            output.detach().contiguous().flatten()[start : start + count]
            for output, (start, count) in zip(of_calls, pieces(part, len(of_calls)), strict=True)
        ]
    )
    return OutputData(
        type=name,
        dtype=arena.dtype_name(odd.dtype),
        shape=tuple(odd.shape),
        data=arena.storage_bytes(elements) if elements.numel() else b"",
        aliases="the output of another call"
        if any(outputs.share_memory(first, output) for output in other_outputs)
        else "",
        from_kernel=True,
    )


def _is_like(output: Any, first: Any) -> bool:
    """Whether two calls returned tensors of one dtype and shape."""
    both = isinstance(output, torch.Tensor) and isinstance(first, torch.Tensor)
    return both and (output.dtype, output.shape) == (first.dtype, first.shape)
