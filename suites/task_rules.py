"""The rules that each `task.toml` must keep, beside the types in `suites.task`. Rules of tolerances: `suites.tolerances`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from suites.dtypes import TASK_DTYPES
from suites.errors import nearest
from suites.source.signature import Signature, parse_signature
from suites.task import FINDINGS, REQUIREMENTS, Allowance, Task
from suites.tolerances import Problem, tolerance_problems

SCHEMA = 1
CATEGORIES = (
    "Activation",
    "Convolution",
    "Fusion",
    "Index",
    "LinearAlgebra",
    "Loss",
    "Math",
    "MatrixMultiply",
    "Normalization",
    "Optimizer",
    "Pooling",
    "Quantization",
    "Random",
    "Reduce",
    "SpatialOps",
)
"""The fifteen categories of KernelBench-X, by the names of its data folders."""

NAME = re.compile(r"[a-z][a-z0-9_]*(-[a-z0-9_]+)*")
"""Form of suite and task names: they become parts of git refs, file names and `suite/task`."""
CASE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PHRASES = {
    Allowance.NON_CONTIGUOUS: re.compile(r"non-contiguous|not contiguous|strided|any strides|their strides"),
    Allowance.UNALIGNED: re.compile(r"align"),
}
"""Phrases that an instruction must contain before hidden cases may use an allowance."""
_PROMISED_ELEMENTS = re.compile(r"any positive|at least one|never empty|not empty")


def task_problems(task: Task) -> Iterator[Problem]:
    """Yield key and problem for each rule that a decoded task breaks. Its `folder` must be filled in."""
    if task.schema != SCHEMA:
        yield "schema", f"is {task.schema}; this Wavedeck reads {SCHEMA}"
    if not NAME.fullmatch(task.name):
        yield (
            "name",
            f"{task.name!r} is no name: use lower-case letters, digits, `_` and `-`, and begin with a letter",
        )
    if task.name != task.folder.name:
        yield "name", f"is {task.name!r}, but the folder is called {task.folder.name!r}"
    for key in ("title", "instruction", "baseline"):
        if not getattr(task, key).strip():
            yield key, "is empty"
    if task.category not in CATEGORIES:
        yield (
            "category",
            f"{task.category!r} is none of {', '.join(CATEGORIES)}{nearest(task.category, CATEGORIES)}",
        )
    if not 1 <= task.difficulty <= 5:
        yield "difficulty", f"is {task.difficulty}; it goes from 1 (an element-wise kernel) to 5"
    yield from _interface_problems(task)
    yield from _case_problems(task)
    yield from _allowance_problems(task)
    yield from tolerance_problems(task)
    if task.package is not None and (problem := task.package.problem(task.folder)):
        yield "package", problem


def _interface_problems(task: Task) -> Iterator[Problem]:
    """Yield the problems of entry points, outputs, `returns`, and the parameters that other keys name: key and problem."""
    signatures: list[Signature] = []
    if not task.entry_points:
        yield "entry_points", "is empty; name the function that a candidate must define"
    for place, entry in enumerate(task.entry_points):
        try:
            signature = parse_signature(entry.signature)
        except ValueError as error:
            yield f"entry_points[{place}].signature", str(error)
            continue
        signatures.append(signature)
        if signature.name != entry.name:
            yield (
                f"entry_points[{place}].name",
                f"is {entry.name!r}, but its signature is for {signature.name!r}",
            )
        if not signature.parameters and task.script is None:
            yield f"entry_points[{place}].signature", "has no parameter; a kernel needs an input"
    yield from _repeated("entry_points", [entry.name for entry in task.entry_points])
    if task.original.startswith("/") or ".." in task.original.split("/"):
        yield "original", f"{task.original!r} is no path from the root of a repository"
    if not task.outputs:
        yield "outputs", "is empty; name at least one tensor to judge"
    for place, output in enumerate(task.outputs):
        if output.dtype != "input" and output.dtype not in TASK_DTYPES:
            yield (
                f"outputs[{place}].dtype",
                f"{output.dtype!r} is neither `input` nor a dtype{nearest(output.dtype, TASK_DTYPES)}",
            )
    yield from _repeated("outputs", [output.name for output in task.outputs])
    if task.returns and [name for name in task.returns if name] != [
        output.name
        for output in task.outputs
        if output.name in task.returns or output.name not in task.in_place
    ]:
        yield "returns", "must name the outputs in their order, with an empty text for None or a number"
    if task.script is not None:  # inputs inside a tuple or a dictionary are parameters of `calls.py` only
        try:
            signatures.append(parse_signature(task.script.signature))
        except ValueError as error:
            yield "script.signature", str(error)
    parameters = {name for signature in signatures for name in signature.parameters}
    for key in ("outlier_inputs", "in_place"):
        for name in getattr(task, key):
            if re.split(r"[.\[(]", name)[0] not in parameters:
                yield key, f"{name!r} is no parameter{nearest(name, parameters)}"


def _case_problems(task: Task) -> Iterator[Problem]:
    """Yield the problems of the cases, their sizes and weights: key and problem."""
    if not task.cases:
        yield "cases", "is empty; a task needs at least one case"
        return
    if not task.open_cases:
        yield "cases", "are all for the exam; a task needs at least one open case"
        return
    yield from _repeated("cases", [case.name for case in task.cases])
    axes = set(task.cases[0].cpu)
    for place, case in enumerate(task.cases):
        key = f"cases[{place}]"
        if not CASE_NAME.fullmatch(case.name):
            yield f"{key}.name", f"{case.name!r} is no name: use letters, digits, `.`, `_` and `-`"
        if case.dtype not in TASK_DTYPES:
            yield f"{key}.dtype", f"{case.dtype!r} is no dtype{nearest(case.dtype, TASK_DTYPES)}"
        for device, sizes in (("cpu", case.cpu), ("gpu", case.gpu)):
            if not sizes:
                yield f"{key}.{device}", "is empty; a case has sizes for both `cpu` and `gpu`"
            if set(sizes) != axes:
                yield f"{key}.{device}", f"has the sizes {_listed(sizes)}, other cases have {_listed(axes)}"
            for axis, size in sizes.items():
                if size < 0:
                    yield f"{key}.{device}.{axis}", f"is {size}; a size must not be negative"
        if case.weight < 0 or (case.weight and case.exam):
            yield f"{key}.weight", f"is {case.weight:g}; a weight is above 0, and exam cases have none"
    if len({bool(case.weight) for case in task.open_cases}) > 1:
        yield "cases", "have weights in part; give every open case a `weight`, or none"
    if any(case.distribution == "outlier" for case in task.cases) and not task.outlier_inputs:
        yield "outlier_inputs", "is empty, but a case has the distribution `outlier`"


def _allowance_problems(task: Task) -> Iterator[Problem]:
    """Yield hidden cases that the instruction does not announce, and unknown kinds of findings."""
    for kind in task.strict:
        kinds = FINDINGS | REQUIREMENTS
        if kind not in kinds:
            yield "strict", f"{kind!r} is none of {', '.join(kinds)}{nearest(kind, kinds)}"
    if task.max_host_us is not None and not task.max_host_us > 0:
        yield "max_host_us", f"is {task.max_host_us:g}; it must be above 0"
    for allowance, phrases in _PHRASES.items():
        if allowance in task.allows and not phrases.search(task.instruction):
            yield "allows", f"has `{allowance}`, but the instruction does not say that such inputs occur"
    sizes = set(task.cases[0].cpu) if task.cases else set()
    for name, axis in task.axes.items():
        key = f"axes.{name}"
        if name not in sizes:
            yield key, f"is no axis of the cases{nearest(name, sizes)}"
        if axis.min < 0:
            yield f"{key}.min", f"is {axis.min}; a size must not be negative"
        if axis.multiple_of < 1:
            yield f"{key}.multiple_of", f"is {axis.multiple_of}; it must be at least 1"
        if axis.min == 0 and _PROMISED_ELEMENTS.search(task.instruction):
            yield f"{key}.min", "is 0, but the instruction promises sizes above 0"
        for case in task.cases:
            for size in (case.cpu.get(name), case.gpu.get(name)):
                if size is None:
                    continue
                is_inside = axis.min <= size <= (size if axis.max is None else axis.max)
                if not is_inside or size % max(axis.multiple_of, 1):
                    yield key, f"does not hold for case {case.name}, which has size {size}"


def _repeated(key: str, names: list[str]) -> Iterator[Problem]:
    for place, name in enumerate(names):
        if name in names[:place]:
            yield f"{key}[{place}].name", f"{name!r} is used twice"


def _listed(names: set[str] | dict[str, int]) -> str:
    return ", ".join(sorted(names)) or "none"
