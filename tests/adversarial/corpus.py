"""Reads the corpus: cheating kernels as TOML files in one folder a family, and honest kernels as Python files.

`<family>/<trick>.toml` is one cheat. `trick`, `task` and `expect` are required, the rest may be left out:

    trick     one sentence: what the kernel does instead of its work
    source    the public harness or report that shows the trick; without it, we found the trick ourselves
    task      a starter task
    expect    { verdict = "wrong", error = "mismatch" }; a list if more than one check may refuse the kernel first
              "no_gain" as an error: accepted by a GPU, and not faster than the baseline there
    level     "default" (every attempt, the default) or "exam" (an instance's winner): the level that must find the trick
    base      kernels of `bases/`, or the task's name for its baseline, joined; [] for no base; without it, the baseline
    edits     [[text of the base, its replacement], ...]; each text occurs once in the base
    code      functions that replace the base's functions of the same name; all other code is added
    cases     open cases that show the trick; without it, the first of `CASES`
    sizes     "whole" keeps the sizes of the cases, { axis = size } sets sizes; without it, at most 8 rows
    degenerate_rows    false leaves degenerate rows out of the hidden cases
    target    the compile target on `cpu`
    device    "gpu": the trick needs a GPU; "cpu": the small sizes of the GPU tests do not show the trick

`known_limits/*.toml` are tricks that a level accepts: `expect = { default = "correct", exam = "correct" }`.
`honest/*.py` are kernels that must be correct. They state `TASK`, and `CASES`, `SIZES` and other fields as constants.
`HEAD` imports torch, triton and `tl`, so bases and `code` do not import them.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from suites import Task, baseline_source, load_task
from suites.source.python_source import parse_python
from suites.task import Allowance

FOLDER = Path(__file__).parent
HONEST = "honest"
KNOWN_LIMITS = "known_limits"
HEAD = "import torch\nimport triton\nimport triton.language as tl\n"
CASES = {
    "softmax": ("fp32", "fp16"),
    "vector_add": ("fp32-ragged", "fp16-ragged"),
    "matmul": ("ragged",),
    "layer_norm": ("fp32-ragged", "fp16-ragged"),
    "flip": ("fp32-ragged", "fp16-narrow"),
    "rms_norm_residual": ("fp32-ragged", "fp16"),
    "cross_entropy": ("fp32", "fp16-outlier"),
    "matmul_w8a8": ("ragged",),
}
"""Open cases by task: an honest kernel gets all of them, a cheat only the first."""
ROWS = 8
"""Largest number of rows on `cpu`: in most kernels a row is a program, and a program takes a millisecond."""
OPTIONS = ("task", "cases", "sizes", "degenerate_rows", "target", "device")
"""Fields that an honest module states as constants, in capitals."""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One kernel of the corpus; the module's docstring explains the fields."""

    name: str
    """Family and file, such as `cache/by_shape`."""
    trick: str
    task: str
    expect: dict[str, str | list[str]]
    source: str = "here"
    level: Literal["default", "exam"] = "default"
    base: str | list[str] = ""
    edits: list[tuple[str, str]] = []
    code: str = ""
    cases: tuple[str, ...] = ()
    sizes: Literal["few", "whole"] | dict[str, int] = "few"
    degenerate_rows: bool = True
    target: str = "gfx942"
    device: Literal["any", "cpu", "gpu"] = "any"

    @property
    def family(self) -> str:
        return self.name.partition("/")[0]

    @property
    def is_honest(self) -> bool:
        return self.family == HONEST

    def expected(self, key: str) -> list[str]:
        """The values that `expect` allows for `key`."""
        values = self.expect[key]
        return [values] if isinstance(values, str) else values


def read_corpus() -> list[Entry]:
    """All cheats, known limits and honest kernels, sorted by name."""
    cheats = [read_cheat(file) for file in FOLDER.glob("*/*.toml")]
    honest = [read_honest(file) for file in FOLDER.glob(f"{HONEST}/*.py")]
    return sorted(cheats + honest, key=lambda entry: entry.name)


