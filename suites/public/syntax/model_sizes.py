"""Makes the inputs of a module of KernelBench smaller: its own sizes take gigabytes.

Only statements that prepare inputs change: constants, `get_inputs` and `get_init_inputs`. The class is unchanged.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import partial

import msgspec

from suites.source.python_source import parse_python
from suites.task import TextEnum

MOST_TIMED_BYTES = 192 << 20
"""Bound for the call for timing: inputs, outputs, and the parameters that a recording holds."""
SMALL = 8
"""Integers up to this value are no sizes: kernels, strides, dimensions, classes."""
_FIXED = re.compile(r"kernel|stride|padding|dilation|patch|window|divisor|scal|dropout|eps|seed")
"""Names of integers that are no sizes, however large."""
_PARTS = re.compile(r"(?<!per_)(?:group|head)(?!_(?:size|dim))")
"""Names of numbers of parts of a size. Their cap is smaller, so that each part keeps several elements."""
_PARTS_SHARE = 4
"""A cap for sizes is this many times the cap for numbers of parts."""
_BATCH = re.compile(r"batch")
_FACTORS = (2, 3, 5, 7)


class Odd(TextEnum):
    """Which sizes become odd, so that no block divides them."""

    NONE = "none"
    INPUTS = "input"
    """Only sizes that the constructor does not get."""
    ALL = "all"


class Shrinking(msgspec.Struct, frozen=True):
    """How sizes become smaller: capped, or all divided by `divisor`, which keeps their ratios. The default changes none."""

    cap: int = 0
    divisor: int = 1
    batch: int = 0
    """Cap of a batch; 0: as other sizes."""

    def __str__(self) -> str:
        parts = [f"sizes up to {self.cap}"] if self.cap else []
        parts += [f"sizes divided by {self.divisor}"] if self.divisor > 1 else []
        parts += [f"batches up to {self.batch}"] if self.batch else []
        return ", ".join(parts) or "the benchmark's own sizes"

    def of(self, names: frozenset[str]) -> Callable[[int], int]:
        """Return the function that shrinks the integers in an assignment to these names."""
        if self.cap and _any_matches(_PARTS, names):
            return partial(capped_size, cap=max(2, self.cap // _PARTS_SHARE))
        if self.batch and _any_matches(_BATCH, names):
            return partial(capped_size, cap=self.batch)
        if self.cap:
            return partial(capped_size, cap=self.cap)
        return partial(divided_size, divisor=self.divisor)


CAPS = tuple(Shrinking(cap=cap) for cap in (8, 16, 32, 64, 128, 256, 512, 1024, 4096))
"""In the order of trials: sizes grow."""
DIVISIONS = tuple(Shrinking(divisor=divisor) for divisor in (16, 8, 4, 2))
"""For models that run with none of `CAPS`, in the order of trials: sizes grow."""
OWN = Shrinking()
FOR_TIMING = (
    OWN,
    *(Shrinking(batch=1 << power) for power in range(15, 1, -1)),
    *reversed(DIVISIONS),
    *reversed(CAPS),
)
"""For the call for timing, in the order of trials: the benchmark's own sizes, smaller batches only, then smaller sizes."""


def input_statements(text: str, shrinking: Shrinking, odd: Odd = Odd.NONE, *, normal: bool = False) -> str:
    """Return the statements of a module that prepare inputs, with smaller sizes.

    Equal sizes stay equal, and a divisor of another size usually stays a divisor. `normal` draws normal values instead of
    uniform values. Raises as `parse_python`.
    """
    statements = _statements(text)
    constructed = _constructor_names(statements)
    lines = []
    for statement in statements:
        names = _assigned(statement)
        if _any_matches(_FIXED, names):
            smaller: ast.AST = statement
        else:
            is_odd = not _any_matches(_PARTS, names) and (
                odd is Odd.ALL or (odd is Odd.INPUTS and not constructed & names)
            )
            smaller = _Smaller(shrinking.of(names), odd=is_odd).visit(statement)
        if normal and "get_inputs" in names:
            smaller = _Normal().visit(smaller)
        lines.append(ast.unparse(ast.fix_missing_locations(smaller)))
    return "\n".join(lines) + "\n"


