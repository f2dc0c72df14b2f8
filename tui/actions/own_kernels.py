"""Kernels that no task names yet: what is assumed about a file, by calling its kernel once, and in words."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec

from harness import DevicePool, Target
from harness.hardware.product_tables import PRODUCTS
from harness.node.discovery import discover_devices
from harness.node.selection import targets_for
from harness.processes.starting.judge_python import OUR_PYTHON, JudgePython
from harness.recording.script_process import Start, run_in_slot
from harness.wire.device import Device
from harness.wire.errors import NoReport, NotRecorded
from harness.wire.limits import memory_words
from harness.wire.messages.program import FirstCall, ReadInputs
from suites import Axis
from suites.dtypes import NoSuchDtype, on_target
from suites.errors import BadKernelFile
from suites.own.draft import Draft, Reference, check_agreement, itself, without_gpu
from suites.own.entry import Function, KernelFile, called_with, names_in_expression
from suites.own.evidence import FirstCallSeen, InputsSeen
from suites.own.joining import join_kernels
from suites.own.request import KernelRequest
from suites.own.shapes import Inputs, inputs_of, parameter_of, parse_shapes
from suites.own.sizes import TRIED_STEPS, Design, design
from suites.own.texts import axis_words, inputs_text, tensor_words
from suites.source.package import Package, find_package, own_variables
from suites.tolerances import allowance_words

_NAMED = re.compile(r"\w+|.*\.py:\w+|[\w.]+:\w+")
"""FUNCTION, FILE.py:FUNCTION or PACKAGE.MODULE:FUNCTION; all else is an expression."""
MOST_FIRST_CALLS = 6
"""Cases that are called before the task is written: one of each dtype, and others."""


def draft_of(request: KernelRequest, targets: Sequence[str] = (), python: JudgePython = OUR_PYTHON) -> Draft:
    """Return the draft of a task for a kernel file. Blocks for seconds.

    Runs the reference and the kernel once in a sandbox, for the first of the targets, else for that of this machine.
    Raises `BadKernelFile` with what does not fit.
    """
    file, name = KernelFile.named(request.where)
    entry = file.find_entry(name)
    if (package := package_of(file)) is not None:
        file, package = join_kernels(file, entry, package)
    reference = find_reference(file, entry, request.reference)
    if reference.is_kernel and package is not None:
        reference = replace(reference, text=package.with_absolute_imports(reference.text))
    if request.send_only:
        reference = only_sent(request.send_only, file, package, reference)
    cases = request.calls or parse_shapes(given_shapes(request, file, entry), entry.sure)
    devices = discover_devices()
    check_memory(cases, devices)
    target = targets_for(devices, targets)[0]
    draft = asyncio.run(_drafted(file, entry, reference, cases, target, package, python))
    return replace(draft, allowed=request.allowed)


def check_memory(cases: Iterable[Inputs], devices: Iterable[Device]) -> None:
    """Raise `BadKernelFile` if the inputs of a case are larger than the memory of the largest GPU here, or that is known."""
    memories = [device.identity.memory_bytes or 0 for device in devices if device.identity is not None]
    most_bytes = max(memories, default=0) or max(product.memory_bytes for product in PRODUCTS)
    for case in cases:
        input_bytes = case.input_bytes()
        if sum(input_bytes.values()) > most_bytes:
            name = max(input_bytes, key=input_bytes.__getitem__)
            raise BadKernelFile(
                f"{name} is {memory_words(input_bytes[name])}; all inputs of a case must fit into the "
                f"{memory_words(most_bytes)} of a GPU: make the sizes smaller"
            )


def given_shapes(request: KernelRequest, file: KernelFile, entry: Function) -> tuple[str, ...]:
    """Return the texts of `--shapes`: one empty text if annotations give all inputs, none if `get_inputs()` does.

    Raises `BadKernelFile` if nothing gives them.
    """
    if request.shapes or file.has_inputs:
        return request.shapes
    if entry.sure and not entry.example:
        return ("",)
    raise BadKernelFile(
        f"the inputs of {entry.signature} are not known; give your sizes and dtypes, in this form: "
        f'--shapes "{entry.example}"'
    )


def only_sent(
    allowed: Sequence[Path], file: KernelFile, package: Package | None, reference: Reference
) -> Reference:
    """Return the reference, which models may read only if its file is allowed.

    Raises `BadKernelFile` if a file of the kernel is not allowed, or if an allowed file is not used.
    """
    kernel_files = [package.file_of(module) for module in package.kernels] if package is not None else []
    needed = [file.path, *filter(None, kernel_files)]
    used = [*needed, *filter(None, [reference.file])]
    paths = [path.resolve() for path in allowed]
    for path in needed:
        if path.resolve() not in paths:
            raise BadKernelFile(
                f"--send-only leaves out {path}, but models must read the kernel that they write anew: add --send-only {path}"
            )
    for path in allowed:
        if path.resolve() not in [file_used.resolve() for file_used in used]:
            raise BadKernelFile(
                f"--send-only {path}: this text is never sent; it may be {', '.join(map(str, used))}"
            )
    return replace(reference, is_sent=reference.file is None or reference.file.resolve() in paths)


def designed_for(entry: Function, cases: Sequence[Inputs]) -> Design:
    """Return the inputs with named sizes. Raises `BadKernelFile` if they are not those of the entry point."""
    designed = design(cases, entry.parameters)
    inputs = {*map(parameter_of, (*designed.tensors, *designed.scalars)), *designed.sizes[0]}
    for parameter in entry.parameters:
        if parameter not in inputs and parameter not in entry.defaults:
            raise BadKernelFile(
                f"there is no input {parameter}; {entry.signature} needs it: add {entry.example_of(parameter)} to --shapes"
            )
    return designed


def find_reference(file: KernelFile, entry: Function, where: str) -> Reference:
    """Return the reference that `--reference` names, else that of the file, else the kernel itself."""
    if where and not _NAMED.fullmatch(where):
        return expression(where, entry)
    place, separator, name = where.rpartition(":")
    if separator and not place.endswith(".py"):
        return Reference(name, where, (f"from {place} import {name}",), "", entry.parameters)
    source = KernelFile.read(Path(place)) if separator else file
    function = source.function(name) if name else file.find_reference(entry)
    if function is None:
        text = without_gpu(file.text)
        return Reference(
            entry.name, itself(entry.name), (), text, entry.parameters, entry.by_name, is_kernel=True
        )
    parameters = called_with(function, entry)
    imports, text = source.extract(function.name)
    return Reference(
        function.name,
        f"{function.name} in {source.path.name}",
        tuple(imports),
        text,
        parameters,
        function.by_name,
        file=source.path if separator else None,
    )


def expression(text: str, entry: Function) -> Reference:
    """Return the reference of an expression such as `F.silu(x) * y`. Raises `BadKernelFile` if it is none of the parameters."""
    parameters = names_in_expression(text, entry)
    name = f"{entry.name.lstrip('_')}_reference"
    return Reference(
        name,
        text,
        ("import torch", "import torch.nn.functional as F"),
        f"def {name}({', '.join(parameters)}):\n    return {text}",
        parameters,
    )


async def _drafted(
    file: KernelFile,
    entry: Function,
    reference: Reference,
    cases: Sequence[Inputs],
    target: Target,
    package: Package | None,
    python: JudgePython,
) -> Draft:
    """Call kernel and reference at the first small sizes at which both work and agree.

    Without cases, `get_inputs()` of the file gives one.
    """
    view = package.view(Path(package.root)) if package is not None else None
    async with DevicePool(("cpu",), timed=False, python=python) as pool:
        if not cases:
            try:
                read = await run_in_slot(pool, "get_inputs()", partial(_read_inputs, file.text, target), view)
            except NotRecorded as error:
                raise BadKernelFile(f"{error}; give the inputs with --shapes") from error
            cases = [inputs_of(read, entry.parameters)]
        return await _called(pool, file, entry, reference, designed_for(entry, cases), package, target)


def package_of(file: KernelFile) -> Package | None:
    """Return the package that a file lives in, if it needs it, with the variables of this process that are the package's."""
    package = find_package(file.path).package
    if not package.is_needed(file.text):
        return None
    return msgspec.structs.replace(package, environment=own_variables(package, os.environ))


