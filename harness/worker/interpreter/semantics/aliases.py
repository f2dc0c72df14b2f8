"""Triton's builtins and constants in interpreted kernels, whatever name a kernel has for them.

While a kernel runs, the interpreter replaces members of Triton's modules. A kernel that holds a builtin itself (`exp = tl.exp`,
`from triton.language import cast`, a closure, a function made by `@core.extern`) would still call the compiler's builtin. Here
each call in a kernel passes `called`, which returns the replacement. Constants of modules (`LOG2E = tl.constexpr(1.44)`)
compute with tensors as their plain values do. `.value` of a constant that the interpreter unwrapped is that constant.
Closures keep their variables.
"""

from __future__ import annotations

import ast
import functools
import inspect
import operator
import sys
from collections.abc import Callable, Iterable
from typing import Any

import triton.language as tl
from triton.runtime import interpreter

from .expressions import semantic_call

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    f"__{name}__": getattr(operator, f"__{name}__")
    for name in (
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"),
        *("lt", "le", "gt", "ge", "eq", "ne"),
    )
}
_PLAIN = (bool, int, float, str, tuple, type(None), tl.dtype)
_OF_CONSTANTS = (len, int, float, bool, str, abs, list, round)
"""Python functions that a compiler calls with the values of constants."""
_FACTORY = "with_closure"
_LIBRARIES = "triton.language.extra."

_replacements: dict[int, tuple[Any, Any]] = {}
"""Replacement by a builtin's identity, with the builtin itself, so that no other object gets the identity."""


def install() -> None:
    """Once a process, before a kernel is interpreted."""
    semantic = interpreter.interpreter_semantic
    semantic.called, semantic.value_of = called, _value_of
    transformer = interpreter.ASTTransformer
    transformer.visit_Call, transformer.visit_Attribute = _visit_call, _visit_attribute
    interpreter.FunctionRewriter._compile_and_exec = _compile_and_exec
    for name, compute in _OPERATORS.items():
        setattr(tl.constexpr, name, _unwrapping(getattr(tl.constexpr, name), compute))


def remember(changes: Iterable[tuple[Any, str, Any]]) -> None:
    """Store the replacements of builtins from the changes of a scope: owner, name and the value before."""
    for owner, name, before in changes:
        if callable(before) and not isinstance(owner, type):
            _replacements[id(before)] = getattr(owner, name), before


def called(function: Any) -> Any:
    """The function that a call in a kernel reaches: the replacement of a builtin, or the function itself."""
    replacement = _replacements.get(id(function))
    if replacement is not None:
        return replacement[0]
    if (getattr(function, "__module__", "") or "").startswith(_LIBRARIES):
        # A module that was loaded a second time has functions of its own.
        return getattr(sys.modules.get(function.__module__), function.__name__, function)
    if any(function is builtin for builtin in _OF_CONSTANTS):
        return functools.partial(_of_values, function)
    own = inspect.isfunction(function) and tl.core.is_builtin(function)
    if own or (inspect.ismethod(function) and _is_left_out(function.__func__)):
        return functools.partial(function, _semantic=interpreter.interpreter_semantic)
    return function


@functools.cache
def _is_left_out(method: Any) -> bool:
    """Whether a method of tensors is a builtin that the interpreter does not replace, as `x.exp()`."""
    return method in vars(tl.tensor).values() and "_semantic" in inspect.signature(method).parameters


def _of_values(function: Callable[..., Any], *args: Any) -> Any:
    return function(*(arg.value if isinstance(arg, tl.constexpr) else arg for arg in args))


def _visit_call(self: Any, node: ast.Call) -> ast.Call:
    self.generic_visit(node)
    node.func = semantic_call("called", node.func, [node.func])
    return node


def _visit_attribute(self: Any, node: ast.Attribute) -> ast.expr:
    self.generic_visit(node)
    if node.attr != "value" or not isinstance(node.ctx, ast.Load):
        return node
    return semantic_call("value_of", node.value, [node.value])


def _value_of(value: Any) -> Any:
    """`.value` in a kernel: a compiler wraps all constants, the interpreter only those of modules."""
    return value if isinstance(value, _PLAIN) else value.value


def _unwrapping(method: Callable[..., Any], compute: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def operate(self: Any, other: Any) -> Any:
        return compute(self.value, other) if isinstance(other, tl.tensor) else method(self, other)

    return operate


def _compile_and_exec(self: Any, tree: ast.Module) -> Any:
    """The rewritten function, defined inside a function that takes the closure's variables as parameters."""
    fn = self.fn
    space = fn.__globals__
    for name, value in vars(interpreter).items():
        space.setdefault(name, value)
    parameters = [ast.arg(arg=name) for name in fn.__code__.co_freevars]
    arguments = ast.arguments(posonlyargs=[], args=parameters, kwonlyargs=[], kw_defaults=[], defaults=[])
    result = ast.Return(ast.Name(id=fn.__name__, ctx=ast.Load()))
    factory = ast.FunctionDef(_FACTORY, arguments, [*tree.body, result], [])
    factory.type_params = []  # type: ignore[attr-defined]  # since Python 3.12
    module = ast.fix_missing_locations(ast.Module([factory], []))
    local: dict[str, Any] = {}
    exec(compile(module, self.filename, "exec"), space, local)  # noqa: S102 (the kernel's own text)
    return local[_FACTORY](*(cell.cell_contents for cell in fn.__closure__ or ()))
