"""Writes the task folder of a recorded script: its cases are the calls that every run made alike."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.stages.static.fallbacks import fallback_operators
from harness.wire.script_messages import (
    CALL,
    CALLS_FILE,
    EXPRESSIONS_FILE,
    SCRIPT_FILE,
    Recorded,
    RecordedCall,
    Script,
    TensorData,
)
from suites.dtypes import ITEM_BYTES, is_exact
from suites.folder import TASK_FILE, read_task
from suites.public.recorded import text_digest
from suites.public.task import PublicTask, ReferenceKind
from suites.python_source import parse_python
from suites.task import Case, EntryPoint, Output, Task, Tolerance
from suites.task import Script as ScriptTask
from suites.task_rules import CATEGORIES, SCHEMA

from .call_texts import adapter, adapter_signature, instruction, plain_signature

DEFAULTS = {
    "float64": Tolerance(rtol=1e-6, scale=1e-6),
    "float32": Tolerance(rtol=1e-3, scale=1e-3, tf32=True),
    "float16": Tolerance(rtol=5e-3, scale=5e-3),
    "bfloat16": Tolerance(rtol=1e-2, scale=1e-2),
    **dict.fromkeys(
        ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"),
        Tolerance(ulps=1.01, rtol=1e-3),
    ),
}
"""Tolerances where the suite states none, and where Triton kernels are the truth. They grow with the outputs: an absolute
tolerance, as the suites have for all tasks, accepts any small output."""
_STUB = '"""The inputs are those of the calls that the script makes; see `[script]` in task.toml."""\n'
_COST = '''"""Bytes of each call's outputs: the least that a kernel must move. Operations are not known."""

from suites import Cost

BYTES = {table}


def cost(sizes, dtype):
    return Cost(flops=0, minimal_bytes=BYTES[sizes["call"]])
