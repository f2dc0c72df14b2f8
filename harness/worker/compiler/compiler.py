"""Compiles a candidate's launches for a target without a device: what each kernel needs, or why it does not compile.

Role `compiler`: one process for one candidate and one target, sandboxed like a guest. Its report is evidence, not proof.
`capture` compiles launches, and `ahead` lists the kernels first, so that their binaries are made in parallel.
"""

from __future__ import annotations

import errno
import mmap
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from harness.hardware.targets import target as find_target
from harness.wire import limits
from harness.wire.calls.tensors import CASE_SPECS, Arguments, CaseSpecs, TensorSpec
from harness.wire.channels.channel import Channel
from harness.wire.device import Target
from harness.wire.messages.compiler import Compile, CompileReport, HostWorkFound
from harness.wire.messages.guest import Failed
from harness.wire.messages.requests import RequestMessage, WorkerAnswer
from harness.wire.messages.server import Spawn
from harness.worker.candidate.foreign_kernels import foreign_kernel
from harness.worker.candidate.loading import confine, failed, import_candidate
from harness.worker.candidate.serving import serve
from harness.worker.kit import candidate_trace
from harness.worker.kit.candidate_trace import file_of
from harness.worker.kit.in_place import taking_parts
from harness.worker.triton_hooks.autotuning import Mode, policy

from . import ahead, capture
from .ahead import Line
from .capture import CompiledLaunch, ForeignOption
from .failure_wording import FailureWording, shorten
from .host_code import Computes, HostTime, HostTooSlow, HostWork
from .kept_texts import keep_texts
from .resource_table import table

_prepared: list[Target] = []
_ASKED_BYTES = re.compile(r"DefaultCPUAllocator: .*you tried to allocate (\d+) bytes")
_MORE_THAN_A_GPU_BYTES = 1 << 40
"""No GPU has as much memory; a call that asks for more at once fails on each of them."""


def prepare(target: Target, progress: Callable[[], None] = lambda: None) -> None:
    """Make this process ready to compile for `target`. Call it before the candidate's import; later calls do nothing.

    From then on the device `cuda` is the CPU with the properties of the target's reference device, and launches only compile.
    `progress` is called after each compiled config of an autotuned kernel.
    """
    if _prepared and _prepared[0] != target:
        raise RuntimeError(f"this process compiles for {_prepared[0].name}; start another for {target.name}")
    if not _prepared:
        capture.install(target)
        capture.save_settings()
        policy.progress = progress
        _prepared.append(target)


def compile_candidate(
    module: ModuleType,
    entry_point: str,
    cases: CaseSpecs,
    target: Target,
    *,
    allowed: tuple[str, ...] = (),
    further: CaseSpecs | None = None,
    configs: Mapping[str, int] | None = None,
    line: ahead.Line | None = None,
    host_cpu_s: float = limits.ON_CPU.host_cpu_s,
    keep: bool = False,
) -> CompileReport:
    """Call the entry point with zeros of each case's shapes and compile every launch that it makes.

    The candidate fails as on a device: only if an exception leaves the entry point. If its own code catches the error of a
    launch, the report has a note. Configs that Triton's autotuner drops (too large for the device, a static assertion,
    refused by ptxas) are marked; they fail the candidate only if no config is left. The first failing case ends the work.

    Call `prepare` before the candidate's import. `allowed`: operators that the host may compute with.
    `line` gives binaries, compiled in parallel, also those of the `further` cases, which are in no report: of an autotuned
    kernel the config of this number in `configs`. Without it all is compiled here.
    `host_cpu_s`: CPU seconds for the host code of one case.
    `keep`: the report has the compiler's texts.
    """
    prepare(target)

    def call(arguments: Arguments) -> None:
        taking_parts(getattr(module, entry_point), arguments)(**zero_arguments(arguments))

    def call_all() -> None:  # in the scout alone
        """Call the entry point with all cases, the further ones with one config; the scout alone runs this."""
        policy.again = bool(further)  # a GPU tunes for each case that it times
        for arguments in cases.values():
            with capture.record():
                call(arguments)
        policy.mode = Mode.FIRST
        for case, arguments in (further or {}).items():
            policy.number = (configs or {}).get(case, 0)
            with capture.record():
                call(arguments)

    file = file_of(module)
    if line is not None:
        ahead.compile_ahead(call_all, target, Path(file).parent, line)
    wording = FailureWording(module, target)
    launches: list[tuple[str, CompiledLaunch]] = []
    error: tuple[str, int | None] | None = None
    in_host = False
    unsupported = None
    slow_line: int | None = None
    host_work: HostWorkFound | None = None
    partial_cases: list[str] = []
    for case, arguments in cases.items():
        work = HostWork(file, allowed)
        host_time = HostTime(file, host_cpu_s)
        with capture.record() as made, work:
            try:
                with host_time:
                    call(arguments)
            except Computes:
                pass
            except HostTooSlow:
                slow_line = host_time.line
                slow = wording.slow_host(host_cpu_s, case, slow_line)
                if work.reads:
                    unsupported = f"{slow}. It reads tensors, which hold zeros here"
                elif work.operator_cpu_s > host_cpu_s / 2:
                    unsupported = (
                        f"{slow}. Most of this time went to tensor operators, which a GPU may run faster"
                    )
                else:
                    error = (
                        f"{slow}. Python loops are as slow beside a GPU: move the loop into a kernel",
                        slow_line,
                    )
            except ForeignOption as reason:
                unsupported = f"{reason}; nothing can be said for {target.name}"
            except MemoryError as reason:
                unsupported = f"this machine cannot hold case {case} at its gpu sizes: {reason}"
            except SystemExit:  # the engine reports from the exit status
                raise
            except BaseException as reason:  # noqa: BLE001 -- any exception from the entry point is the candidate's
                if _is_out_of_memory(reason):
                    unsupported = f"this machine cannot hold case {case} at its gpu sizes"
                elif work.reads and all(launch.failure is not reason for launch in made):
                    partial_cases.append(
                        f"case {case} was compiled in part: the host code reads tensors, which hold zeros here, and raised "
                        f"{type(reason).__name__}: {shorten(str(reason))}"
                    )
                elif isinstance(reason, torch.AcceleratorError):
                    partial_cases.append(
                        f"case {case} was compiled in part: the host code needs a device, and there is none while kernels are compiled"
                    )
                else:
                    error = wording.explain(reason, made, case)
                    in_host = all(launch.failure is not reason for launch in made)
        launches.extend((case, launch) for launch in made)
        if error or unsupported:
            break
        foreign = next((name for launch in made if (name := foreign_kernel(launch.function, file))), "")
        if foreign:
            host_work = host_work or HostWorkFound(case, kernel=foreign)
        elif work.operator:
            host_work = host_work or HostWorkFound(
                case, work.operator, work.line, moves=work.copies > limits.COPIES
            )
        elif not made and not _has_no_element(arguments):
            host_work = host_work or HostWorkFound(case, reads=work.reads)
    if launches and not error and not unsupported:
        case_name, first = launches[0]
        if first.failure is not None and all(launch.failure is not None for _, launch in launches):
            # The candidate's own code caught the error of every launch.
            if isinstance(first.failure, ForeignOption):
                unsupported = f"{first.failure}; nothing can be said for {target.name}"
            else:
                error = wording.explain(first.failure, [first], case_name)
    resources, assemblies = table(launches, target, wording.failure)
    texts: dict[str, bytes] = {}
    if keep:
        resources, texts = keep_texts(resources, assemblies, str(Path(file).parent))
    return CompileReport(
        resources=resources,
        texts=texts,
        error=error[0] if error else None,
        line=error[1] if error else slow_line,
        timed_out=error is not None and slow_line is not None,
        in_host=in_host,
        unsupported=unsupported,
        patched=next(iter(capture.patched), ""),
        notes=(*partial_cases, *wording.notes(launches, error[0] if error else "")),
        host_work=host_work,
        argument_types=_argument_types(launches),
    )


