"""Trace sets: definitions and their workloads, as flashinfer-bench and SOL-ExecBench write them."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from suites.dtypes import ITEM_BYTES
from suites.public.instructions import reference_instruction
from suites.public.known import issues_of
from suites.public.loaders.separated import task_name, unsupported
from suites.public.loading import Loading, first_sentence
from suites.public.syntax.outline import Outline, entry_point
from suites.public.task import Part, PublicTask, ReferenceKind, SuiteKind, TestForm

ENTRY = "run"
MOST_WORKLOADS = 8
"""Workloads of a definition that are judged, from the smallest to the largest."""
MOST_CPU_BYTES = 512 << 10
"""Bound for the inputs of a workload that is judged without a GPU too; the smallest workload always is."""
MOST_STORED_BYTES = 256 << 10
"""Bound for one stored tensor: the test holds its bytes."""
MOST_HEADER_BYTES = 1 << 20
_TEST = '''\
import base64

import torch


def draw(dtype, shape):
    """Draw a tensor as flashinfer-bench does."""
    if dtype.is_floating_point:
        values = torch.randn(shape, device="cuda")
        return (values.clamp(-2, 2) if dtype.itemsize == 1 else values).to(dtype)
    low, high = {torch.bool: (0, 2), torch.int8: (-128, 128)}.get(dtype, (-1024, 1024))
    return torch.randint(low, high, shape, device="cuda", dtype=dtype)


def stored(text, dtype, shape):
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=dtype).reshape(shape).to("cuda")
'''


class Axis(msgspec.Struct, frozen=True):
    """A size: `const` with a value, `var` that a workload gives, or `expr` of other sizes."""

    type: str
    value: int = 0
    expression: str = ""


class Tensor(msgspec.Struct, frozen=True):
    """An input or output; a number if `shape` is `None`."""

    shape: tuple[str, ...] | None
    dtype: str


class Definition(msgspec.Struct, frozen=True):
    """A computation. `reference` defines `run`, which takes the inputs in their order."""

    name: str
    axes: dict[str, Axis]
    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]
    reference: str
    description: str | None = None
    custom_inputs_entrypoint: str | None = None
    """Function of `reference` that makes inputs of the kind `custom`."""


class Input(msgspec.Struct, frozen=True):
    """How a workload makes an input: `random`, `custom`, `scalar` with a value, or `safetensors` with a stored tensor."""

    type: str
    value: bool | int | float | None = None
    path: str = ""
    tensor_key: str = ""


class Workload(msgspec.Struct, frozen=True):
    """Sizes and inputs of a call."""

    axes: dict[str, int]
    inputs: dict[str, Input]


class Solution(msgspec.Struct, frozen=True):
    """A kernel for a definition."""

    name: str
    definition: str
    spec: dict[str, Any]
    """`entry_point`: `FILE::FUNCTION`. `destination_passing_style`, by default true: the function gets its outputs too."""
    sources: tuple[dict[str, str], ...]
    """The `path` and the `content` of each file."""


class StoredTensor(msgspec.Struct, frozen=True):
    """A tensor's place in a file of safetensors."""

    data_offsets: tuple[int, int]


def load_traces(loading: Loading) -> Iterable[PublicTask]:
    """Yield the definitions by path.

    flashinfer-bench has the folders `definitions` and `workloads`, SOL-ExecBench a folder for each definition.
    """
    root = loading.clone.folder
    if loading.clone.kind is SuiteKind.SOL_EXECBENCH:
        for path in sorted(root.glob("*/*/definition.json")):
            folder = path.parent.relative_to(root)
            name = "-".join(map(task_name, folder.parts))
            yield _task(loading, path, path.with_name("workload.jsonl"), folder.as_posix(), name)
        return
    for path in sorted(root.glob("definitions/**/*.json")):
        place = path.relative_to(root / "definitions").with_suffix("")
        workloads = root / "workloads" / place.with_name(f"{place.name}.jsonl")
        yield _task(loading, path, workloads, place.as_posix(), task_name(place.name))


def _task(loading: Loading, path: Path, workloads: Path, file: str, name: str) -> PublicTask:
    """Return the task of a definition, `unsupported` with the reason if it or its workloads cannot be read."""
    clone = loading.clone
    task = PublicTask(
        suite=clone.name,
        kind=clone.kind,
        name=name,
        file=file,
        title=path.stem.replace("_", " "),
        folder=clone.folder,
        category=file.rpartition("/")[0],
        reference_kind=ReferenceKind.TORCH,
        test_form=TestForm.SCRIPT,
    )
    try:
        definition = msgspec.json.decode(path.read_bytes(), type=Definition)
        outline = Outline(definition.reference)
        if not outline.defines(ENTRY):
            return unsupported(task, f"its reference does not define `{ENTRY}`")
        tensors = (*definition.inputs.values(), *definition.outputs.values())
        if foreign := {tensor.dtype for tensor in tensors} - ITEM_BYTES.keys():
            return unsupported(task, f"it has the dtype {', '.join(sorted(foreign))}")
        test, performance = _tests(loading, definition, read_workloads(workloads))
        entry = entry_point(outline, ENTRY)
    except (OSError, msgspec.DecodeError, SyntaxError, ValueError, RecursionError) as error:
        return unsupported(task, f"{file} cannot be read: {error}")
    description = definition.description or ""
    task = msgspec.structs.replace(
        task,
        file=f"{task.category}/{definition.name}".removeprefix("/"),
        title=first_sentence(description) or task.title,
        reference=Part(path, definition.reference),
        test=Part(workloads, test),
        performance=Part(workloads, performance),
        entry_points=(entry,),
        issues=issues_of(
            task,
            definition.reference,
            "".join(outline.pieces[name] for name in sorted(outline.closure(ENTRY))),
        ),
    )
    sizes = ", ".join(
        f"{name}={axis.value}" if axis.type == "const" else name for name, axis in definition.axes.items()
    )
    instruction = f"{description}\n\nSizes, of which those without a value vary: {sizes}.\n\n{reference_instruction(task)}"
    return msgspec.structs.replace(task, instruction=instruction.strip())


