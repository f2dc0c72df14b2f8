"""Changes the text of a candidate as a benchmark's own tools do before they run it."""

from __future__ import annotations

import ast
from collections.abc import Callable

from suites.public.task import PublicTask, SuiteKind
from suites.python_source import parse_python

KERNEL_NAME = "kernel_function"
"""KernelBench-X also accepts this name for the task's own."""


def missing_entry(public: PublicTask, source: str) -> str:
    """Return why KernelBench-X does not run a candidate; empty if it does, and for all other benchmarks.

    The module must bind the task's name at its top level, by `def` or `=`.
    """
    if public.kind is not SuiteKind.KERNELBENCH_X:
        return ""
    stem = public.file.rpartition("/")[2].removesuffix(".py")
    try:
        body = parse_python(source).body
    except (SyntaxError, ValueError, RecursionError) as error:
        return f"Python cannot read it: {error}"
    if any({stem, KERNEL_NAME} & _bound_names(statement) for statement in body):
        return ""
    return f"it defines neither {stem} nor {KERNEL_NAME}"


def text_as_run(kind: SuiteKind, source: str) -> str:
    """Return a candidate's text as the benchmark runs it."""
    return _CHANGES.get(kind, str)(source)


def _bound_names(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.FunctionDef():
            return {statement.name}
        case ast.Assign():
            return {target.id for target in statement.targets if isinstance(target, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
        case _:
            return set()


def _imports_and_functions(source: str) -> str:
    """Return only the imports and functions, nested functions a second time, and no constants, as TritonBench-G does."""
    try:
        nodes = list(ast.walk(parse_python(source)))
    except (SyntaxError, ValueError, RecursionError):
        return source
    imports = [ast.unparse(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    functions = [ast.unparse(node) for node in nodes if isinstance(node, ast.FunctionDef)]
    return "\n".join(imports) + "\n\n" + "\n".join(functions)


def _without_tests(source: str) -> str:
    """Return the text without functions `test_*` and the statements that call them, as GEAK-eval does."""
    try:
        tree = parse_python(source)
    except (SyntaxError, ValueError, RecursionError):
        return source
    tree.body = [statement for statement in tree.body if not _is_test(statement)]
    return ast.unparse(tree)


def _is_test(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.FunctionDef):
        return statement.name.startswith("test_")
    if not isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign):
        return False
    function = statement.value.func if isinstance(statement.value, ast.Call) else None
    name = getattr(function, "id", "") or getattr(function, "attr", "")
    return str(name).startswith("test_")


_CHANGES: dict[SuiteKind, Callable[[str], str]] = {
    SuiteKind.TRITONBENCH_G: _imports_and_functions,
    SuiteKind.TRITONBENCH_REVISED: _without_tests,
}
