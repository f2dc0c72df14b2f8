"""
Compiles a candidate's launches for a target, with no device: what each kernel needs, or why it does not compile.

Called in a process that forks for one candidate and one target.
"""

from __future__ import annotations

import mmap
import re
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from triton.compiler.errors import CompilationError, CompileTimeAssertionFailure
from triton.runtime.errors import OutOfResources
from triton.runtime.jit import JITFunction

from harness.wire.case_specs import ArgumentSpec, CaseSpec
from harness.wire.compile_report import CompileReport, HostWorkFound
from harness.wire.device import Target

from . import ahead, capture, configs
from .capture import ForeignOption, Launch
from .host_work import Computes, HostWork
from .resource_table import table

MESSAGE_CHARACTERS = 600
_DIAGNOSTIC = re.compile(r'"?(?P<file>[^\s":]+\.py)"?:(?P<line>\d+):\d+\)?: error: (?P<message>.+)')
_prepared: list[Target] = []


def prepare(target: Target, progress: Callable[[], None] = lambda: None) -> None:
    """
    Make this process ready to compile for `target`: once, before the candidate's module is imported.

    `progress` is called whenever a config of an autotuned kernel is compiled. `cuda` comes to mean the CPU and answers as the target's reference device would; launches compile and do not run.
    """
    if _prepared and _prepared[0] != target:
        raise RuntimeError(f"this process compiles for {_prepared[0].name}; start another for {target.name}")
    if not _prepared:
        capture.install(target)
        configs.install()
        capture.remember()
        ahead.reporting.progress = progress
        _prepared.append(target)


def compile_candidate(
    module: ModuleType,
    entry_point: str,
    cases: Sequence[CaseSpec],
    target: Target,
    *,
    allowed: tuple[str, ...] = (),
    further: Sequence[CaseSpec] = (),
    side_by_side: bool = True,
) -> CompileReport:
    """
    Run the entry point on zeros of each case's shapes and compile every launch it makes.

    The candidate fails as it would on the device: when an exception leaves the entry point. So a launch that does not
    compile fails it unless its own code catches that (a note then); of an autotuned kernel, configs that Triton's
    autotuner itself drops (too large for the device, a static assertion, refused by ptxas) are marked and fail it only
    when none is left. The first failing case ends the work. `prepare` must have been called before the import.
    `allowed` are operators that the host may compute with. Kernels are compiled `side_by_side` where
    there are cores for it, with them what `further` cases launch, which is left in Triton's folder and not told of.
    """
    prepare(target)
    if side_by_side:

        def scouted() -> None:
            capture.tuning.every = bool(further)  # a GPU tunes anew for each of them
            _call(module, entry_point, (*cases, *further))

        ahead.compile_ahead(module, scouted, target)
    launches: list[tuple[str, Launch]] = []
    error: tuple[str, int | None] | None = None
    unsupported = None
    host_work: HostWorkFound | None = None
    unread: list[str] = []
    for case in cases:
        work = HostWork(module.__file__ or "", allowed)
        with capture.record() as made, work:
            try:
                getattr(module, entry_point)(**zero_arguments(case))
            except Computes:
                pass
            except ForeignOption as reason:
                unsupported = f"{reason}; nothing can be said for {target.name}"
            except MemoryError as reason:
                unsupported = f"this machine cannot hold case {case.case} at its gpu sizes: {reason}"
            except SystemExit:  # it leaves; how the process ended tells
                raise
            except BaseException as reason:  # noqa: BLE001 -- whatever leaves the candidate's code is its failure
                if _is_memory(reason):
                    unsupported = f"this machine cannot hold case {case.case} at its gpu sizes"
                elif work.reads and all(launch.failure is not reason for launch in made):
                    unread.append(
                        f"case {case.case} was compiled in part: the host code reads tensors, which hold zeros here, and raised "
                        f"{type(reason).__name__}: {_short(str(reason))}"
                    )
                elif isinstance(reason, torch.AcceleratorError):
                    unread.append(
                        f"case {case.case} was compiled in part: the host code needs a device, and there is none while kernels are compiled"
                    )
                else:
                    error = _explain(reason, module, made, case.case, target)
        launches.extend((case.case, launch) for launch in made)
        if error or unsupported:
            break
        if work.operator:
            host_work = host_work or HostWorkFound(case.case, work.operator, work.line)
        elif not made:
            host_work = host_work or HostWorkFound(case.case, reads=work.reads)
    compiled = any(launch.failure is None for _, launch in launches)
    if not compiled and error is None and unsupported is None:
        case_name, failed = next(
            ((case, made) for case, made in launches if made.failure is not None), ("", None)
        )
        if failed is not None and isinstance(failed.failure, ForeignOption):
            unsupported = f"{failed.failure}; nothing can be said for {target.name}"
        elif failed is not None and failed.failure is not None:
            error = _explain(failed.failure, module, [failed], case_name, target)

    def failure(launch: Launch) -> str:
        return _message(launch.failure, module, launch, target)[0] if launch.failure is not None else ""

    return CompileReport(
        resources=table(launches, target, failure),
        error=error[0] if error else None,
        line=error[1] if error else None,
        unsupported=unsupported,
        patched=next(iter(capture.patched), ""),
        notes=(*unread, *_notes(launches, module, target, told=error[0] if error else "")),
        host_work=host_work,
        argument_types=_argument_types(launches),
    )


