"""Detects copied kernels: compares Triton code without its names, constants, comments and layout.

Two modules overlap if a kernel of one module nearly equals a kernel of the other. Each kernel is cut into runs of
`RUN` tokens. Two kernels are near copies if the share `NEAR_COPY` of all runs is in both (Jaccard similarity of
shingles: Broder, 1997).

Before that, every free name becomes one token and every number another; strings, comments and layout are removed.
Names after a dot (`tl.load`) and Python's keywords stay. So a copy is found even if it was renamed, reformatted,
given other block sizes, or changed in a line or two. Another algorithm for the same task is not found this way; tasks
are also compared by name and by the functions that they define.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterable, Iterator
from itertools import product

from engine.reply.module_text import is_kernel, parse_module

RUN = 5
NEAR_COPY = 0.8
"""The most similar kernels of two starter tasks reach 0.74 (layer norm and RMS norm)."""
TOKEN = re.compile(
    r"""
    \#[^\n]*
    | [rbuf]{0,2} (?: '''(?:[^\\']|\\.|'(?!''))*''' | \"\"\"(?:[^\\"]|\\.|"(?!""))*\"\"\" )
    | [rbuf]{0,2} (?: '(?:[^'\\\n]|\\.)*' | "(?:[^"\\\n]|\\.)*" )
    | ( (?:\d|\.\d)(?:e[+-]\d|[\w.])* | \w+
      | \*\*=? | //=? | <<=? | >>=? | [=!<>+\-*/%&|^@:]= | -> | \.\.\. | [^\s\\] )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
"""A comment, a string, or a token, which alone is captured. Python's `tokenize` finds the same tokens in six times the time."""
WORD = re.compile(r"[a-z0-9]+")

Form = frozenset[tuple[str, ...]]
"""The runs of tokens of one kernel."""


def code_tokens(source: str) -> tuple[str, ...]:
    """Returns the tokens of a module without comments, strings and layout, even if Python cannot parse it."""
    return tuple(filter(None, TOKEN.findall(source)))


def normal_form(source: str) -> tuple[str, ...]:
    """Returns the tokens with `n` for every free name and `0` for every number."""
    form: list[str] = []
    before = ""
    for token in code_tokens(source):
        if token.isidentifier() and not keyword.iskeyword(token) and before != ".":
            form.append("n")
        else:
            form.append("0" if token[0].isdigit() else token)
        before = token
    return tuple(form)


def kernel_forms(source: str) -> tuple[Form, ...]:
    """Returns one form per kernel, without annotations and decorators; empty if Python cannot parse the module."""
    tree = parse_module(source)
    if tree is None:
        return ()
    return tuple(token_runs(normal_form(ast.unparse(body))) for body in kernel_bodies(tree))


def kernel_bodies(tree: ast.Module) -> Iterator[ast.Module]:
    """Yield the body of each function that Triton compiles."""
    for node in statements(tree):
        if isinstance(node, ast.FunctionDef) and is_kernel(node):
            yield ast.Module(body=node.body, type_ignores=[])


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes that hold statements, at any depth, and the statements; no expressions, which are most nodes."""
    pending: list[ast.AST] = [tree]
    for node in pending:
        yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            pending += getattr(node, field, ())


def token_runs(tokens: tuple[str, ...]) -> Form:
    """Returns every run of `RUN` tokens; a shorter kernel has one run."""
    return frozenset(tokens[at : at + RUN] for at in range(max(1, len(tokens) - RUN + 1)))


def similarity(first: Form, second: Form) -> float:
    """Returns the runs in both forms over the runs in either form, 0 to 1."""
    common = len(first & second)
    return common / (len(first) + len(second) - common)


def overlaps(forms: Iterable[Form], references: Iterable[Form]) -> bool:
    """True if a kernel of `forms` is a near copy of one of `references`, the kernels of the tasks under test."""
    return any(is_near_copy(form, reference) for form, reference in product(forms, references))


def is_near_copy(first: Form, second: Form) -> bool:
    """True if two kernels have a similarity of at least `NEAR_COPY`."""
    shorter, longer = sorted((len(first), len(second)))
    # The similarity is at most the ratio of the sizes, which is cheap.
    return shorter >= NEAR_COPY * longer and similarity(first, second) >= NEAR_COPY


def function_names(tree: ast.Module) -> frozenset[str]:
    """Returns the names of the functions at a module's top level."""
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))
