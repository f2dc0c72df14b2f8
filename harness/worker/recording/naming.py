"""Values of launches and kernels as plain data, on the guest's side; the verifier's `replay` makes them again."""

from __future__ import annotations

import ast
import enum
import functools
import inspect
import sys
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping
from types import CodeType, ModuleType
from typing import Any

import msgspec
import numpy as np
import torch
import triton.language as tl
from triton.runtime.jit import ConstexprFunction, KernelInterface, TensorWrapper
from triton.tools.tensor_descriptor import TensorDescriptor

from harness.wire.records import (
    Constant,
    Constexpr,
    Descriptor,
    Dtype,
    Function,
    FunctionNotes,
    Items,
    Language,
    Reinterpreted,
    Value,
    View,
)
from harness.worker.interpreter import constants
from harness.worker.kit.launch_options import OPTIONS

MODULES = ("triton", "math")
"""Modules that a kernel may name, with those below `triton.language`."""

_NUMPY = frozenset(np.sctypeDict.values())
ViewOf = Callable[[torch.Tensor], View]
FunctionOf = Callable[[Any], Function]


class CannotName(Exception):
    """A value that no record can hold; the text says which."""


def value(given: Any, view_of: ViewOf, function_of: FunctionOf) -> Value:
    """Any value that a launch or an operator is given, tensors included."""
    if isinstance(given, enum.Enum):
        return value(given.value, view_of, function_of)
    match given:
        case None | bool() | str():
            return given
        case torch.Tensor():
            return view_of(given)
        case TensorWrapper():
            return Reinterpreted(base=view_of(given.base), dtype=_dtype_name(given.dtype))
        case TensorDescriptor():
            return _descriptor(given, view_of)
        case torch.dtype():
            return Dtype(name=_dtype_name(given))
        case torch.memory_format() | torch.layout():
            return Constant(name=str(given).removeprefix("torch."))
        case torch.device():
            return Constant(name="device")
        case tuple() | list():
            fields = getattr(given, "_fields", ())
            return Items(items=tuple(value(one, view_of, function_of) for one in given), fields=tuple(fields))
        case tl.constexpr():
            return Constexpr(value=value(given.value, view_of, function_of))
        case _:
            pass
    scalar = _scalar(given)
    if scalar is not None:
        return scalar
    return _of_language(given, function_of)


def number(given: int) -> int:
    """An integer that fits into 64 bits."""
    if not -(1 << 63) <= given < 1 << 64:
        raise CannotName(f"the integer {given}")
    return int(given)