def read_cheat(file: Path) -> Entry:
    fields = msgspec.toml.decode(file.read_bytes())
    keys = {"default", "exam"} if file.parent.name == KNOWN_LIMITS else {"verdict", "error"}
    assert set(fields["expect"]) == keys, f"{file}: expect needs {sorted(keys)}"
    return msgspec.convert(fields | {"name": f"{file.parent.name}/{file.stem}"}, Entry)


def read_honest(file: Path) -> Entry:
    source = file.read_text(encoding="utf-8")
    constants = {
        node.targets[0].id.lower(): ast.literal_eval(node.value)
        for node in parse_python(source).body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id.lower() in OPTIONS
    }
    expect = {"verdict": "correct", "error": ""}
    fields = constants | {"trick": "", "expect": expect, "code": source}
    return msgspec.convert(fields | {"name": f"{HONEST}/{file.stem}"}, Entry)


def kernel_of(entry: Entry) -> str:
    """Source of the module that is judged."""
    if entry.is_honest:
        return entry.code
    text = base_of(entry)
    for old, new in entry.edits:
        assert text.count(old) == 1, f"{entry.name}: the base has {text.count(old)} times {old!r}"
        text = text.replace(old, new)
    return HEAD + merge(text, entry.code)


def base_of(entry: Entry) -> str:
    """The base's text before edits, without docstring and the imports of `HEAD`."""
    names = [entry.base or entry.task] if isinstance(entry.base, str) else entry.base
    return "\n\n".join(read_base(name) for name in names)


starter_task = cache(load_task)


@cache
def read_base(name: str) -> str:
    """The text of a file of `bases/`, or of the baseline of a task."""
    if name in CASES:
        return baseline_source(starter_task(name)).partition(HEAD)[2]
    return (FOLDER / "bases" / f"{name}.py").read_text(encoding="utf-8")


def merge(base: str, code: str) -> str:
    """Merges `code` into `base`.

    A function or name that `base` defines is replaced at its place, together with the statements of `code` before it.
    """
    lines = code.splitlines()
    begin = 0
    for node in parse_python(code).body:
        name = name_of(node)
        statements = parse_python(base).body if name and name in base else []
        old = next((statement for statement in statements if name_of(statement) == name), None)
        if old is not None:
            text = base.splitlines()
            text[first_line(old) - 1 : old.end_lineno] = lines[begin : node.end_lineno]
            base, begin = "\n".join(text), node.end_lineno or 0
    return "\n".join([base, "", *lines[begin:]]).rstrip() + "\n"


def name_of(node: ast.stmt) -> str:
    """The name that a function definition or an assignment binds, or an empty string."""
    if isinstance(node, ast.FunctionDef):
        return node.name
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return ""


def first_line(node: ast.stmt) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])


def narrow(entry: Entry, level: str) -> Task:
    """The entry's task with few cases of few rows; the exam level adds one exam case."""
    task = starter_task(entry.task)
    names = entry.cases or CASES[entry.task][: None if entry.is_honest else 1]
    cases = [case for case in task.open_cases if case.name in names]
    assert len(cases) == len(names), f"{entry.name} names a case that {entry.task} does not have"
    if level == "exam":
        cases += task.exam_cases[:1]
    if not entry.degenerate_rows:
        allows = tuple(set(task.allows) - {Allowance.DEGENERATE_ROWS})
        task = msgspec.structs.replace(task, allows=allows)
    cases = [msgspec.structs.replace(case, cpu=resize(case.cpu, entry.sizes)) for case in cases]
    return msgspec.structs.replace(task, cases=tuple(cases))


def resize(sizes: dict[str, int], rule: str | dict[str, int]) -> dict[str, int]:
    if isinstance(rule, dict):
        return sizes | rule
    if rule == "whole":
        return sizes
    return {axis: min(size, ROWS) if axis == "rows" else size for axis, size in sizes.items()}
