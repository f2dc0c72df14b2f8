"""Wraps the entry points of a script and records each outermost call."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from triton.runtime import KernelInterface

from harness.cases.seeds import derive
from harness.wire import operators
from harness.wire.script_messages import OutputData, Record, RecordedCall, TensorData
from harness.worker.kit import arena
from harness.worker.kit.poison import Poison, poison

from .expressions import CannotExpress, Expressions, data_of, parts_of, plain_name, tensor_problem
from .seeding import set_seed

MOST_CALLS = 32
"""Different calls of one script; later ones are dropped."""
MOST_BYTES = 160 << 20
"""All tensors of one recording."""


class CallLog:
    """The calls of one run of a script."""

    def __init__(
        self,
        request: Record,
        oracle: Callable[[], Callable[..., Any] | None],
        observe: Callable[[Mapping[str, torch.Tensor]], AbstractContextManager[Any]],
    ) -> None:
        """`oracle` returns the script's PyTorch function, once the script has defined it. `observe` watches kernels."""
        entry_points = request.script.entry_points
        self._seed = request.seed
        self._poison = Poison(request.poison)
        self._observe = observe
        self._made = 0
        self._entry_points = entry_points
        self._oracle = oracle
        self._inside = 0
        self._shapes: set[tuple[Any, ...]] = set()
        self._size_bytes = 0
        self._objects: dict[int, tuple[object, str, dict[str, torch.Tensor]]] = {}
        self.calls: list[RecordedCall] = []
        self.dropped = 0

    def wrap(self, module: ModuleType, name: str) -> Any:
        """Return what replaces the entry point `name` of the reference in the test."""
        entry = getattr(module, name)
        if isinstance(entry, KernelInterface):
            return _Launches(self, name, entry)
        if isinstance(entry, type):
            return self._wrap_class(name, entry)
        return self._wrap_function(name, entry)

    def _wrap_function(self, text: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*args: Any, **named: Any) -> Any:
            return self.call(text, function, args, named)

        recorded.__name__ = getattr(function, "__name__", text)
        return recorded

    def _wrap_class(self, name: str, kind: type) -> type:
        """A subclass that notes how its instances were made, and records calls of instances and of `apply`."""
        log = self

        def made(instance: Any, *args: Any, **named: Any) -> None:
            with _Nested(log):
                kind.__init__(instance, *args, **named)
            log._note_object(instance, name, kind, args, named)

        members: dict[str, Any] = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
        if hasattr(kind, "apply") and issubclass(kind, torch.autograd.Function):
            apply = kind.apply
            return type(name, (), {"apply": staticmethod(self._wrap_function(f"{name}.apply", apply))})
        if issubclass(kind, tuple):

            def new(cls: type, *args: Any, **named: Any) -> Any:
                instance = kind.__new__(kind, *args, **named)
                log._note_object(instance, name, kind, args, named)
                return instance

            return type(name, (), {"__new__": new})
        if callable(getattr(kind, "__call__", None)) and "__call__" in dir(kind) and kind.__call__ is not type.__call__:

            def called(instance: Any, *args: Any, **named: Any) -> Any:
                return log.call_object(instance, lambda *a, **n: kind.__call__(instance, *a, **n), args, named)

            members["__call__"] = called
        members["__init__"] = made
        return type(name, (kind,), members)

    def _note_object(
        self, instance: object, name: str, kind: type, args: tuple[Any, ...], named: Mapping[str, Any]
    ) -> None:
        expressions = Expressions(self._objects, set())
        try:
            text = self._arguments(expressions, kind, args, named)
        except CannotExpress:
            return
        for tensor in expressions.tensors:
            text = _marked(text, tensor)
        self._objects[id(instance)] = instance, f"{name}({text})", expressions.tensors

    def call_object(
        self, instance: object, function: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]
    ) -> Any:
        """Make and record a call of an instance of one of the script's classes."""
        return self.call(instance, function, args, named)

    def call(
        self, callee: Any, function: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]
    ) -> Any:
        """Make a call and record it. `callee`: text, or an instance of one of the script's classes."""
        if self._inside:
            return function(*args, **named)
        expressions = Expressions(self._objects, set(self._entry_points))
        unsupported = expression = ""
        try:
            text = callee if isinstance(callee, str) else expressions.text_of(callee, type(callee).__name__)
            expression = f"{text}({self._arguments(expressions, function, args, named)})"
        except CannotExpress as reason:
            unsupported = str(reason)
        before = {name: data_of(tensor) for name, tensor in expressions.tensors.items()}
        truth = None if unsupported else self._truth(args, named)
        self._made += 1
        draw_seed = derive(self._seed, "call", str(self._made))
        with (
            _Nested(self),
            torch.random.fork_rng(),
            self._observe(expressions.tensors) as observation,
            _Operators(observation, self._poison) as used,
        ):
            set_seed(draw_seed)
            fresh = torch.get_rng_state(), _gpu_state()
            value = function(*args, **named)
            drew = not (torch.equal(fresh[0], torch.get_rng_state()) and torch.equal(fresh[1], _gpu_state()))
        if unsupported:
            self.calls.append(RecordedCall("", {}, (), unsupported=unsupported))
        else:
            self._keep(expression, expressions.tensors, before, value, truth, used.names, draw_seed if drew else None)
        return value

    def _arguments(
        self, expressions: Expressions, function: Any, args: tuple[Any, ...], named: Mapping[str, Any]
    ) -> str:
        hints = _parameter_names(function, len(args))
        parts = [expressions.text_of(value, hint) for value, hint in zip(args, hints, strict=True)]
        parts += [f"{name}={expressions.text_of(value, name)}" for name, value in named.items()]
        return ", ".join(parts)

    def _truth(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any] | None:
        oracle = self._oracle()
        if oracle is None:
            return None
        copies = [value.clone() if isinstance(value, torch.Tensor) else value for value in args]
        named_copies = {
            name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in named.items()
        }
        try:
            with _Nested(self):
                return [part for _, part in parts_of(oracle(*copies, **named_copies))]
        except Exception:  # noqa: BLE001 -- an oracle with other parameters is none for this call
            return None

    def _keep(
        self,
        expression: str,
        tensors: dict[str, torch.Tensor],
        before: dict[str, TensorData],
        value: Any,
        truth: list[Any] | None,
        used: frozenset[str],
        draw_seed: int | None,
    ) -> None:
        shape = (expression, *((name, data.dtype, data.shape, data.strides) for name, data in before.items()))
        if shape in self._shapes or len(self._shapes) >= MOST_CALLS:
            self.dropped += 1
            return
        outputs, unjudged = _outputs(tensors, before, value)
        size_bytes = sum(len(data.data) for data in before.values())
        size_bytes += sum(len(output.tensor.data) for output in outputs)
        if self._size_bytes + size_bytes > MOST_BYTES:
            self.dropped += 1
            return
        self._size_bytes += size_bytes
        self._shapes.add(shape)
        self.calls.append(
            RecordedCall(
                expression=expression,
                inputs=before,
                outputs=outputs,
                truths=_truths(outputs, truth),
                operators=tuple(sorted(used)),
                draw_seed=draw_seed,
                unjudged=unjudged,
            )
        )