def read_workloads(path: Path) -> list[Workload]:
    """Return the workloads of a file, one a line, alone or as the only part of a trace. Raises as `open` and msgspec."""
    lines = [line for line in path.read_bytes().splitlines() if line.strip()]
    traces = [(msgspec.json.decode(line, type=dict[str, msgspec.Raw]), line) for line in lines]
    return [msgspec.json.decode(trace.get("workload", line), type=Workload) for trace, line in traces]


def _tests(loading: Loading, definition: Definition, workloads: Sequence[Workload]) -> list[str]:
    """Return two scripts that call `run`, at most `MOST_WORKLOADS` times: for workloads of every device, and of GPUs alone.

    A workload is left out, with a note, if its stored tensors cannot be read. Raises `ValueError` if none is left.
    """
    ordered = sorted(workloads, key=lambda workload: math.prod(workload.axes.values()))
    count = min(len(ordered), MOST_WORKLOADS)
    chosen = [ordered[place * (len(ordered) - 1) // max(1, count - 1)] for place in range(count)]
    calls, problems = [], []
    for workload in chosen:
        try:
            calls.append(_call(loading.clone.folder, definition, workload))
        except (OSError, ValueError, msgspec.DecodeError) as error:
            problems.append(str(error))
    if not calls:
        raise ValueError(problems[0] if problems else "it has no workload")
    if problems:
        loading.note(f"{definition.name}: {len(problems)} of {len(chosen)} workloads left out: {problems[0]}")
    size_bytes = " + ".join(
        " * ".join((str(ITEM_BYTES[tensor.dtype]), *tensor.shape))
        for tensor in definition.inputs.values()
        if tensor.shape is not None
    )
    rows = [
        f"{sizes}\nif ({number == 0} or {size_bytes or 0} <= {MOST_CPU_BYTES}) is WANTED:\n    {call}\n"
        for number, (sizes, call) in enumerate(calls)
    ]
    return ["\n".join((_TEST, *rows)).replace("is WANTED:", f"is {small}:") for small in (True, False)]


def _call(root: Path, definition: Definition, workload: Workload) -> tuple[str, str]:
    """Return statements that set the sizes of a workload, and the call of `run`. Raises as `read_stored`."""
    axes = sorted(definition.axes.items(), key=lambda item: bool(item[1].expression))
    sizes = [f"{name} = int({axis.expression or workload.axes.get(name, axis.value)})" for name, axis in axes]
    arguments = [
        _argument(root, name, tensor, workload.inputs.get(name, Input("random")))
        for name, tensor in definition.inputs.items()
    ]
    call = f"{ENTRY}({', '.join(arguments)})"
    if any(source.type == "custom" for source in workload.inputs.values()):
        names = ", ".join(f"{name}={name}" for name, _ in axes)
        call = f'made = {definition.custom_inputs_entrypoint}(dict({names}), torch.device("cuda")); {call}'
    return "\n".join(sizes), call


def _argument(root: Path, name: str, tensor: Tensor, source: Input) -> str:
    """Return the text of an input. Raises as `read_stored`."""
    if source.type == "scalar":
        return repr(source.value)
    if source.type == "custom":
        return f"made[{name!r}]"
    if tensor.shape is None:
        return f"draw(torch.{tensor.dtype}, []).item()"
    tail = f"torch.{tensor.dtype}, [{', '.join(tensor.shape)}])"
    if source.type == "safetensors":
        return f'stored("{b64encode(read_stored(root, source)).decode()}", {tail}'
    return f"draw({tail}" + ".softmax(-1)" * (name == "probs")


def read_stored(root: Path, source: Input) -> bytes:
    """Return the bytes of a stored tensor.

    The format: 8 bytes with the header's length, the header in JSON, the data. Raises `ValueError` if the file is missing or
    only a pointer of Git LFS, outside of `root`, or if the tensor has more than `MOST_STORED_BYTES`; `msgspec.DecodeError` for
    a damaged header.
    """
    path = (root / source.path).resolve()
    if not (path.is_relative_to(root.resolve()) and path.is_file()):
        raise ValueError(f"{source.path} is missing in the folder")
    with path.open("rb") as file:
        start = file.read(8)
        if start == b"version ":
            raise ValueError(f"{source.path} is a pointer of Git LFS; fetch the file with `git lfs pull`")
        length = int.from_bytes(start, "little")
        header = msgspec.json.decode(file.read(min(length, MOST_HEADER_BYTES)), type=dict[str, msgspec.Raw])
        place = header.get(source.tensor_key, msgspec.Raw(b"{}"))
        begin, end = msgspec.json.decode(place, type=StoredTensor).data_offsets
        if end - begin > MOST_STORED_BYTES:
            raise ValueError(
                f"{source.path}: {source.tensor_key} has more than {MOST_STORED_BYTES >> 10} KiB"
            )
        file.seek(8 + length + begin)
        return file.read(end - begin)
