"""Reads `reference.py` of a problem of GPU MODE as one module that defines `custom_kernel` and `generate_input`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from suites.public.known import ROUNDED_ONCE
from suites.public.syntax.outline import Outline
from suites.source.python_source import parse_python
from suites.task import Tolerance

_CHECKS = frozenset({"make_match_reference", "match_reference", "verbose_allclose"})
"""Functions of the competitions' `utils.py` that compare values with `rtol` and `atol`."""
_DEFAULT = {"rtol": 1e-5, "atol": 1e-8}
"""Defaults of these functions."""
_OWN_MODULES = ("task", "utils", "__future__")
_FP4 = "float4_e2m1fn_x2"
_EMPTY = re.compile(r"torch\.(?:empty|zeros)(?:_like)?\(")
_ENTRY = """

def custom_kernel(data):
    return ref_kernel(data)
"""
_ENTRY_WITH_OUTPUTS = """

def custom_kernel(data):
    values = ref_kernel(data)
    outputs = data[-{count}:]
    for output, value in zip(outputs, values if isinstance(values, tuple) else (values,), strict=True):
        output.copy_(value)
    return outputs if len(outputs) > 1 else outputs[0]
"""


class GpuModeReference(msgspec.Struct, frozen=True):
    """A reference as a module of its own."""

    text: str = ""
    tolerances: dict[str, Tolerance] = {}
    """Empty if the limits depend on the inputs."""
    gives_outputs: bool = False
    """`data` ends with tensors for the results."""
    vendor: str = ""
    problem: str = ""
    """Why it cannot be judged; empty if it can."""


def read_reference(path: Path, utils: Path | None) -> GpuModeReference:
    """Return the reference of a problem. `utils` has helpers of the reference.

    Raises `OSError`, or as `parse_python` if a file cannot be parsed.
    """
    text = path.read_text(encoding="utf-8")
    tree = parse_python(text)
    if any(module.partition(".")[0] == "aiter" for module in _imported_modules(tree)):
        return GpuModeReference(vendor="amd", problem="its reference calls kernels of the package aiter")
    if _FP4 in text:
        return GpuModeReference(
            vendor="nvidia", problem=f"its inputs have the dtype {_FP4}, which no task can have here"
        )
    outline = Outline(text)
    missing = [name for name in ("generate_input", "ref_kernel") if not outline.defines(name)]
    if missing:
        return GpuModeReference(
            problem=f"reference.py does not define {' and '.join(missing)}: the problem has an evaluator of its own"
        )
    check = outline.definition("check_implementation")
    if check is None or not any(
        isinstance(node, ast.Name) and node.id == "ref_kernel" for node in ast.walk(check)
    ):
        return GpuModeReference(
            problem="its check tests properties of a factorization, which right results with other values have too"
        )
    count = _output_count(outline.definition("generate_input"))
    helpers = "" if utils is None else _helpers(tree, utils)
    parts = ["from __future__ import annotations", helpers, _without_check(text, tree)]
    entry = _ENTRY_WITH_OUTPUTS.format(count=count) if count else _ENTRY
    return GpuModeReference(
        text="\n\n".join(part.strip() for part in parts if part.strip()) + "\n" + entry,
        tolerances=_tolerances(check),
        gives_outputs=bool(count),
    )


def _imported_modules(tree: ast.Module) -> Iterator[str]:
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            yield statement.module or ""


def _without_check(text: str, tree: ast.Module) -> str:
    """Return the text without the check, without imports of the problem's own modules, and without `if __name__`."""
    lines = text.split("\n")
    for statement in tree.body:
        is_own_import = isinstance(statement, ast.ImportFrom) and statement.module in _OWN_MODULES
        names = [statement.name] if isinstance(statement, ast.FunctionDef) else []
        if isinstance(statement, ast.Assign):
            names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
        is_program = isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)
        if is_own_import or is_program or "check_implementation" in names:
            last = statement.end_lineno or statement.lineno
            lines[statement.lineno - 1 : last] = [""] * (last - statement.lineno + 1)
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines))


def _helpers(tree: ast.Module, utils: Path) -> str:
    """Return the definitions of `utils` that the reference imports, without comparisons, and the imports of `utils`."""
    names = {
        alias.name
        for statement in tree.body
        if isinstance(statement, ast.ImportFrom) and statement.module == "utils"
        for alias in statement.names
        if alias.name not in _CHECKS and alias.name != "verbose_allequal"
    }
    if not names:
        return ""
    text = utils.read_text(encoding="utf-8")
    outline = Outline(text)
    needed = {used for name in names if outline.defines(name) for used in outline.closure(name)}
    imports = [
        ast.unparse(statement)
        for statement in parse_python(text).body
        if isinstance(statement, ast.Import | ast.ImportFrom)
    ]
    pieces = [piece.strip() for name, piece in outline.pieces.items() if name in needed]
    return "\n\n\n".join(["\n".join(imports), *pieces])


def _output_count(definition: ast.AST | None) -> int:
    """Return the number of tensors for results at the end of the data: tensors of `torch.empty` or `torch.zeros`."""
    if definition is None:
        return 0
    definition_text = ast.unparse(definition)
    values: dict[str, str] = {}
    items: list[ast.expr] = []
    for node in ast.walk(definition):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values[node.targets[0].id] = ast.unparse(node.value)
        elif isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            items = node.value.elts
    count = 0
    for item in reversed(items):
        text = values.get(item.id, "") if isinstance(item, ast.Name) else ast.unparse(item)
        is_filled = isinstance(item, ast.Name) and re.search(rf"\b{item.id}\.\w+_\(", definition_text)
        if is_filled or not _EMPTY.match(text):
            break
        count += 1
    return count


def _tolerances(check: ast.AST) -> dict[str, Tolerance]:
    """Return the largest tolerances that a check states, by dtype; empty if one is no constant, or if there is none.

    16-bit floats may also be off by one rounding.
    """
    limits = []
    for node in ast.walk(check):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CHECKS):
            continue
        limit = dict(_DEFAULT)
        for keyword in node.keywords:
            if keyword.arg not in limit:
                continue
            if not (isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, float | int)):
                return {}
            limit[keyword.arg] = float(keyword.value.value)
        limits.append(limit)
    if not limits:
        return {}
    rtol, atol = (max(limit[name] for limit in limits) for name in ("rtol", "atol"))
    wide = dict.fromkeys(("float64", "float32"), Tolerance(rtol=rtol, atol=atol))
    return wide | dict.fromkeys(("float16", "bfloat16"), Tolerance(rtol=rtol, atol=atol, ulps=ROUNDED_ONCE))
