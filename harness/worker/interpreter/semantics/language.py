# ruff: noqa: N802 -- visitors are named by Python's nodes
"""Kernels as a compiler reads them: the rewriting of their text, and the functions that the rewritten text calls.

Triton's interpreter leaves much to Python, which computes something else. Here:

- Expressions: `and`, `or`, `not`, conditionals, `min` and `max` compute all operands and return a tensor if any operand is a
  tensor. Python returns an operand unchanged: `two and four` is four, and the right side of `and` may be skipped.
- Assignments, also annotated ones and those of tuples, make tensors of numbers; Python's quotients round down.
- Loops count in tensors. Python's integers never overflow and have no type, so that a kernel could detect the interpreter.
  A compiled loop counts upwards, as signed numbers, until it is not less than its end; it counts down only if its step is a
  constant. `tl.static_range` counts at compile time and keeps Python's integers.
- Calls reach the replacement of a builtin that a kernel holds itself (`exp = tl.exp`, `from triton.language import cast`, a
  closure, a function made by `@core.extern`); the interpreter replaces only members of Triton's modules.
- `.value` of a constant that the interpreter unwrapped is that constant. Closures keep their variables.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import triton.language as tl
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter

from harness.worker.interpreter.traffic import refusing

_PLAIN = (bool, int, float, str, tuple, type(None), tl.dtype)
_OF_CONSTANTS = (len, int, float, bool, str, abs, list, round)
"""Python functions that a compiler calls with the values of constants."""
_FACTORY = "with_closure"
_LIBRARIES = "triton.language.extra."

_replacements: dict[int, tuple[Any, Any]] = {}
"""Replacement by a builtin's identity, with the builtin itself, so that no other object gets the identity."""


def remember(changes: Iterable[tuple[Any, str, Any]]) -> None:
    """Store the replacements of builtins from the changes of a scope: owner, name and the value before."""
    for owner, name, before in changes:
        if callable(before) and not isinstance(owner, type):
            _replacements[id(before)] = getattr(owner, name), before