def bind(
    kernel: Any, args: tuple[Any, ...], named: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments by parameter, defaults included, and launch options; a wrong call is left for Triton to refuse."""
    signature = inspect.signature(kernel.fn)
    own = {name: one for name, one in named.items() if name in signature.parameters}
    try:
        bound = signature.bind(*args, **own)
    except TypeError:
        return {}, {}
    bound.apply_defaults()
    return dict(bound.arguments), options(signature.parameters, named)


def options(parameters: Collection[str], named: Mapping[str, Any]) -> dict[str, Any]:
    """The launch options among keywords: a parameter's name is one too where Triton knows an option of that name."""
    return {
        name: one
        for name, one in named.items()
        if name not in parameters or any(name in known for known in OPTIONS.values())
    }


class Functions:
    """What the jit functions of one call need beside their text, each noted once."""

    def __init__(self) -> None:
        self._noted: dict[Function, FunctionNotes] = {}
        self._known: dict[int, tuple[Any, Function]] = {}
        """The functions themselves, by identity, with their names here."""

    def notes(self) -> tuple[FunctionNotes, ...]:
        """Of all, in order."""
        return tuple(self._noted.values())

    def add(self, kernel: Any, function_of: FunctionOf) -> Function:
        """The function's name in a record: its place, and a number where functions of one place need different things."""
        if id(kernel.fn) in self._known:
            return self._known[id(kernel.fn)][1]
        name, line = kernel.fn.__code__.co_name, int(kernel.fn.__code__.co_firstlineno)
        twins = [known for known in self._noted if (known.name, known.line) == (name, line)]
        function = Function(name=name, line=line, twin=len(twins))
        self._known[id(kernel.fn)] = kernel.fn, function
        self._noted[function] = FunctionNotes(function, {}, (), ())  # it may call itself
        found = notes(function, kernel, function_of)
        for twin in twins:
            if msgspec.structs.replace(found, function=twin) == self._noted[twin]:
                del self._noted[function]
                self._known[id(kernel.fn)] = kernel.fn, twin
                return twin
        self._noted[function] = found
        return function


def notes(function: Function, kernel: Any, function_of: FunctionOf) -> FunctionNotes:
    """What the text of a jit function leaves open. A name whose value cannot be told is left out."""
    fn = kernel.fn
    known = dict(inspect.getclosurevars(fn).nonlocals) if fn.__closure__ else {}
    names: dict[str, Value] = {}
    for name in sorted({*_names(fn.__code__), *_in_annotations(fn)}):
        if name in fn.__globals__ or name in known:
            try:
                names[name] = value(known.get(name, fn.__globals__.get(name)), _no_tensor, function_of)
            except CannotName:
                continue
    constexprs = tuple(
        name
        for name, kind in fn.__annotations__.items()
        if "constexpr" in str(getattr(kind, "__name__", kind))
    )
    return FunctionNotes(
        function=function,
        names=names,
        constexprs=constexprs,
        unspecialised=() if isinstance(kernel, ConstexprFunction) else constants.unspecialised(kernel),
        types={} if isinstance(kernel, ConstexprFunction) else constants.types(kernel),
        defaults=tuple(value(one, _no_tensor, function_of) for one in fn.__defaults__ or ()),
        computes_constants=isinstance(kernel, ConstexprFunction),
    )


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    yield from code.co_freevars
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


@functools.lru_cache(maxsize=1024)
def _in_annotations(fn: Any) -> frozenset[str]:
    """Names in annotations of assignments, which Python does not evaluate and a compiler does."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(fn)))
    except (OSError, SyntaxError, TypeError):
        return frozenset()
    annotations = (one.annotation for one in ast.walk(tree) if isinstance(one, ast.AnnAssign))
    return frozenset(
        inner.id for one in annotations for inner in ast.walk(one) if isinstance(inner, ast.Name)
    )


def _no_tensor(_: torch.Tensor) -> View:
    raise CannotName("a kernel that uses a tensor it was not given")


def _scalar(given: Any) -> Value:
    if isinstance(given, int):
        return number(given)
    if isinstance(given, float):
        return float(given)
    if type(given) in _NUMPY:
        return given.item()  # type: ignore[no-any-return]
    return None


def _descriptor(given: TensorDescriptor, view_of: ViewOf) -> Descriptor:
    if getattr(given, "round_f32_to_tf32", False):  # Triton 3.6 has none
        raise CannotName("a tensor descriptor that rounds to tf32")
    return Descriptor(
        base=view_of(given.base),
        shape=tuple(int(size) for size in given.shape),
        strides=tuple(int(stride) for stride in given.strides),
        block_shape=tuple(int(size) for size in given.block_shape),
        padding=given.padding,
    )


def _of_language(given: Any, function_of: FunctionOf) -> Value:
    """A module, dtype or function of Triton's, or a jit function of the candidate's."""
    if isinstance(given, ModuleType):
        if given.__name__ in MODULES or given.__name__.startswith("triton.language"):
            return Language(module=given.__name__)
        raise CannotName(f"the module {given.__name__}")
    if isinstance(given, tl.dtype):
        for name, one in vars(tl).items():
            if one is given or (isinstance(one, tl.dtype) and type(one) is type(given) and one == given):
                return Language(module="triton.language", member=name)
        raise CannotName(f"the type {given}")
    inner = given
    while isinstance(inner, KernelInterface) and isinstance(getattr(inner, "fn", None), KernelInterface):
        inner = inner.fn
    source = inner.fn if hasattr(inner, "fn") else inner
    module, name = getattr(source, "__module__", "") or "", getattr(source, "__name__", "")
    if module.startswith("triton."):
        for place in (module, "triton.language", "triton"):
            if getattr(sys.modules.get(place), name, None) is given:
                return Language(module=place, member=name)
    if isinstance(inner, (KernelInterface, ConstexprFunction)):
        return function_of(inner)
    raise CannotName(f"a value of the type {type(given).__name__}")


def _dtype_name(dtype: Any) -> str:
    if not isinstance(dtype, torch.dtype):
        raise CannotName(f"the dtype {dtype}")
    return str(dtype).removeprefix("torch.")
