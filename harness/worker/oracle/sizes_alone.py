"""Inputs at sizes that nobody allocates: a task's `make_inputs` runs on tensors without memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors


def without_memory(make: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    """What `make` gives, its tensors with shapes, strides and dtypes alone; raises what it raises."""
    try:
        with _OnMeta():
            return make()
    except Exception:  # noqa: BLE001 -- code of the task may raise anything
        # It keeps the values of constants, which code may ask for, but importing what it needs takes a second.
        with FakeTensorMode():
            return make()


_KEEPING = ("abs_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_", "clamp_", "round_")
"""Methods that change values alone. On `meta` torch has them, as `rand` and `randn`, in Python, for which it imports its compiler."""


class _OnMeta(TorchFunctionMode):
    """Factory functions make tensors on `meta`."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func in _device_constructors():
            kwargs["device"] = "meta"
            kwargs.pop("generator", None)
        if func in (torch.rand, torch.randn):
            return torch.empty(*args, **kwargs)
        if getattr(func, "__name__", "") in _KEEPING:
            return args[0]
        return func(*args, **kwargs)