async def _read_inputs(text: str, target: Target, start: Start) -> InputsSeen:
    async with start() as process:
        return await process.ask(ReadInputs(text, target.name), InputsSeen)


async def _called(
    pool: DevicePool,
    file: KernelFile,
    entry: Function,
    reference: Reference,
    designed: Design,
    package: Package | None,
    target: Target,
) -> Draft:
    view = package.view(Path(package.root)) if package is not None else None
    firsts = {dtype: designed.dtypes.index(dtype) for dtype in designed.dtypes}
    numbers = list(dict.fromkeys([*firsts.values(), *range(len(designed.sizes))]))[:MOST_FIRST_CALLS]

    try:
        dtypes = [on_target(dtype, target.name) for dtype in designed.dtypes]
    except NoSuchDtype as lacking:
        raise BadKernelFile(str(lacking)) from lacking

    async def call(start: Start, *, number: int, small: dict[str, int]) -> FirstCallSeen:
        request = FirstCall(
            kernel=file.text,
            entry_point=entry.name,
            inputs=inputs_text(designed, entry.parameters),
            sizes=small,
            dtype=dtypes[number],
            parameters=entry.parameters,
            target=target.name,
            reference=reference.module(entry),
        )
        async with start() as process:
            seen = await process.ask(request, FirstCallSeen)
        check_agreement(entry.name, reference.place, seen)
        return seen

    async def works(sizes: dict[str, int]) -> bool:
        try:
            await run_in_slot(pool, entry.name, partial(call, number=0, small=sizes), view)
        except (BadKernelFile, NotRecorded):
            return False
        return True

    async def axis_of(name: str, small: Sequence[dict[str, int]]) -> Axis:
        """Return the values of a size that the kernel takes, by calling it with one; a size with one value keeps it."""
        if len(designed.values[name]) == 1:
            return Axis(vary=False)
        shown = [*designed.values[name], *(sizes[name] for sizes in small)]
        low, high = min(shown), max(shown)
        for step, value in TRIED_STEPS.items():
            fits = all(size % step == 0 for size in shown)
            if fits and await works({**small[0], name: min(max(value, low + step), high)}):
                return Axis(min=low, max=high, multiple_of=step)
        return Axis(vary=False)

    failure: Exception | None = None
    plan: tuple[tuple[dict[str, int], ...], dict[int, FirstCallSeen]] | None = None
    for small in designed.small_sizes():
        seen: dict[int, FirstCallSeen] = {}
        try:
            for number in numbers:
                if all(
                    (small[number], designed.dtypes[number])
                    != (small[seen_number], designed.dtypes[seen_number])
                    for seen_number in seen
                ):
                    seen[number] = await run_in_slot(
                        pool, entry.name, partial(call, number=number, small=small[number]), view
                    )
        except (BadKernelFile, NotRecorded) as error:
            failure = failure or error
            continue
        # A kernel for whole blocks needs sizes that are not smaller than a block.
        is_inside = not any(first_call.is_outside for first_call in seen.values())
        if plan is None or is_inside:
            plan = small, seen
        if is_inside:
            break
    if plan is not None:
        small, seen = plan
        for kernel in seen[0].launched:
            if not file.has_function(kernel):
                raise BadKernelFile(
                    f"{entry.name} launches {kernel}, which is not in {file.path} and not imported from its package by name at "
                    "the top; a candidate is one module: import it so, or move it"
                )
        axes = {name: await axis_of(name, small) for name in designed.named}
        return Draft(file, entry, reference, designed, small, seen, axes, package)
    if failure is None:
        raise BadKernelFile(
            f"the inputs of {entry.name} are too large for the interpreter, and no size of them can be made smaller"
        )
    if isinstance(failure, NoReport):
        raise BadKernelFile(f"{entry.name} cannot be called here: {failure}")
    raise failure


