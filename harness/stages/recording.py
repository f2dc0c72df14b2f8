"""Records a public task: runs its test with its reference, and writes a task folder whose cases are the recorded calls."""

from __future__ import annotations

import ast
import asyncio
import json
import math
import secrets
import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from harness.processes.pool import DevicePool
from harness.processes.slot import Slot
from harness.wire import limits
from harness.wire.async_channel import AsyncChannel
from harness.wire.channel import BadFrame
from harness.wire.device import Target
from harness.wire.encoding import ENCODER, decode_message
from harness.wire.errors import WorkerDied
from harness.wire.script_messages import (
    ADAPTER,
    CALLS_FILE,
    DRAW_SEED,
    RECORD_REPORTS,
    RESULT,
    SCRIPT_FILE,
    Record,
    Recorded,
    RecordedCall,
    Script,
    TensorData,
)
from suites.dtypes import ITEM_BYTES, is_exact
from suites.folder import read_task
from suites.public.recorded import text_digest
from suites.public.task import EntryKind, PublicTask, ReferenceKind, TestForm
from suites.public.task import EntryPoint as PublicEntry
from suites.python_source import parse_python
from suites.signature import parse_signature
from suites.task import Case, EntryPoint, Output, Task, Tolerance
from suites.task import Script as ScriptTask
from suites.task_rules import CATEGORIES, SCHEMA