def _call(module: ModuleType, entry_point: str, cases: Sequence[CaseSpec]) -> None:
    for case in cases:
        with capture.record():
            getattr(module, entry_point)(**zero_arguments(case))


def _argument_types(launches: Sequence[tuple[str, Launch]]) -> tuple[tuple[str, ...], ...]:
    signatures = (
        tuple(launch.compiled.src.signature.values()) for _, launch in launches if launch.compiled is not None
    )
    return tuple(dict.fromkeys(one for one in signatures if all(isinstance(kind, str) for kind in one)))


def zero_arguments(case: CaseSpec) -> dict[str, Any]:
    """The arguments of a case, tensors filled with zeros that take memory only where they are touched."""
    return {spec.name: spec.scalar if spec.shape is None else _zeros(spec) for spec in case.arguments}


def _zeros(spec: ArgumentSpec) -> torch.Tensor:
    """Zeros whose memory is mapped only where it is touched, and whose storage is as large as on the device."""
    shape, dtype = spec.shape or (), getattr(torch, spec.dtype)
    if 0 in shape:
        return torch.empty_strided(shape, spec.strides, dtype=dtype)
    items = 1 + sum((size - 1) * stride for size, stride in zip(shape, spec.strides, strict=True))
    memory = mmap.mmap(-1, items * dtype.itemsize, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return torch.frombuffer(memory, dtype=dtype, count=items).as_strided(shape, spec.strides)


def _is_memory(error: BaseException) -> bool:
    return isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)


def _notes(
    launches: Sequence[tuple[str, Launch]], module: ModuleType, target: Target, *, told: str
) -> tuple[str, ...]:
    """What failed of each launch that did, but for the one that the error has `told` of."""
    notes: dict[str, None] = {}
    for case, launch in launches:
        if launch.failure is None or isinstance(launch.failure, ForeignOption):
            continue
        message, _ = _message(launch.failure, module, launch, target)
        described = _described(launch, case, message)
        if described != told:
            notes[described] = None
    return tuple(notes)


def _explain(
    error: BaseException, module: ModuleType, made: Sequence[Launch], case: str, target: Target
) -> tuple[str, int | None]:
    """Message and line for a person, of an exception that left the entry point."""
    launch = next((launch for launch in made if launch.failure is error), None)
    if launch is None:
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        message = f"the entry point raised {_short(text)} at the gpu sizes of case {case}"
        return message, _traceback_line(error, module)
    message, line = _message(error, module, launch, target)
    if line is None:
        line = _traceback_line(error, module)
    return _described(launch, case, message), line


def _described(launch: Launch, case: str, message: str) -> str:
    which = f" config {launch.autotune_index}" if launch.autotune_index is not None else ""
    return f"{launch.kernel}{which} ({_config(launch)}), case {case}: {message}"


def _message(
    error: BaseException, module: ModuleType, launch: Launch, target: Target
) -> tuple[str, int | None]:
    if isinstance(error, OutOfResources):
        return _too_large(error, target), None
    if isinstance(error, CompilationError):
        return _front_end(error, module)
    found = _DIAGNOSTIC.search(launch.log)
    if found is not None:
        own = Path(found["file"]).name == Path(module.__file__ or "").name
        return _short(found["message"]), int(found["line"]) if own else None
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return _short(text), None


def _front_end(error: CompilationError, module: ModuleType) -> tuple[str, int | None]:
    """The innermost error tells what is wrong; the line is the innermost that is the candidate's own."""
    chain: list[BaseException] = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    said = [link.error_message for link in chain if isinstance(link, CompilationError) and link.error_message]
    reason = chain[-1]
    message = said[-1] if said else str(reason) or type(reason).__name__
    if isinstance(reason, CompileTimeAssertionFailure) and not said:
        message = "tl.static_assert failed"
    lines = [_own_line(link, module) for link in chain if isinstance(link, CompilationError)]
    line = next((line for line in reversed(lines) if line is not None), None)
    return _short(message), line


def _own_line(error: CompilationError, module: ModuleType) -> int | None:
    """Nodes count lines from the `def`; find the function that the source belongs to and count from its place."""
    at = getattr(error.node, "lineno", None)
    if at is None or error.src is None:
        return None
    for value in vars(module).values():
        function = value
        while not isinstance(function, JITFunction) and hasattr(function, "fn"):
            function = function.fn
        if isinstance(function, JITFunction) and function.src == error.src:
            raw = function.raw_src
            decorators = next((i for i, text in enumerate(raw) if text.lstrip().startswith("def ")), 0)
            return int(function.starting_line_number) + decorators + int(at) - 1
    return None


def _traceback_line(error: BaseException, module: ModuleType) -> int | None:
    """Line of the innermost frame in the candidate's module."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame.lineno for frame in frames if frame.filename == module.__file__]
    return own[-1] if own else None


def _too_large(error: OutOfResources, target: Target) -> str:
    if error.name != "shared memory":
        return f"needs {error.required} {error.name} a workgroup, {target.name} allows {error.limit}"
    memory = "LDS" if target.backend == "hip" else "shared memory"
    return (
        f"needs {error.required} bytes of {memory} a workgroup, {target.name} has {error.limit}; "
        "smaller blocks or fewer num_stages help"
    )


def _config(launch: Launch) -> str:
    return ", ".join(f"{name}={value}" for name, value in launch.config.items())


def _short(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return "\n".join(lines[:6])[:MESSAGE_CHARACTERS]
