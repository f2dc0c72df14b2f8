"""The first call of a kernel that no task names yet, and of its reference: what they return and change."""

from __future__ import annotations

import importlib.util
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

import suites.input_kinds  # noqa: F401 -- inputs import it, and the sandbox hides our files
from harness.hardware.targets import target
from harness.wire.messages.guest import Plain
from harness.wire.messages.program import FirstCall, ReadInputs
from harness.worker.candidate.loading import failed, import_candidate
from harness.worker.candidate.outputs import in_inputs, parts_of, problem
from harness.worker.interpreter import interpreter
from harness.worker.interpreter.known_memory import KnownMemory
from harness.worker.kit import arena, candidate_trace
from harness.worker.kit.in_place import taking_parts
from suites.own.evidence import CallSeen, FirstCallSeen, InputsSeen, OutputSeen, ValueSeen

from .watch import OperatorWatch

Inputs = dict[str, Any]
_SEED = 0
_DRAWS = "a second call with the same inputs gives other values; a reference with dropout takes its mask as an input, or has p=0"


class NotJudged(Exception):
    """The result of a call that no task can judge."""


def make_first_call(request: FirstCall, scratch: Path) -> FirstCallSeen:
    """Call the reference as the judge would, then the kernel in the interpreter, on equal inputs; return what both returned.

    Errors of the inputs, the reference and the kernel are part of the report. A kernel that launches nothing is an error too.
    """
    try:
        make_inputs = vars(_imported(scratch / "inputs.py", request.inputs))["make_inputs"]

        def make() -> Inputs:
            generator = torch.Generator().manual_seed(_SEED)
            inputs: Inputs = make_inputs(request.sizes, getattr(torch, request.dtype), generator)
            return inputs

        make()
    except Exception as error:  # noqa: BLE001 -- foreign code
        return FirstCallSeen(inputs_error=_words(error))
    reference = _call_reference(request, make, scratch)
    began = time.monotonic()
    interpreter.prepare(target(request.target))
    file = scratch / candidate_trace.NAME
    inputs = make()
    tensors = _tensors(inputs)
    module = None
    try:
        module = import_candidate(file, request.kernel)
        entry = taking_parts(vars(module)[request.entry_point], inputs)
        with interpreter.observe(tensors, known=KnownMemory()) as observation:
            watch = OperatorWatch(observation, str(file))
            try:
                with watch:
                    value = entry(**inputs)
            except Exception:
                if observation.unsupported is not None:
                    raise NotJudged(observation.unsupported) from None
                raise
        seen, results = _seen(value, tensors, _tensors(make()))
        launched = tuple(dict.fromkeys(launch.kernel for launch in observation.launches))
        if not launched:
            raise NotJudged("it launches no Triton kernel")
    except NotJudged as error:
        return FirstCallSeen(kernel=CallSeen(error=str(error)), reference=reference)
    except BaseException as error:  # noqa: BLE001 -- foreign code, also SystemExit
        call = CallSeen(error=failed(error, file).message, is_imported=module is not None)
        return FirstCallSeen(kernel=call, reference=reference)
    return FirstCallSeen(
        kernel=seen,
        reference=reference,
        launched=launched,
        operators=tuple(
            dict.fromkeys([*(used.name for used in watch.operators()), *_copies(watch, results)])
        ),
        is_outside=bool(observation.missed_stores or observation.missed_loads),
        seconds=time.monotonic() - began,
    )


def _copies(watch: OperatorWatch, results: Sequence[torch.Tensor]) -> tuple[str, ...]:
    """Return `copy_` if the host copied elements of the results that no kernel stored, such as those that a rotation keeps."""
    copies = watch.host_copies
    return ("copy_",) if copies is not None and any(copies.count(result) for result in results) else ()