RUNS = ((1, 0), (1, 1), (2, 0))
"""Seed and poison of each run. Calls that differ between runs are no cases."""
DEFAULTS = {
    "float64": Tolerance(rtol=1e-6, scale=1e-6),
    "float32": Tolerance(rtol=1e-3, scale=1e-3, tf32=True),
    "float16": Tolerance(rtol=5e-3, scale=5e-3),
    "bfloat16": Tolerance(rtol=1e-2, scale=1e-2),
    **dict.fromkeys(
        ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"), Tolerance(ulps=1.01, rtol=1e-3)
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


async def record_task(public: PublicTask, folder: Path, *, pool: DevicePool, target: Target) -> Task:
    """Record a public task on a device of the pool, write its folder, and return the task.

    Raises `NotRecorded` with the reason if no call of its test can be judged, `WorkerDied` if a process of ours is lost.
    """
    script = script_of(public)
    async with pool.slot() as slot:
        recordings = [recorded async for recorded in _record(slot, script, target)]
    return write_task(public, script, recordings, folder)


def script_of(public: PublicTask) -> Script:
    """Return the script of a public task. Raises `NotRecorded` if its test has another form."""
    if public.unsupported:
        raise NotRecorded(public.unsupported)
    if public.test_form is not TestForm.SCRIPT or public.reference is None or public.test is None:
        raise NotRecorded(f"tests of the form `{public.test_form}` cannot be recorded yet")
    return Script(
        reference=_with_imports(public.reference.text, public.test.text),
        test=public.test.text,
        entry_points=tuple(entry.name for entry in public.entry_points),
        oracle=next(iter(public.oracles), ""),
    )


def _with_imports(reference: str, test: str) -> str:
    """The reference, with the imports that only the test has and the reference uses: both were one module."""
    try:
        tree, test_tree = parse_python(reference), parse_python(test)
    except (SyntaxError, ValueError):
        return reference
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    bound = {
        alias.asname or alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    lines = [
        ast.unparse(statement)
        for statement in test_tree.body
        if isinstance(statement, ast.Import | ast.ImportFrom)
        and any((alias.asname or alias.name.partition(".")[0]) in names - bound for alias in statement.names)
    ]
    return "\n".join([*lines, reference])


async def _record(slot: Slot, script: Script, target: Target) -> AsyncIterator[Recorded]:
    device = None if slot.device.kind == "cpu" else slot.device
    for seed, poison in RUNS:
        child, channel = await slot.server.spawn(
            "script", cpu_limit_s=limits.SCRIPT_CPU_S, sandboxed=True, device=device
        )
        try:
            yield await _ask(channel, Record(nonce=secrets.token_hex(16), script=script, seed=seed, target=target.name, poison=poison))
        finally:
            channel.close()
            child.end()


async def _ask(channel: AsyncChannel, request: Record) -> Recorded:
    try:
        async with asyncio.timeout(limits.SCRIPT_S):
            await channel.receive(limits.ANSWER_BYTES)  # the worker's hello
            await channel.send(ENCODER.encode(request))
            recorded = decode_message(RECORD_REPORTS, await channel.receive(limits.ANSWER_BYTES))
    except TimeoutError:
        raise NotRecorded(f"its test does not end within {limits.SCRIPT_S:g} s here") from None
    except (EOFError, BadFrame) as error:
        raise NotRecorded("its test ended its process") from error
    if recorded.nonce != request.nonce:
        raise WorkerDied("a script worker sent an answer that was not asked for")
    return recorded


def write_task(public: PublicTask, script: Script, recordings: list[Recorded], folder: Path) -> Task:
    """Write the task folder of recordings with different seeds, and return its task. Raises `NotRecorded`."""
    first, *others = recordings
    calls: list[tuple[int, RecordedCall]] = []
    reasons: Counter[str] = Counter()
    for number, call in enumerate(first.calls):
        why = call.unsupported or _differs(number, call, others)
        if not why:
            call = _without_open_outputs(call, others[0].calls[number])  # noqa: PLW2901
        if not why and not call.outputs:
            why = "; ".join(call.unjudged) or "it computes no tensor"
        if why:
            reasons[why] += 1
        else:
            calls.append((number, call))
    notes = [f"{count} call(s) not judged: {why}" for why, count in reasons.items()]
    if first.error:
        notes.append(f"the test stops early here: {first.error}")
    if not calls:
        raise NotRecorded("; ".join(notes) or "its test calls no entry point")
    notes += dict.fromkeys(f"not judged: {part}" for _, call in calls for part in call.unjudged)
    if all(call.inputs == others[-1].calls[number].inputs and call.draw_seed is None for number, call in calls):
        notes.append("the script's inputs are constants: other seeds do not change them")
    oracle = _oracle(script, calls)
    unsettled = any(call.outputs != others[0].calls[number].outputs for number, call in calls)
    if unsettled:
        notes.append("elements that depend on memory that the reference never writes are not judged")
    script = msgspec.structs.replace(script, oracle=oracle, unsettled=unsettled)
    task = _task(public, calls, tuple(notes), oracle=oracle or "baseline")
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


def _task(public: PublicTask, calls: list[tuple[int, RecordedCall]], notes: tuple[str, ...], *, oracle: str) -> Task:
    cases = []
    in_place: dict[str, None] = {}
    dtypes: dict[str, None] = {}
    for place, (_, call) in enumerate(calls, 1):
        outputs = tuple(Output(name=output.name, dtype=output.tensor.dtype) for output in call.outputs)
        in_place |= dict.fromkeys(output.name for output in call.outputs if output.is_input)
        dtypes |= dict.fromkeys(output.dtype for output in outputs)
        sizes = {"call": place}
        cases.append(Case(name=f"call-{place}", dtype=outputs[0].dtype, cpu=sizes, gpu=sizes, outputs=outputs))
    operators = sorted({operator for _, call in calls for operator in call.operators})
    stated = {} if oracle == "baseline" and public.reference_kind is ReferenceKind.TRITON else public.tolerances
    tolerances = {
        dtype: stated.get(dtype, DEFAULTS.get(dtype, Tolerance()))
        for dtype in dtypes
        if not is_exact(dtype)
    }
    return Task(
        schema=SCHEMA,
        name=public.name,
        title=public.title or public.name,
        category=public.category if public.category in CATEGORIES else "Fusion",
        difficulty=public.difficulty or 3,
        instruction=_instruction(public, calls),
        entry_points=tuple(EntryPoint(entry.name, _plain_signature(entry)) for entry in public.entry_points),
        outputs=cases[0].outputs,
        cases=tuple(cases),
        baseline="triton",
        tolerances=tolerances,
        quantization=public.quantization,
        allowed_operators=tuple(operators),
        in_place=tuple(in_place),
        allows=(),
        script=ScriptTask(
            signature=_adapter_signature(calls), oracle=oracle, digest=text_digest(public), notes=notes
        ),
    )


def _instruction(public: PublicTask, calls: list[tuple[int, RecordedCall]]) -> str:
    lines = [public.instruction.strip(), "", "The judge makes these calls:", ""]
    for place, (_, call) in enumerate(calls, 1):
        tensors = ", ".join(f"{name}: {data.dtype}{list(data.shape)}" for name, data in call.inputs.items())
        changed = [f"`{output.name}`" for output in call.outputs if output.is_input]
        in_place = f"; changes {', '.join(changed)} in place" if changed else ""
        lines.append(f"- call-{place}: `{call.expression}` with {tensors or 'no tensor'}{in_place}")
    return "\n".join(lines).strip() + "\n"


def _plain_signature(entry: PublicEntry) -> str:
    """The entry point's signature with plain parameters and defaults, as `task.toml` wants it."""
    signature = entry.signature if entry.kind in (EntryKind.FUNCTION, EntryKind.KERNEL) else ""
    text = signature if signature.startswith(entry.name) else f"{entry.name}{signature}"
    try:
        arguments = ast.parse(f"def {text}: ...").body[0].args  # type: ignore[attr-defined]
    except SyntaxError:
        return f"{entry.name}(x)"
    names = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(names) - len(arguments.defaults)) + list(arguments.defaults)
    names, defaults = [*names, *arguments.kwonlyargs], [*defaults, *arguments.kw_defaults]
    full = ", ".join(
        argument.arg if default is None else f"{argument.arg}={ast.unparse(default)}"
        for argument, default in zip(names, defaults, strict=True)
    )
    for parameters in (full, ", ".join(argument.arg for argument in names)):
        try:
            if parse_signature(f"{entry.name}({parameters})").parameters:
                return f"{entry.name}({parameters})"
        except ValueError:
            continue
    return f"{entry.name}(x)"


def _adapter_signature(calls: list[tuple[int, RecordedCall]]) -> str:
    names = dict.fromkeys(name for _, call in calls for name in call.inputs)
    if any(call.draw_seed is not None for _, call in calls):
        names[DRAW_SEED] = None
    return f"{ADAPTER}({', '.join(['call', *(f'{name}=None' for name in names)])})"


def _write(folder: Path, task: Task, script: Script, calls: list[tuple[int, RecordedCall]]) -> None:
    (folder / "task.toml").write_text(_toml(task), encoding="utf-8")
    (folder / "baseline.py").write_text(script.reference, encoding="utf-8")
    (folder / "problem.py").write_text(_STUB, encoding="utf-8")
    (folder / SCRIPT_FILE).write_bytes(msgspec.json.encode(script))
    expressions = {place: (number, call.expression) for place, (number, call) in enumerate(calls, 1)}
    (folder / "calls.json").write_bytes(msgspec.json.encode(expressions))
    (folder / CALLS_FILE).write_text(_adapter(calls), encoding="utf-8")
    table = {
        place: max(1, sum(_bytes(output.tensor) for output in call.outputs if not output.is_input))
        for place, (_, call) in enumerate(calls, 1)
    }
    (folder / "cost.py").write_text(_COST.format(table=table), encoding="utf-8")


def _bytes(tensor: TensorData) -> int:
    return math.prod(tensor.shape) * ITEM_BYTES[tensor.dtype]


def _adapter(calls: list[tuple[int, RecordedCall]]) -> str:
    """The text of `calls.py`."""
    lines = [f"def {_adapter_signature(calls)}:", '    """Make one of the calls that are judged; return its outputs."""']
    if any("torch." in call.expression or call.draw_seed is not None for _, call in calls):
        lines.append("    import torch")
    for place, (_, call) in enumerate(calls, 1):
        lines.append(f"    if call == {place}:")
        if call.draw_seed is None:
            lines.append(f"        {RESULT} = {call.expression}")
        else:
            lines.append("        with torch.random.fork_rng():")
            lines.append(f"            torch.manual_seed({DRAW_SEED})")
            lines.append(f"            {RESULT} = {call.expression}")
        paths = [output.path for output in call.outputs]
        lines.append(f"        return {', '.join(paths)}")
    lines.append('    raise ValueError(f"there is no call {call}")')
    return "\n".join(lines) + "\n"


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
        inner = ", ".join(f"{json.dumps(key)} = {_toml_value(part)}" for key, part in value.items() if part is not None)
        return f"{{ {inner} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