class Semantic(TritonSemantic):  # type: ignore[misc]
    """Triton's semantic, with the functions that rewritten kernels call."""

    dot_scaled = staticmethod(refusing("dot_scaled"))

    def _load_legacy(self, *args: Any, **named: Any) -> Any:
        """A load tests whether `other` was given. In the interpreter a tensor of one value is false if the value is 0."""
        scope = interpreter._LangPatchScope()
        scope.set_attr(tl.tensor, "__bool__", lambda _: True)
        try:
            return super()._load_legacy(*args, **named)
        finally:
            scope.restore()

    def called(self, function: Any) -> Any:
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
            return functools.partial(function, _semantic=self)
        return function

    def value_of(self, value: Any) -> Any:
        """`.value` in a kernel: a compiler wraps all constants, the interpreter only those of modules."""
        return value if isinstance(value, _PLAIN) else value.value

    def combined(self, method: str, *operands: Callable[[], Any]) -> Any:
        """`and` or `or`: constants decide at compile time; all tensors are combined."""
        stop = method == "logical_or"
        tensors: list[Any] = []
        value = None
        for operand in operands:
            value = operand()
            if _is_tensor(value):
                tensors.append(value)
            elif bool(value) is stop:
                return value
        if not tensors:
            return value
        return functools.reduce(lambda right, left: getattr(left, method)(right), reversed(tensors))

    def negated(self, value: Any) -> Any:
        """`not`."""
        return value.__not__() if _is_tensor(value) else not value

    def chosen(self, test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """A conditional expression."""
        value = then() if test else otherwise()
        return self._as_tensor(value) if _is_tensor(test) else value

    def of_tensors(self, function: Any) -> Any:
        """Python's `min` and `max` for tensors too; any other function unchanged."""
        operations = {builtins.min: tl.minimum, builtins.max: tl.maximum}
        if not any(function is builtin for builtin in operations):
            return function

        def reduced(*args: Any, **named: Any) -> Any:
            if any(map(_is_tensor, args)):
                return functools.reduce(functools.partial(operations[function], **named), args)
            return function(*args, **named)

        return reduced

    def assigned(self, value: Any) -> Any:
        """The assigned value, with a tensor for each number in it, tuples and lists included."""
        if type(value) in (tuple, list):
            return type(value)(map(self.assigned, value))
        if type(value) is tl.tuple:
            parts = [self.assigned(part) for part in value.values]
            return tl.tuple(parts) if all(map(_is_tensor, parts)) else value
        return self._as_tensor(value.value if isinstance(value, tl.constexpr) else value)

    def annotated(self, annotation: Any, value: Any) -> Any:
        """The value of an annotated assignment."""
        return value if annotation is tl.constexpr else self.assigned(self.to_tensor(value, False))

    def looped(self, iterator: Any, *args: Any, **named: Any) -> Any:
        """The values of a loop; Python's `range`, under any name, is Triton's."""
        return (self.counted if iterator is builtins.range else iterator)(*args, **named)

    def counted(self, arg1: Any, arg2: Any = None, step: Any = None, **_: Any) -> Iterator[Any]:
        """The values of a loop, in the common type of its bounds; `ValueError` if the loop has no end."""
        ends = (0, arg1) if arg2 is None else (arg1, arg2)
        values = (*ends, 1 if step is None else step)
        bounds = [value.value if isinstance(value, tl.constexpr) else value for value in values]
        dtype = functools.reduce(self.integer_promote_impl, map(_dtype, bounds))
        bits = int(dtype.primitive_bitwidth)
        for value in _counted(*bounds, bits=bits):
            yield self.scalar_constant(value if dtype.is_int_signed() else value % (1 << bits), dtype)

    def _as_tensor(self, value: Any) -> Any:
        return self.to_tensor(value, False) if isinstance(value, (bool, int, float)) else value


def static_range(arg1: Any, arg2: Any = None, step: Any = None) -> range:
    """The values of a loop that counts at compile time."""
    start, end = (0, arg1) if arg2 is None else (arg1, arg2)
    return range(start, end, 1 if step is None else step)


def compile_and_exec(self: Any, tree: ast.Module) -> Any:
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


class Rewriter(interpreter.ASTTransformer):  # type: ignore[misc]
    """Makes calls of `Semantic`'s functions of a kernel's text."""

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        """Rewrite an assignment so that a number becomes a tensor, as Triton does; the numbers in tuples too."""
        node.value = self.visit(node.value)
        changed: ast.Assign = super().visit_Assign(node)
        changed.value = _call("assigned", node, [changed.value])
        return changed

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        """The value becomes a tensor too, unless it is annotated as a constant."""
        if node.value is None:
            return node
        value = _call("annotated", node, [self.visit(node.annotation), self.visit(node.value)])
        return ast.copy_location(ast.Assign(targets=[node.target], value=value), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        """`n -= 2` makes a tensor of a constant too."""
        if not isinstance(node.target, ast.Name):
            self.generic_visit(node)
            return node
        before = ast.copy_location(ast.Name(id=node.target.id, ctx=ast.Load()), node.target)
        value = ast.copy_location(ast.BinOp(before, node.op, node.value), node)
        changed: ast.stmt = self.visit(ast.copy_location(ast.Assign([node.target], value), node))
        return changed

    def visit_For(self, node: ast.For) -> ast.For:
        """Rewrite a loop over a call, such as `range(n)`, so that it counts in tensors, as a compiled loop does."""
        self.generic_visit(node)
        call = node.iter
        if isinstance(call, ast.Call):
            node.iter = _call("looped", call, [call.func, *call.args], call.keywords)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """`and` and `or`."""
        self.generic_visit(node)
        method = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
        return _call("combined", node, [ast.Constant(method), *map(_later, node.values)])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """`not`."""
        self.generic_visit(node)
        return _call("negated", node, [node.operand]) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """Conditional expressions."""
        self.generic_visit(node)
        return _call("chosen", node, [node.test, _later(node.body), _later(node.orelse)])

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """`min` and `max`."""
        if node.id in ("min", "max") and isinstance(node.ctx, ast.Load):
            return _call("of_tensors", node, [node])
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """Calls of builtins under other names."""
        self.generic_visit(node)
        node.func = _call("called", node.func, [node.func])
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """`.value` of constants."""
        self.generic_visit(node)
        if node.attr != "value" or not isinstance(node.ctx, ast.Load):
            return node
        return _call("value_of", node.value, [node.value])


def _call(helper: str, node: ast.AST, args: list[ast.expr], keywords: Sequence[ast.keyword] = ()) -> ast.expr:
    """The expression `interpreter_semantic.helper(args)`, at the line of `node`."""
    semantic = ast.Name(id="interpreter_semantic", ctx=ast.Load())
    function = ast.Attribute(value=semantic, attr=helper, ctx=ast.Load())
    return ast.copy_location(ast.Call(func=function, args=args, keywords=list(keywords)), node)


def _later(node: ast.expr) -> ast.expr:
    """A function without arguments that computes the expression."""
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.copy_location(ast.Lambda(args=nothing, body=node), node)


@functools.cache
def _is_left_out(method: Any) -> bool:
    """Whether a method of tensors is a builtin that the interpreter does not replace, as `x.exp()`."""
    return method in vars(tl.tensor).values() and "_semantic" in inspect.signature(method).parameters


def _of_values(function: Callable[..., Any], *args: Any) -> Any:
    return function(*(arg.value if isinstance(arg, tl.constexpr) else arg for arg in args))


def _is_tensor(value: Any) -> bool:
    return isinstance(value, tl.tensor)


def _counted(start: Any, end: Any, step: Any, *, bits: int) -> range:
    """Return the numbers that a loop counts, as the compiled loop does with integers of `bits` bits.

    Only a constant step may count down. Raises `ValueError` for a loop that would not end.
    """
    first, last, by = (_signed(int(bound), bits) for bound in (start, end, step))
    if by < 0 and not _is_tensor(step):
        return range(first, last, by)
    if first >= last:
        return range(0)
    if by <= 0:
        raise ValueError(
            f"a loop from {first} to {last} by {by} has no end where it is compiled: a step that is no constant counts upwards; "
            "make it a tl.constexpr"
        )
    return range(first, last, by)


def _signed(value: int, bits: int) -> int:
    """The signed number with the same bits."""
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


def _dtype(bound: Any) -> Any:
    """The type of a tensor; the narrowest type of 32 or 64 bits that holds a constant, unsigned if no signed type does."""
    if _is_tensor(bound):
        return bound.dtype
    for bits in (32, 64):
        if -(1 << (bits - 1)) <= bound < 1 << bits:
            return getattr(tl, f"{'int' if bound < 1 << (bits - 1) else 'uint'}{bits}")
    raise ValueError(f"a loop's bound is {bound}, which 64 bits do not hold")
