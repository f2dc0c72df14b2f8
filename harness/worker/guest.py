"""The guest: runs one candidate on inputs it is handed and returns bytes. Sandboxed; believed in nothing but bytes."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from harness import limits
from harness.signatures import Parameter
from harness.targets import target
from suites.dtypes import ITEM_BYTES

from . import arena, interpreter, linux, sandbox, trace, watch
from .channel import Channel, ChannelClosed
from .integrity import Snapshot
from .messages import (
    ENCODER,
    GUEST_REQUESTS,
    Broken,
    Call,
    CaseTraffic,
    Compile,
    Failed,
    Farewell,
    GuestReport,
    GuestRequest,
    Hello,
    LeftBehind,
    Load,
    Loaded,
    OutputData,
    Returned,
    Spawn,
)
from .traffic import Observation


def main(channel: Channel, spawn: Spawn) -> None:
    """Serves one judge until it hangs up."""
    linux.prctl(linux.PR_SET_DUMPABLE, 0)
    torch.set_num_threads(1)
    scratch = Path(spawn.scratch)
    close_doors()
    layers = sandbox.apply(scratch, spawn.cpu_limit_s, limits.ADDRESS_SPACE_BYTES, run_programs=False)
    channel.send(ENCODER.encode(Hello(sandbox=layers)))
    guest = Guest(scratch)
    while True:
        try:
            frame = channel.receive()
        except ChannelClosed:
            return
        request = GUEST_REQUESTS.decode(frame.payload)
        try:
            report = guest.answer(request, frame.descriptors)
        except Exception as error:  # noqa: BLE001 (what the candidate raises is caught where its code runs)
            report = broken(request.nonce, error)
        channel.send(ENCODER.encode(report))


class Guest:
    """One candidate and what its last call returned."""

    def __init__(self, scratch: Path) -> None:
        self._file = scratch / trace.NAME
        self._module: ModuleType | None = None
        self._snapshot: Snapshot | None = None
        self._last: tuple[torch.Tensor, ...] = ()
        self._last_digest = _digest(())

    def answer(self, request: GuestRequest, descriptors: tuple[int, ...]) -> GuestReport:
        """The report on one request; what the candidate raises is a report too."""
        match request:
            case Load():
                return self._load(request)
            case Call():
                return self._call(request, descriptors[0])
            case Farewell(nonce=nonce):
                return self._farewell(nonce)
            case Compile():
                raise TypeError("a guest does not compile")

    def _load(self, request: Load) -> Loaded | Failed:
        watch.count_host_elements()
        interpreter.prepare(target(request.target))
        self._snapshot = Snapshot.take()
        try:
            self._module = import_candidate(self._file, request.source)
        except SystemExit:  # it leaves; how the process ended tells
            raise
        except BaseException as error:  # noqa: BLE001 (foreign code: whatever it raises is its report)
            return failed(request.nonce, error, self._file)
        parameters = {}
        for name in request.entry_points:
            entry = vars(self._module).get(name)
            if not callable(entry):
                message = f"kernel.py defines no function `{name}`"
                return Failed(
                    nonce=request.nonce, kind="missing_entry_point", message=message, trace="", line=None
                )
            parameters[name] = parameters_of(entry)
        return Loaded(nonce=request.nonce, parameters=parameters)

    def _call(self, request: Call, descriptor: int) -> Returned | Failed:
        arguments = arena.open_arguments(descriptor, request.arena_bytes, request.arguments)
        os.close(descriptor)
        inputs = {name: value for name, value in arguments.items() if isinstance(value, torch.Tensor)}
        entry: Callable[..., Any] = getattr(self._module, request.entry_point)
        with interpreter.observe(inputs) as observation:
            operators = watch.OperatorWatch(observation, str(self._file))
            try:
                with operators:
                    value = entry(**arguments)
            except SystemExit:  # it leaves; how the process ended tells
                raise
            except BaseException as error:  # noqa: BLE001 (foreign code: whatever it raises is its report)
                if observation.unsupported is None:
                    return failed(request.nonce, error, self._file)
                value = None
        report = self._returned(request, value, observation, operators, inputs)
        self._last = tuple(part for part in _parts(value)[1] if _is_plain(part))
        self._last_digest = _digest(self._last)
        return report

    def _returned(
        self,
        request: Call,
        value: Any,
        observation: Observation,
        operators: watch.OperatorWatch,
        inputs: Mapping[str, torch.Tensor],
    ) -> Returned:
        structure, parts = _parts(value)
        return Returned(
            nonce=request.nonce,
            structure=structure,
            outputs=tuple(self._output(part, operators, inputs) for part in parts),
            operators=operators.operators(),
            host_elements=operators.host_elements,
            kernels=tuple(dict.fromkeys(launch.kernel for launch in observation.launches)),
            traffic=_traffic(request.case, observation),
            unsupported=observation.unsupported or "",
            changed_output=_digest(self._last) != self._last_digest,
        )

    def _output(
        self, part: Any, operators: watch.OperatorWatch, inputs: Mapping[str, torch.Tensor]
    ) -> OutputData:
        kind = type(part)
        name = "torch.Tensor" if kind is torch.Tensor else f"{kind.__module__}.{kind.__qualname__}"
        if not isinstance(part, torch.Tensor):
            return OutputData(type=name)
        problem = _problem(part)
        if problem:
            return OutputData(type=name, problem=problem)
        detached = part.detach().contiguous()
        return OutputData(
            type=name,
            dtype=arena.dtype_name(part.dtype),
            shape=tuple(part.shape),
            data=arena.storage_bytes(detached) if detached.numel() else b"",
            aliases=_aliases(part, inputs, self._last),
            from_kernel=part.numel() == 0 or operators.from_kernel(part),
        )

    def _farewell(self, nonce: str) -> LeftBehind:
        assert self._snapshot is not None
        return LeftBehind(
            nonce=nonce,
            patched=self._snapshot.differences(),
            threads=max(threading.active_count(), linux.thread_count()) - 1,
            children=_own_children(),
        )


def _own_children() -> int:
    """Direct children that still run, as far as the read allow-list lets the guest see; the warden knows for sure."""
    found = 0
    for listing in Path("/proc/self/task").glob("*/children"):
        found += len(listing.read_text(encoding="ascii").split())
    return found


def close_doors() -> None:
    """Leaves only installed packages importable, and the standard library: not the folder of the project."""
    kept = [str(folder) for folder in sandbox.python_folders()]
    sys.path[:] = [entry for entry in sys.path if entry in kept]
    sys.meta_path[:] = [finder for finder in sys.meta_path if "__editable__" not in str(_home(finder))]
    sys.path_hooks[:] = [hook for hook in sys.path_hooks if "__editable__" not in str(_home(hook))]


def import_candidate(file: Path, source: str) -> ModuleType:
    """The candidate's module, imported from its own file so that tracebacks and `inspect` find its lines."""
    file.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def failed(nonce: str, error: BaseException, file: Path) -> Failed:
    """The report on an exception of the candidate."""
    explained = trace.explain(error, file)
    return Failed(
        nonce=nonce, kind="exception", message=explained.message, trace=explained.trace, line=explained.line
    )


