"""
The kernels of a candidate without its host code: jit functions built from their text alone.

Only bodies of functions are taken, and only such as stay within Triton's language; decorators, defaults, annotations
and all that runs on import are left out. What a kernel's text leaves open comes from the record, as plain data.
"""

from __future__ import annotations

import ast
import builtins
import copy
import linecache
import sys
import warnings
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

import msgspec
import triton
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.jit import ConstexprFunction, KernelInterface

from harness.worker.interpreter import constants
from harness.worker.serving import trace
from harness.worker.serving.records import Constexpr, Dtype, Function, FunctionNotes, Language, Value
from harness.worker.ttir import lowering

MODULES = frozenset({"triton", "math", "triton.language"})
BUILTINS = {
    name: getattr(builtins, name)
    for name in (
        "range", "min", "max", "len", "abs", "int", "float", "bool", "str", "tuple", "list", "zip", "enumerate",
        "isinstance", "print", "sum", "round", "reversed", "ValueError", "TypeError", "AssertionError",
    )
}  # fmt: skip
CONSTANT_BUILTINS = {
    name: getattr(builtins, name)
    for name in (
        "any", "all", "map", "filter", "sorted", "set", "dict", "divmod", "pow", "repr", "next", "iter", "Exception", "KeyError",
        "IndexError", "ZeroDivisionError", "NotImplementedError", "RuntimeError",
    )
}  # fmt: skip
"""What functions of constants may name beside, which are Python."""
MOST_BUILT = 64
"""Records whose functions are kept."""
_HIDDEN = frozenset({"handle", "data", "format", "format_map", "mro", "fn", "const"})
"""Attributes through which the interpreter's values lead to numpy or to Python's insides, or that a compiler answers in another way."""
_STATEMENTS = (
    ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.If, ast.For, ast.While, ast.Return, ast.Pass, ast.Assert,
    ast.Break, ast.Continue, ast.With, ast.Raise,
)  # fmt: skip
_FORBIDDEN = (
    ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.DictComp, ast.SetComp, ast.ClassDef,
    ast.FunctionDef, ast.AsyncFunctionDef, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Delete, ast.Try,
)  # fmt: skip
_OF_CONSTANTS = (ast.Lambda, ast.NamedExpr, ast.DictComp, ast.SetComp, ast.Try)
"""Forbidden in kernels, and plain Python in a function of constants."""


_TENSORS = frozenset({"torch.Tensor", "Tensor"})
"""Annotations of assignments that say what is so anyway, of a module that no kernel may use."""


