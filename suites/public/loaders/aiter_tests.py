"""Tests of aiter's Triton operators, in pytest's form; each file is a task.

The package aiter builds HIP extensions when it is imported, but its Triton part is plain Python. The operators that a test
imports, and all that they use, become one module without the package. A test that needs more of aiter cannot be judged.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from suites.public.clone import MARKERS
from suites.public.instructions import reference_instruction
from suites.public.known import HUNDREDTH, issues_of
from suites.public.loaders.separated import task_name, unsupported
from suites.public.loading import Loading
from suites.public.syntax.calls import test_calls
from suites.public.syntax.flattened import NotFlat, PlainPackage
from suites.public.task import EntryKind, Part, PublicEntryPoint, PublicTask, TestForm
from suites.source.python_source import parse_python

_IMPORT = re.compile(
    r"^[ ]*((?:from[ ]+[.\w]+[ ]+import[ ]+(?:\([^)]*\)|[^(\n]+)|import[ ]+[.\w]+))", re.MULTILINE
)
_OPERATORS = "aiter.ops.triton"
_TESTS = "op_tests.triton_tests"


def load_aiter(loading: Loading) -> Iterable[PublicTask]:
    """Yield one task for each test file, by folder."""
    root = loading.clone.folder / MARKERS[loading.clone.kind]
    package = PlainPackage(loading.clone.folder, (_OPERATORS, _TESTS))
    for path in sorted(root.rglob("test_*.py")):
        yield _task(loading, package, root, path)


def _task(loading: Loading, package: PlainPackage, root: Path, path: Path) -> PublicTask:
    """Return the task of a test file; `unsupported`, with the reason, if it cannot be read or joined into one module."""
    clone = loading.clone
    parts = path.relative_to(root).with_suffix("").parts
    task = PublicTask(
        suite=clone.name,
        kind=clone.kind,
        name="-".join(task_name(part.removeprefix("test_")) for part in parts),
        file="/".join(path.relative_to(root).parts),
        title=parts[-1].removeprefix("test_").replace("_", " "),
        folder=clone.folder,
        category=" ".join(parts[:-1]),
        test_form=TestForm.PYTEST,
        tolerances=HUNDREDTH,
        vendor="amd",
    )
    try:
        test = path.read_text(encoding="utf-8")
        imports = list(_imports(test, f"{_TESTS}.{'.'.join(parts)}"))
        operators = [name for module, name in imports if module.startswith(_OPERATORS) and name]
        task = msgspec.structs.replace(
            task,
            entry_points=tuple(
                PublicEntryPoint(name, EntryKind.FUNCTION) for name in dict.fromkeys(operators)
            ),
        )
        return _with_reference(task, package, path, test, imports)
    except NotFlat as reason:
        return unsupported(
            task, f"without the package aiter and its HIP extensions it cannot run: it {reason}"
        )
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        return unsupported(task, f"{task.file} cannot be read: {error}")


def _imports(test: str, module: str) -> Iterator[tuple[str, str]]:
    """Yield modules and names that a test imports from aiter or from other tests; `import module` has no name."""
    lines = "\n".join(match[1] for match in _IMPORT.finditer(test))
    for node in parse_python(lines).body:
        if isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                source = ".".join([*module.split(".")[: -node.level], *([source] if source else [])])
            if source.partition(".")[0] in ("aiter", "op_tests"):
                yield from ((source, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (
                (alias.name, "")
                for alias in node.names
                if alias.name.partition(".")[0] in ("aiter", "op_tests")
            )


def _with_reference(
    task: PublicTask, package: PlainPackage, path: Path, test: str, imports: list[tuple[str, str]]
) -> PublicTask:
    """Return the task with its reference: the operators that the test imports, joined into one module.

    It is `unsupported` if the test calls no kernel. Raises `NotFlat` if an import cannot be joined, and `SyntaxError` if the
    file is no Python.
    """
    for module, name in imports:
        if not name:
            raise NotFlat(f"imports {module} as a whole")
        if package.module(module) is None and package.module(f"{module}.{name}") is None:
            raise NotFlat(f"needs {module}")
    if not any(module.startswith(_OPERATORS) for module, _ in imports):
        return unsupported(task, "its test imports no operator of aiter.ops.triton")
    reference = package.flatten(list(dict.fromkeys(imports)), test)
    calls = test_calls(reference, test, TestForm.PYTEST, path.stem)
    task = msgspec.structs.replace(
        task,
        reference=Part(path, reference),
        test=Part(path, calls.test),
        entry_points=calls.entry_points,
        result_name=calls.result_name,
        oracles=calls.oracles,
        modules=tuple(sorted({module for module, _ in imports})),
        packages=calls.packages,
        issues=issues_of(task, reference, calls.code),
    )
    if "@triton" not in calls.code:
        return unsupported(task, "its test calls no kernel of aiter.ops.triton")
    return msgspec.structs.replace(task, instruction=reference_instruction(task))
