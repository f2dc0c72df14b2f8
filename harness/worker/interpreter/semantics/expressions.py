"""Expressions of interpreted kernels as a compiler takes them: `and`, `or`, `not`, conditionals, `min`, `max` and assignments.

The interpreter leaves these to Python, which returns one operand unchanged: a number stays a number and its quotients round
down, `two and four` is four, and the right side of `and` may be skipped. A compiler computes all operands and returns a
tensor if any operand is a tensor. The same holds for annotated assignments and assignments of tuples.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Callable, Sequence
from typing import Any

import triton.language as tl
from triton.runtime import interpreter


def install() -> None:
    """Once a process, before a kernel is interpreted."""
    semantic = interpreter.interpreter_semantic
    semantic.combined, semantic.chosen, semantic.of_tensors = _combined, _chosen, _of_tensors
    semantic.negated, semantic.each_assigned, semantic.annotated = _negated, _each_assigned, _annotated
    transformer, assign = interpreter.ASTTransformer, interpreter.ASTTransformer.visit_Assign

    def visit_assign(self: Any, node: ast.Assign) -> ast.Assign:
        node.value = self.visit(node.value)
        changed: ast.Assign = assign(self, node)
        changed.value = semantic_call("each_assigned", node, [changed.value])
        return changed

    transformer.visit_Assign = visit_assign
    transformer.visit_AnnAssign = _visit_ann_assign
    transformer.visit_AugAssign = _visit_aug_assign
    transformer.visit_BoolOp = _visit_bool_op
    transformer.visit_UnaryOp = _visit_unary_op
    transformer.visit_IfExp = _visit_if_exp
    transformer.visit_Name = _visit_name


def semantic_call(
    helper: str, node: ast.AST, args: list[ast.expr], keywords: Sequence[ast.keyword] = ()
) -> ast.expr:
    """The expression `interpreter_semantic.helper(args)`, at the line of `node`."""
    semantic = ast.Name(id="interpreter_semantic", ctx=ast.Load())
    function = ast.Attribute(value=semantic, attr=helper, ctx=ast.Load())
    return ast.copy_location(ast.Call(func=function, args=args, keywords=list(keywords)), node)


def _visit_ann_assign(self: Any, node: ast.AnnAssign) -> ast.stmt:
    """The value becomes a tensor too, unless it is annotated as a constant."""
    if node.value is None:
        return node
    value = semantic_call("annotated", node, [self.visit(node.annotation), self.visit(node.value)])
    return ast.copy_location(ast.Assign(targets=[node.target], value=value), node)


def _visit_aug_assign(self: Any, node: ast.AugAssign) -> ast.stmt:
    """`n -= 2` makes a tensor of a constant too."""
    if not isinstance(node.target, ast.Name):
        self.generic_visit(node)
        return node
    before = ast.copy_location(ast.Name(id=node.target.id, ctx=ast.Load()), node.target)
    value = ast.copy_location(ast.BinOp(before, node.op, node.value), node)
    changed: ast.stmt = self.visit(ast.copy_location(ast.Assign([node.target], value), node))
    return changed


def _visit_bool_op(self: Any, node: ast.BoolOp) -> ast.expr:
    self.generic_visit(node)
    method = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
    return semantic_call("combined", node, [ast.Constant(method), *map(_later, node.values)])


def _visit_unary_op(self: Any, node: ast.UnaryOp) -> ast.expr:
    self.generic_visit(node)
    return semantic_call("negated", node, [node.operand]) if isinstance(node.op, ast.Not) else node


def _visit_if_exp(self: Any, node: ast.IfExp) -> ast.expr:
    self.generic_visit(node)
    return semantic_call("chosen", node, [node.test, _later(node.body), _later(node.orelse)])


def _visit_name(self: Any, node: ast.Name) -> ast.expr:  # noqa: ARG001 -- a visitor's method
    if node.id in ("min", "max") and isinstance(node.ctx, ast.Load):
        return semantic_call("of_tensors", node, [node])
    return node


def _later(node: ast.expr) -> ast.expr:
    """A function without arguments that computes the expression."""
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.copy_location(ast.Lambda(args=nothing, body=node), node)


def _combined(method: str, *operands: Callable[[], Any]) -> Any:
    """`and` or `or`: constants decide at compile time; all tensors are combined."""
    stop = method == "logical_or"
    tensors: list[Any] = []
    value = None
    for operand in operands:
        value = operand()
        if isinstance(value, tl.tensor):
            tensors.append(value)
        elif bool(value) is stop:
            return value
    if not tensors:
        return value
    return functools.reduce(lambda right, left: getattr(left, method)(right), reversed(tensors))


def _each_assigned(value: Any) -> Any:
    """The assigned value, with a tensor for each number in it, tuples and lists included."""
    if type(value) in (tuple, list):
        return type(value)(map(_each_assigned, value))
    if type(value) is tl.tuple:
        parts = [_each_assigned(part) for part in value.values]
        return tl.tuple(parts) if all(map(_is_tensor, parts)) else value
    return _as_tensor(value.value if isinstance(value, tl.constexpr) else value)


def _negated(value: Any) -> Any:
    return value.__not__() if isinstance(value, tl.tensor) else not value


def _chosen(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    value = then() if test else otherwise()
    return _as_tensor(value) if isinstance(test, tl.tensor) else value


def _of_tensors(function: Any) -> Any:
    """Python's `min` and `max` for tensors too; any other function unchanged."""
    operations = {builtins.min: tl.minimum, builtins.max: tl.maximum}
    if not any(function is builtin for builtin in operations):
        return function

    def reduced(*args: Any, **named: Any) -> Any:
        if any(map(_is_tensor, args)):
            return functools.reduce(functools.partial(operations[function], **named), args)
        return function(*args, **named)

    return reduced


def _is_tensor(value: Any) -> bool:
    return isinstance(value, tl.tensor)


def _annotated(annotation: Any, value: Any) -> Any:
    if annotation is tl.constexpr:
        return value
    return _each_assigned(interpreter.interpreter_semantic.to_tensor(value, False))


def _as_tensor(value: Any) -> Any:
    if isinstance(value, (bool, int, float)):
        return interpreter.interpreter_semantic.to_tensor(value, False)
    return value
