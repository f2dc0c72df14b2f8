"""Python text of a reply: which names it defines and needs, and how pieces become one module."""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache

from suites.source.python_source import parse_python

LONGEST_PARSED = 200_000
"""Characters of a source that are parsed: the engine waits for it, and no kernel is so long."""
_BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__"}
_FIRST_LINE = re.compile(r"^(?:import |from \S+ import |@|def |#!|\"\"\")", re.MULTILINE)
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
_TRIMMED_PARAGRAPHS = 8


@lru_cache(maxsize=16)
def parse_module(source: str) -> ast.Module | None:
    """Returns the syntax tree, which is not to be changed; `None` if Python cannot parse the source, or if it is too long."""
    try:
        return parse_python(source) if len(source) <= LONGEST_PARSED else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def decorator_name(decorator: ast.expr) -> str:
    """Returns the last name of a decorator: `jit` for `triton.jit`, `jit` and `triton.jit(...)`; empty if it has none."""
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def is_kernel(function: ast.FunctionDef) -> bool:
    """True if Triton compiles the function: `jit` is one of its decorators, however imported."""
    return any(decorator_name(decorator) == "jit" for decorator in function.decorator_list)


def defines(source: str, names: Sequence[str]) -> bool:
    """True if the module binds every name at its top level.

    If Python cannot parse the source, the text of its lines decides.
    """
    tree = parse_module(source)
    if tree is None:
        return all(re.search(rf"^(def\s+{name}\s*\(|{name}\s*=)", source, re.MULTILINE) for name in names)
    return _bound_by(tree).issuperset(names)


def join_pieces(pieces: Sequence[str], names: Sequence[str]) -> str | None:
    """Returns the last piece that defines `names`, joined with the pieces that define what it lacks, in order.

    Example: a kernel in one block, its wrapper in the next. `None` if no such module compiles and defines `names`.
    """
    trees = [parse_module(piece) for piece in pieces]
    bound = [_bound_by(tree) if tree else set() for tree in trees]
    missing, chosen = set(names), set[int]()
    while True:
        # The last piece that defines most of what is missing.
        place = max(
            (place for place in range(len(pieces)) if place not in chosen and bound[place] & missing),
            key=lambda place: (len(bound[place] & missing), place),
            default=None,
        )
        if place is None:
            break
        chosen.add(place)
        missing |= _needed_by(trees[place])
        missing -= set().union(*(bound[other] for other in chosen))
    if len(chosen) == 1:
        module = pieces[chosen.pop()]
        return module if defines(module, names) else None
    module = "\n\n".join(pieces[place].rstrip("\n") + "\n" for place in sorted(chosen))
    return module if chosen and defines(module, names) and _compiles(module) else None


def module_within(text: str, names: Sequence[str]) -> str | None:
    """Returns the module in text without fences, or with prose after it; `None` if there is none.

    The module defines `names` and everything that it uses.
    """
    begin = _FIRST_LINE.search(text)
    if begin is None:
        return None
    source = text[begin.start() :]
    ends = [len(source), *(mark.start() for mark in reversed(list(_PARAGRAPH.finditer(source))))]
    for end in ends[:_TRIMMED_PARAGRAPHS]:
        module = source[:end].rstrip() + "\n"
        tree = parse_module(module)
        if tree is not None and _bound_by(tree).issuperset(names):
            return module if not _needed_by(tree) else None
    return None


def _bound_by(tree: ast.Module) -> set[str]:
    return {name for statement in tree.body for name in _names_bound(statement)}


def _names_bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement binds, also inside its branches."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)


def _needed_by(tree: ast.Module | None) -> set[str]:
    """Names that the module reads and binds nowhere, in whatever scope."""
    if tree is None:
        return set()
    read: set[str] = set()
    bound = set(_BUILTINS)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.ExceptHandler):
            bound.add(str(node.name))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            bound.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
    return set() if "*" in bound else read - bound


def _compiles(source: str) -> bool:
    """True if Python compiles it; unlike the parser, the compiler wants `from __future__` at the top."""
    tree = parse_module(source)
    if tree is None:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(tree, "<reply>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
