"""Atrex-bench: operators of production traces, one folder an operator: `reference.py`, `input.py`, `shapes.json`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from suites.public.instructions import shaped_instruction
from suites.public.known import ATREX, issues_of
from suites.public.loaders.separated import unsupported
from suites.public.loading import Loading
from suites.public.syntax.model_calls import call_configs
from suites.public.syntax.model_sizes import MOST_TIMED_BYTES
from suites.public.syntax.outline import Outline, entry_point
from suites.public.task import Part, PublicTask, ReferenceKind, TestForm

_INPUTS = "_make_inputs"
_CALL = """
with torch.no_grad():
    ModelNew(**get_init_inputs())(**get_inputs({inputs}))
"""
_TEST = """import torch


def get_inputs(**sizes):
    return _make_inputs(**sizes)"""


_Read = TypeVar("_Read", bound=msgspec.Struct)


class _Arguments(msgspec.Struct):
    init_kwargs: dict[str, Any] | None = None
    input_kwargs: dict[str, Any] | None = None


class _Weight(msgspec.Struct):
    call_count: int | None = None
    production_performance: dict[str, dict[str, Any]] = {}

    @property
    def time_us(self) -> float | None:
        times = [entry.get("performance_us") for entry in self.production_performance.values()]
        return next((float(time) for time in times if isinstance(time, int | float)), None)


class _Metadata(msgspec.Struct):
    dtype: str = ""
    phase: str = ""
    shapes: dict[str, _Weight] | None = None


class _Roof(msgspec.Struct):
    semantic_Q_read_bytes: float | None = None  # noqa: N815 -- the benchmark's name
    semantic_Q_write_bytes: float | None = None  # noqa: N815


class _Roofline(msgspec.Struct):
    shapes: dict[str, _Roof] = {}


def load_atrex(loading: Loading) -> Iterable[PublicTask]:
    """Yield the operators by name."""
    for path in sorted(loading.clone.folder.glob("data/*/shapes.json")):
        name = path.parent.name
        task = PublicTask(
            suite=loading.clone.name,
            kind=loading.clone.kind,
            name=name,
            file=name,
            title=name.replace("_", " "),
            folder=loading.clone.folder,
            reference_kind=ReferenceKind.MODULE,
            test_form=TestForm.MODEL,
        )
        yield _with_reference(task, path.parent)


def _with_reference(task: PublicTask, folder: Path) -> PublicTask:
    """Return the task with its reference and a test over its shapes, sorted by `_order`.

    The task is `unsupported`, with the reason, if a file is missing or breaks the format.
    """
    metadata = _optional(folder / "metadata.json", _Metadata)
    roofs = _optional(folder / "roofline.json", _Roofline).shapes
    try:
        configs = msgspec.json.decode((folder / "shapes.json").read_bytes(), type=dict[str, _Arguments])
        texts = [(folder / name).read_text(encoding="utf-8").strip() for name in ("reference.py", "input.py")]
        text = "\n\n\n".join(texts) + "\n"
        outline = Outline(text)
        missing = [name for name in ("Model", _INPUTS) if not outline.defines(name)]
        if missing:
            return unsupported(task, f"{task.file} does not define {', '.join(missing)}")
        weights = metadata.shapes or {}
        names = sorted(
            configs, key=lambda name: _order(weights.get(name, _Weight()), roofs.get(name, _Roof()))
        )
        pairs = [(configs[name].init_kwargs or {}, configs[name].input_kwargs or {}) for name in names]
        test = "\n\n\n".join([_TEST, *call_configs(outline, _INPUTS, pairs, _CALL)])
        model = entry_point(outline, "Model")
    except (OSError, msgspec.DecodeError, SyntaxError, ValueError, RecursionError) as error:
        return unsupported(task, f"a file of {task.file} cannot be read: {error}")
    return msgspec.structs.replace(
        task,
        reference=Part(folder / "reference.py", text),
        test=Part(folder / "shapes.json", test),
        entry_points=(
            msgspec.structs.replace(
                model,
                name="ModelNew",
                signature=(model.signature or "Model()").replace("Model", "ModelNew", 1),
            ),
        ),
        instruction=shaped_instruction(text),
        category=metadata.phase,
        tolerances=ATREX.get(metadata.dtype, {}),
        issues=issues_of(task, text, outline.pieces["Model"]),
    )


def _order(weight: _Weight, roof: _Roof) -> tuple[bool, bool, float]:
    """Sort key: shapes that a call for timing can have, then those of known GPU time, then the longest."""
    moved = (roof.semantic_Q_read_bytes or 0) + (roof.semantic_Q_write_bytes or 0)
    time_us = (weight.time_us or 0) * (weight.call_count or 1)
    return moved > MOST_TIMED_BYTES, weight.call_count is None, -time_us


def _optional(path: Path, type_: type[_Read]) -> _Read:
    """Return a file that a clone without answers lacks; empty values if it is missing or damaged."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=type_)
    except (OSError, msgspec.DecodeError):
        return type_()
