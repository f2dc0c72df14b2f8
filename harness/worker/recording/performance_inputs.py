"""Calls the entry points with inputs for timing: a benchmark's own, at the largest size within a bound, or a text's."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import torch

from .expressions import tensors_of

MOST_BYTES = 64 << 20
"""Bound for the input tensors of the call."""


def call_with_largest(text: str, stand_in: ModuleType, device: torch.device) -> None:
    """Execute a module with a class `performance_metrics`, and make its call with the largest inputs within the bound.

    A text without this class makes its call itself, with names of `stand_in`; only a module of `model_scripts` does.
    Inputs are made on `device`: in the host's memory, as the module makes them, all sizes take seconds. `stand_in` replaces
    every module that the text imports and that is not installed: the reference, and the module of the base class.
    """
    vars(stand_in).setdefault("Performance_Metrics", _Metrics)
    vars(stand_in).setdefault("do_bench_config", _Metrics)
    namespace = vars(stand_in) | {"__name__": "performance", "__file__": "performance.py"}
    finder = _StandInFinder(stand_in)
    sys.meta_path.append(finder)
    try:
        exec(compile(text, "performance.py", "exec"), namespace)  # noqa: S102 -- the benchmark's own text
        if "performance_metrics" not in namespace:
            return
        metrics = namespace["performance_metrics"]()
        with device, suppress(_LargeEnough):
            metrics.get_input_tensors()
        if metrics.input_tensors:
            metrics.call_op(metrics.to_cuda(metrics.input_tensors[-1]))
    finally:
        sys.meta_path.remove(finder)
        for name in finder.names:  # because the next run has a stand-in of its own
            sys.modules.pop(name, None)


class _LargeEnough(Exception):
    """The next inputs are above the bound."""


class _Inputs(list[Any]):
    """Keeps only the inputs that came last: all sizes together do not fit into memory."""

    def append(self, inputs: Any) -> None:
        if _size_bytes(inputs) > MOST_BYTES:
            raise _LargeEnough
        self[:] = [inputs]


class _Metrics:
    """Base class of `performance_metrics`: holds inputs, and times nothing."""

    def __init__(self, *_: Any, dtype: Any = None, **__: Any) -> None:
        self.dtype = dtype
        self._inputs = _Inputs()

    @property
    def input_tensors(self) -> list[Any]:
        return self._inputs

    @input_tensors.setter
    def input_tensors(self, inputs: Iterable[Any]) -> None:
        self._inputs = _Inputs()
        for item in inputs:
            self._inputs.append(item)


class _StandInFinder(Loader):
    """Imports each module that is not installed as a package with the members of the stand-in."""

    def __init__(self, stand_in: ModuleType) -> None:
        self._stand_in = stand_in
        self.names: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        self.names.add(name)
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> ModuleType:
        module = ModuleType(spec.name)
        vars(module).update(
            {name: value for name, value in vars(self._stand_in).items() if not name.startswith("__")}
        )
        return module

    def exec_module(self, module: ModuleType) -> None:
        """The module is complete already."""


def _size_bytes(inputs: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for _, tensor in tensors_of(inputs))
