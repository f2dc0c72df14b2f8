"""Finds fallbacks: torch operators that compute the result under a condition. The static stage refuses them.

A fallback may run only on inputs that the judge's calls do not have. The check follows the entry point's result back through the
module's functions to torch operators inside an `if` or a `try`, or behind an early return. Operators without a
condition, and those behind a constant of the module (`if not HAS_TRITON`), are seen when they run.

Allowed: allocations (also `x * 0`), views, copies, casts, the task's allowed operators, numbers (`.item()`), gradients
(`backward`), inputs of kernels, and operators on memory that a kernel may have written.
"""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from harness.wire.calls import operators
from suites.task import Task

from .reachability import DEFINITIONS, reachable_statements, statements_in

_NAMES = """
abs add addmm addcdiv addcmul addmv all amax amin aminmax any argmax argmin argsort atan avg_pool1d avg_pool2d baddbmm
batch_norm bincount bmm cat ceil celu chain_matmul clamp clamp_max clamp_min clip conv1d conv2d conv3d conv_transpose1d
conv_transpose2d cos cosh cosine_similarity count_nonzero cross cross_entropy ctc_loss cummax cummin cumprod cumsum diff
div divide dot dropout einsum elu embedding embedding_bag erf erfc exp exp2 expm1 flip fliplr flipud floor floor_divide
fmod frac gather ge gelu glu group_norm gt hardsigmoid hardswish hardtanh heaviside histc huber_loss hypot index_add
index_copy index_fill index_select inner instance_norm interpolate inverse kl_div kron l1_loss layer_norm le leaky_relu
lerp linear linalg_norm log log10 log1p log2 log_softmax logaddexp logcumsumexp logical_and logical_not logical_or logit
logsigmoid logsumexp lt masked_fill masked_scatter masked_select matmul matrix_power max max_pool1d max_pool2d maximum
mean median min minimum mish mm mse_loss mul multi_head_attention_forward multiply mv nan_to_num nansum neg negative
nll_loss norm normalize one_hot outer pad pow prelu prod put quantile reciprocal relu relu6 remainder renorm
repeat_interleave rms_norm roll rot90 round rrelu rsqrt scaled_dot_product_attention scatter scatter_add scatter_reduce
searchsorted selu sigmoid sign silu sin sinh smooth_l1_loss softmax softmin softplus softshrink softsign sort sqrt
square stack std std_mean sub subtract sum take tan tanh tanhshrink tensordot topk trace tril triu true_divide trunc
unique vander var var_mean vdot where xlogy
"""
_COMPUTING = frozenset(_NAMES.split())
"""Operators by their names in `torch`, `torch.nn.functional` and `Tensor`; with a final `_` they work in place."""
_ALLOCATING = operators.ALLOCATING | operators.FILLING
_NUMBERS = frozenset({"item", "tolist"})
_GRADIENTS = frozenset({"backward", "jvp", "vjp", "setup_context"})
_SIGNS: dict[type[ast.operator], tuple[str, str]] = {
    ast.MatMult: ("@", "matmul"),
    ast.Add: ("+", "add"),
    ast.Sub: ("-", "sub"),
    ast.Mult: ("*", "mul"),
    ast.Div: ("/", "div"),
    ast.Pow: ("**", "pow"),
}
_BRANCHES = (ast.If, ast.Try, ast.IfExp, ast.Match)
Function = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Fallback(NamedTuple):
    """An operator that computes a returned value."""

    line: int
    operator: str
    conditional: bool

    @property
    def message(self) -> str:
        """The error and how to fix it."""
        return (
            f"line {self.line}: `{self.operator}` of torch computes the result behind a condition; a fallback is no kernel: "
            "let a kernel compute it for every input, or raise where none can"
        )


