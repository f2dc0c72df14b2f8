"""Writes the files of a recorded task: `task.toml`, its reference, its script, and its calls."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.wire.messages.script import (
    CALLS_FILE,
    EXPRESSIONS_FILE,
    SCRIPT_FILE,
    RecordedCall,
    Script,
)
from suites.dtypes import ITEM_BYTES
from suites.folder import TASK_FILE
from suites.task import Task

from .call_texts import adapter

_STUB = '"""The inputs are those of the calls that the script makes; see `[script]` in task.toml."""\n'
_COST = '''"""Bytes of each call. Certain: the outputs that are returned. Moved, an estimate: also what the reference reads and changes.

0: it is not known what the reference reads. Operations are not known; of products of matrices, it is known which calls make them.
"""

from suites import Cost

CERTAIN_AND_MOVED = {table}
PRODUCTS = {products}


def cost(sizes, dtype):
    certain, moved = CERTAIN_AND_MOVED[sizes["call"]]
    multiplies = sizes["call"] in PRODUCTS
    return Cost(flops=0, minimal_bytes=certain, estimated_bytes=moved, uncounted_products=multiplies)
'''


def write_files(folder: Path, task: Task, script: Script, calls: Sequence[tuple[int, RecordedCall]]) -> None:
    """Write all files of a recorded task into an existing folder. Raises `OSError`, and may then leave some files.

    `calls` come in the order of the task's cases, each with its number in the script, from 0.
    """
    (folder / TASK_FILE).write_text(_toml(task), encoding="utf-8")
    (folder / "baseline.py").write_text(script.reference, encoding="utf-8")
    (folder / "problem.py").write_text(_STUB, encoding="utf-8")
    (folder / SCRIPT_FILE).write_bytes(msgspec.json.encode(script))
    expressions = {place: (number, call.expression) for place, (number, call) in enumerate(calls, 1)}
    (folder / EXPRESSIONS_FILE).write_bytes(msgspec.json.encode(expressions))
    (folder / CALLS_FILE).write_text(adapter([call for _, call in calls]), encoding="utf-8")
    table = {
        # A kernel may leave out what the reference leaves out.
        place: (1, 0) if call.no_baseline else (_returned_bytes(call), call.moved_bytes or 0)
        for place, (_, call) in enumerate(calls, 1)
    }
    products = tuple(place for place, (_, call) in enumerate(calls, 1) if call.multiplies)
    (folder / "cost.py").write_text(_COST.format(table=table, products=products), encoding="utf-8")


def _returned_bytes(call: RecordedCall) -> int:
    tensors = [output.tensor for output in call.outputs if not output.is_input]
    return max(1, sum(math.prod(tensor.shape) * ITEM_BYTES[tensor.dtype] for tensor in tensors))


def _toml(task: Task) -> str:
    """Return the task as TOML, one key a line. TOML takes JSON's strings and numbers."""
    raw = msgspec.to_builtins(task, enc_hook=str)
    lines = []
    for key, value in raw.items():
        if key in ("suite", "folder") or value is None:
            continue
        lines.append(f"{key} = {_toml_value(value)}")
    return "\n".join(lines) + "\n"


def _toml_value(value: object) -> str:
    if isinstance(value, dict):
        inner = ", ".join(
            f"{json.dumps(key)} = {_toml_value(part)}" for key, part in value.items() if part is not None
        )
        return f"{{ {inner} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
