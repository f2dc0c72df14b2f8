"""
`and`, `or`, `not`, conditional expressions, `min`, `max`, annotated assignments and those of tuples in interpreted kernels, as a compiler takes them.

The interpreter leaves them to Python, which gives one operand back as it is: a number stays a number, whose quotients round down,
`two and four` is four, and what stands behind `and` is not looked at. A compiler gives a tensor where any operand is one, and
computes all of them. Touches the internals of Triton's interpreter (3.6 and 3.7).
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Callable
from typing import Any

import triton.language as tl
from triton.runtime import interpreter

_NAMES = frozenset({"min", "max"})


def install() -> None:
    """Once a process, before a kernel is interpreted."""
    semantic = interpreter.interpreter_semantic
    semantic.combined, semantic.chosen, semantic.of_tensors = _combined, _chosen, _of_tensors
    semantic.negated, semantic.each_assigned, semantic.annotated = _negated, _each_assigned, _annotated
    transformer, assign = interpreter.ASTTransformer, interpreter.ASTTransformer.visit_Assign

    def visit_assign(self: Any, node: ast.Assign) -> ast.Assign:
        node.value = self.visit(node.value)
        changed: ast.Assign = assign(self, node)
        changed.value = _call("each_assigned", node, [changed.value])
        return changed

    transformer.visit_Assign = visit_assign
    transformer.visit_AnnAssign = _visit_ann_assign
    transformer.visit_AugAssign = _visit_aug_assign
    transformer.visit_BoolOp = _visit_bool_op
    transformer.visit_UnaryOp = _visit_unary_op
    transformer.visit_IfExp = _visit_if_exp
    transformer.visit_Name = _visit_name


def _visit_ann_assign(self: Any, node: ast.AnnAssign) -> ast.stmt:
    """Its value is a tensor too, unless the annotation says that it is a constant."""
    if node.value is None:
        return node
    value = _call("annotated", node, [self.visit(node.annotation), self.visit(node.value)])
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
    return _call("combined", node, [ast.Constant(method), *map(_later, node.values)])


def _visit_unary_op(self: Any, node: ast.UnaryOp) -> ast.expr:
    self.generic_visit(node)
    return _call("negated", node, [node.operand]) if isinstance(node.op, ast.Not) else node


def _visit_if_exp(self: Any, node: ast.IfExp) -> ast.expr:
    self.generic_visit(node)
    return _call("chosen", node, [node.test, _later(node.body), _later(node.orelse)])


def _visit_name(self: Any, node: ast.Name) -> ast.expr:  # noqa: ARG001 -- a visitor's method
    if node.id in _NAMES and isinstance(node.ctx, ast.Load):
        return _call("of_tensors", node, [node])
    return node


def _call(helper: str, node: ast.AST, args: list[ast.expr]) -> ast.expr:
    semantic = ast.Name(id="interpreter_semantic", ctx=ast.Load())
    function = ast.Attribute(value=semantic, attr=helper, ctx=ast.Load())
    return ast.copy_location(ast.Call(func=function, args=args, keywords=[]), node)


def _later(node: ast.expr) -> ast.expr:
    """The expression, to be computed when it is called."""
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.copy_location(ast.Lambda(args=nothing, body=node), node)


def _combined(method: str, *operands: Callable[[], Any]) -> Any:
    """Constants decide while a kernel is compiled; tensors are combined, all of them."""
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
    """What is assigned in a tuple or a list is a tensor each, as it is alone."""
    if type(value) in (tuple, list):
        return type(value)(map(_each_assigned, value))
    if type(value) is tl.tuple:
        parts = [_each_assigned(one) for one in value.values]
        return tl.tuple(parts) if all(isinstance(one, tl.tensor) for one in parts) else value
    return _as_tensor(value.value if isinstance(value, tl.constexpr) else value)


def _negated(value: Any) -> Any:
    return value.__not__() if isinstance(value, tl.tensor) else not value


def _chosen(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    value = then() if test else otherwise()
    return _as_tensor(value) if isinstance(test, tl.tensor) else value


def _of_tensors(named: Any) -> Any:
    """What `min` or `max` names: Python's functions take tensors too."""
    if named is builtins.min:
        return _smallest
    return _largest if named is builtins.max else named


def _smallest(*args: Any, **named: Any) -> Any:
    return _pairwise("minimum", args, named) if any(map(_is_tensor, args)) else min(*args, **named)


def _largest(*args: Any, **named: Any) -> Any:
    return _pairwise("maximum", args, named) if any(map(_is_tensor, args)) else max(*args, **named)


def _pairwise(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return functools.reduce(functools.partial(getattr(tl, name), **named), args)


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
