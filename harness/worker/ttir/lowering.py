"""
From a kernel's text to its IR, by Triton's own front end, in a process whose Triton interprets.

Triton makes interpreted functions of its own library there; while a kernel is lowered, jit functions stand in their places.
Touches the internals of Triton's compiler and launcher (3.6 and 3.7).
"""

from __future__ import annotations

import ast
import copy
import functools
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from triton._C.libtriton import ir, passes
from triton.compiler.compiler import ASTSource
from triton.compiler.errors import CompilationError
from triton.runtime.driver import driver
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

from harness.worker.interpreter import libdevice

from .endings import Unread
from .machine import Module
from .text import Unreadable, parse


class NotLowered(Exception):
    """Triton's compiler does not take the kernel with these arguments."""


class Readable(JITFunction):  # type: ignore[misc]
    """A jit function of a bare definition, which is lowered and no further."""

    def __init__(self, function: Any, definition: ast.FunctionDef, file: str, **listed: Any) -> None:
        """`definition` has the line numbers of `file`."""
        super().__init__(function, **listed)
        self._definition = definition
        self._file = file

    @functools.cached_property
    def _tree(self) -> ast.Module:
        """One for all lowerings, as to copy it takes a third of one: what Triton notes in it hangs on the text alone."""
        made = copy.deepcopy(self._definition)
        return ast.Module(body=[ast.increment_lineno(made, 1 - made.lineno)], type_ignores=[])

    def parse(self) -> ast.Module:
        """The definition, whose lines count from its own."""
        return self._tree

    def read(
        self, arguments: Mapping[str, Any], options: Mapping[str, Any]
    ) -> tuple[Module, tuple[Any, ...]]:
        """
        The kernel for these arguments and options, and those of its arguments that are left when it runs.

        An option may be an argument too, as the launcher takes keywords for both; one that this Triton does not know is left to the
        compile run to tell of. `NotLowered` where the compiler refuses it, `Unread`
        where nothing here can run it.
        """
        names = [one.name for one in self.params]
        first = next((at for at, name in enumerate(names) if name in options), len(names))
        given = [arguments[name] for name in names[:first]]
        *_, backend, binder = self.device_caches[driver.active.get_current_device()]
        known = vars(backend.parse_options({})).keys() | set(names)
        named = {name: arguments[name] for name in names[first:]}
        named |= {name: value for name, value in options.items() if name in known}
        try:
            module = self.run(*given, grid=None, warmup=True, **named)
            bound, specialization, _ = binder(*given, **{"debug": False} | named)
        except (CompilationError, KeyError, TypeError, ValueError, RuntimeError, AssertionError) as error:
            raise NotLowered(_told(error)) from error
        if isinstance(module, Unread):
            raise module
        left: list[Any] = []
        for value, (kind, *_) in zip(bound.values(), specialization, strict=False):
            _left(value, kind, left)
        return module, tuple(left)

    def _do_compile(
        self,
        key: Any,
        signature: Any,
        device: Any,
        constexprs: Any,
        options: Any,
        attrs: Any,
        warmup: bool,  # noqa: FBT001
    ) -> Module | Unread:
        modules, _, target, backend, _ = self.device_caches[device]
        with _compiling():
            text = _lowered(ASTSource(self, signature, constexprs, attrs), target, backend, options)
        made: Module | Unread
        try:
            functions = parse(text, self._file)
            entry = next(one.name for one in functions.values() if one.public)
            made = Module(functions, entry)
        except (Unread, Unreadable) as unread:
            made = Unread(str(unread))
        modules[key] = made
        return made


_contexts: dict[type, Any] = {}


def _context(backend: Any) -> Any:
    """One for all kernels of a process, by kind of backend: to make one takes a third of what lowering a small kernel does."""
    kind = type(backend)
    if kind not in _contexts:
        context = ir.context()
        ir.load_dialects(context)
        backend.load_dialects(context)
        _contexts[kind] = context
    return _contexts[kind]


def _lowered(source: Any, target: Any, backend: Any, options: Any) -> str:
    """The module's generic text, with calls inlined and block pointers and descriptors taken apart."""
    context = _context(backend)
    module = source.make_ir(
        target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    manager = ir.pass_manager(context)
    passes.common.add_inliner(manager)
    for name in ("add_rewrite_tensor_pointer", "add_rewrite_tensor_descriptor_to_pointer"):
        add = getattr(passes.ttir, name, None)
        if add is not None:
            add(manager)
    passes.common.add_canonicalizer(manager)
    passes.common.add_cse(manager)
    passes.common.add_symbol_dce(manager)
    manager.run(module, "wavedeck")
    # What does not verify is printed in the generic form, and no module may have an attribute of no dialect.
    module.set_attr("generic", ir.builder(context).get_int32_attr(1))
    return str(module.str())


def _left(value: Any, kind: Any, given: list[Any]) -> None:
    """The arguments that a lowered function takes: those that are no constants, tuples taken apart."""
    if isinstance(kind, tuple):
        for one, inner in zip(value, kind, strict=True):
            _left(one, inner, given)
    elif kind != "constexpr":
        given.append(value)


def _told(error: BaseException) -> str:
    """The compiler's last word, in one line."""
    cause = error.__cause__ or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return lines[-1] if lines else type(cause).__name__


@functools.cache
def library() -> tuple[tuple[Any, str, Any, Any], ...]:
    """Each place of Triton's modules that holds an interpreted function, with it and the jit function that a compiler takes."""
    made: dict[Any, Any] = {}
    places = []
    for name, module in list(sys.modules.items()):
        if not name.startswith("triton."):
            continue
        for member, value in list(vars(module).items()):
            if isinstance(value, InterpretedFunction):
                if value not in made:
                    made[value] = JITFunction(value.fn)
                places.append((module, member, value, made[value]))
    return tuple(places)


def compiled(value: Any) -> Any:
    """What a function of Triton's library is to its compiler; any other value as it is."""
    if isinstance(value, InterpretedFunction):
        return next((function for _, _, known, function in library() if known is value), value)
    return getattr(value, "__dict__", {}).get(libdevice.COMPILED, value)


@contextmanager
def _compiling() -> Iterator[None]:
    """Triton's modules hold what its compiler takes until the block ends."""
    replaced: list[tuple[Any, str, Any]] = []
    for module, member, function in (
        *((module, member, function) for module, member, _, function in library()),
        *libdevice.compiled_functions(),
    ):
        replaced.append((module, member, vars(module)[member]))
        setattr(module, member, function)
    try:
        yield
    finally:
        for module, member, value in replaced:
            setattr(module, member, value)
