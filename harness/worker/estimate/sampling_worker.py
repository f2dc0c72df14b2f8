"""Role `sampler`: samples a candidate's launches at `gpu` sizes. Sandboxed like a guest; its report is evidence, not proof."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from harness.hardware.targets import hardware
from harness.hardware.targets import target as find_target
from harness.wire import limits
from harness.wire.calls import operators
from harness.wire.calls.case_specs import CASE_SPECS, CaseSpec
from harness.wire.channels.channel import Channel
from harness.wire.messages.requests import RequestMessage, WorkerAnswer
from harness.wire.messages.sampler import CaseSampled, SampleCases, add_flows
from harness.wire.messages.server import Spawn
from harness.wire.messages.timer import Done
from harness.worker.candidate.loading import confine, import_candidate
from harness.worker.candidate.serving import serve, tell
from harness.worker.compiler.compiler import zero_arguments
from harness.worker.interpreter import interpreter
from harness.worker.interpreter.observing import running
from harness.worker.kit import candidate_trace
from harness.worker.kit.operator_mode import OperatorMode, tensors

from . import sampler
from .cpu_budget import Budget

_READERS = (torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__array__)


def main(channel: Channel, spawn: Spawn) -> None:
    """Answer one `SampleCases` request with a report for each case."""
    file = Path(spawn.scratch) / candidate_trace.NAME

    def answer(message: RequestMessage, _: tuple[int, ...]) -> WorkerAnswer:
        request = message.request
        assert isinstance(request, SampleCases)
        target = find_target(request.target)
        interpreter.prepare(target)
        sampler.install()
        module = import_candidate(file, request.source)
        specifications = CASE_SPECS.decode(request.cases)
        budget = Budget(len(specifications))
        for spec in specifications:
            tell(channel, message.nonce, sample_case(module, request, spec, hardware(target).dies, budget))
        return Done()

    serve(channel, confine(spawn, limits.COMPILE_ADDRESS_SPACE_BYTES), answer)


def sample_case(
    module: ModuleType, request: SampleCases, spec: CaseSpec, dies: int, budget: Budget
) -> CaseSampled:
    """Sample one case; returns a report whatever the candidate raises."""
    began = time.perf_counter()
    observation = sampler.Sampler(dies)
    host = _HostReads()
    why = ""
    try:
        arguments = zero_arguments(spec)
        observation.admit(arguments)
        with budget.case(), running(observation), host, _ReaderCalls(host):
            getattr(module, request.entry_point)(**arguments)
    except SystemExit:
        why = "the candidate ended its process"
    except BaseException as error:  # noqa: BLE001 (foreign code may raise anything)
        why = f"with made-up values it raised {type(error).__name__}: {error}".partition("\n")[0]
    flow = add_flows(observation.flows)
    if observation.unsupported is not None:
        why = observation.unsupported
    elif host.reader:
        why = f"host code reads values of tensors (`{host.reader}`)"
    elif not why and flow is None:
        why = "no kernel was launched"
    return CaseSampled(
        case=spec.case,
        seconds=time.perf_counter() - began,
        flow=None if why else flow,
        why=why,
        out_of_bounds=observation.misses,
        remarks=tuple(observation.remarks),
        moved_bytes=host.moved_bytes,
    )


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