class NotAKernel(Exception):
    """A jit function whose text is more than Triton's language, or is not there."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.line = line


class Kernels:
    """The jit functions of one candidate, built when they are asked for."""

    def __init__(
        self, source: str, file: str, make_value: Callable[[Value], Any], *, whole: bool = False
    ) -> None:
        """`whole`: readable functions are to be compiled to the end, so that those called `noinline` stay apart."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes and the like were told by the static stage
            tree = ast.parse(source)
        # Triton asks Python for the text of a function, and the verifier has no such file.
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        self._file = file
        self._make_value = make_value
        self._whole = whole
        self._lists_some = "do_not_specialize" in source
        self._definitions = {
            (node.name, min([node.lineno, *(one.lineno for one in node.decorator_list)])): node
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef)
        }
        self._known: dict[Function, tuple[FunctionNotes, tuple[str, ...]]] = {}
        self._codes: dict[Function, tuple[CodeType, CodeType]] = {}
        self._built: dict[bytes, dict[Function, Any]] = {}

    def build(self, notes: tuple[FunctionNotes, ...], *, readable: bool = False) -> dict[Function, Any]:
        """
        The functions of one record, which name each other; those of an equal record again, where all they name is constant.

        `readable`: to be lowered by the compiler (`ttir`), not interpreted.
        """
        key = msgspec.msgpack.encode(
            (notes, readable)
        )  # equal numbers of different types are different constants
        made = self._built.get(key)
        if made is None:
            made = self._build(notes, readable=readable)
            if len(self._built) < MOST_BUILT and all(map(_is_constant, notes)):
                self._built[key] = made
        return made

    def _build(self, notes: tuple[FunctionNotes, ...], *, readable: bool) -> dict[Function, Any]:
        made: dict[Function, Any] = {}
        scopes: dict[Function, dict[str, Any]] = {}
        for one in notes:
            made[one.function], scopes[one.function] = self._function(one, readable=readable)
        for one in notes:
            for name, value in one.names.items():
                if isinstance(value, Function):
                    if value not in made:
                        raise NotAKernel(f"the kernel `{value.name}` is nowhere in the source", None)
                    scopes[one.function][name] = made[value]
                elif name in scopes[one.function]:
                    found = language(value) if isinstance(value, Language) else self._make_value(value)
                    scopes[one.function][name] = lowering.compiled(found) if readable else found
        return made

    def _function(self, notes: FunctionNotes, *, readable: bool) -> tuple[Any, dict[str, Any]]:
        names = self._checked(notes)
        plain, rewritten = self._codes[notes.function]
        known = BUILTINS | (CONSTANT_BUILTINS if notes.computes_constants else {})
        scope: dict[str, Any] = {"__builtins__": known, "tl": tl, **dict.fromkeys(names)}
        scope["interpreter_semantic"] = interpreter.interpreter_semantic
        body = self._defined(plain, scope, notes)
        if notes.computes_constants:
            return triton.constexpr_function(body), scope
        if readable:
            text = self._definitions[notes.function.name, notes.function.line]
            listed = self._unspecialised(notes)
            listing = {
                "do_not_specialize": listed,
                "debug": notes.debug,
                "noinline": notes.noinline and self._whole,
            }
            return lowering.Readable(body, _bare(text), self._file, **listing), scope
        fn = triton.jit(body)
        if isinstance(fn, interpreter.InterpretedFunction):
            fn.kwargs["do_not_specialize"] = self._unspecialised(notes)
            interpreter.InterpretedFunction.rewritten_fn[body] = self._defined(rewritten, scope, notes)
        return fn, scope

    def _unspecialised(self, notes: FunctionNotes) -> list[str]:
        """Parameters that the record says stay tensors where they are one, as far as the text can have said so."""
        typed = self._annotated(notes.function)
        return [name for name in notes.unspecialised if name in typed or self._lists_some]

    def _types(self, notes: FunctionNotes) -> dict[str, Any]:
        """Parameters whose type the record says is fixed, likewise."""
        typed = self._annotated(notes.function)
        return {name: kind for name, kind in notes.types.items() if name in typed and constants.is_type(kind)}

    def _annotated(self, function: Function) -> set[str]:
        node = self._definitions[function.name, function.line]
        return {one.arg for one in node.args.args if one.annotation is not None}

    def _checked(self, notes: FunctionNotes) -> tuple[str, ...]:
        """The names that the function's text leaves open; what was found for the very same notes holds still."""
        known = self._known.get(notes.function)
        if known is None or known[0] != notes:
            plain = self._plain(notes.function)
            known = self._known[notes.function] = (
                notes,
                check(plain, notes.names, constants=notes.computes_constants),
            )
            if notes.function not in self._codes:
                self._codes[notes.function] = self._compiled(plain)
        return known[1]

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
        """The function of a checked, bare definition: running the definition runs nothing of it."""
        space: dict[str, Any] = {}
        exec(code, scope, space)  # noqa: S102 (a bare `def`, see `check`)
        function: FunctionType = space[notes.function.name]
        function.__annotations__ = self._types(notes) | dict.fromkeys(notes.constexprs, tl.constexpr)
        function.__defaults__ = tuple(self._make_value(one) for one in notes.defaults) or None
        function.__module__ = trace.NAME.removesuffix(".py")
        return function


def _is_constant(notes: FunctionNotes) -> bool:
    """Whether nothing that a function names or has by default is of one call alone, as memory is."""
    return all(_is_number(value) for value in (*notes.names.values(), *notes.defaults))


def _is_number(value: Value) -> bool:
    if isinstance(value, Constexpr):
        return _is_number(value.value)
    return value is None or isinstance(value, (bool, int, float, str, Dtype, Language, Function))