def find_fallbacks(tree: ast.Module, task: Task) -> Iterator[Fallback]:
    """Yield each fallback that an entry point reaches: an operator that computes a result in a branch, beside the kernels.

    They come in no particular order.
    """
    entries = {entry.name for entry in task.entry_points}
    constants = _constants(tree)
    bodies: dict[str, _Body] = {}
    for definition in reachable_statements(tree.body, entries):
        if not isinstance(definition, DEFINITIONS):
            continue
        for function in ast.walk(definition):
            if (
                isinstance(function, _FUNCTIONS)
                and function.name not in _GRADIENTS
                and not any("jit" in ast.unparse(decorator) for decorator in function.decorator_list)
            ):
                bodies[function.name] = _Body(function, constants, is_entry=function.name in entries)
                if function.name == "forward":
                    bodies[f"{definition.name}.apply"] = bodies["forward"]
    for name in entries & bodies.keys():
        operators_used = bodies[name].trace_result(bodies, task.allowed_operators)
        yield from (operator for operator in operators_used if operator.conditional)


def fallback_operators(tree: ast.Module, task: Task) -> tuple[str, ...]:
    """Return the names of the operators in all fallbacks, as `allowed_operators` takes them."""
    by_sign = dict(_SIGNS.values())
    names: list[str] = []
    while True:
        allowing = msgspec.structs.replace(task, allowed_operators=(*task.allowed_operators, *names))
        fallback = next(find_fallbacks(tree, allowing), None)
        if fallback is None:
            return tuple(names)
        name = by_sign.get(fallback.operator, fallback.operator.rpartition(".")[2])
        if name in names:
            return tuple(names)
        names.append(name)


class _Body:
    """A host function: its return statements, its assignments, and which of its nodes are conditional."""

    def __init__(self, function: Function, constants: frozenset[str], *, is_entry: bool) -> None:
        arguments = function.args
        required = arguments.args[: len(arguments.args) - len(arguments.defaults)] if is_entry else []
        self._tensors = {argument.arg for argument in required}
        """Parameters that are tensors: an entry point's parameters without a default."""
        self._conditional = set(_conditional(function.body, constants, inside=False))
        own = list(_own_nodes(function))
        self._returned = [node for node in own if isinstance(node, ast.Return)]
        self._assigned: dict[str, list[ast.expr]] = {}
        for node in own:
            for name, value in _assignments(node):
                self._assigned.setdefault(name, []).append(value)

    def trace_result(
        self, bodies: Mapping[str, _Body], allowed: tuple[str, ...], depth: int = 4
    ) -> Iterator[Fallback]:
        """Torch operators that compute returned values from arguments; follows calls `depth` functions deep."""
        for node in self._returned:
            for value in self._values(node.value, set()):
                conditional = node in self._conditional or value in self._conditional
                operator = self._operator(value, allowed)
                name = ast.unparse(value.func).removeprefix("self.") if isinstance(value, ast.Call) else ""
                called = bodies.get(name)
                if operator and not self._is_of_kernels(value, set()):
                    yield Fallback(value.lineno, operator, conditional)
                elif called is not None and depth:
                    for inner in called.trace_result(bodies, allowed, depth - 1):
                        yield inner._replace(conditional=inner.conditional or conditional)

    def _values(self, value: ast.expr | None, seen: set[str]) -> Iterator[ast.expr]:
        """The expressions that a returned expression may be, or may be a view or a copy of."""
        match value:
            case ast.Name(id=name) if name not in seen:
                for assigned in self._assigned.get(name, ()):
                    yield from self._values(assigned, {*seen, name})
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    yield from self._values(part, seen)
            case ast.IfExp(body=then, orelse=otherwise):
                yield from self._values(then, seen)
                yield from self._values(otherwise, seen)
            case ast.NamedExpr(value=inner) | ast.Subscript(value=inner):
                yield from self._values(inner, seen)
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name not in _NUMBERS:
                yield value
                if not _computes(name) and not isinstance(inner, ast.Name):
                    yield from self._values(inner, seen)
            case ast.Call(func=ast.Name()) | ast.BinOp():
                yield value
            case _:
                pass

    def _operator(self, value: ast.expr, allowed: tuple[str, ...]) -> str:
        """The operator of an expression; empty if it has none or the task allows the operator."""
        match value:
            case ast.Call(func=ast.Attribute(attr=name)) if _computes(name):
                return (
                    "" if operators.is_allowed(name.removesuffix("_"), allowed) else ast.unparse(value.func)
                )
            case ast.BinOp(op=op, left=left, right=right) if type(op) in _SIGNS and not _makes_memory(value):
                sign, name = _SIGNS[type(op)]
                if operators.is_named(name, allowed):
                    return ""
                sides = [side.id for side in (left, right) if isinstance(side, ast.Name)]
                if sign == "@" or not self._tensors.isdisjoint(sides):
                    return sign
                return self._operator(left, allowed) or self._operator(right, allowed)
            case _:
                return ""

    def _is_of_kernels(self, value: ast.expr, seen: set[str]) -> bool:
        """True if an expression uses memory that a kernel may have written: allocated here or returned by a function."""
        into = {name for name, _ in _assignments(value)}
        names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)} - seen - into
        values = [assigned for name in names for assigned in self._assigned.get(name, ())]
        nodes = [node for assigned in values for node in ast.walk(assigned)]
        return any(map(_makes_memory, nodes)) or any(
            self._is_of_kernels(assigned, seen | names) for assigned in values
        )