def _argument_types(launches: Sequence[tuple[str, CompiledLaunch]]) -> tuple[tuple[str, ...], ...]:
    signatures = (
        tuple(launch.compiled.src.signature.values()) for _, launch in launches if launch.compiled is not None
    )
    return tuple(dict.fromkeys(types for types in signatures if all(isinstance(kind, str) for kind in types)))


def _is_out_of_memory(reason: BaseException) -> bool:
    """True if torch's allocator for `cpu`, or the map of the inputs, found no memory that a GPU may have."""
    if isinstance(reason, OSError):
        return reason.errno == errno.ENOMEM
    asked = _ASKED_BYTES.search(str(reason)) if isinstance(reason, RuntimeError) else None
    return asked is not None and int(asked[1]) < _MORE_THAN_A_GPU_BYTES


def _has_no_element(arguments: Arguments) -> bool:
    """True if a tensor has no element, so that a kernel may have nothing to do."""
    return any(isinstance(value, TensorSpec) and 0 in value.shape for value in arguments.values())


def zero_arguments(arguments: Arguments) -> dict[str, Any]:
    """The arguments of a case, with tensors of zeros that take memory only where they are touched."""
    return {
        name: _zeros(value) if isinstance(value, TensorSpec) else value for name, value in arguments.items()
    }


def _zeros(spec: TensorSpec) -> torch.Tensor:
    """A tensor on a private memory map; its storage is as large as on the device."""
    shape, dtype = spec.shape, getattr(torch, spec.dtype)
    if 0 in shape:
        return torch.empty_strided(shape, spec.strides, dtype=dtype)
    items = 1 + sum((size - 1) * stride for size, stride in zip(shape, spec.strides, strict=True))
    memory = mmap.mmap(-1, items * dtype.itemsize, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return torch.frombuffer(memory, dtype=dtype, count=items).as_strided(shape, spec.strides)


def main(channel: Channel, spawn: Spawn) -> None:
    """Answer one `Compile`, with an `Alive` after each config of an autotuned kernel.

    Then wait: the engine copies files from the scratch folder, which ends with this process.
    """
    file = Path(spawn.scratch) / candidate_trace.NAME

    def answer(message: RequestMessage, _: tuple[int, ...]) -> WorkerAnswer:
        assert isinstance(message.body, Compile)
        return _compile(message.body, file, Line(channel, message.nonce))

    serve(channel, confine(spawn, limits.COMPILE_ADDRESS_SPACE_BYTES, run_programs=True), answer)


def _compile(request: Compile, file: Path, line: Line) -> CompileReport | Failed:
    """Import the candidate and compile what its entry point launches in each case; return the report.

    An exception of the import is the candidate's and becomes `Failed`. If the import ends the process, the engine sees the exit
    status.
    """
    target = find_target(request.target)
    prepare(target, line.alive)
    try:
        module = import_candidate(file, request.source)
    except SystemExit:  # the engine reports from the exit status
        raise
    except BaseException as error:  # noqa: BLE001 (foreign code may raise anything)
        return failed(error, file)
    return compile_candidate(
        module,
        request.entry_point,
        CASE_SPECS.decode(request.cases),
        target,
        allowed=request.allowed,
        further=CASE_SPECS.decode(request.ahead),
        configs=request.ahead_configs,
        line=line,
        host_cpu_s=request.host_cpu_s,
        keep=request.keep_texts,
    )