class _Launches:
    """Replaces a kernel in the test: records `kernel[grid](...)` as a call."""

    def __init__(self, log: CallLog, name: str, kernel: Any) -> None:
        self._log = log
        self._name = name
        self._kernel = kernel

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        def launch(*args: Any, **named: Any) -> Any:
            sizes = grid
            if callable(grid):
                names = self._kernel.arg_names
                sizes = grid({**dict(zip(names, args, strict=False)), **named})
            sizes = tuple(int(size) for size in (sizes if isinstance(sizes, (tuple, list)) else (sizes,)))
            text = f"{self._name}[{', '.join(map(str, sizes))}]"
            return self._log.call(text, self._kernel[sizes], args, named)

        return launch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)


class _Nested:
    """Calls in the block are not recorded."""

    def __init__(self, log: CallLog) -> None:
        self._log = log

    def __enter__(self) -> None:
        self._log._inside += 1

    def __exit__(self, *why: object) -> None:
        self._log._inside -= 1


class _Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the tensor operators of host code, and fills fresh memory."""

    def __init__(self, observation: Any, kind: Poison) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._observation = observation
        self._poison = kind
        self._names: set[str] = set()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    @property
    def names(self) -> frozenset[str]:
        """Operators that compute."""
        return frozenset(self._names)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = func._schema.name.rpartition("::")[2]
        result = func(*args, **(kwargs or {}))
        if name in operators.ALLOCATING:
            for tensor in _tensors(result):
                poison(tensor, self._poison)
        elif not func.is_view and name not in operators.FREE and not getattr(self._observation, "launching", False):
            self._names.add(name)
        return result


def _parameter_names(function: Any, count: int) -> list[str]:
    """Names for positional arguments; `x_0`, `x_1` where the function has none."""
    names: list[str] = list(getattr(function, "arg_names", ()))
    if not names:
        try:
            target = function.__init__ if isinstance(function, type) else function
            parameters = [
                item.name
                for item in inspect.signature(target).parameters.values()
                if item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD)
            ]
        except (TypeError, ValueError):
            parameters = []
        names = parameters[1:] if isinstance(function, type) and parameters[:1] == ["self"] else parameters
    return [*names[:count], *(f"x_{place}" for place in range(len(names), count))]


def _marked(text: str, name: str) -> str:
    """Mark a tensor's name in the text of an object, so that each call can choose its own name."""
    return re.sub(rf"(?<![\w.\0]){re.escape(name)}(?![\w\0=])(?!\s*=[^=])", f"\0{name}\0", text)