def broken(nonce: str, error: Exception) -> Broken:
    """The report on an exception of our own code; the traceback goes to what the process printed."""
    traceback.print_exc()
    return Broken(nonce=nonce, message="".join(traceback.format_exception_only(error)).strip())


def parameters_of(entry: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Parameters as Python sees them; none where it cannot (then the call decides)."""
    try:
        found = inspect.signature(entry).parameters.values()
    except Exception:  # noqa: BLE001 (a `__signature__` of the candidate's may raise anything)
        return ()
    if any(one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in found):
        return ()
    return tuple(
        Parameter(
            name=one.name,
            default=None if one.default is one.empty else repr(one.default),
            by_name=one.kind is not one.POSITIONAL_ONLY,
        )
        for one in found
    )


def _home(thing: Any) -> Any:
    return getattr(thing, "__module__", type(thing).__module__)


def _parts(value: Any) -> tuple[str, tuple[Any, ...]]:
    """The structure of what was returned, and its parts."""
    if isinstance(value, torch.Tensor):
        return "tensor", (value,)
    if isinstance(value, (tuple, list)):
        return "tuple", tuple(value)
    return type(value).__name__, ()


def _is_plain(part: Any) -> bool:
    return isinstance(part, torch.Tensor) and not _problem(part)


def _problem(tensor: torch.Tensor) -> str:
    """Why this is no plain, dense tensor; empty when it is one."""
    if type(tensor) is not torch.Tensor:
        return f"is a {type(tensor).__name__}, not a plain torch.Tensor"
    if tensor.layout is not torch.strided:
        return f"has the layout {tensor.layout}, not a dense one"
    if tensor.device.type not in ("cuda", "cpu"):
        return f"is on the device {tensor.device.type}, not on the GPU"
    if arena.dtype_name(tensor.dtype) not in ITEM_BYTES:
        return f"has the dtype {arena.dtype_name(tensor.dtype)}, which is none that a task asks for"
    if any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True)):
        return "shows the same memory several times (a stride of 0)"
    if tensor.is_conj() or tensor.is_neg():
        return "is a lazy conjugate or negative view"
    return ""


def _aliases(part: torch.Tensor, inputs: Mapping[str, torch.Tensor], last: tuple[torch.Tensor, ...]) -> str:
    start, end = part.data_ptr(), part.data_ptr() + arena.span_bytes(part)
    others = [(f"input `{name}`", tensor) for name, tensor in inputs.items()]
    others += [("the output of the call before", tensor) for tensor in last]
    for name, other in others:
        if start < other.data_ptr() + arena.span_bytes(other) and other.data_ptr() < end:
            return name
    return ""


def _digest(outputs: tuple[torch.Tensor, ...]) -> bytes:
    digest = hashlib.blake2b()
    for output in outputs:
        if output.numel():
            digest.update(arena.storage_bytes(output))
    return digest.digest()


def _traffic(case: str, observation: Observation) -> CaseTraffic:
    return CaseTraffic(
        case=case,
        requested_read_bytes=observation.requested_read_bytes,
        requested_write_bytes=observation.requested_write_bytes,
        unique_read_bytes=observation.unique_read_bytes,
        unique_write_bytes=observation.unique_write_bytes,
        dot_flops=observation.dot_flops,
        launches=len(observation.launches),
        programs=sum(launch.programs for launch in observation.launches),
        out_of_bounds=tuple(observation.out_of_bounds),
    )
