"""Which names of its reference a test calls, found in the syntax trees of both."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from suites.public.outline import Outline
from suites.public.task import EntryKind, EntryPoint, TestForm
from suites.python_source import parse_python

_DEF = re.compile(r"^def[ ]+(\w+)", re.MULTILINE)
_RESULTS = ("result_gold", "test_results")
_ORACLE = re.compile(
    r"(?!.*dtype)(?:_*(reference|ref|torch|native|naive|pytorch)(_\w+)?|\w+_(reference|ref|torch|native|naive|pytorch))"
)
_NO_TEST = re.compile(
    r"test_(performance|save_)\w*|run_(compile|performance|benchmark|profile)|main|model_benchmark_configs"
)
_PROVIDED = frozenset({*sys.stdlib_module_names, "torch", "triton", "numpy", "pytest", "__future__"})


@dataclass(frozen=True, slots=True)
class TestCalls:
    """What a test uses of its reference."""

    __test__ = False

    entry_points: tuple[EntryPoint, ...]
    oracles: tuple[str, ...]
    result_name: str
    modules: tuple[str, ...]
    packages: tuple[str, ...]
    code: str
    """Definitions of the reference that its entry points use."""
    test: str
    """Text of the test, without copies of entry points."""
    form: TestForm
    """`PYTEST` if a script calls none of its test functions."""
    has_copies: bool


@dataclass
class _Uses:
    """Names of the reference by first line of use, and how they are used."""

    lines: dict[str, int] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    launched: set[str] = field(default_factory=set)

    def add(self, name: str, line: int) -> None:
        self.lines[name] = min(line, self.lines.get(name, line))


class TestModule:
    """The syntax tree of a test, with its top-level functions."""

    __test__ = False

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
        """Return the top-level statements that a test of correctness executes."""
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
                name for name in self.functions if name.startswith(prefix) and not _NO_TEST.fullmatch(name)
            ]
        reached: list[ast.stmt] = list(loose)
        names: set[str] = set()
        waiting = [*roots, *(name for statement in loose for name in self.names(statement))]
        while waiting:
            name = waiting.pop()
            if name in self.functions and name not in names:
                names.add(name)
                reached.append(self.functions[name])
                waiting.extend(self.names(self.functions[name]))
        return reached


def test_calls(reference: str, test: str, form: TestForm, module: str) -> TestCalls:
    """Return what a test uses of its reference, whose file is `module`.py.

    Functions that reach no kernel are not entry points, if others do: the test uses them to prepare its inputs. Raises as
    `parse_python`.
    """
    outline = Outline(reference)
    test, has_copies = _without_copies(outline, test) if form is TestForm.SCRIPT else (test, False)
    tree = TestModule(test)
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
    own = _own_modules(tree, outline, module)
    return TestCalls(
        entry_points=tuple(entry_point(outline, name) for name in entries),
        oracles=(*oracles, *_oracles_of_test(tree, reached, set(entries))) if kernels else (),
        result_name=_result_name(tree),
        modules=tuple(sorted(own)),
        packages=tuple(sorted(_packages(reference, tree) - own)),
        code="".join(
            outline.pieces[name]
            for name in sorted({used for entry in entries for used in outline.closure(entry)})
        ),
        test=test,
        form=form,
        has_copies=has_copies,
    )


def _without_copies(outline: Outline, test: str) -> tuple[str, bool]:
    """Return the test without the functions that use a kernel and that the reference defines too.

    Such a copy would replace the candidate's function. Lines keep their numbers.
    """
    copies = [name for name in _DEF.findall(test) if outline.defines(name) and _reaches_kernel(outline, name)]
    if not copies:
        return test, False
    lines = test.split("\n")
    for statement in parse_python(test).body:
        if isinstance(statement, ast.FunctionDef) and statement.name in copies:
            first = min([statement.lineno, *(decorator.lineno for decorator in statement.decorator_list)])
            lines[first - 1 : statement.end_lineno] = [""] * ((statement.end_lineno or first) - first + 1)
    return "\n".join(lines), True


def entry_point(outline: Outline, name: str) -> EntryPoint:
    """Return the entry point `name` of a module, with its signature."""
    definition = outline.definition(name)
    if isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef):
        kind = EntryKind.KERNEL if outline.is_kernel(name) else EntryKind.FUNCTION
        return EntryPoint(name, kind, f"{name}({ast.unparse(definition.args)})")
    if isinstance(definition, ast.ClassDef):
        return EntryPoint(name, EntryKind.CLASS, _class_signature(definition, name))
    value = definition.value if definition is not None else None
    if isinstance(value, ast.Attribute) and value.attr == "apply" and isinstance(value.value, ast.Name):
        of = outline.definition(value.value.id)
        if isinstance(of, ast.ClassDef):
            return EntryPoint(
                name, EntryKind.VALUE, _class_signature(of, name).replace(f"{name}.apply", name)
            )
    return EntryPoint(name, EntryKind.VALUE)


def _class_signature(definition: ast.ClassDef, name: str) -> str:
    methods = {method.name: method for method in definition.body if isinstance(method, ast.FunctionDef)}
    forward = methods.get("forward")
    first = [argument.arg for argument in forward.args.args[:1]] if forward else []
    if forward is not None and first == ["ctx"]:
        return f"{name}.apply({_without_first(forward)})"
    return f"{name}({_without_first(methods['__init__'])})" if "__init__" in methods else ""


def _without_first(method: ast.FunctionDef) -> str:
    arguments = method.args
    plain = ast.arguments(
        posonlyargs=arguments.posonlyargs,
        args=arguments.args[1:],
        vararg=arguments.vararg,
        kwonlyargs=arguments.kwonlyargs,
        kw_defaults=arguments.kw_defaults,
        kwarg=arguments.kwarg,
        defaults=arguments.defaults,
    )
    return ast.unparse(plain)


def _uses(
    tree: TestModule, reached: Iterable[ast.stmt], outline: Outline, form: TestForm, module: str
) -> _Uses:
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


def _own_modules(tree: TestModule, outline: Outline, module: str) -> set[str]:
    """Modules of the test's imports that mean the reference: its file, or a module that is not provided with its names."""
    return {
        path
        for path, name in tree.imports.values()
        if path == module
        or (name and outline.defines(name) and path.partition(".")[0] not in _PROVIDED and path != "")
    }


def _packages(reference: str, tree: TestModule) -> set[str]:
    pattern = r"^(?:from|import)[ ]+(\w+)"
    names = {path.partition(".")[0] for path, _ in tree.imports.values()} | set(
        re.findall(pattern, reference, re.MULTILINE)
    )
    return names - _PROVIDED - {""}


def _reaches_kernel(outline: Outline, name: str) -> bool:
    return any(outline.is_kernel(reached) for reached in outline.closure(name))


def _is_value(outline: Outline, name: str) -> bool:
    return isinstance(outline.definition(name), ast.Assign | ast.AnnAssign)


def _oracles_of_test(tree: TestModule, reached: Iterable[ast.stmt], entries: set[str]) -> Iterator[str]:
    for statement in reached:
        if not isinstance(statement, ast.FunctionDef) or not _ORACLE.fullmatch(statement.name):
            continue
        if not tree.names(statement) & entries:
            yield statement.name


def _result_name(tree: TestModule) -> str:
    """Return the global that holds the test's results: one of the suites' names, or the last result of a test function."""
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
