"""The syntax tree of a test."""

from __future__ import annotations

import ast
import re
from functools import cached_property

from suites.public.task import TestForm
from suites.source.python_source import parse_python

NO_TEST = re.compile(
    r"test_(performance|save_)\w*|run_(compile|performance|benchmark|profile)|main|model_benchmark_configs"
)
"""Functions of a test that do not test correctness."""


class ScriptText:
    """The syntax tree of a test, with its top-level functions."""

    def __init__(self, text: str) -> None:
        self.tree = parse_python(text)
        self.nodes = {statement: _nodes(statement) for statement in self.tree.body}
        """All nodes by top-level statement."""

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef | ast.ClassDef]:
        """Top-level functions and classes by name."""
        return {
            statement.name: statement
            for statement in self.tree.body
            if isinstance(statement, ast.FunctionDef | ast.ClassDef)
        }

    @property
    def without_arguments(self) -> frozenset[str]:
        """Top-level functions that can be called without arguments."""
        return frozenset(
            name
            for name, function in self.functions.items()
            if isinstance(function, ast.FunctionDef) and not _needs_arguments(function.args)
        )

    @property
    def runs_at_import(self) -> bool:
        """Whether a top-level statement uses a function of the test."""
        return any(
            self.functions.keys() & self.names(statement)
            for statement in self.tree.body
            if not isinstance(statement, ast.FunctionDef | ast.ClassDef)
        )

    @cached_property
    def imports(self) -> dict[str, tuple[str, str]]:
        """Module and name of every imported name, by the name in the test; the name is empty for `import module`."""
        imports: dict[str, tuple[str, str]] = {}
        for node in (node for nodes in self.nodes.values() for node in nodes):
            if isinstance(node, ast.ImportFrom):
                imports |= {
                    alias.asname or alias.name: (node.module or "", alias.name) for alias in node.names
                }
            elif isinstance(node, ast.Import):
                imports |= {
                    alias.asname or alias.name.partition(".")[0]: (alias.name, "") for alias in node.names
                }
        return imports

    def names(self, statement: ast.stmt) -> set[str]:
        """Return every name in a top-level statement."""
        return {node.id for node in self.nodes[statement] if isinstance(node, ast.Name)}

    @cached_property
    def assigned(self) -> frozenset[str]:
        """Names that top-level statements assign."""
        return frozenset(
            node.id
            for statement, nodes in self.nodes.items()
            if not isinstance(statement, ast.FunctionDef | ast.ClassDef)
            for node in nodes
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )

    def reached(self, form: TestForm) -> list[ast.stmt]:
        """Return the statements at the top that a test of correctness executes, directly or by calls of the test's own
        functions.

        A script executes all loose statements; other forms start at their test functions. The order is the same in each
        process.
        """
        loose = [
            statement
            for statement in self.tree.body
            if not isinstance(statement, ast.FunctionDef | ast.ClassDef)
            and (form is TestForm.SCRIPT or not _is_main_guard(statement))
        ]
        roots: list[str] = []
        if form is not TestForm.SCRIPT:
            prefix = "test_" if form is TestForm.PYTEST else ""
            roots = [
                name for name in self.functions if name.startswith(prefix) and not NO_TEST.fullmatch(name)
            ]
        reached: list[ast.stmt] = list(loose)
        names: set[str] = set()
        # Sorted: the order of oracles is part of a task's digest, and must not change between processes.
        waiting = [*roots, *(name for statement in loose for name in sorted(self.names(statement)))]
        while waiting:
            name = waiting.pop()
            if name in self.functions and name not in names:
                names.add(name)
                reached.append(self.functions[name])
                waiting.extend(sorted(self.names(self.functions[name])))
        return reached


def _is_main_guard(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)


def _nodes(root: ast.AST) -> list[ast.AST]:
    """Return a node and all nodes below it, without contexts. `ast.walk` needs twice the time."""
    nodes = [root]
    for node in nodes:
        for name in node._fields:
            if name == "ctx":
                continue
            value = getattr(node, name, None)
            if isinstance(value, list):
                nodes += [child for child in value if isinstance(child, ast.AST)]
            elif isinstance(value, ast.AST):
                nodes.append(value)
    return nodes


def _needs_arguments(arguments: ast.arguments) -> bool:
    plain = len(arguments.posonlyargs) + len(arguments.args)
    return plain > len(arguments.defaults) or None in arguments.kw_defaults
