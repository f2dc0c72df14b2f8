"""Makes a task of recordings of a script: its cases are the calls that every run made alike."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from harness.stages.static.fallbacks import fallback_operators
from harness.wire.calls.tensors import TensorSpec
from harness.wire.errors import NotRecorded
from harness.wire.messages.script import CALL, RanScript, RecordedCall, Script
from suites.dtypes import ITEM_BYTES, is_exact
from suites.errors import BadTask
from suites.folder import read_task
from suites.privacy import make_private_folder
from suites.public.recorded import text_digest
from suites.public.task import PublicTask, ReferenceKind
from suites.source.python_source import parse_python
from suites.task import Case, EntryPoint, Output, RecordedScript, Task, Tolerance
from suites.task_rules import CATEGORIES, SCHEMA

from .call_texts import adapter_signature, plain_signature
from .instruction_text import Runs, example_words, instruction, shown_signature
from .recorded_files import write_files

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
"""Tolerances where the suite states none, and where Triton kernels are the truth.

They grow with the outputs. The suites have one absolute tolerance for all tasks, which accepts any small output.
"""


def write_task(
    public: PublicTask,
    script: Script,
    recordings: list[RanScript],
    folder: Path,
    *,
    on_gpu: bool,
    notes: Sequence[str] = (),
) -> Task:
    """Write the task folder of recordings with different seeds, and return its task. Raises `NotRecorded`.

    `notes`: facts about the choice of calls; the task gets its own notes after them.
    """
    first, *repeats = recordings
    calls, reasons = _judged_calls(first, repeats)
    own_notes = [f"{count} call(s) not judged: {reason}" for reason, count in reasons.items()]
    if script.calls:
        own_notes.append(
            f"the test ends here after {script.calls} call(s): there are more, or it takes too long"
        )
    if first.error:
        own_notes.append(f"the test stops early here: {first.error}")
    if not calls:
        raise NotRecorded("; ".join(own_notes or ("its test calls no entry point", *notes)))
    own_notes += dict.fromkeys(f"not judged: {part}" for _, call in calls for part in call.unjudged)
    if all(
        call.inputs == repeats[-1].calls[number].inputs and call.draw_seed is None for number, call in calls
    ):
        own_notes.append("the script's inputs are constants: other seeds do not change them")
    has_truths = all(len(call.truths) == len(call.outputs) for _, call in calls)
    oracle = script.oracle if has_truths else ""
    unsettled = any(call.outputs != repeats[0].calls[number].outputs for number, call in calls)
    if unsettled:
        own_notes.append(
            "elements that depend on memory that the reference never writes, or reads outside its tensors, are not judged"
        )
    script = msgspec.structs.replace(script, oracle=oracle, unsettled=unsettled)
    own_notes += [
        f"call-{place}: not timed: {call.no_baseline}"
        for place, (_, call) in enumerate(calls, 1)
        if call.no_baseline
    ]
    runs = [[call for _, call in calls]]
    runs += [[repeat.calls[number] for number, _ in calls] for repeat in repeats]
    task = _task(public, calls, runs, (*notes, *own_notes), oracle or "baseline", on_gpu=on_gpu)
    if public.reference_kind is ReferenceKind.TRITON:
        operators = fallback_operators(parse_python(script.reference), task)
        task = msgspec.structs.replace(task, allowed_operators=(*task.allowed_operators, *operators))
    _replace_folder(folder, task, script, calls)
    return read_task(folder, suite=public.suite)


def _replace_folder(
    folder: Path, task: Task, script: Script, calls: Sequence[tuple[int, RecordedCall]]
) -> None:
    """Write the task into a new folder, check it, and put it in the place of `folder`.

    Raises `NotRecorded` if the calls make no valid task; `folder` then stays as it was.
    """
    make_private_folder(folder.parent)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".recording-") as scratch:
        new = Path(scratch) / folder.name
        new.mkdir()
        write_files(new, task, script, calls)
        try:
            read_task(new, suite=folder.parent.name)
        except BadTask as problem:
            raise NotRecorded(f"its calls make no valid task: {problem.problem}") from problem
        _exchange(folder, new, Path(scratch) / "before")


def _exchange(folder: Path, new: Path, before: Path) -> None:
    """Move `new` to `folder`, and `folder` to `before`. If another process records the same task, the later recording stays."""
    while True:
        with suppress(FileNotFoundError):
            folder.rename(before)
        try:
            new.rename(folder)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
            shutil.rmtree(before, ignore_errors=True)  # the other process moved its recording here first
        else:
            return


def _judged_calls(
    first: RanScript, repeats: Sequence[RanScript]
) -> tuple[list[tuple[int, RecordedCall]], Counter[str]]:
    """Return the calls that can be judged, with their numbers in the script, and how often each reason excludes a call."""
    calls: list[tuple[int, RecordedCall]] = []
    reasons: Counter[str] = Counter()
    for number, call in enumerate(first.calls):
        reason = call.unsupported or _change(number, call, repeats)
        if not reason:
            call = _without_open_outputs(call, repeats[0].calls[number])
            reason = "" if call.outputs else "; ".join(call.unjudged) or "it returns and changes no tensor"
        if reason:
            reasons[reason] += 1
        else:
            share = repeats[0].calls[number].open_share
            moved = None if _is_constant(number, call, repeats) else call.moved_bytes
            calls.append((number, msgspec.structs.replace(call, open_share=share, moved_bytes=moved)))
    return calls, reasons


def _is_constant(number: int, call: RecordedCall, repeats: Sequence[RanScript]) -> bool:
    """True if other values gave the same result, so that a kernel may not have to read them."""
    varied = [repeat.calls[number] for repeat in repeats if repeat.calls[number].inputs != call.inputs]
    return bool(varied) and all(repeat.outputs == call.outputs for repeat in varied)


def _without_open_outputs(call: RecordedCall, repeat: RecordedCall) -> RecordedCall:
    """Return the call without outputs that have no element with equal bits in a run with other poison."""
    outputs = tuple(
        output
        for output, repeated in zip(call.outputs, repeat.outputs, strict=True)
        if not output.tensor.data or output.is_input or _has_equal_element(output.tensor, repeated.tensor)
    )
    return msgspec.structs.replace(call, outputs=outputs)


def _has_equal_element(first: TensorSpec, second: TensorSpec) -> bool:
    size = ITEM_BYTES[first.dtype]
    places = range(0, min(len(first.data), len(second.data)), size)
    return any(first.data[at : at + size] == second.data[at : at + size] for at in places)


def _change(number: int, call: RecordedCall, repeats: Sequence[RanScript]) -> str:
    """Return how a call changes in other runs; empty if it does not."""
    for recording in repeats:
        if number >= len(recording.calls):
            return "it is not made with other values"
        repeat = recording.calls[number]
        if repeat.expression != call.expression or (repeat.draw_seed is None) != (call.draw_seed is None):
            return "its arguments depend on random numbers"
        if [output.name for output in repeat.outputs] != [output.name for output in call.outputs]:
            return "which tensors it computes depends on random numbers"
    return ""


def _task(
    public: PublicTask,
    calls: list[tuple[int, RecordedCall]],
    runs: Runs,
    notes: tuple[str, ...],
    oracle: str,
    *,
    on_gpu: bool,
) -> Task:
    """Return the task of recorded calls: a case for each call, with tolerances by dtype.

    `calls` have their places in the script. `oracle` says what the truth is; the benchmark's own tolerances count unless a
    Triton reference is its own truth.
    """
    cases = []
    for place, (_, call) in enumerate(calls, 1):
        outputs = tuple(Output(name=output.name, dtype=output.tensor.dtype) for output in call.outputs)
        cases.append(
            Case(
                name=f"call-{place}",
                dtype=outputs[0].dtype,
                cpu={CALL: place},
                gpu={CALL: place},
                outputs=outputs,
                only_gpu=call.for_timing,
                no_baseline=call.no_baseline,
            )
        )
    all_outputs = [output for _, call in calls for output in call.outputs]
    in_place = dict.fromkeys(output.name for output in all_outputs if output.is_input)
    dtypes = dict.fromkeys(output.tensor.dtype for output in all_outputs)
    has_kernels = public.reference_kind is ReferenceKind.TRITON
    # A PyTorch reference does not show what kernels leave to the host.
    operators = sorted({operator for _, call in calls for operator in call.operators}) if has_kernels else []
    stated = {} if oracle == "baseline" and has_kernels else public.tolerances
    tolerances = {
        dtype: stated.get(dtype, DEFAULTS.get(dtype, Tolerance())) for dtype in dtypes if not is_exact(dtype)
    }
    return Task(
        schema=SCHEMA,
        name=public.name,
        title=public.title or public.name,
        category=public.category if public.category in CATEGORIES else "Fusion",
        difficulty=public.difficulty or 3,
        instruction=instruction(public, runs),
        entry_points=tuple(EntryPoint(entry.name, plain_signature(entry)) for entry in public.entry_points),
        outputs=cases[0].outputs,
        cases=tuple(cases),
        baseline="triton" if has_kernels else "eager",
        tolerances=tolerances,
        quantization=public.quantization,
        allowed_operators=tuple(operators),
        in_place=tuple(in_place),
        allows=(),
        script=RecordedScript(
            signature=adapter_signature([call for _, call in calls]),
            oracle=oracle,
            digest=text_digest(public),
            notes=notes,
            on_gpu=on_gpu,
            hides_baseline=public.asks_for_reference,
            multiplies=any(call.multiplies for _, call in calls),
            signatures=tuple(map(shown_signature, public.entry_points)),
            examples=example_words(runs) if public.asks_for_reference else (),
        ),
    )
