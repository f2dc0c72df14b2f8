"""Reads the shape and dtype of a parameter from an annotation of jaxtyping, such as `Float16[Tensor, "M 4096"]`, as text."""

from __future__ import annotations

import ast
import re

from suites.source.python_source import parse_python

from .shapes import Dim, TensorShape

_DTYPES = {
    "Float64": "float64", "Float32": "float32", "Float16": "float16", "BFloat16": "bfloat16", "Int64": "int64",
    "Int32": "int32", "Int16": "int16", "Int8": "int8", "UInt8": "uint8", "Bool": "bool",
    "Float8e4m3fn": "float8_e4m3fn", "Float8e4m3fnuz": "float8_e4m3fnuz", "Float8e5m2": "float8_e5m2",
    "Float8e5m2fnuz": "float8_e5m2fnuz",
}  # fmt: skip
"""Names of jaxtyping that mean exactly one dtype of tasks; `Float` and `Num` mean several."""
_MODULE = "jaxtyping"
_DIM = re.compile(r"(?:\w+=)?(?P<number>[1-9]\d*)|(?P<factor>\d+\*)?(?P<name>[A-Za-z]\w*)")
"""A number, which may have a name for readers, or a name, or a multiple of a name."""


def names_of_jaxtyping(tree: ast.Module) -> dict[str, str]:
    """Return what the imports of a file, also those below `if TYPE_CHECKING`, mean: `Half` -> `jaxtyping.Float16`."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname or alias.name: _MODULE for alias in node.names if alias.name == _MODULE}
        elif isinstance(node, ast.ImportFrom) and node.module == _MODULE and not node.level:
            names |= {alias.asname or alias.name: f"{_MODULE}.{alias.name}" for alias in node.names}
    return names


def annotated_tensor(annotation: ast.expr | None, names: dict[str, str]) -> TensorShape | None:
    """Return the tensor of an annotation; `None` if it does not say one dtype and each dimension.

    `names` are those of `names_of_jaxtyping`. Integers come without their range, which no annotation says.
    """
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            (statement,) = parse_python(f"({annotation.value})").body
        except (SyntaxError, ValueError):
            return None
        annotation = statement.value if isinstance(statement, ast.Expr) else None
    match annotation:
        case ast.Subscript(value=kind, slice=ast.Tuple(elts=[array, ast.Constant(value=str(text))])):
            dtype = _DTYPES.get(_meaning(kind, names))
        case _:
            return None
    dims = [_dim(word) for word in text.split()]
    if dtype is None or None in dims or ast.unparse(array).rpartition(".")[2] != "Tensor":
        return None
    return TensorShape(tuple(dim for dim in dims if dim is not None), dtype, is_annotated=True)


def _meaning(kind: ast.expr, names: dict[str, str]) -> str:
    """Return `Float16` for a name of jaxtyping; empty for others."""
    match kind:
        case ast.Name(id=name):
            module, _, meaning = names.get(name, "").rpartition(".")
        case ast.Attribute(value=ast.Name(id=name), attr=meaning):
            module = names.get(name, "")
        case _:
            return ""
    return meaning if module == _MODULE else ""


def _dim(word: str) -> Dim | None:
    match = _DIM.fullmatch(word)
    if match is None:
        return None
    return int(match["number"]) if match["number"] else f"{match['factor'] or ''}{match['name']}"