def _outputs(
    tensors: dict[str, torch.Tensor], before: dict[str, TensorData], value: Any
) -> tuple[tuple[OutputData, ...], tuple[str, ...]]:
    """Inputs that changed, and tensors of the result with memory of their own; and what is not judged, in words."""
    outputs = [
        OutputData(name, name, after)
        for name, tensor in tensors.items()
        if (after := data_of(tensor)).data != before[name].data
    ]
    held = [_extent(tensor) for tensor in tensors.values()]
    unjudged = []
    parts = list(parts_of(value))
    for place, (path, part) in enumerate(parts):
        name = "out" if len(parts) == 1 else f"out_{place}"
        if part is None:
            continue
        if not isinstance(part, torch.Tensor):
            unjudged.append(f"`{path}` is a {type(part).__name__}")
            continue
        problem = tensor_problem(part)
        if problem:
            unjudged.append(f"`{path}` {problem}")
            continue
        extent = _extent(part)
        if part.numel() and any(_overlap(extent, other) for other in held):
            continue  # an input, or a tensor that is judged already
        held.append(extent)
        while name in tensors:
            name += "_"
        outputs.append(OutputData(plain_name(name), path, data_of(part.contiguous())))
    return tuple(outputs), tuple(unjudged)


def _truths(outputs: tuple[OutputData, ...], truth: list[Any] | None) -> tuple[TensorData | None, ...]:
    """The oracle's tensors for the outputs that were returned, if their number and shapes agree."""
    returned = [output for output in outputs if not output.is_input]
    tensors = [part for part in truth or () if isinstance(part, torch.Tensor)]
    if len(tensors) != len(returned) or len(returned) != len(outputs):
        return ()
    if any(tuple(part.shape) != output.tensor.shape for part, output in zip(tensors, outputs, strict=True)):
        return ()
    return tuple(data_of(part.contiguous()) for part in tensors)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    return (part for _, part in parts_of(value) if isinstance(part, torch.Tensor))


def _gpu_state() -> torch.Tensor:
    return torch.cuda.get_rng_state() if torch.cuda.is_initialized() else torch.empty(0)


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    start = tensor.data_ptr()
    return start, start + arena.span_bytes(tensor)


def _overlap(first: tuple[int, int], second: tuple[int, int]) -> bool:
    return first[0] < second[1] and second[0] < first[1]
