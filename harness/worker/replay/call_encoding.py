"""Encodes arguments of a call as plain data (`harness.wire.calls.records`): numbers, tensors, dtypes, descriptors, jit functions.

The recorder in the guest uses it; the replayer in the verifier decodes the data again.
"""

from __future__ import annotations

import ast
import enum
import functools
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from types import CodeType, ModuleType
from typing import Any

import msgspec
import numpy as np
import torch
import triton.language as tl
from triton import TensorWrapper
from triton.tools.tensor_descriptor import TensorDescriptor

from harness.wire.calls import records
from harness.wire.calls.records import Function, FunctionNotes, Language, Value, View
from harness.worker.interpreter.semantics import constants
from harness.worker.triton_hooks.launch_options import is_option
from harness.worker.triton_hooks.launches import KERNELS, Launch, computes_constants
from harness.worker.triton_hooks.versions import rounds_to_tf32

MODULES = ("triton", "math")
"""Modules that a kernel may use, besides `triton.language` and its submodules."""

_NUMPY_SCALARS = frozenset(np.sctypeDict.values())
ViewOf = Callable[[torch.Tensor], View]
FunctionOf = Callable[[Any], Function]


class CannotEncode(Exception):
    """A record cannot hold this value; the text names it."""


def encode(value: Any, view_of: ViewOf, function_of: FunctionOf) -> Value:
    """Any argument of a launch or an operator as plain data. `view_of` encodes tensors, `function_of` jit functions."""
    encode_part = functools.partial(encode, view_of=view_of, function_of=function_of)
    match value:
        case enum.Enum():
            return encode_part(value.value)
        case None | bool() | str():
            return value
        case int():
            return encode_integer(value)
        case float():
            return float(value)
        case torch.Tensor():
            return view_of(value)
        case TensorWrapper():
            return records.Reinterpreted(base=view_of(value.base), dtype=_dtype_name(value.dtype))
        case TensorDescriptor():
            return _encode_descriptor(value, view_of)
        case torch.dtype():
            return records.Dtype(name=_dtype_name(value))
        case torch.memory_format() | torch.layout():
            return records.Constant(name=str(value).removeprefix("torch."))
        case torch.device():
            return records.Constant(name="device")
        case tuple() | list():
            return records.Items(
                items=tuple(map(encode_part, value)), fields=tuple(getattr(value, "_fields", ()))
            )
        case tl.constexpr():
            return records.Constexpr(value=encode_part(value.value))
        case _ if type(value) in _NUMPY_SCALARS:
            return value.item()  # type: ignore[no-any-return]
        case _:
            return _encode_language(value, function_of)


def encode_integer(value: int) -> int:
    """The integer itself; raises `CannotEncode` if it needs more than 64 bits."""
    if not -(1 << 63) <= value < 1 << 64:
        raise CannotEncode(f"the integer {value}")
    return int(value)


def bind(launch: Launch) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments of a launch by parameter, defaults included, and its launch options.

    A keyword that names a parameter and an option is both. For a wrong call both are empty: Triton raises its error.
    """
    try:
        bound = launch.bind()
    except TypeError:
        return {}, {}
    return bound, {
        name: value for name, value in launch.named.items() if name not in bound or is_option(name)
    }


class Functions:
    """The jit functions of one call, each with the notes that a replay needs beside the source text."""

    def __init__(self) -> None:
        self._notes: dict[Function, FunctionNotes] = {}
        self._by_identity: dict[int, tuple[Any, Function]] = {}
        """Each Python function, kept alive, with its name in the record; by `id`."""

    def notes(self) -> tuple[FunctionNotes, ...]:
        """The notes of all functions, in the order of their first use."""
        return tuple(self._notes.values())

    def add(self, kernel: Any, function_of: FunctionOf, module: str) -> Function:
        """The function's name in the record: its place, and a number where functions at one place have different notes."""
        if id(kernel.fn) in self._by_identity:
            return self._by_identity[id(kernel.fn)][1]
        name, line = kernel.fn.__code__.co_name, int(kernel.fn.__code__.co_firstlineno)
        twins = [
            function
            for function in self._notes
            if (function.name, function.line, function.module) == (name, line, module)
        ]
        function = Function(name=name, line=line, twin=len(twins), module=module)
        self._by_identity[id(kernel.fn)] = kernel.fn, function
        self._notes[function] = FunctionNotes(function, {}, (), ())  # it may call itself
        notes = _notes_on(function, kernel, function_of)
        for twin in twins:
            if msgspec.structs.replace(notes, function=twin) == self._notes[twin]:
                del self._notes[function]
                self._by_identity[id(kernel.fn)] = kernel.fn, twin
                return twin
        self._notes[function] = notes
        return function


