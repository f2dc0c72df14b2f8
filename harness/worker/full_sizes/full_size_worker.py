"""Role `full_sizes`: runs programs of a candidate at `gpu` sizes. Sandboxed like a guest; its report is evidence."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from harness.hardware.targets import target as find_target
from harness.wire import limits
from harness.wire.calls import operators
from harness.wire.calls.tensors import CASE_SPECS, Arguments
from harness.wire.channels.channel import Channel
from harness.wire.messages.compiler import RanAtFullSizes, RunAtFullSizes
from harness.wire.messages.requests import RequestMessage, WorkerAnswer
from harness.wire.messages.server import Spawn
from harness.wire.messages.timer import Done
from harness.worker.candidate.loading import confine, import_candidate
from harness.worker.candidate.serving import serve, tell
from harness.worker.compiler.compiler import zero_arguments
from harness.worker.interpreter import interpreter
from harness.worker.interpreter.traffic import cannot, running
from harness.worker.kit import candidate_trace
from harness.worker.kit.in_place import taking_parts
from harness.worker.kit.operator_mode import OperatorMode, tensors

from . import three_programs
from .three_programs import FullSizeObservation

_READERS = (torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__array__)
_AGAIN_S = 0.25
"""CPU seconds until the next interrupt, for a candidate that catches the exception of the first."""


def main(channel: Channel, spawn: Spawn) -> None:
    """Answer one `RunAtFullSizes` request with a report for each case."""
    file = Path(spawn.scratch) / candidate_trace.NAME

    def answer(message: RequestMessage, _: tuple[int, ...]) -> WorkerAnswer:
        """Run each case of a request and report it at once; return when all are done."""
        request = message.body
        assert isinstance(request, RunAtFullSizes)
        interpreter.prepare(find_target(request.target))
        three_programs.install()
        module = import_candidate(file, request.source)
        for case, arguments in CASE_SPECS.decode(request.cases).items():
            tell(channel, message.nonce, run_case(module, request, case, arguments))
        return Done()

    serve(channel, confine(spawn, limits.COMPILE_ADDRESS_SPACE_BYTES), answer)


def run_case(
    module: ModuleType,
    request: RunAtFullSizes,
    case: str,
    specified: Arguments,
    cpu_s: float = limits.FULL_SIZE_CPU_S,
) -> RanAtFullSizes:
    """Run one case with made-up values and return its report, whatever the candidate raises.

    A case that raises, reads values on the host, launches nothing or takes more than `cpu_s` gives a report with the reason
    alone.
    """
    observation = FullSizeObservation(request.seed)
    host = _HostReads()
    why, raised = "", False
    try:
        arguments = zero_arguments(specified)
        observation.admit(arguments)
        with running(observation), _limited(cpu_s), host, _ReaderCalls(host):
            taking_parts(getattr(module, request.entry_point), arguments)(**arguments)
    except SystemExit:
        why = "the candidate ended its process"
    except BaseException as error:  # noqa: BLE001 (foreign code may raise anything)
        why, raised = (
            f"with made-up values it raised {type(error).__name__}: {error}".partition("\n")[0],
            True,
        )
    if observation.unsupported is not None:
        why, raised = observation.unsupported, False
    elif host.reader:
        why, raised = f"host code reads values of tensors (`{host.reader}`)", False
    elif not why and not observation.launches:
        why = "no kernel was launched"
    if why:
        return RanAtFullSizes(case=case, why=why, raised=raised)
    return RanAtFullSizes(
        case=case,
        missed_stores=observation.certain(observation.missed_stores),
        missed_loads=observation.certain(observation.missed_loads),
        touched_bytes=observation.touched_bytes + host.moved_bytes if observation.is_bound else None,
    )


@contextmanager
def _limited(cpu_s: float) -> Iterator[None]:
    """Let the block run for so many CPU seconds. Then raise the error of `cannot` in it, again if code catches it.

    The handler of the signal is restored at the end.
    """

    def stop(*_: Any) -> None:
        raise cannot(f"its three programs take more than {cpu_s:g} s of CPU time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, cpu_s, _AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class _HostReads(OperatorMode):  # type: ignore[no-untyped-call]
    """Notes when host code reads a tensor's values, which are not real here. Counts the bytes that it copies."""

    def __init__(self) -> None:
        super().__init__()
        self.reader = ""
        self.moved_bytes = 0

    def _run(self, func: Any, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if name == "_local_scalar_dense":
            self.reader = self.reader or "item"
        result = func(*args, **named)
        if name in operators.MOVING:
            self.moved_bytes += sum(tensor.nbytes for tensor in tensors(result))
        return result


class _ReaderCalls(TorchFunctionMode):
    """Notes the readers of `_READERS`, which the dispatcher does not see."""

    def __init__(self, host: _HostReads) -> None:
        super().__init__()
        self._host = host

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func in _READERS:
            self._host.reader = self._host.reader or getattr(func, "__name__", "numpy")
        return func(*args, **(kwargs or {}))
