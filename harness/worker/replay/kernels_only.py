"""
The kernels of a candidate without its host code: jit functions built from their text alone.

Only bodies of functions are taken; decorators, defaults, annotations and all that runs on import are left out. What a
kernel's text leaves open comes from the record, as plain data: Triton's language, numbers and other jit functions.
"""

from __future__ import annotations

import ast
import builtins
import copy
import linecache
import sys
import warnings
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

import msgspec
import triton
import triton.language as tl
from triton.runtime import interpreter

from harness.wire.records import Constexpr, Dtype, Function, FunctionNotes, Language, Value
from harness.worker.kit import candidate_trace

BUILTINS = {
    name: getattr(builtins, name)
    for name in (
        "range", "min", "max", "len", "abs", "int", "float", "bool", "str", "tuple", "list", "zip", "enumerate",
        "isinstance", "print", "sum", "round", "reversed", "any", "all", "map", "filter", "sorted", "set", "dict", "divmod",
        "pow", "repr", "next", "iter", "Exception", "KeyError", "ValueError", "TypeError", "AssertionError", "IndexError",
        "ZeroDivisionError", "NotImplementedError", "RuntimeError",
    )
}  # fmt: skip
"""Python's own functions that kernels and functions of constants may call: none that opens a file or imports."""
MOST_BUILT = 64
_TENSORS = frozenset({"torch.Tensor", "Tensor"})
"""Annotations of assignments that say what is so anyway, of a module that no kernel may use."""


class NotAKernel(Exception):
    """A jit function that cannot be built from the text of the source and plain values."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.line = line


class Kernels:
    """The jit functions of one candidate, built when they are asked for."""

    def __init__(self, source: str, file: str, make_value: Callable[[Value], Any]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes and the like were told by the static stage
            tree = ast.parse(source)
        # Triton asks Python for the text of a function, and the verifier has no such file.
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        self._file = file
        self._make_value = make_value
        self._definitions = {
            (node.name, min([node.lineno, *(one.lineno for one in node.decorator_list)])): node
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef)
        }
        self._codes: dict[Function, tuple[CodeType, CodeType]] = {}
        self._built: dict[bytes, dict[Function, Any]] = {}

    def build(self, notes: tuple[FunctionNotes, ...]) -> dict[Function, Any]:
        """The functions of one record, which name each other; those of an equal record again, where all they name is constant."""
        key = msgspec.msgpack.encode(notes)  # equal numbers of different types are different constants
        made = self._built.get(key)
        if made is None:
            made = self._build(notes)
            if len(self._built) < MOST_BUILT and all(map(_is_constant, notes)):
                self._built[key] = made
        return made

    def _build(self, notes: tuple[FunctionNotes, ...]) -> dict[Function, Any]:
        made: dict[Function, Any] = {}
        scopes: dict[Function, dict[str, Any]] = {}
        for one in notes:
            made[one.function], scopes[one.function] = self._function(one)
        for one in notes:
            for name, value in one.names.items():
                if isinstance(value, Function):
                    scopes[one.function][name] = made[value]
                elif name in scopes[one.function]:
                    found = language(value) if isinstance(value, Language) else self._make_value(value)
                    scopes[one.function][name] = found
        return made

    def _function(self, notes: FunctionNotes) -> tuple[Any, dict[str, Any]]:
        if notes.function not in self._codes:
            self._codes[notes.function] = self._compiled(self._plain(notes.function))
        plain, rewritten = self._codes[notes.function]
        scope: dict[str, Any] = {"__builtins__": BUILTINS, "tl": tl, **dict.fromkeys(notes.names)}
        scope["interpreter_semantic"] = interpreter.interpreter_semantic
        body = self._defined(plain, scope, notes)
        if notes.computes_constants:
            return triton.constexpr_function(body), scope
        fn = triton.jit(body)
        if isinstance(fn, interpreter.InterpretedFunction):
            fn.kwargs["do_not_specialize"] = list(notes.unspecialised)
            interpreter.InterpretedFunction.rewritten_fn[body] = self._defined(rewritten, scope, notes)
        return fn, scope

    def _plain(self, function: Function) -> ast.FunctionDef:
        node = self._definitions.get((function.name, function.line))
        if node is None:
            raise NotAKernel(f"no function `{function.name}` stands on line {function.line}", None)
        return _bare(node)

    def _compiled(self, plain: ast.FunctionDef) -> tuple[CodeType, CodeType]:
        """The bare definition as code, as it stands and as the interpreter rewrites it, which changes `plain`."""
        as_it_stands = self._code(plain)
        return as_it_stands, self._code(interpreter.ASTTransformer().visit(plain))

    def _code(self, node: ast.FunctionDef) -> CodeType:
        module = ast.fix_missing_locations(ast.Module(body=[node], type_ignores=[]))
        return compile(module, self._file, "exec")

    def _defined(self, code: CodeType, scope: dict[str, Any], notes: FunctionNotes) -> FunctionType:
        """The function of a bare definition: running the definition runs nothing of its body."""
        space: dict[str, Any] = {}
        exec(code, scope, space)  # noqa: S102 (a bare `def`)
        function: FunctionType = space[notes.function.name]
        function.__annotations__ = notes.types | dict.fromkeys(notes.constexprs, tl.constexpr)
        function.__defaults__ = tuple(self._make_value(one) for one in notes.defaults) or None
        function.__module__ = candidate_trace.NAME.removesuffix(".py")
        return function


def _is_constant(notes: FunctionNotes) -> bool:
    """Whether nothing that a function names or has by default is of one call alone, as memory is."""
    return all(_is_number(value) for value in (*notes.names.values(), *notes.defaults))


def _is_number(value: Value) -> bool:
    if isinstance(value, Constexpr):
        return _is_number(value.value)
    return value is None or isinstance(value, (bool, int, float, str, Dtype, Language, Function))


def language(reference: Language) -> Any:
    """The module or member of Triton's language; `NotAKernel` for anything else."""
    module = sys.modules.get(reference.module)
    if module is None or reference.module.partition(".")[0] not in ("triton", "math"):
        raise NotAKernel(f"a kernel uses the module {reference.module}", None)
    if not reference.member:
        return module
    return getattr(module, reference.member)


def _bare(node: ast.FunctionDef) -> ast.FunctionDef:
    """The definition without anything that would run when it is defined."""
    plain = copy.deepcopy(node)
    plain.decorator_list = []
    plain.returns = None
    plain.args.defaults = []
    for one in plain.args.args:
        one.annotation = None
    for inner in ast.walk(plain):
        if isinstance(inner, ast.AnnAssign) and ast.unparse(inner.annotation) in _TENSORS:
            inner.annotation = ast.copy_location(ast.Constant(value=None), inner.annotation)
    return plain
