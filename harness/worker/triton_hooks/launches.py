"""Hands launches to a handler: each launch as the host code makes it, each launch of a compiled kernel, each compilation.

Call the functions before foreign code is imported. A later handler gets a launch before an earlier one.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import triton
from triton.compiler.compiler import CompiledKernel
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction, KernelParam

KERNELS = (triton.KernelInterface, InterpretedFunction)
"""Types of kernels. In Triton 3.5 the interpreter's kernels are no `KernelInterface`."""


@dataclasses.dataclass(slots=True)
class Launch:
    """A launch that is about to happen, as the host code makes it."""

    kernel: Any
    """Triton's `JITFunction`, or `InterpretedFunction` in the interpreter."""
    args: tuple[Any, ...]
    named: Mapping[str, Any]
    """Arguments by keyword and launch options."""
    grid: Any
    """One to three sizes, or a function of the arguments."""
    warmup: bool
    """The host code only wants the compiled kernel."""
    _next: Callable[..., Any]

    @property
    def arguments(self) -> dict[str, Any]:
        """The given arguments by parameter, and the launch options."""
        return dict(zip(self._parameters, self.args, strict=False)) | dict(self.named)

    @property
    def options(self) -> dict[str, Any]:
        """Keywords that name no parameter."""
        return {name: value for name, value in self.named.items() if name not in self._parameters}

    def bind(self) -> dict[str, Any]:
        """The value of each parameter, defaults included; a wrong call raises the `TypeError` of a device's launch."""
        signature = inspect.signature(self.kernel.fn)
        named = {name: value for name, value in self.named.items() if name in signature.parameters}
        bound = signature.bind(*self.args, **named)
        bound.apply_defaults()
        return dict(bound.arguments)

    def go_on(self, **changes: Any) -> Any:
        """Launch, by the earlier handler or Triton itself, with a changed `grid` or `warmup`; returns what the host code gets."""
        call = {"grid": self.grid, "warmup": self.warmup} | changes
        return self._next(self.kernel, *self.args, **call, **self.named)

    @property
    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.kernel.fn).parameters


def handle_launches(handler: Callable[[Launch], Any]) -> None:
    """Let `handler` make each launch of this process; it returns what the host code gets."""
    kind = InterpretedFunction if triton.knobs.runtime.interpret else JITFunction
    earlier = kind.run

    def run(kernel: Any, *args: Any, grid: Any, warmup: bool, **named: Any) -> Any:
        return handler(Launch(kernel, args, named, grid, warmup, earlier))

    kind.run = run


def handle_compiled_launches(
    handler: Callable[[CompiledKernel, Sequence[int], tuple[Any, ...]], None],
) -> Callable[[], None]:
    """Call `handler` with kernel, grid and the value of each parameter ahead of each launch of a compiled kernel.

    Also for `compiled[grid](...)`, the way in which persistent kernels run after `warmup`. Returns a function that ends this.
    """
    launch_metadata = CompiledKernel.launch_metadata  # called once a launch, with all arguments

    def note(kernel: Any, grid: Any, stream: Any, *values: Any) -> Any:
        handler(kernel, grid, values)
        return launch_metadata(kernel, grid, stream, *values)

    def end() -> None:
        CompiledKernel.launch_metadata = launch_metadata

    CompiledKernel.launch_metadata = note
    return end


def handle_compilations(handler: Callable[[Any, tuple[str, Any], Any, Callable[[], Any]], Any]) -> None:
    """Let `handler` compile each kernel that a launch needs and no earlier launch compiled.

    It gets the jit function, a key of the code, the launch options and a function that compiles, and returns the kernel.
    """
    compile_now = JITFunction._do_compile

    def compile_by_handler(function: Any, key: Any, *args: Any, **named: Any) -> Any:
        _signature, _device, _constants, options, *_ = args
        make = lambda: compile_now(function, key, *args, **named)  # noqa: E731
        return handler(function, (function.cache_key, key), options, make)

    JITFunction._do_compile = compile_by_handler


def sizes(grid: Sequence[Any]) -> tuple[int, int, int]:
    """The three sizes of a grid."""
    x, y, z = (*(int(size) for size in grid), 1, 1, 1)[:3]
    return x, y, z


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in an argument of a launch: the argument itself, parts of a tuple, or the base of a descriptor or wrapper."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from tensors_in(part)
    elif hasattr(value, "base"):
        yield from tensors_in(value.base)


def parameters_of(kernel: Any) -> Iterator[KernelParam]:
    """The parameters of a jit function, with their annotations as a compiler reads them."""
    for at, parameter in enumerate(inspect.signature(kernel.fn).parameters.values()):
        yield KernelParam(at, parameter, False, False)


def jit_function(value: Any) -> Any:
    """The jit function under a value's decorators; `None` if there is none."""
    while not isinstance(value, JITFunction) and hasattr(value, "fn"):
        value = value.fn
    return value if isinstance(value, JITFunction) else None
