"""Which names of its reference a test calls, found in the syntax trees of both."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from suites.public.syntax.outline import Assignment, Outline, definitions, entry_point
from suites.public.syntax.script import ScriptText
from suites.public.task import PublicEntryPoint, TestForm
from suites.source.python_source import parse_python

_RESULTS = ("result_gold", "test_results")
_ORACLE = re.compile(
    r"(?!.*dtype)(?:_*(reference|ref|torch|native|naive|pytorch)(_\w+)?|\w+_(reference|ref|torch|native|naive|pytorch))"
)
_PROVIDED = frozenset({*sys.stdlib_module_names, "torch", "triton", "numpy", "pytest", "__future__"})


@dataclass(frozen=True, slots=True)
class TestCalls:
    """The names that a test uses of its reference, and facts about the test."""

    __test__ = False

    entry_points: tuple[PublicEntryPoint, ...]
    oracles: tuple[str, ...]
    result_name: str
    modules: tuple[str, ...]
    code: str
    """Definitions of the reference that its entry points use."""
    test: str
    """Text of the test, without copies of entry points."""
    form: TestForm
    """`PYTEST` if a script calls none of its test functions."""
    has_copies: bool
    without_arguments: frozenset[str]
    """Functions of the test that can be called without arguments."""


@dataclass
class _Uses:
    """Names of the reference by first line of use, and how they are used."""

    lines: dict[str, int] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    launched: set[str] = field(default_factory=set)

    def add(self, name: str, line: int) -> None:
        self.lines[name] = min(line, self.lines.get(name, line))


def test_calls(reference: str, test: str, form: TestForm, module: str) -> TestCalls:
    """Return what a test uses of its reference. The reference is the file `module`.py.

    Functions that reach no kernel are not entry points, if others do: the test uses them to prepare its inputs. Raises as
    `parse_python`.
    """
    outline = Outline(reference)
    test, has_copies = _without_copies(outline, test) if form is TestForm.SCRIPT else (test, False)
    tree = ScriptText(test)
    if form is TestForm.SCRIPT and not tree.runs_at_import:
        form = TestForm.PYTEST
    reached = tree.reached(form)
    uses = _uses(tree, reached, outline, form, module)
    names = sorted(uses.lines, key=uses.lines.__getitem__)
    oracles = [name for name in names if _ORACLE.fullmatch(name) and not _reaches_kernel(outline, name)]
    kernels = [
        name
        for name in names
        if name not in oracles
        and (name in uses.launched if outline.is_kernel(name) else _reaches_kernel(outline, name))
    ]
    functions = [name for name in names if name in uses.called and name not in oracles]
    entries = kernels or functions or [name for name in names if not _is_value(outline, name)]
    return TestCalls(
        entry_points=tuple(entry_point(outline, name) for name in entries),
        oracles=(*oracles, *_oracles_of_test(tree, reached, set(entries))) if kernels else (),
        result_name=_result_name(tree),
        modules=tuple(sorted(_own_modules(tree, outline, module))),
        code="".join(
            outline.pieces[name]
            for name in sorted({used for entry in entries for used in outline.closure(entry)})
        ),
        test=test,
        form=form,
        has_copies=has_copies,
        without_arguments=tree.without_arguments,
    )


def _without_copies(outline: Outline, test: str) -> tuple[str, bool]:
    """Return the test without the definitions that use a kernel and that the reference has too.

    Such a copy would replace the candidate's definition. Lines keep their numbers.
    """
    copies = [
        name for name in Outline(test).pieces if outline.defines(name) and _reaches_kernel(outline, name)
    ]
    if not copies:
        return test, False
    lines = test.split("\n")
    for name, definition in definitions(parse_python(test).body):
        if name in copies:
            decorators = [] if isinstance(definition, Assignment) else definition.decorator_list
            first = min([definition.lineno, *(decorator.lineno for decorator in decorators)])
            last = definition.end_lineno or definition.lineno
            lines[first - 1 : last] = [""] * (last - first + 1)
    return "\n".join(lines), True


def _uses(
    tree: ScriptText, reached: Iterable[ast.stmt], outline: Outline, form: TestForm, module: str
) -> _Uses:
    """Return which names of the reference the reached statements of a test use, call, and launch as kernels.

    A name that the test itself defines or imports from elsewhere is not the reference's.
    """
    own = _own_modules(tree, outline, module)
    aliases = {local: name for local, (path, name) in tree.imports.items() if path in own and name}
    modules = {local for local, (path, name) in tree.imports.items() if path in own and not name}
    foreign = tree.functions.keys() | tree.assigned | (tree.imports.keys() - aliases.keys())
    uses = _Uses()

    def name_of(node: ast.expr) -> str | None:
        """Return the reference's name that an expression means."""
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            name = aliases.get(node.id, node.id)
            shadowed = node.id in foreign
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = node.attr
            is_loaded = form is TestForm.RUNNER and node.value.id in _LOADED
            shadowed = not is_loaded and node.value.id not in modules
        else:
            return None
        return name if not shadowed and outline.defines(name) else None

    for statement in reached:
        for node in tree.nodes[statement]:
            if isinstance(node, ast.Name | ast.Attribute) and (name := name_of(node)) is not None:
                uses.add(name, node.lineno)
            if not isinstance(node, ast.Call):
                continue
            target: ast.expr = node.func
            if isinstance(target, ast.Attribute) and name_of(target) is None:
                target = target.value
            if isinstance(target, ast.Subscript) and (name := name_of(target.value)) is not None:
                uses.launched.add(name)
                uses.called.add(name)
            elif (name := name_of(target)) is not None:
                uses.called.add(name)
                if target is not node.func:
                    uses.launched.add(name)
    return uses


_LOADED = frozenset({"mod", "module", "kernel_module"})
"""Names that scripts give to a module that they load by path."""


def _own_modules(tree: ScriptText, outline: Outline, module: str) -> set[str]:
    """Modules of the test's imports that mean the reference: its file, or a module that is not provided with its names."""
    return {
        path
        for path, name in tree.imports.values()
        if path == module
        or (name and outline.defines(name) and path.partition(".")[0] not in _PROVIDED and path != "")
    }


def _reaches_kernel(outline: Outline, name: str) -> bool:
    return any(outline.is_kernel(reached) for reached in outline.closure(name))


def _is_value(outline: Outline, name: str) -> bool:
    return isinstance(outline.definition(name), Assignment)


def _oracles_of_test(tree: ScriptText, reached: Iterable[ast.stmt], entries: set[str]) -> Iterator[str]:
    """Yield the functions of a test that compute the truth, by their names; none that calls an entry point."""
    for statement in reached:
        if not isinstance(statement, ast.FunctionDef) or not _ORACLE.fullmatch(statement.name):
            continue
        if not tree.names(statement) & entries:
            yield statement.name


def _result_name(tree: ScriptText) -> str:
    """Return the global that holds the test's results; empty if the test has none.

    That is one of the names which the suites use, else the last global that gets the result of a function of the test.
    """
    for name in _RESULTS:
        if name in tree.assigned:
            return name
    for statement in reversed(tree.tree.body):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            call = statement.value
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Name)
                and call.func.id in tree.functions
            ):
                return statement.targets[0].id
    return ""
