"""A kernel behind a guard: it runs where it was measured as faster, and the original runs everywhere else."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from sessions.errors import NotApplicable
from suites.source.python_source import parse_python, source_lines

from .merging import FileModule, defined_names, reached, used_names
from .placing import HomeFile, without_aliases

_GUARD = """\
@functools.cache
def _{name}_target(device):
    properties = torch.cuda.get_device_properties(device)
    if torch.version.hip:
        return properties.gcnArchName.partition(":")[0]
    return f"sm_{{properties.major}}{{properties.minor}}"


def {name}({signature}):
    if {guard.condition} and {guard.tensor}.is_cuda and _{name}_target({guard.tensor}.device) == "{guard.target}":
        return {name}_tuned({passed})
    return {name}_original({passed})
"""


Shapes = Mapping[str, tuple[int, ...]]
"""Shape of each tensor, by parameter."""


class Guard(NamedTuple):
    """The calls that go to the kernel."""

    tensor: str
    """A parameter that is a tensor in each call."""
    condition: str
    """A Python expression: `x.ndim == 2 and (16 <= x.shape[0] <= 512 or x.shape[0] == 8192)`."""
    target: str
    """The architecture, such as `gfx942`."""


def faster_condition(value: str, measured: Sequence[tuple[int, bool]]) -> str:
    """Return a Python expression: `value` is in a run of measured sizes that are faster. Empty if no size is.

    `measured` has a size and whether it is faster, by case. A size is faster if all of its cases are.
    """
    slower = {size for size, is_faster in measured if not is_faster}
    runs = groupby(sorted({size for size, _ in measured}), key=slower.__contains__)
    ranges = [(sizes[0], sizes[-1]) for is_slower, run in runs if not is_slower for sizes in [[*run]]]
    return " or ".join(
        f"{low} <= {value} <= {high}" if low < high else f"{value} == {low}" for low, high in ranges
    )


def find_dimension(cases: Sequence[tuple[Shapes, int | None]]) -> tuple[str, int, int]:
    """Return the first tensor that has each case's size as exactly one dimension, the index of it, and the number of dimensions.

    Such a tensor has the same number of dimensions in each case. The name is empty without one.
    """
    for name, first in cases[0][0].items():
        pairs = [(shapes.get(name, ()), size) for shapes, size in cases]
        if all(len(shape) == len(first) for shape, _ in pairs):
            fitting = [
                index for index in range(len(first)) if all(shape[index] == size for shape, size in pairs)
            ]
            if len(fitting) == 1:
                return name, fitting[0], len(first)
    return "", 0, 0


def guarded(homes: Sequence[HomeFile], kernel: str, entry: str, guard: Guard) -> str:
    """Return a module that `merge_files` puts into the files instead of the kernel; only the first file changes.

    It has the original entry point as `ENTRY_original`, the kernel's as `ENTRY_tuned`, and an `ENTRY` that chooses by the guard.
    What the kernel changes, and what uses it, gets the end `_tuned` in the kernel. Raises `NotApplicable` if a guard is no
    simple change.
    """
    before = FileModule(homes[0].text)
    kernel = reached(kernel, [entry])
    function = before.defined.get(entry)
    if (
        not isinstance(function, ast.FunctionDef)
        or function.decorator_list
        or function.args.posonlyargs
        or function.args.vararg
        or function.args.kwarg
    ):
        raise NotApplicable(f"`{entry}` is no plain function without decorators; write its guard by hand")
    changed = _changed(homes, kernel, entry)
    after, unchanged = FileModule(kernel), before.defined.keys() - changed
    kept = after.without(
        [
            statement
            for statement in after.body
            if (names := set(defined_names(statement))) and names <= unchanged
        ]
    )
    tuned = FileModule(_renamed(kept, {name: f"{name}_tuned" for name in changed}))
    body = _renamed(before.text_of(function), {entry: f"{entry}_original"}, bodies=False)
    parameters = [argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)]
    chooser = _GUARD.format(
        name=entry,
        signature=ast.unparse(function.args),
        guard=guard,
        passed=", ".join(f"{name}={name}" for name in parameters),
    )
    return "\n".join(
        [
            "import functools",
            "",
            "import torch",
            "\n\n\n".join(dict.fromkeys(map(tuned.text_of, tuned.body))),
            "",
            "",
            body,
            "",
            "",
            chooser,
        ]
    )


def _changed(homes: Sequence[HomeFile], kernel: str, entry: str) -> set[str]:
    """Return the names of the files that the kernel defines in another way, directly or through others; with the entry point."""
    after, modules = FileModule(kernel), [FileModule(home.text) for home in homes]
    names = set().union(modules[0].imported, *(module.defined for module in modules)) & after.defined.keys()
    aliases = after.defined.keys() - FileModule(without_aliases(kernel, homes)).defined.keys()
    changed = {entry} | {
        name for name in names - aliases if not any(module.has_same(name, after) for module in modules)
    }
    while more := {name for name in names - changed if used_names(after.defined[name]) & changed}:
        changed |= more
    return changed


def _renamed(text: str, names: Mapping[str, str], *, bodies: bool = True) -> str:
    """Return the text with other names for things at its top level; without `bodies`, only where they are defined.

    Raises `NotApplicable` if a function has such a name of its own.
    """
    tree = parse_python(text)
    spots: list[tuple[int, int, str]] = []
    lines = [line.encode() for line in source_lines(text)]
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)) and statement.name in names:
            line = lines[statement.lineno - 1]
            head = re.match(rb"\s*(def|class)\s+", line)
            assert head is not None
            spots.append((statement.lineno, head.end(), statement.name))
    for own in _own_names(tree) & names.keys() if bodies else ():
        raise NotApplicable(
            f"the kernel also uses `{own}` for something inside of a function; write its guard by hand"
        )
    spots += [
        (node.lineno, node.col_offset, node.id)
        for node in ast.walk(tree)
        if bodies and isinstance(node, ast.Name) and node.id in names
    ]
    for number, column, name in sorted(spots, reverse=True):
        old = lines[number - 1]
        lines[number - 1] = old[:column] + names[name].encode() + old[column + len(name.encode()) :]
    return b"\n".join(lines).decode()


def _own_names(tree: ast.Module) -> set[str]:
    """Return the names that functions, lambdas and comprehensions bind."""
    inner: Sequence[type[ast.AST]] = (
        ast.FunctionDef,
        ast.Lambda,
        ast.ListComp,
        ast.SetComp,
        ast.DictComp,
        ast.GeneratorExp,
    )
    nodes = [
        node
        for scope in ast.walk(tree)
        if isinstance(scope, tuple(inner))
        for node in ast.walk(scope)
        if node is not scope
    ]
    names = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    names |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    names |= {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    return names | {
        name for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names
    }
