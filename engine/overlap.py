"""Whether code is a copy of other code: kernels compared with names, constants, comments and layout taken out.

Two modules overlap where a Triton kernel of one is nearly a kernel of the other: of all runs of `RUN` tokens in either, a
share of `NEAR_COPY` stands in both (Jaccard similarity of shingles: Broder, 1997). Before that every name a module gives
itself becomes one sign, as does every number, and texts, comments and layout go; what stands behind a dot (`tl.load`) and
Python's own words stay. So copies that were renamed, laid out anew, given other block sizes or changed in a line or two are
seen. Another algorithm for the same task is not: for that tasks are compared by name and by what they define.
"""

from __future__ import annotations

import ast
import io
import keyword
import re
import tokenize
from collections.abc import Iterable, Iterator

RUN = 5
NEAR_COPY = 0.8
"""The starter tasks' own kernels come no nearer to each other than 0.74 (layer norm and RMS norm)."""
SILENT = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)
WORD = re.compile(r"[a-z0-9]+")

Form = frozenset[tuple[str, ...]]
"""The runs of tokens of one kernel."""


def code_tokens(source: str) -> tuple[str, ...]:
    """Tokens of a module without comments, texts and layout. What Python cannot read gives its words."""
    try:
        tokens = [
            token
            for token in tokenize.generate_tokens(io.StringIO(source).readline)
            if token.type not in SILENT
        ]
    except (tokenize.TokenError, SyntaxError):
        return tuple(WORD.findall(source.lower()))
    return tuple(token.string for token in tokens if token.type != tokenize.STRING)


def normal_form(source: str) -> tuple[str, ...]:
    """The tokens with `n` for every free name and `0` for every number."""
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
    """One form a kernel, annotations and decorators apart; none where Python cannot read the module."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return ()
    return tuple(runs(normal_form(ast.unparse(body))) for body in kernels(tree))


def kernels(tree: ast.AST) -> Iterator[ast.Module]:
    """The body of each function that Triton compiles."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(map(is_jit, node.decorator_list)):
            yield ast.Module(body=node.body, type_ignores=[])


def is_jit(decorator: ast.expr) -> bool:
    """Whether this is `triton.jit` by whatever import, with or without arguments."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (isinstance(called, ast.Attribute) and called.attr == "jit") or (
        isinstance(called, ast.Name) and called.id == "jit"
    )


def runs(tokens: tuple[str, ...]) -> Form:
    """Every run of `RUN` tokens; of fewer tokens the one there is."""
    return frozenset(tokens[at : at + RUN] for at in range(max(1, len(tokens) - RUN + 1)))


def similarity(one: Form, other: Form) -> float:
    """Runs in both over runs in either, 0 to 1."""
    return len(one & other) / len(one | other)


def overlaps(forms: Iterable[Form], known: Iterable[Form]) -> bool:
    """Whether any of these kernels is nearly one of those."""
    known = tuple(known)
    return any(similarity(one, other) >= NEAR_COPY for one in forms for other in known)


def defined(source: str) -> frozenset[str]:
    """Names of the functions at a module's top level."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))
