"""Small trace sets in the forms of flashinfer-bench and SOL-ExecBench, and a solution for them."""

from __future__ import annotations

import json
import struct
from pathlib import Path

from .files import write

SCALE = """import torch


def run(x, factor):
    return x * factor
"""
TAKE = """import torch


def make(sizes, device):
    return {"x": torch.ones(sizes["rows"], sizes["wide"]), "at": torch.zeros(sizes["picked"], dtype=torch.int32)}


def run(x, at):
    return x[at.long()]
"""
SOLUTION = """import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * factor, mask=at < n)


def scale(x, factor):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), factor, BLOCK=64)
    return y
"""
STORED = (2, 0, 2)


def _tensor(*shape: str, dtype: str = "float32") -> dict[str, object]:
    return {"shape": list(shape), "dtype": dtype}


def _scale(*, name: str = "scale_d40", dtype: str = "float32") -> str:
    axes = {"rows": {"type": "var"}, "columns": {"type": "const", "value": 40}}
    inputs = {
        "x": _tensor("rows", "columns", dtype=dtype),
        "factor": {"shape": None, "dtype": "float32"},
    }
    outputs = {"y": _tensor("rows", "columns", dtype=dtype)}
    definition = {"name": name, "axes": axes, "inputs": inputs, "outputs": outputs, "reference": SCALE}
    return json.dumps(definition | {"op_type": "scale", "description": "Scale rows. By a number."})


def _take(*, custom: str | None = None) -> str:
    axes = {
        "rows": {"type": "const", "value": 3},
        "picked": {"type": "var"},
        "wide": {"type": "expr", "expression": "2 * rows"},
    }
    inputs = {"x": _tensor("rows", "wide"), "at": _tensor("picked", dtype="int32")}
    definition = {"name": "take", "axes": axes, "inputs": inputs, "outputs": {"y": _tensor("picked", "wide")}}
    return json.dumps(definition | {"reference": TAKE, "custom_inputs_entrypoint": custom})


def _workload(inputs: dict[str, object], **axes: int) -> dict[str, object]:
    return {"uuid": str(axes), "axes": axes, "inputs": inputs}


def _lines(*workloads: dict[str, object], definition: str = "") -> str:
    """Write workloads alone, or as the only part of a trace of `definition`."""
    rows = (
        {"definition": definition, "solution": None, "workload": workload, "evaluation": None}
        if definition
        else workload
        for workload in workloads
    )
    return "".join(json.dumps(row) + "\n" for row in rows)


def _stored(name: str) -> dict[str, object]:
    place = {"type": "safetensors", "path": f"blob/{name}.safetensors", "tensor_key": "at"}
    return _workload({"x": {"type": "random"}, "at": place}, picked=len(STORED))


def trace_set(root: Path) -> Path:
    """Write a set of flashinfer-bench: 10 workloads of `scale_d40`, and of `take` one with a stored tensor and three without."""
    random = {"x": {"type": "random"}, "factor": {"type": "scalar", "value": 3.0}}
    header = json.dumps({"at": {"dtype": "I32", "shape": [3], "data_offsets": [4, 16]}}).encode()
    folder = write(
        root,
        {
            "definitions/scale/scale_d40.json": _scale(),
            "workloads/scale/scale_d40.jsonl": _lines(
                *(_workload(random, rows=rows) for rows in (4000, 1, 9, 10, 11, 12, 13, 14, 15, 16)),
                definition="scale_d40",
            ),
            "definitions/take.json": _take(),
            "workloads/take.jsonl": _lines(
                *map(_stored, ("here", "pointer", "gone", "../../outside")), definition="take"
            ),
            "definitions/scale/packed.json": _scale(name="packed", dtype="float4_e2m1"),
            "definitions/scale/unused.json": _scale(name="unused"),
            "blob/pointer.safetensors": "version https://git-lfs.github.com/spec/v1\n",
        },
    )
    file = folder / "blob" / "here.safetensors"
    file.write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<4i", 7, *STORED))
    return folder


def sol_execbench(root: Path) -> Path:
    """Write a set of SOL-ExecBench: a definition that makes its inputs itself."""
    inputs = {"x": {"type": "custom"}, "at": {"type": "custom"}}
    return write(
        root,
        {
            "L1/take_2/definition.json": _take(custom="make"),
            "L1/take_2/workload.jsonl": _lines(_workload(inputs, picked=5)),
        },
    )


def solution(**changes: object) -> str:
    """Return a solution of `scale_d40`, in lines as flashinfer-bench writes it."""
    spec = {"language": "triton", "target_hardware": ["cuda"], "entry_point": "main.py::scale"}
    document = {
        "name": "mine",
        "definition": "scale_d40",
        "author": "me",
        "spec": spec | {"destination_passing_style": False},
        "sources": [{"path": "main.py", "content": SOLUTION}],
    }
    return json.dumps(document | changes, indent=2)