def _notes_on(function: Function, kernel: Any, function_of: FunctionOf) -> FunctionNotes:
    """Notes that a replay needs beside the text of a jit function, without names that have no encodable value."""
    fn = kernel.fn
    nonlocals = dict(inspect.getclosurevars(fn).nonlocals) if fn.__closure__ else {}
    names: dict[str, Value] = {}
    for name in sorted({*_names_in_code(fn.__code__), *_names_in_annotations(fn)}):
        if name in fn.__globals__ or name in nonlocals:
            try:
                value = nonlocals.get(name, fn.__globals__.get(name))
                names[name] = encode(value, _refuse_tensor, function_of)
            except CannotEncode:
                continue
    constexprs = tuple(
        name
        for name, annotation in fn.__annotations__.items()
        if "constexpr" in str(getattr(annotation, "__name__", annotation))
    )
    computed = computes_constants(kernel)
    return FunctionNotes(
        function=function,
        names=names,
        constexprs=constexprs,
        unspecialised=() if computed else constants.unspecialised(kernel),
        types={} if computed else constants.types(kernel),
        defaults=tuple(encode(default, _refuse_tensor, function_of) for default in fn.__defaults__ or ()),
        computes_constants=computed,
    )


def _names_in_code(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    yield from code.co_freevars
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in_code(constant)


@functools.lru_cache(maxsize=1024)
def _names_in_annotations(fn: Any) -> frozenset[str]:
    """Names in annotations of assignments: Python does not evaluate these, Triton's compiler does."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(fn)))
    except (OSError, SyntaxError, TypeError):
        return frozenset()
    annotations = [node.annotation for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)]
    return frozenset(
        node.id for annotation in annotations for node in ast.walk(annotation) if isinstance(node, ast.Name)
    )


def _refuse_tensor(_: torch.Tensor) -> View:
    raise CannotEncode("a kernel that uses a tensor it was not given")


def _encode_descriptor(descriptor: TensorDescriptor, view_of: ViewOf) -> records.Descriptor:
    if rounds_to_tf32(descriptor):
        raise CannotEncode("a tensor descriptor that rounds to tf32")
    return records.Descriptor(
        base=view_of(descriptor.base),
        shape=tuple(int(size) for size in descriptor.shape),
        strides=tuple(int(stride) for stride in descriptor.strides),
        block_shape=tuple(int(size) for size in descriptor.block_shape),
        padding=descriptor.padding,
    )


def _encode_language(value: Any, function_of: FunctionOf) -> Value:
    """A module, dtype or function of Triton as its name; a jit function of the candidate by `function_of`."""
    if isinstance(value, ModuleType):
        if value.__name__ in MODULES or value.__name__.startswith("triton.language"):
            return Language(module=value.__name__)
        raise CannotEncode(f"the module {value.__name__}")
    if isinstance(value, tl.dtype):
        for name, member in vars(tl).items():
            if member is value or (
                isinstance(member, tl.dtype) and type(member) is type(value) and member == value
            ):
                return Language(module="triton.language", member=name)
        raise CannotEncode(f"the type {value}")
    inner = value
    while isinstance(inner, KERNELS) and isinstance(getattr(inner, "fn", None), KERNELS):
        inner = inner.fn
    source = inner.fn if hasattr(inner, "fn") else inner
    module, name = getattr(source, "__module__", "") or "", getattr(source, "__name__", "")
    if module.startswith("triton."):
        for place in (module, "triton.language", "triton"):
            member = getattr(sys.modules.get(place), name, None)
            # A library that was loaded a second time has functions of its own.
            if member is value or (member is not None and place.startswith("triton.language.extra.")):
                return Language(module=place, member=name)
    if isinstance(inner, KERNELS) or computes_constants(inner):
        return function_of(inner)
    raise CannotEncode(f"a value of the type {type(value).__name__}")


def _dtype_name(dtype: Any) -> str:
    if not isinstance(dtype, torch.dtype):
        raise CannotEncode(f"the dtype {dtype}")
    return str(dtype).removeprefix("torch.")
