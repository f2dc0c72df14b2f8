"""Gradients of a recorded call, for scripts that call `backward`: computed from drawn gradients of the outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from harness.wire.calls.tensors import TensorSpec
from harness.wire.messages.script import GRADIENTS, RecordedOutput
from harness.worker.recording.expressions import data_of, tensors_of
from harness.worker.recording.seeding import set_seed


@dataclass(slots=True)
class Gradients:
    """The gradients of one call; empty if there are none."""

    wanted: tuple[str, ...] = ()
    """Inputs that want gradients."""
    drawn: tuple[tuple[str, str], ...] = ()
    """Expression of each differentiable output, and the name of its drawn gradient."""
    inputs: dict[str, TensorSpec] = field(default_factory=dict)
    """The drawn gradients."""
    outputs: list[RecordedOutput] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Why there are none, in words."""


def with_gradients(
    function: Callable[..., Any],
    args: Sequence[Any],
    named: Mapping[str, Any],
    tensors: Mapping[str, torch.Tensor],
    seed: int,
) -> Gradients:
    """Make the call on copies of its tensors and differentiate its results; return the gradients with their random inputs.

    Empty if nothing is differentiable or the call raises; a backward pass that raises becomes a problem. The script's tensors
    stay unchanged, but torch's generators do not.
    """
    copies = {
        id(tensor): tensor.detach().clone().requires_grad_(tensor.requires_grad)
        for tensor in tensors.values()
    }
    leaves = {name: copies[id(tensor)] for name, tensor in tensors.items() if tensor.requires_grad}
    if not leaves:
        return Gradients()

    def copied(value: Any) -> Any:
        return copies.get(id(value), value)

    set_seed(seed)
    try:
        with torch.enable_grad():
            value = function(*map(copied, args), **{name: copied(value) for name, value in named.items()})
    except Exception:  # noqa: BLE001 -- the call itself raises it again
        return Gradients()
    outputs = {path: part for path, part in tensors_of(value) if part.requires_grad}
    if not outputs:
        return Gradients()
    with _disable_current_modes():  # this operator is not the script's
        drawn = {path: torch.randn_like(part) for path, part in outputs.items()}
    names = {path: f"grad_{place}" for place, path in enumerate(drawn)}
    # Before the backward pass, which may write to them.
    inputs = {names[path]: data_of(gradient) for path, gradient in drawn.items()}
    try:
        gradients: tuple[torch.Tensor | None, ...] = torch.autograd.grad(
            list(outputs.values()), list(leaves.values()), list(drawn.values()), allow_unused=True
        )
    except Exception as error:  # noqa: BLE001 -- the reference's own backward may raise anything
        return Gradients(problems=[f"its gradients: {type(error).__name__}"])
    computed = [
        RecordedOutput(f"{name}_grad", f"{GRADIENTS}[{place}]", data_of(gradient.contiguous()))
        for place, (name, gradient) in enumerate(zip(leaves, gradients, strict=True))
        if gradient is not None
    ]
    if not computed:
        return Gradients()
    return Gradients(
        wanted=tuple(leaves),
        drawn=tuple((path, names[path]) for path in drawn),
        inputs=inputs,
        outputs=computed,
    )