def read_inputs(request: ReadInputs, scratch: Path) -> InputsSeen:
    """Return what `get_inputs()` gives, by name or in the order of the parameters."""
    interpreter.prepare(target(request.target))
    file = scratch / candidate_trace.NAME
    try:
        values = vars(import_candidate(file, request.text))["get_inputs"]()
    except BaseException as error:  # noqa: BLE001 -- foreign code, also SystemExit
        return InputsSeen(error=failed(error, file).message)
    if isinstance(values, torch.Tensor) or not isinstance(values, (dict, list, tuple)):
        return InputsSeen(error=f"it returns a {type(values).__name__}, not a list or dictionary")
    named = values.items() if isinstance(values, dict) else (("", value) for value in values)
    seen = []
    for name, value in named:
        if isinstance(value, torch.Tensor):
            flat = value.detach().reshape(-1).double()
            low, high = (float(flat.min()), float(flat.max())) if flat.numel() else (0.0, 0.0)
            layout = tuple(value.shape), tuple(value.stride())
            seen.append(ValueSeen(str(name), arena.dtype_name(value.dtype), *layout, low, high))
        elif isinstance(value, bool | int | float | str | None):
            seen.append(ValueSeen(str(name), scalar=value))
        else:
            return InputsSeen(
                error=f"it returns a {type(value).__name__}, which no task can have as an input"
            )
    return InputsSeen(tuple(seen))


def _call_reference(request: FirstCall, make: Callable[[], Inputs], scratch: Path) -> CallSeen | None:
    """Return what the reference shows in two calls, which must be equal; `None` without a reference."""
    if not request.reference:
        return None
    try:
        function = vars(_imported(scratch / "reference.py", request.reference))["oracle"]
        calls = []
        for _ in range(2):
            inputs = make()
            calls.append(_seen(taking_parts(function, inputs)(**inputs), _tensors(inputs), _tensors(make())))
    except BaseException as error:  # noqa: BLE001 -- foreign code, also SystemExit
        return CallSeen(error=_words(error))
    (seen, first), (_, second) = calls
    if any(
        arena.storage_bytes(left) != arena.storage_bytes(right)
        for left, right in zip(first, second, strict=True)
    ):
        return CallSeen(error=_DRAWS)
    return seen


def _seen(
    value: Any, inputs: Mapping[str, torch.Tensor], before: Mapping[str, torch.Tensor]
) -> tuple[CallSeen, list[torch.Tensor]]:
    """Return the outputs of a call, and their tensors. Raises `NotJudged` if no task can judge them."""
    structure, parts = parts_of(value)
    if structure not in ("tensor", "tuple", "NoneType"):
        raise NotJudged(f"it returns a {structure}, not tensors")
    results: list[torch.Tensor] = []
    outputs: list[OutputSeen] = []
    plain: dict[int, Plain] = {}
    for place, part in enumerate(parts):
        if isinstance(part, Plain):
            plain[place] = part
            continue
        if not isinstance(part, torch.Tensor):
            raise NotJudged(
                f"part {place} of its result is of type {type(part).__name__}, not a tensor, None or a number; "
                "call it from a function that returns its tensors"
            )
        part = part.detach()
        if why := problem(part):
            raise NotJudged(f"part {place} of its result {why}")
        name = in_inputs(part, inputs)
        if name and part.shape != inputs[name].shape:
            raise NotJudged(f"part {place} of its result is a view of its parameter {name}")
        if name and arena.storage_bytes(inputs[name]) == arena.storage_bytes(before[name]):
            raise NotJudged(
                f"part {place} of its result is its parameter {name}, unchanged; call it from a function that returns only "
                "what is computed"
            )
        outputs.append(OutputSeen(arena.dtype_name(part.dtype), tuple(part.shape), name))
        results.append(part)
    returned = {output.input for output in outputs}
    for name, tensor in inputs.items():
        if name not in returned and arena.storage_bytes(tensor) != arena.storage_bytes(before[name]):
            outputs.append(
                OutputSeen(arena.dtype_name(tensor.dtype), tuple(tensor.shape), name, is_returned=False)
            )
            results.append(tensor)
            if plain:
                raise NotJudged(
                    f"it changes {name} without returning it, and returns a tuple with None or a number; "
                    "call it from a function that returns only tensors"
                )
    if not outputs:
        raise NotJudged("it returns no tensor and changes none")
    return CallSeen(tuple(outputs), plain), results


def _tensors(inputs: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    return {name: value for name, value in inputs.items() if isinstance(value, torch.Tensor)}


def _imported(file: Path, text: str) -> Any:
    file.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _words(error: BaseException) -> str:
    """Return type and message of an error; without a message, the line that raised it."""
    if isinstance(error, NotJudged):
        return str(error)
    message = str(error).partition("\n")[0]
    if not message and (frames := traceback.extract_tb(error.__traceback__)):
        message = f"in `{frames[-1].line}`"
    return f"{type(error).__name__}: {message}"[:300]
