"""Watches the operators of a script: poisons memory that host code allocates, notes the operators of a recorded call, and casts.

Casts are those of a reference from wider floats to 16-bit floats, by operators of torch and in its kernels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import torch

from harness.wire.calls import operators
from harness.worker.interpreter.semantics import arithmetic
from harness.worker.kit.operator_mode import OperatorMode
from harness.worker.kit.poison import Poison, poison
from harness.worker.recording.expressions import tensors_of
from harness.worker.triton_hooks.launches import handle_compiled_launches

from .moved_bytes import ReadBytes

_SHOWN = frozenset({"dtype", "low", "high", "p", "mean", "std"})
"""Keywords of an operator that draws random numbers which decide what it draws."""
_TRUNCATED = re.compile(r"truncf.* to .*?(b?)f16\b")


class FreshMemory(OperatorMode):  # type: ignore[no-untyped-call]
    """Between calls, poisons fresh floating-point tensors: an output buffer may hold the right results of an earlier run.

    Integers keep their values: a script may use them as indices.
    """

    def __init__(self, kind: Poison, is_inside_call: Callable[[], bool]) -> None:
        super().__init__()
        self._poison = kind
        self._is_inside_call = is_inside_call

    def _run(self, func: Any, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Run an operator, and poison what it allocated."""
        result = func(*args, **named)
        if name in operators.ALLOCATING and not self._is_inside_call():
            for _, tensor in tensors_of(result):
                if tensor.is_floating_point():
                    poison(tensor, self._poison)
        return result


def _call_text(name: str, args: tuple[Any, ...], named: Mapping[str, Any]) -> str:
    """Return a call of an operator as Python text, without its device; tensors by dtype and shape."""
    values = [_value_text(value) for value in args]
    values += [f"{key}={value}" for key, value in named.items() if value is not None and key in _SHOWN]
    return f"{name}({', '.join(values)})"


def _value_text(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a {str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    return repr(value)


class HostOperators(OperatorMode):  # type: ignore[no-untyped-call]
    """In a call, poisons fresh tensors, and notes which operators compute and what they compute."""

    def __init__(self, observation: Any, kind: Poison, reads: ReadBytes | None = None) -> None:
        """`observation`: the interpreter's, or on a GPU a `LaunchCount`; `None` for a reference without kernels.

        `reads` gets what operators read.
        """
        super().__init__()
        self._observation = observation
        self._poison = kind
        self._reads = reads
        self._worked: dict[int, torch.UntypedStorage] = {}
        """Storages that hold results of operators, or copies of what kernels wrote, by address."""
        self._moved: dict[int, tuple[torch.UntypedStorage, str]] = {}
        """Storages that hold copies of inputs, by address, and the operator that made them."""
        self.names: set[str] = set()
        """Operators that compute outside of kernels."""
        self.draws: list[str] = []
        """Operators that draw random numbers, in order, as Python text."""

    def _run(self, func: Any, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Run an operator of the host code, and note what it draws, reads and computes, and which storages have its work.

        Views are no work. Memory that it allocates is filled with poison. Operators inside of a launch are the interpreter's own
        and are ignored.
        """
        result = func(*args, **named)
        if func.is_view or (self._observation is not None and self._observation.launching):
            return result
        if torch.Tag.nondeterministic_seeded in func.tags:
            self.draws.append(_call_text(name, args, named))
        if self._reads is not None:
            self._reads.note_operator(func, name, args, named)
        if name in operators.ALLOCATING:
            for _, tensor in tensors_of(result):
                poison(tensor, self._poison)
            return result
        moves = name in operators.MOVING
        computes = name not in operators.FREE
        if computes:
            self.names.add(name)
        worked = computes or (moves and any(self.has_work(source) for _, source in tensors_of((args, named))))
        for _, tensor in tensors_of(result):
            storage = tensor.untyped_storage()
            if worked:
                self._worked[storage.data_ptr()] = storage
            elif moves:
                self._moved[storage.data_ptr()] = storage, name
        return result

    def note_output(self, tensor: torch.Tensor) -> None:
        """Count the copy of an input as an operator that the task needs, if this output was made from one."""
        moved = self._moved.get(tensor.untyped_storage().data_ptr())
        if moved is not None:
            self.names.add(moved[1])

    @property
    def launches_nothing(self) -> bool:
        """True if a reference with kernels launched none."""
        return self._observation is not None and not self._observation.launches

    def has_work(self, tensor: torch.Tensor) -> bool:
        """Return whether a kernel or an operator computed any of the tensor. Always true without an observation."""
        if self._observation is None or tensor.untyped_storage().data_ptr() in self._worked:
            return True
        return bool(self._observation.wrote(tensor))


class CastWatch(OperatorMode):  # type: ignore[no-untyped-call]
    """Notes casts of torch while it is on, and of kernels since they were first launched."""

    def __init__(self, *, on_gpu: bool) -> None:
        super().__init__()
        self._seen: set[str] = set()
        if on_gpu:
            handle_compiled_launches(lambda kernel, _grid, _values: self._read(kernel.asm.get("ttir", "")))

    @property
    def seen(self) -> tuple[str, ...]:
        """Names of the dtypes."""
        return tuple(sorted(self._seen | arithmetic.narrowed))

    def _read(self, text: str) -> None:
        self._seen |= {"bfloat16" if brain else "float16" for brain in _TRUNCATED.findall(text)}

    def _run(self, func: Any, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Run an operator; note the 16-bit float if it casts wider floats to it."""
        result = func(*args, **named)
        if name in ("_to_copy", "copy_"):
            source = args[0 if name == "_to_copy" else 1]
            is_wide = source.dtype in (torch.float32, torch.float64)
            if is_wide and result.dtype in (torch.float16, torch.bfloat16):
                self._seen.add(str(result.dtype).removeprefix("torch."))
        return result