def check(node: ast.FunctionDef, values: Mapping[str, Value], *, constants: bool = False) -> tuple[str, ...]:
    """
    The names that a body uses and does not define; `NotAKernel` where it is more than Triton's language.

    `constants`: it is a `triton.constexpr_function`, which computes with Python's values.
    """
    if node.args.kwonlyargs or node.args.vararg or node.args.kwarg or node.args.posonlyargs:
        raise NotAKernel(f"kernel `{node.name}` has parameters that Triton does not take", node.lineno)
    own = {one.arg for one in node.args.args}
    inner = [one for statement in node.body for one in ast.walk(statement)]
    own |= {one.id for one in inner if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)}
    own |= {one.arg for one in inner if isinstance(one, ast.arg)}
    own |= {one.name for one in inner if isinstance(one, ast.ExceptHandler) and one.name}
    allowed = _OF_CONSTANTS if constants else ()
    plain = BUILTINS.keys() | (CONSTANT_BUILTINS.keys() if constants else ())
    used: dict[str, None] = {}
    roots = set()
    within = {id(one.value) for one in inner if isinstance(one, ast.Attribute)}
    for one in inner:
        foreign = isinstance(one, _FORBIDDEN) or not isinstance(one, _STATEMENTS)
        if isinstance(one, (ast.stmt, *_FORBIDDEN)) and foreign and not isinstance(one, allowed):
            raise NotAKernel(f"kernel `{node.name}` holds what is not of Triton's language", one.lineno)
        if isinstance(one, ast.Attribute):
            if _check_attribute(node.name, one, values, own) and id(one) not in within:
                raise NotAKernel(f"kernel `{node.name}` hands the module `{ast.unparse(one)}` on", one.lineno)
            if isinstance(one.value, ast.Name):
                roots.add(id(one.value))
        if isinstance(one, ast.keyword) and (one.arg or "").startswith("_"):
            raise NotAKernel(f"kernel `{node.name}` uses the private argument `{one.arg}`", one.value.lineno)
        if (
            isinstance(one, ast.Call)
            and isinstance(one.func, ast.Name)
            and one.func.id == "isinstance"
            and not constants
        ):
            _check_kind(node.name, one)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and one.id not in own:
            if one.id.startswith("__"):
                raise NotAKernel(f"kernel `{node.name}` uses `{one.id}`", one.lineno)
            if one.id in values:
                used[one.id] = None
            elif one.id not in plain:
                what = "which is no number, text, dtype, constexpr or jit function"
                raise NotAKernel(f"kernel `{node.name}` uses the name `{one.id}`, {what}", one.lineno)
    for one in inner:
        named = values.get(one.id) if isinstance(one, ast.Name) and one.id not in own else None
        if isinstance(named, Language) and not named.member and id(one) not in roots:
            raise NotAKernel(f"kernel `{node.name}` hands the module `{named.module}` on", node.lineno)
    return tuple(used)


def _check_kind(kernel: str, call: ast.Call) -> None:
    """Descriptors may be told from tensors; Python's types and Triton's differ between an interpreter and a compiler."""
    kinds = [_path(one) for one in call.args[1:] if isinstance(one, (ast.Name, ast.Attribute))]
    if len(call.args) != 2 or not kinds or not kinds[0][-1].startswith("tensor_descriptor"):
        raise NotAKernel(
            f"kernel `{kernel}` asks for a value's type, which an interpreter and a device answer differently",
            call.lineno,
        )


def language(reference: Language) -> Any:
    """The module or member of Triton's language; `NotAKernel` for anything else."""
    module = sys.modules.get(reference.module)
    known = reference.module in MODULES or reference.module.startswith("triton.language.")
    if module is None or not (known or reference.module.startswith("triton.")):
        raise NotAKernel(f"a kernel uses the module {reference.module}", None)
    if not reference.member:
        if not known:
            raise NotAKernel(f"a kernel uses the module {reference.module}", None)
        return module
    found = vars(module).get(reference.member)
    if not _of_language(found) or _is_private(reference.member, found):
        raise NotAKernel(f"a kernel uses {reference.module}.{reference.member}", None)
    return found


def _check_attribute(kernel: str, node: ast.Attribute, values: Mapping[str, Value], own: set[str]) -> bool:
    """A member of a module must be of the language; other attributes must not lead to Python's insides. Whether it is a module itself."""
    path = _path(node)
    module = False
    root = values.get(path[0]) if path and path[0] not in own else None
    if isinstance(root, Language) and not root.member:
        place: Any = language(root)
        for at, name in enumerate(path[1:], 1):
            if not isinstance(place, ModuleType):
                break
            if _is_private(name, getattr(place, name, None)) or not hasattr(place, name):
                raise NotAKernel(f"kernel `{kernel}` uses `{'.'.join(path)}`", node.lineno)
            place = getattr(place, name)
            last = at == len(path) - 1
            module = last and isinstance(place, ModuleType)
            if isinstance(place, ModuleType):
                # The chain is checked as a whole, from its outermost attribute; a shorter one is a part of it.
                if not place.__name__.startswith("triton.language"):
                    raise NotAKernel(f"kernel `{kernel}` uses `{'.'.join(path)}`", node.lineno)
            elif not _of_language(place):
                raise NotAKernel(f"kernel `{kernel}` uses `{'.'.join(path)}`", node.lineno)
            elif last:
                return False
    if node.attr.startswith("_") or node.attr in _HIDDEN or not isinstance(node.ctx, ast.Load):
        raise NotAKernel(f"kernel `{kernel}` uses `.{node.attr}`", node.lineno)
    return module


def _of_language(found: Any) -> bool:
    """Whether a member of a module belongs to what kernels may use."""
    if isinstance(found, (bool, int, float, str, tl.dtype, tl.constexpr, ConstexprFunction, KernelInterface)):
        return True
    module = getattr(found, "__module__", None) or ""
    return callable(found) and (module.startswith("triton.language") or module == "math")


def _is_private(name: str, found: Any) -> bool:
    """Jit functions and functions of constants of Triton's library may be called by any name: kernels call `tl.standard._log2`."""
    return name.startswith("_") and not isinstance(found, (ConstexprFunction, KernelInterface))


def _path(node: ast.expr) -> list[str]:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else []


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
