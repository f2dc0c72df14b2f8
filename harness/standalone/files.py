"""Writes the texts of the files: kernel, baseline, the task's problem, a test and a benchmark."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.wire.errors import HarnessError
from suites import input_kinds
from suites.loader import baseline_source
from suites.source.python_source import parse_python
from suites.task import Case, Task, Tolerance
from suites.tolerances import dtype_of, tolerance_of, unmeasured

_HERE = Path(__file__).parent
_ORACLE = _HERE.parent / "worker" / "oracle"
FORMULAS = {
    "comparison/bounds.py": (
        "FLOAT32_ROUNDING", "TF32_ALLOWANCE", "_EIGHT_BITS", "terms_of", "allowed", "_sizes", "spacing", "overflow", "_format",
    ),
    "comparison/compare.py": ("quantization_metrics",),
    "../kit/in_place.py": ("taking_parts",),
    "inputs/distributions.py": ("PROBABILITY", "FACTOR", "TAIL", "inject_outliers", "_places"),
}  # fmt: skip
"""Definitions of the judge that the test contains as text, so that both have one formula."""


def standalone_files(task: Task, source: str) -> dict[str, str]:
    """Return the texts by file name: `softmax_kernel.py`, `softmax_baseline.py`, `softmax_problem.py`, test and bench.

    Raises `HarnessError` if the cases are calls of a script: without it, their inputs cannot be made again. Also raises it if
    the kernel imports from its package.
    """
    if task.script is not None:
        raise HarnessError(
            f"{task.id} has no test and benchmark of its own: its cases are calls that a script of the benchmark makes"
        )
    if task.package is not None:
        raise HarnessError(
            f"{task.id} has no test and benchmark of its own: its kernel is the module {task.package.module} of a package; "
            "test it in its repository, with `wavedeck apply --test`"
        )
    name = file_stem(task)
    named = {"name": name, "task": task.id}
    test = (_HERE / "test.txt").read_text(encoding="utf-8")
    bench = (_HERE / "bench.txt").read_text(encoding="utf-8")
    problem = (task.folder / "problem.py").read_text(encoding="utf-8")
    kinds = Path(input_kinds.__file__).read_text(encoding="utf-8")
    return {
        f"{name}_kernel.py": source,
        f"{name}_baseline.py": baseline_source(task),
        f"{name}_problem.py": problem.replace(input_kinds.__name__, f"{name}_input_kinds"),
        **({f"{name}_input_kinds.py": kinds} if input_kinds.__name__ in problem else {}),
        f"test_{name}.py": test.format(
            **named, data=_data(task), exact=msgspec.to_builtins(Tolerance()), formulas=_formulas()
        ),
        f"bench_{name}.py": bench.format(**named),
    }


def file_stem(task: Task) -> str:
    """Return the task's name as the start of a module's name."""
    return task.name.replace("-", "_")


def _data(task: Task) -> str:
    """Return the cases and tolerances as Python assignments."""
    values = {
        "ENTRY_POINT": task.entry_points[0].name,
        "OUTLIER_INPUTS": task.outlier_inputs,
        "IN_PLACE": task.in_place,
        "RETURNS": task.returns,
        "QUANTIZATION": task.quantization and msgspec.to_builtins(task.quantization),
        "CASES": [_case(task, case) for case in task.cases],
    }
    return "\n".join(f"{name} = {_literal(value)}" for name, value in values.items())


def _literal(value: object) -> str:
    """Return a Python literal; a list has a line for each element."""
    if isinstance(value, list):
        return "\n".join(["[", *(f"    {element!r}," for element in value), "]"])
    return repr(value)


def _case(task: Task, case: Case) -> dict[str, object]:
    """Return a case as data for the files: its sizes, dtypes and tolerances, without values that are defaults."""
    outputs = [
        {
            "name": output.name,
            "dtype": dtype_of(output, case),
            "tolerance": _without_defaults(_stated(tolerance_of(task, output, case), dtype_of(output, case))),
        }
        for output in task.outputs_of(case)
    ]
    fields = ("name", "dtype", "cpu", "gpu", "only_gpu")
    return {
        **{name: getattr(case, name) for name in fields},
        "distribution": str(case.distribution),
        "outputs": outputs,
    }


def _stated(tolerance: Tolerance, dtype: str) -> Tolerance:
    """Return a tolerance in numbers: the test outside the judge measures nothing."""
    return unmeasured(dtype) if tolerance.measured else tolerance


def _without_defaults(tolerance: Tolerance) -> dict[str, object]:
    defaults = msgspec.to_builtins(Tolerance())
    return {key: value for key, value in msgspec.to_builtins(tolerance).items() if value != defaults[key]}


def _formulas() -> str:
    """Return the judge's own definitions as one text."""
    texts = (_definitions(_ORACLE / file, names) for file, names in FORMULAS.items())
    return "\n\n\n".join(texts).replace("bounds.spacing", "spacing")


def _definitions(file: Path, names: Sequence[str]) -> str:
    """Return the text of these functions and constants of a file, in the file's order."""
    text = file.read_text(encoding="utf-8")
    lines, parts = text.splitlines(), []
    for statement in parse_python(text).body:
        match statement:
            case ast.FunctionDef(name=name):
                gap = "\n\n\n"
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                gap = "\n"
            case _:
                continue
        if name in names:
            parts.append(gap + "\n".join(lines[statement.lineno - 1 : statement.end_lineno]))
    return "".join(parts).strip("\n")
