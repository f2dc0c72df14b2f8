"""The guest: runs one candidate on the judge's inputs, in a sandbox. The judge trusts only the output bytes that it returns."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from harness.wire import limits
from harness.wire.channels.channel import Channel
from harness.wire.channels.stack_samples import StackSampler
from harness.wire.messages.guest import (
    Ask,
    Call,
    Failed,
    LeftBehind,
    Load,
    Loaded,
    OutputData,
    Plain,
    Returned,
)
from harness.wire.messages.requests import RequestMessage, WorkerAnswer
from harness.wire.messages.server import Spawn
from harness.worker.candidate import outputs, patches
from harness.worker.candidate.foreign_kernels import ForeignKernels
from harness.worker.candidate.loading import (
    confine,
    failed,
    import_written,
    missing_entry_points,
    parameters_of,
    write_candidate,
)
from harness.worker.candidate.patches import Snapshot
from harness.worker.candidate.serving import serve
from harness.worker.interpreter.traffic import Observation
from harness.worker.kit import arena, candidate_trace
from harness.worker.kit.in_place import taking_parts, with_changed_inputs, without_plain
from harness.worker.kit.poison import KINDS
from harness.worker.triton_hooks import warm

from . import audit, watch
from .gpu_runner import GpuRunner
from .runner import InterpreterRunner, Runner


def main(channel: Channel, spawn: Spawn) -> None:
    """Serve one judge until it closes the channel."""
    layers = confine(spawn, limits.ADDRESS_SPACE_BYTES)
    if spawn.device is not None:
        warm.warm_gpu(spawn.device)
    runner = InterpreterRunner() if spawn.device is None else GpuRunner(spawn.device)
    serve(channel, layers, Guest(Path(spawn.scratch), runner).answer)


@dataclass(slots=True)
class EntryRun:
    """A call of the entry point that returned, and what was observed during it."""

    value: Any
    inputs: Mapping[str, torch.Tensor]
    observation: Observation
    operators: watch.OperatorWatch
    changed_state: tuple[str, ...]
    plain: tuple[Plain, ...] | None


class Guest:
    """Holds one candidate and the outputs of its last calls."""

    def __init__(self, scratch: Path, runner: Runner) -> None:
        self._file = scratch / candidate_trace.NAME
        self._sampler = StackSampler(scratch, in_driver=isinstance(runner, GpuRunner))
        self._runner = runner
        self._foreign_kernels = ForeignKernels(str(self._file))
        self._module: ModuleType | None = None
        self._snapshot: Snapshot | None = None
        self._kept = outputs.Kept()
        self._last_parameters: dict[str, torch.nn.Parameter] = {}

    def answer(self, message: RequestMessage, descriptors: tuple[int, ...]) -> WorkerAnswer:
        """The answer to one request. An exception of the candidate is an answer too."""
        match message.body:
            case Load() as request:
                with self._sampler.sampling():
                    return self._load(request)
            case Call() as request:
                with self._sampler.sampling():
                    return self._call(request, descriptors[0] if descriptors else None)
            case Ask.FAREWELL:
                return self._farewell()
            case other:
                raise TypeError(f"a guest has no answer to {type(other).__name__}")

    def _load(self, request: Load) -> Loaded | Failed:
        """Prepare the watch over the candidate, then import it; return its parameters.

        An exception of the import, and a missing entry point, become `Failed`. `SystemExit` ends the process.
        """
        watch.count_host_elements()
        self._runner.prepare(request)
        self._foreign_kernels.watch()
        not_reached = self._runner.reach(request.reach) if request.reach is not None else ""
        self._snapshot = Snapshot()
        write_candidate(self._file, request.source)
        audit.install(str(self._file))
        try:
            with self._runner.importing() as observation, self._watching_import(observation):
                self._module = import_written(self._file)
        except SystemExit:  # the judge sees the exit status
            raise
        except BaseException as error:  # noqa: BLE001 (foreign code may raise anything)
            return failed(error, self._file)
        entries: dict[str, Any] = {name: vars(self._module).get(name) for name in request.entry_points}
        missing = [name for name, entry in entries.items() if not callable(entry)]
        if missing:
            return missing_entry_points(missing)
        parameters = {name: parameters_of(entry) for name, entry in entries.items()}
        return Loaded(parameters=parameters, not_reached=not_reached)

    def _watching_import(self, observation: Observation | None) -> AbstractContextManager[object]:
        """Follows what the import writes to memory; only the calls decide what may run."""
        if observation is None:
            return nullcontext()
        return watch.OperatorWatch(observation, str(self._file))

    def _call(self, request: Call, descriptor: int | None) -> Returned | Failed:
        """Run the entry point on the judge's inputs and report its outputs, or the exception that it raised.

        Outputs that are not inputs are kept until the next call, which must not change them.
        """
        arguments = self._runner.open(descriptor, request)
        if not request.again:
            self._last_parameters = {name: torch.nn.Parameter(arguments[name]) for name in request.parameters}
        arguments = arguments | self._last_parameters
        run = self._run(request, arguments)
        if isinstance(run, Failed):
            return run
        report = self._returned(request, run)
        self._runner.give_back()
        tensors = outputs.plain(outputs.parts_of(run.value)[1])
        # The judge fills the memory of inputs again for the next call, so that it may change.
        self._kept.keep(tuple(tensor for tensor in tensors if not outputs.in_inputs(tensor, run.inputs)))
        return report

    def _run(self, request: Call, arguments: dict[str, Any]) -> EntryRun | Failed:
        """Run the candidate's entry point under observation; no other code calls it.

        Returns its result with what was observed, or the failure that it raised. If the device cannot judge the call, that is
        in the observation, and what the call raised does not count. `SystemExit` ends the process.
        """
        inputs = {name: value for name, value in arguments.items() if isinstance(value, torch.Tensor)}
        entry = taking_parts(getattr(self._module, request.entry_point), arguments)
        value, plain = None, None
        changed_state: tuple[str, ...] = ()
        self._foreign_kernels.take()
        with self._runner.observe(inputs) as observation:
            observation.zero_lanes, observation.order = request.zero_lanes, request.order
            poison = KINDS[request.poison % len(KINDS)]
            operators = watch.OperatorWatch(observation, str(self._file), poison)
            try:
                with torch.set_grad_enabled(not request.no_gradients), operators:
                    named = {name: arguments[name] for name in arguments if name not in request.positional}
                    state = patches.read_settings()
                    value = entry(*(arguments[name] for name in request.positional), **named)
                    changed_state = patches.changed_settings(state)
                    value, plain = without_plain(value, request.returns)
                    value = with_changed_inputs(value, request.changed_inputs, inputs)
                observation.unfinished = self._runner.settle(outputs.plain(outputs.parts_of(value)[1]))
            except SystemExit:  # the judge sees the exit status
                raise
            except BaseException as error:  # noqa: BLE001 (foreign code may raise anything)
                if observation.unsupported is None:
                    kind = "waits" if observation.waits else self._runner.kind_of(error)
                    return failed(error, self._file, kind)
        return EntryRun(value, inputs, observation, operators, changed_state, plain)

    def _returned(self, request: Call, run: EntryRun) -> Returned:
        """Return the report on a call: its outputs, and all that was observed while it ran."""
        structure, parts = outputs.parts_of(run.value)
        for part in outputs.plain(parts):
            run.observation.check_read(part, "the caller of the entry point")
        return Returned(
            structure=structure,
            outputs=tuple(self._output(part, run) for part in parts),
            operators=run.operators.operators(),
            host_elements=run.operators.host_elements,
            copies=run.operators.copies,
            copying_line=run.operators.copying_line,
            kernels=tuple(dict.fromkeys(launch.kernel for launch in run.observation.launches)),
            traffic=run.observation.traffic(request.case),
            missed_stores=tuple(run.observation.missed_stores),
            undefined_lanes=tuple(run.observation.undefined_lanes),
            race=run.observation.race,
            findings=run.observation.findings(request.case),
            unsupported=run.observation.unsupported or "",
            changed_output=self._kept.changed(),
            changed_state=run.changed_state,
            unfinished=run.observation.unfinished,
            plain=run.plain,
            foreign_kernels=self._foreign_kernels.take(),
            stored_inputs=tuple(
                name
                for name, tensor in run.inputs.items()
                if run.observation.known is not None and run.observation.wrote(tensor)
            ),
            unwatched=run.observation.unwatched,
        )

    def _output(self, part: Any, run: EntryRun) -> OutputData:
        """Return one part of a result for the report. Only a plain, dense tensor has data.

        The data goes into the judge's memory if there is room, else into the report.
        """
        kind = type(part)
        name = "torch.Tensor" if kind is torch.Tensor else f"{kind.__module__}.{kind.__qualname__}"
        if not isinstance(part, torch.Tensor):
            return OutputData(type=name)
        problem = outputs.problem(part)
        if problem:
            return OutputData(type=name, problem=problem)
        copies = run.operators.host_copies
        detached = part.detach().contiguous()
        at = self._runner.deliver(detached) if detached.numel() else None
        return OutputData(
            type=name,
            dtype=arena.dtype_name(part.dtype),
            shape=tuple(part.shape),
            data=arena.storage_bytes(detached) if detached.numel() and at is None else b"",
            at=at,
            aliases=outputs.aliases(part, run.inputs, self._kept),
            copied=copies.count(part) if copies is not None else 0,
            from_kernel=part.numel() == 0 or run.operators.from_kernel(part),
        )

    def _farewell(self) -> LeftBehind:
        assert self._snapshot is not None
        return LeftBehind(
            patched=self._snapshot.differences(), threads=self._runner.threads(), children=_own_children()
        )


def _own_children() -> int:
    """Number of direct child processes that the sandbox lets the guest see; the warden knows the true number."""
    listings = Path("/proc/self/task").glob("*/children")
    return sum(len(listing.read_text(encoding="ascii").split()) for listing in listings)
