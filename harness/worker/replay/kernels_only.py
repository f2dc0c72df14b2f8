"""
Builds the jit functions of a candidate from their source text alone, without running its host code.

Only function bodies are compiled, without decorators, defaults, annotations and module-level code. Values that a body
names come from the record as plain data: Triton's language, numbers and other jit functions.
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
from typing import Any, NamedTuple

import msgspec
import triton
import triton.language as tl

from harness.wire.calls.records import Constexpr, Dtype, Function, FunctionNotes, Language, Value
from harness.worker.candidate.loading import package_file
from harness.worker.interpreter.interpreted_launches import adopt_kernel
from harness.worker.interpreter.semantics.expressions import names, rewrite_definition
from harness.worker.kit import candidate_trace
from suites.source.python_source import source_lines

BUILTINS = {
    name: getattr(builtins, name)
    for name in (
        "range", "min", "max", "len", "abs", "int", "float", "bool", "str", "tuple", "list", "zip", "enumerate",
        "isinstance", "print", "sum", "round", "reversed", "any", "all", "map", "filter", "sorted", "set", "dict", "divmod",
        "pow", "repr", "next", "iter", "Exception", "KeyError", "ValueError", "TypeError", "AssertionError", "IndexError",
        "ZeroDivisionError", "NotImplementedError", "RuntimeError",
    )
}  # fmt: skip
"""Python builtins that kernels and constexpr functions may call. None of them opens a file or imports."""
MOST_BUILT = 64
_TENSORS = frozenset({"torch.Tensor", "Tensor"})
"""Annotations of assignments that are dropped: they add nothing, and no kernel may use the module torch."""


class NotAKernel(Exception):
    """A jit function cannot be built from its source text and plain values."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.line = line


class _Text(NamedTuple):
    """The text of a module, parsed."""

    file: str
    definitions: dict[tuple[str, int], ast.FunctionDef]


class Kernels:
    """Builds the jit functions of one candidate on demand."""

    def __init__(self, source: str, file: str, decode: Callable[[Value], Any]) -> None:
        # Triton reads the source of a function by `linecache`, and the verifier has no such file.
        linecache.cache[file] = (len(source), None, [f"{line}\n" for line in source_lines(source)], file)
        self._decode = decode
        self._texts = {"": _Text(file, _definitions(source))}
        """Texts by module name; helpers of the package are read when a record names them."""
        self._codes: dict[Function, tuple[CodeType, CodeType]] = {}
        self._built: dict[bytes, dict[Function, Any]] = {}

    def build(self, notes: tuple[FunctionNotes, ...]) -> dict[Function, Any]:
        """The functions of one record, linked to each other.

        Functions that name only constants are reused for an equal record.
        """
        key = msgspec.msgpack.encode(notes)  # equal numbers of different types are different constants
        functions = self._built.get(key)
        if functions is None:
            functions = self._build(notes)
            values = [value for note in notes for value in (*note.names.values(), *note.defaults)]
            if len(self._built) < MOST_BUILT and all(map(_is_constant, values)):
                self._built[key] = functions
        return functions

    def _build(self, notes: tuple[FunctionNotes, ...]) -> dict[Function, Any]:
        functions: dict[Function, Any] = {}
        scopes: dict[Function, dict[str, Any]] = {}
        for note in notes:
            functions[note.function], scopes[note.function] = self._function(note)
        for note in notes:
            scope = scopes[note.function]
            for name, value in note.names.items():
                if isinstance(value, Function):
                    scope[name] = functions[value]
                elif name in scope:
                    scope[name] = language(value) if isinstance(value, Language) else self._decode(value)
        return functions

    def _function(self, notes: FunctionNotes) -> tuple[Any, dict[str, Any]]:
        if notes.function not in self._codes:
            name, line, module = notes.function.name, notes.function.line, notes.function.module
            text = self._texts.get(module) or self._texts.setdefault(module, _package_text(module))
            if (name, line) not in text.definitions:
                raise NotAKernel(f"no function `{name}` begins on line {line}", None)
            bare = _bare(text.definitions[name, line])
            plain = _code(bare, text.file)
            # The interpreter's transformer changes the definition itself.
            self._codes[notes.function] = plain, _code(rewrite_definition(bare), text.file)
        plain, rewritten = self._codes[notes.function]
        scope: dict[str, Any] = {"__builtins__": BUILTINS, "tl": tl, **dict.fromkeys(notes.names), **names()}
        body = self._defined(plain, scope, notes)
        if notes.computes_constants:
            return triton.constexpr_function(body), scope
        fn = triton.jit(body)
        adopt_kernel(fn, self._defined(rewritten, scope, notes), notes.unspecialised)
        return fn, scope

    def _defined(self, code: CodeType, scope: dict[str, Any], notes: FunctionNotes) -> FunctionType:
        """The function of a bare definition. Running the definition runs nothing of its body."""
        space: dict[str, Any] = {}
        exec(code, scope, space)  # noqa: S102 (a bare `def`)
        function: FunctionType = space[notes.function.name]
        function.__annotations__ = notes.types | dict.fromkeys(notes.constexprs, tl.constexpr)
        function.__defaults__ = tuple(map(self._decode, notes.defaults)) or None
        function.__module__ = candidate_trace.NAME.removesuffix(".py")
        return function


def _definitions(source: str) -> dict[tuple[str, int], ast.FunctionDef]:
    """The functions of a module by name and first line, decorators included."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the static stage reported invalid escapes already
        tree = ast.parse(source)
    return {
        (node.name, min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])): node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }


def _package_text(module: str) -> _Text:
    """Another module of the candidate's package, as its file holds it."""
    file = package_file(module)
    if file is None:
        raise NotAKernel(f"the candidate's package has no module {module}", None)
    return _Text(str(file), _definitions(file.read_text(encoding="utf-8")))


def _code(node: ast.FunctionDef, file: str) -> CodeType:
    module = ast.fix_missing_locations(ast.Module(body=[node], type_ignores=[]))
    return compile(module, file, "exec")


def _is_constant(value: Value) -> bool:
    """Whether the value is the same in every call; memory, for example, belongs to one call."""
    if isinstance(value, Constexpr):
        return _is_constant(value.value)
    return value is None or isinstance(value, (bool, int, float, str, Dtype, Language, Function))


def language(reference: Language) -> Any:
    """The module or member of Triton's language; raises `NotAKernel` for any other module."""
    module = sys.modules.get(reference.module)
    if module is None or reference.module.partition(".")[0] not in ("triton", "math"):
        raise NotAKernel(f"a kernel uses the module {reference.module}", None)
    return getattr(module, reference.member) if reference.member else module


def _bare(node: ast.FunctionDef) -> ast.FunctionDef:
    """The definition without anything that would run when it is defined."""
    plain = copy.deepcopy(node)
    plain.decorator_list = []
    plain.returns = None
    plain.args.defaults = []
    plain.args.kw_defaults = [None] * len(plain.args.kwonlyargs)
    for argument in (*plain.args.args, *plain.args.kwonlyargs):
        argument.annotation = None
    for statement in ast.walk(plain):
        if isinstance(statement, ast.AnnAssign) and ast.unparse(statement.annotation) in _TENSORS:
            statement.annotation = ast.copy_location(ast.Constant(value=None), statement.annotation)
    return plain