'''


class NotRecorded(Exception):
    """The task has no call that can be judged; the message says why."""


def write_task(
    public: PublicTask,
    script: Script,
    recordings: list[Recorded],
    folder: Path,
    *,
    on_gpu: bool,
    notes: Sequence[str] = (),
) -> Task:
    """Write the task folder of recordings with different seeds, and return its task. Raises `NotRecorded`.

    `notes`: facts about the choice of calls; the task gets its own notes after them.
    """
    first, *others = recordings
    calls: list[tuple[int, RecordedCall]] = []
    reasons: Counter[str] = Counter()
    for number, call in enumerate(first.calls):
        why = call.unsupported or _differs(number, call, others)
        if not why:
            call = _without_open_outputs(call, others[0].calls[number])
        if not why and not call.outputs:
            why = "; ".join(call.unjudged) or "it computes no tensor"
        if why:
            reasons[why] += 1
        else:
            calls.append((number, call))
    found = [f"{count} call(s) not judged: {why}" for why, count in reasons.items()]
    if script.calls:
        found.append(f"the test ends here after {script.calls} call(s): there are more, or it takes too long")
    if first.error:
        found.append(f"the test stops early here: {first.error}")
    if not calls:
        raise NotRecorded("; ".join(found) or "its test calls no entry point")
    found += dict.fromkeys(f"not judged: {part}" for _, call in calls for part in call.unjudged)
    if all(
        call.inputs == others[-1].calls[number].inputs and call.draw_seed is None for number, call in calls
    ):
        found.append("the script's inputs are constants: other seeds do not change them")
    oracle = _oracle(script, calls)
    unsettled = any(call.outputs != others[0].calls[number].outputs for number, call in calls)
    if unsettled:
        found.append("elements that depend on memory that the reference never writes are not judged")
    script = msgspec.structs.replace(script, oracle=oracle, unsettled=unsettled)
    task = _task(public, calls, (*notes, *found), oracle=oracle or "baseline", on_gpu=on_gpu)
    if public.reference_kind is ReferenceKind.TRITON:
        own = fallback_operators(parse_python(script.reference), task)
        task = msgspec.structs.replace(task, allowed_operators=(*task.allowed_operators, *own))
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".recording-") as scratch:
        made = Path(scratch) / folder.name
        made.mkdir()
        _write(made, task, script, calls)
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)
    return read_task(folder, suite=public.suite)


def _without_open_outputs(call: RecordedCall, other: RecordedCall) -> RecordedCall:
    """The call without outputs of which no element has the same bits after a run with other values in fresh memory."""
    outputs = tuple(
        output
        for output, same in zip(call.outputs, other.outputs, strict=True)
        if not output.tensor.data or output.is_input or _has_equal_element(output.tensor, same.tensor)
    )
    return msgspec.structs.replace(call, outputs=outputs)


def _has_equal_element(first: TensorData, second: TensorData) -> bool:
    size = ITEM_BYTES[first.dtype]
    places = range(0, min(len(first.data), len(second.data)), size)
    return any(first.data[at : at + size] == second.data[at : at + size] for at in places)


def _differs(number: int, call: RecordedCall, others: list[Recorded]) -> str:
    for other in others:
        if number >= len(other.calls):
            return "it is not made with other values"
        same = other.calls[number]
        if same.expression != call.expression or (same.draw_seed is None) != (call.draw_seed is None):
            return "its arguments depend on random numbers"
        if [output.name for output in same.outputs] != [output.name for output in call.outputs]:
            return "which tensors it computes depends on random numbers"
    return ""


def _oracle(script: Script, calls: list[tuple[int, RecordedCall]]) -> str:
    """The script's PyTorch function, if it answers every call within the tolerance that candidates have."""
    complete = script.oracle and all(len(call.truths) == len(call.outputs) for _, call in calls)
    return script.oracle if complete else ""


def _task(
    public: PublicTask,
    calls: list[tuple[int, RecordedCall]],
    notes: tuple[str, ...],
    *,
    oracle: str,
    on_gpu: bool,
) -> Task:
    cases = []
    in_place: dict[str, None] = {}
    dtypes: dict[str, None] = {}
    for place, (_, call) in enumerate(calls, 1):
        outputs = tuple(Output(name=output.name, dtype=output.tensor.dtype) for output in call.outputs)
        in_place |= dict.fromkeys(output.name for output in call.outputs if output.is_input)
        dtypes |= dict.fromkeys(output.dtype for output in outputs)
        sizes = {CALL: place}
        cases.append(
            Case(
                name=f"call-{place}",
                dtype=outputs[0].dtype,
                cpu=sizes,
                gpu=sizes,
                outputs=outputs,
                only_gpu=call.for_timing,
            )
        )
    # A PyTorch reference shows nothing of what kernels leave to the host.
    own = calls if public.reference_kind is ReferenceKind.TRITON else []
    operators = sorted({operator for _, call in own for operator in call.operators})
    stated = (
        {} if oracle == "baseline" and public.reference_kind is ReferenceKind.TRITON else public.tolerances
    )
    tolerances = {
        dtype: stated.get(dtype, DEFAULTS.get(dtype, Tolerance())) for dtype in dtypes if not is_exact(dtype)
    }
    return Task(
        schema=SCHEMA,
        name=public.name,
        title=public.title or public.name,
        category=public.category if public.category in CATEGORIES else "Fusion",
        difficulty=public.difficulty or 3,
        instruction=instruction(public, [call for _, call in calls]),
        entry_points=tuple(EntryPoint(entry.name, plain_signature(entry)) for entry in public.entry_points),
        outputs=cases[0].outputs,
        cases=tuple(cases),
        baseline="triton" if public.reference_kind is ReferenceKind.TRITON else "eager",
        tolerances=tolerances,
        quantization=public.quantization,
        allowed_operators=tuple(operators),
        in_place=tuple(in_place),
        allows=(),
        script=ScriptTask(
            signature=adapter_signature([call for _, call in calls]),
            oracle=oracle,
            digest=text_digest(public),
            notes=notes,
            on_gpu=on_gpu,
            hides_baseline=public.asks_for_reference,
        ),
    )


def _write(folder: Path, task: Task, script: Script, calls: list[tuple[int, RecordedCall]]) -> None:
    (folder / TASK_FILE).write_text(_toml(task), encoding="utf-8")
    (folder / "baseline.py").write_text(script.reference, encoding="utf-8")
    (folder / "problem.py").write_text(_STUB, encoding="utf-8")
    (folder / SCRIPT_FILE).write_bytes(msgspec.json.encode(script))
    expressions = {place: (number, call.expression) for place, (number, call) in enumerate(calls, 1)}
    (folder / EXPRESSIONS_FILE).write_bytes(msgspec.json.encode(expressions))
    (folder / CALLS_FILE).write_text(adapter([call for _, call in calls]), encoding="utf-8")
    table = {
        place: max(1, sum(_bytes(output.tensor) for output in call.outputs if not output.is_input))
        for place, (_, call) in enumerate(calls, 1)
    }
    (folder / "cost.py").write_text(_COST.format(table=table), encoding="utf-8")


def _bytes(tensor: TensorData) -> int:
    return math.prod(tensor.shape) * ITEM_BYTES[tensor.dtype]


def _toml(task: Task) -> str:
    """The task as TOML: plain keys, then tables. TOML takes JSON's strings and numbers."""
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
