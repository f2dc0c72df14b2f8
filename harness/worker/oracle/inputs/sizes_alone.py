"""Runs a task's `make_inputs` on tensors without memory, to learn shapes at sizes too large to allocate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors


def without_memory(make: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    """Call `make`; its tensors have shapes, strides and dtypes, but no memory. Raises what `make` raises."""
    try:
        with _OnMeta():
            return make()
    except Exception:  # noqa: BLE001 -- code of the task may raise anything
        # Fake tensors keep the values of constants, which code may read; importing them takes a second.
        with FakeTensorMode():
            return make()


_KEEPING = ("abs_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_", "clamp_", "round_")
"""Methods that change only values. On `meta`, torch runs them (and `rand`, `randn`) in Python and imports its compiler for it."""


class _OnMeta(TorchFunctionMode):
    """Makes factory functions create tensors on `meta`."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run a function of torch with its tensors on `meta`, which has no memory. Functions that draw only make the shape."""
        kwargs = dict(kwargs or {})
        if func in _device_constructors():
            kwargs["device"] = "meta"
            kwargs.pop("generator", None)
        if func in (torch.rand, torch.randn):
            return torch.empty(*args, **kwargs)
        if getattr(func, "__name__", "") in _KEEPING:
            return args[0]
        return func(*args, **kwargs)