def assumptions(draft: Draft, *, sends: bool) -> list[tuple[str, str]]:
    """Return what is assumed about a file, as names and words. `sends`: agents will get texts."""
    entry, designed = draft.entry, draft.design
    rows = [
        ("entry point", f"{entry.signature} in {draft.file.path}"),
        *[("always default", text) for text in entry.left_out],
        ("launches", ", ".join(draft.seen[0].launched)),
        (
            "reference",
            draft.reference.place + ("" if draft.reference.is_kernel else ", in float64"),
        ),
    ]
    if (package := draft.package) is not None:
        rows.append(("package", f"{package.module} in {package.root}"))
        rows += [("kernels from", module) for module in package.kernels]
        rows += [("environment", ", ".join(package.environment))] * bool(package.environment)
    rows += [
        (f"input {name}", tensor_words(designed, name) + ", from its annotation" * tensor.is_annotated)
        for name, tensor in designed.tensors.items()
    ]
    rows += [(f"input {name}", f"{value!r}") for name, value in designed.scalars.items()]
    rows += [
        (f"size {name}", axis_words(draft.axes.get(name), sizes)) for name, sizes in designed.values.items()
    ]
    reference = draft.seen[0].reference
    rights = reference.outputs if reference is not None else draft.outputs
    for output, name, right in zip(draft.outputs, draft.output_names, rights, strict=True):
        kind = "written in place" if output.input else "returned"
        differs = f"; the reference gives {right.dtype}" if right.dtype != output.dtype else ""
        rows.append((f"output {name}", f"{output.dtype}, {kind}{differs}"))
    if not draft.reference.is_kernel:
        rows.append(("tolerance", "the errors of careful arithmetic, measured with the reference alone"))
    if draft.seen[0].operators:
        rows.append(("host operators", f"{', '.join(draft.seen[0].operators)}, as in the kernel's own file"))
    rows += [("weak", words) for words in weaknesses(draft)]
    if sends:
        texts = [f"{draft.file.path.name} (whole)"]
        texts += [f"kernels of {module}" for module in package.kernels] if package is not None else []
        is_sent = draft.reference.text and draft.reference.is_sent and not draft.reference.is_kernel
        texts += [draft.reference.place] * bool(is_sent)
        rows.append(("sent to models", ", ".join(texts)))
    return rows


def weaknesses(draft: Draft) -> list[str]:
    """Return what the judge cannot find out with this task."""
    words = []
    if draft.reference.is_kernel:
        words.append(
            "the kernel itself says what is right, so its errors count as right; give a PyTorch function with --reference"
        )
    if allowed := allowance_words(draft.allowed):
        words.append(f"errors beyond those of careful arithmetic are allowed: {allowed}")
    if not any(axis.vary for axis in draft.axes.values()):
        words.append(
            "no size varies, so kernels are judged at these sizes only; a size with several values varies: x=Mx4096:fp16, M=1,16,256"
        )
    return words
