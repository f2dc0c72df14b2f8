"""The results of a recorded call: inputs that it changed, tensors that it returned, and the oracle's answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from harness.wire.calls.tensors import TensorSpec
from harness.wire.messages.script import NUMBER, RecordedOutput
from harness.worker.kit import arena
from harness.worker.recording.expressions import data_of, parts_of, plain_name, tensor_problem, tensors_of

from .host_operators import HostOperators

AGREEMENT = {torch.float64: 5e-7, torch.float32: 5e-4, torch.float16: 2.5e-3, torch.bfloat16: 5e-3}
"""Relative difference between an oracle and the reference, by the result's dtype: half of the tolerance of the judge, so that
the reference itself is correct. A reference that rounds more, as inside a product of half precision, is its own oracle."""
EIGHT_BITS = 0.03
"""The same for other floats."""
MOST_WORDS = 16
"""Items of a returned tuple or dictionary that are put in words."""


def outputs_of(
    tensors: dict[str, torch.Tensor], before: dict[str, TensorSpec], value: Any, host: HostOperators
) -> tuple[list[RecordedOutput], list[str]]:
    """Return the outputs of a call, and what is not judged, in words.

    Outputs are the inputs that changed, and the tensors of the result that have memory of their own.
    """
    outputs = [
        RecordedOutput(name, name, after)
        for name, tensor in tensors.items()
        if (after := data_of(tensor)).data != before[name].data
    ]
    extents = [arena.extent(tensor) for tensor in tensors.values()]
    unjudged = []
    parts = list(parts_of(value))
    for place, (path, part) in enumerate(parts):
        if part is None:
            continue
        problem = tensor_problem(part) if isinstance(part, torch.Tensor) else f"is a {type(part).__name__}"
        if problem:
            unjudged.append(f"`{path}` {problem}")
            continue
        extent = arena.extent(part)
        if part.numel() and any(extent.meets(earlier) for earlier in extents):
            continue  # an input, or a tensor that is judged already
        if part.numel() and not host.has_work(part):
            unjudged.append(f"`{path}` is written by no kernel")
            continue
        extents.append(extent)
        host.note_output(part)
        name = plain_name("out" if len(parts) == 1 else f"out_{place}")
        while name in tensors:
            name += "_"
        outputs.append(RecordedOutput(name, path, data_of(part.contiguous())))
    return outputs, unjudged


def returned_words(value: Any, arguments: Mapping[str, torch.Tensor]) -> str:
    """Return a result in words: `float32[4, 8]`, `None`, `a tuple of 1: float32[4]`. An argument is its name.

    A `NUMBER` follows the type of each number.
    """
    match value:
        case torch.Tensor():
            for name, tensor in arguments.items():
                if value is tensor:
                    return f"`{name}` itself"
                if (
                    value.numel()
                    and tensor_problem(value) == ""
                    and arena.extent(value).meets(arena.extent(tensor))
                ):
                    return f"a view of `{name}`"
            return f"{arena.dtype_name(value.dtype)}{list(value.shape)}"
        case tuple() | list():
            kind = "tuple" if isinstance(value, tuple) else "list"
            parts = [returned_words(part, arguments) for part in value[:MOST_WORDS]]
            parts += ["..."] * (len(value) > MOST_WORDS)
            return f"a {kind} of {len(value)}: {', '.join(parts)}" if parts else f"an empty {kind}"
        case dict():
            items = list(value.items())[:MOST_WORDS]
            parts = [f"{key!r}: {returned_words(part, arguments)}" for key, part in items]
            parts += ["..."] * (len(value) > MOST_WORDS)
            return f"a dict: {{{', '.join(parts)}}}"
        case int() | float():
            return f"{type(value).__name__}{NUMBER}"
        case _:
            return "None" if value is None else type(value).__name__


def returned_numbers(value: Any) -> Iterator[int | float]:
    """Yield the numbers of a result in the order in which `returned_words` has them."""
    if isinstance(value, (int, float)):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        parts = value.values() if isinstance(value, dict) else value
        for part in list(parts)[:MOST_WORDS]:
            yield from returned_numbers(part)


def truths_of(
    outputs: list[RecordedOutput], value: Any, truth: list[Any] | None
) -> tuple[TensorSpec | None, ...]:
    """Return the oracle's tensors for the outputs; empty if it does not have one for each, close to the reference's."""
    tensors = [part for part in truth or () if isinstance(part, torch.Tensor)]
    computed = [part for _, part in tensors_of(value)]
    if not len(tensors) == len(computed) == len(outputs) or any(output.is_input for output in outputs):
        return ()
    tensors = [part.to(result.device) for part, result in zip(tensors, computed, strict=True)]
    if not all(map(_agree, tensors, computed)):
        return ()
    return tuple(data_of(part.contiguous()) for part in tensors)


def _agree(truth: torch.Tensor, computed: torch.Tensor) -> bool:
    """True if both have one shape and differ by the rounding of the result only."""
    if truth.shape != computed.shape:
        return False
    expected, got = truth.detach().double(), computed.detach().double()
    if not computed.is_floating_point():
        return torch.equal(expected, got)
    finite = expected[expected.isfinite()]
    scale = float(finite.abs().mean()) if finite.numel() else 0.0
    relative = AGREEMENT.get(computed.dtype, EIGHT_BITS)
    return bool(torch.isclose(got, expected, rtol=relative, atol=relative * scale, equal_nan=True).all())