def first_call(text: str) -> str:
    """Return the statements of a module up to its first call, a `with` statement. Raises as `parse_python`."""
    lines = []
    for statement in _statements(text):
        lines.append(ast.unparse(statement))
        if isinstance(statement, ast.With):
            break
    return "\n".join(lines) + "\n"


def largest_size(text: str) -> int:
    """Return the largest integer in the statements that prepare inputs. Raises as `parse_python`."""
    integers = [
        _integer(node) for node in ast.walk(ast.Module(_statements(text), [])) if isinstance(node, ast.expr)
    ]
    return max((integer for integer in integers if integer is not None), default=0)


def divided_size(size: int, divisor: int) -> int:
    """Return a size divided by `divisor`, a power of two, or by the largest smaller power with an integer quotient above 1."""
    while size % divisor or size <= divisor:
        divisor //= 2
    return size // divisor


def capped_size(size: int, cap: int) -> int:
    """Return a size of at most `cap`. Small prime factors are divided out, so that common divisors stay."""
    while size > cap:
        factor = next((factor for factor in _FACTORS if size % factor == 0), None)
        if factor is None:
            return cap - 1
        size //= factor
    return size


class _Smaller(ast.NodeTransformer):
    """Replaces integers by smaller ones; products and sums of integers first become one integer."""

    def __init__(self, shrink: Callable[[int], int], *, odd: bool) -> None:
        self._shrink = shrink
        self._odd = odd

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        value = _integer(node)
        return self.generic_visit(node) if value is None else ast.Constant(self._smaller(value))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        return node if isinstance(node.operand, ast.Constant) else self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant(self._smaller(node.value)) if type(node.value) is int else node

    def _smaller(self, size: int) -> int:
        """Return a smaller size for one above `SMALL`; an odd one if odd sizes are wanted."""
        if size <= SMALL:
            return size
        smaller = self._shrink(size)
        if not self._odd:
            return smaller
        return max(3, smaller - 1 if smaller % 2 == 0 else smaller - 2)


class _Normal(ast.NodeTransformer):
    """Replaces `torch.rand` by `torch.randn`."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if node.attr == "rand" and isinstance(node.value, ast.Name) and node.value.id == "torch":
            node.attr = "randn"
        return node


def _integer(node: ast.expr) -> int | None:
    """Return the value of an expression of integers; `None` for any other expression."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _integer(node.left), _integer(node.right)
    if left is None or right is None:
        return None
    match node.op:
        case ast.Mult():
            return left * right
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.FloorDiv() if right:
            return left // right
        case ast.Pow() if 0 <= right < 64:
            return int(left**right)
        case _:
            return None


def _any_matches(pattern: re.Pattern[str], names: frozenset[str]) -> bool:
    return any(pattern.search(name.lower()) for name in names)


def _statements(text: str) -> list[ast.stmt]:
    return [
        statement
        for statement in parse_python(text).body
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.FunctionDef | ast.With)
    ]


def _assigned(statement: ast.stmt) -> frozenset[str]:
    """Return the names that a statement binds: those that it assigns anywhere inside, or the name of a function.

    Names that the body of a function binds are its own and do not count.
    """
    if isinstance(statement, ast.FunctionDef):
        return frozenset({statement.name})
    return frozenset(
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )


def _constructor_names(statements: list[ast.stmt]) -> frozenset[str]:
    """Return `get_init_inputs` and all names that it reads, also the names that its constants read."""
    reached = {"get_init_inputs"}
    pending = list(reached)
    while pending:
        name = pending.pop()
        for statement in statements:
            if name in _assigned(statement):
                read = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)} - reached
                reached |= read
                pending += read
    return frozenset(reached)
