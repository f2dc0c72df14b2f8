"""Modules that the judge's processes import must not need a newer Python than `--python` accepts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from harness.processes.starting.judge_python import OLDEST_PYTHON

ROOT = Path(__file__).parents[3]
NEWER = {
    "asyncio": {"Runner", "TaskGroup", "timeout", "timeout_at"},
    "datetime": {"UTC"},
    "enum": {"ReprEnum", "StrEnum"},
    "tomllib": {"load", "loads"},
    "typing": {"LiteralString", "Never", "NotRequired", "Required", "Self", "Unpack", "assert_never"},
    "builtins": {"BaseExceptionGroup", "ExceptionGroup"},
}
"""Names of the standard library that Python 3.10 lacks."""


def imports_at_start(body: list[ast.stmt], package: str) -> Iterator[tuple[str, str]]:
    """Module and name of each import that runs when a module of `package` is imported."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            yield from ((module, alias.name) for alias in node.names)
        elif isinstance(node, (ast.If, ast.Try, ast.With)) and "TYPE_CHECKING" not in ast.unparse(node)[:20]:
            yield from imports_at_start(node.body, package)


def file_of(module: str) -> Path | None:
    place = ROOT / module.replace(".", "/")
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)


def imported_files(modules: set[str]) -> set[Path]:
    """The files of these modules, and of all modules of ours that they import when they start."""
    files: set[Path] = set()
    while modules:
        module = modules.pop()
        file = file_of(module)
        if file is None or file in files:
            continue
        files.add(file)
        package = module if file.name == "__init__.py" else module.rpartition(".")[0]
        modules.add(module.rpartition(".")[0])
        for name, member in imports_at_start(ast.parse(file.read_text()).body, package):
            modules |= {name, f"{name}.{member}"}
    return files


def newer_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if alias.name in NEWER.get(node.module or "", ()))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in NEWER.get(node.value.id, ()):
                yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Name) and node.id in NEWER["builtins"]:
            yield node.id


def test_modules_of_the_judges_processes_need_nothing_that_the_oldest_python_lacks() -> None:
    assert OLDEST_PYTHON == (3, 10), "list what this version lacks"
    workers = {
        ".".join(file.relative_to(ROOT).with_suffix("").parts) for file in ROOT.glob("harness/worker/**/*.py")
    }
    files = imported_files(workers | {"harness.linux.worker_start"})
    assert ROOT / "suites/task.py" in files
    problems = {}
    for file in files:
        tree = ast.parse(file.read_text(), feature_version=OLDEST_PYTHON)  # refuses newer syntax
        if names := sorted(set(newer_names(tree))):
            problems[str(file.relative_to(ROOT))] = names
    assert not problems