def _computes(name: str) -> bool:
    return name.removesuffix("_") in _COMPUTING


def _makes_memory(node: ast.AST) -> bool:
    """True if an expression allocates memory, also as `x * 0`, or calls a function of the module."""
    match node:
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            return any(isinstance(side, ast.Constant) and side.value == 0 for side in (left, right))
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _ALLOCATING or name == "apply"
        case ast.Call(func=function):
            return not (isinstance(function, ast.Name) and hasattr(builtins, function.id))
        case _:
            return False


def _assignments(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Names with the values assigned to them: by `=`, into elements, by `copy_` and by `out=`."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                    yield _root(part), value
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield _root(target), value
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=target, attr="copy_"), args=[value, *_])):
            yield _root(target), value
        case ast.Call(keywords=keywords):
            yield from ((_root(keyword.value), node) for keyword in keywords if keyword.arg == "out")
        case _:
            pass


def _root(target: ast.expr) -> str:
    while isinstance(target, (ast.Subscript, ast.Attribute)):
        target = target.value
    return target.id if isinstance(target, ast.Name) else ""


def _constants(tree: ast.Module) -> frozenset[str]:
    """Return the names that are bound to constants only, at the top level of the module and nowhere else.

    Empty if the module imports `*`, which may bind any name.
    """
    top_level = [inner for statement in tree.body for inner in statements_in(statement)]
    constant = [
        target.id
        for statement in top_level
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
        for target in statement.targets
        if isinstance(target, ast.Name)
    ]
    bound = Counter(name for node in ast.walk(tree) for name in _bound(node))
    if "*" in bound:
        return frozenset()
    return frozenset(name for name, count in Counter(constant).items() if bound[name] == count)


def _bound(node: ast.AST) -> list[str]:
    """Return the names that a node of the syntax tree binds or deletes by itself, in whatever scope."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.alias(name=name, asname=other):
            return [other or name.partition(".")[0]]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return [name]
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return names
        case _:
            return []


def _is_decided(node: ast.AST, constants: frozenset[str]) -> bool:
    """True if a branch depends on constants of the module alone, so that every call takes the same side."""
    if not isinstance(node, (ast.If, ast.IfExp)):
        return False
    parts = [part for part in ast.walk(node.test) if isinstance(part, ast.expr)]
    return all(
        isinstance(part, (ast.UnaryOp, ast.BoolOp, ast.Constant))
        or (isinstance(part, ast.Name) and part.id in constants)
        for part in parts
    )


def _conditional(body: list[ast.stmt], constants: frozenset[str], *, inside: bool) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body that do not always run: those in branches, and all after a branch that may return.

    A branch with a condition that `constants` decide is no branch. `inside`: the whole body is in a branch already.
    """
    for statement in body:
        if inside:
            yield from ast.walk(statement)
            continue
        for node in ast.walk(statement):
            if isinstance(node, _BRANCHES) and not _is_decided(node, constants):
                yield from (child for part in ast.iter_child_nodes(node) for child in ast.walk(part))
                inside = inside or any(isinstance(child, ast.Return) for child in ast.walk(node))


def _own_nodes(function: Function) -> Iterator[ast.AST]:
    """A function's nodes without the insides of nested functions and classes."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*DEFINITIONS, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)
