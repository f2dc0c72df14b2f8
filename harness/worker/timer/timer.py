"""Role `timer`: times sources or launch tapes in a sandboxed process.

The times of a process with a source are evidence, which the clock compares with its own. No foreign code runs in a process
that plays tapes only, a *player*, so its times are proof.
"""

from __future__ import annotations

import mmap
import os
import random
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from harness.wire import limits
from harness.wire.calls.launch_tape import Tape
from harness.wire.channels.channel import Channel
from harness.wire.device import Device
from harness.wire.messages.guest import (
    EXCEPTION,
    GPU_FAULT,
    OUT_OF_MEMORY,
    Ask,
    Failed,
    FailedKind,
    LeftBehind,
    Load,
    Loaded,
    Returned,
    SharedAt,
)
from harness.wire.messages.requests import RequestMessage, WorkerAnswer, WorkerRequest
from harness.wire.messages.server import Spawn
from harness.wire.messages.timer import (
    LEAST_IN_BLOCK,
    MOST_LAUNCHES,
    SETS,
    Batch,
    BringBack,
    Done,
    Fetch,
    Prepare,
    Prepared,
    Renew,
    Rung,
    TakeSample,
    TapedCall,
    count_copies,
)
from harness.worker.candidate.foreign_kernels import ForeignKernels
from harness.worker.candidate.loading import (
    confine,
    failed,
    import_candidate,
    missing_entry_points,
    parameters_of,
)
from harness.worker.candidate.patches import Snapshot
from harness.worker.candidate.serving import serve
from harness.worker.kit import candidate_trace, device_memory, gpu
from harness.worker.kit.call_graph import NotCaptured
from harness.worker.kit.call_series import CallSeries, make_series
from harness.worker.kit.in_place import taking_parts, with_changed_inputs, without_plain
from harness.worker.kit.stopwatch import Stopwatch, host_ms
from harness.worker.replay.loaded_tape import LoadedTape, NotPlayed
from harness.worker.replay.taping import NotTaped, taped
from harness.worker.triton_hooks import warm
from harness.worker.triton_hooks.autotuning import Mode, policy
from harness.worker.triton_hooks.config_race import ConfigRace
from harness.worker.triton_hooks.launches import Launch, handle_launches

from . import fetched_outputs, served_call
from .input_copies import InputCopies, Stirrer

WARM_CALLS = 1
"""Warm calls on each copy of the inputs, before the trial calls and anything that is timed."""
KEPT_BYTES = 1 << 30
"""Device memory that torch's cache may keep between cases, including the buffer that flushes the caches."""
PLACES, PLACE_BYTES = 32, 2 << 20
"""Choices of a tape's place in memory, and the distance between them: a page of the device."""
KEPT_OUTPUTS = 2
"""Outputs kept of the last sampled calls, for the clock to fetch."""
_STIRRED = (torch.int16, torch.int32)


def main(channel: Channel, spawn: Spawn) -> None:
    """Serve one clock until it closes the channel: time a source, or play tapes, in one or more seats.

    Before the first request, the kernels that the timing itself launches are loaded.
    """
    layers = confine(spawn, limits.ADDRESS_SPACE_BYTES)
    assert spawn.device is not None
    warm.warm_gpu(spawn.device)
    with suppress(Exception):  # an error here occurs again in a request, which reports it
        Stopwatch(1 << 20).sample(_do_nothing, 1, cold=True)
        stirrer = Stirrer()
        stirrer.stir([torch.zeros(1, 64, 64, dtype=dtype, device=gpu.HERE) for dtype in _STIRRED])
        stirrer.settle()
    serve(channel, layers, Seats(Path(spawn.scratch), spawn.device).answer)


class Seats:
    """The seats of this process, by number."""

    def __init__(self, scratch: Path, device: Device) -> None:
        self._scratch = scratch
        self._device = device
        self._seats: dict[int, Seat] = {}

    def answer(self, message: RequestMessage, descriptors: tuple[int, ...]) -> WorkerAnswer:
        """Answer a request: `Ask.CLEAR` drops all seats, every other request goes to the seat of its number.

        A new number makes a new seat. A seat times one source or plays one tape. Exceptions of a source become answers.
        """
        if message.body is not Ask.CLEAR:
            seat = self._seats.setdefault(message.seat, Seat(self._scratch, self._device))
            return seat.answer(message.body, descriptors)
        for seat in self._seats.values():
            seat.leave()
        self._seats.clear()
        torch.cuda.empty_cache()
        return Done()


class Seat:
    """One seat: times one source, or plays one tape, one case at a time."""

    def __init__(self, scratch: Path, device: Device) -> None:
        self._file = scratch / candidate_trace.NAME
        self._foreign_kernels = ForeignKernels(str(self._file))
        self._device = device
        self._source = ""
        self._module: ModuleType | None = None
        self._fresh = True
        """Whether the module was never called while launches only compiled."""
        self._snapshot: Snapshot | None = None
        self._stopwatch: Stopwatch | None = None
        self._prepared: Prepare | None = None
        self._host_ms = 0.0
        """The host's time for a call of the prepared case."""
        self._inputs: InputCopies | None = None
        """Adjacent copies have different values."""
        self._run: Callable[[int], Any] = _unprepared
        """Calls the source on one copy of the inputs."""
        self._tape: LoadedTape | None = None
        self._spacer: torch.Tensor | None = None
        """Memory of random size: the memory of the next tape gets other addresses."""
        self._stirrer = Stirrer()
        self._stirs = False
        """Whether calls stir the inputs, because other calls use the same values."""
        self._kept: deque[Any] = deque(maxlen=KEPT_OUTPUTS)
        """Outputs of the last calls, while there is no series."""
        self._kept_calls = KEPT_OUTPUTS
        """How many of them are kept."""
        self._at = 0
        """The copy of the inputs that the last call used."""
        self._series: CallSeries | None = None
        self._threads = 0
        """The most threads seen running after calls."""

    def answer(self, request: WorkerRequest, descriptors: tuple[int, ...]) -> WorkerAnswer:
        """Answer one request.

        An exception of the source becomes an answer too; `SystemExit` and `AssertionError` are raised.
        """
        try:
            match request:
                case Load():
                    return self._load(request)
                case SharedAt():
                    return _reach(request)
                case Prepare():
                    return self._prepare(request, descriptors)
                case TakeSample(replays=True):
                    return self._replay(request)
                case TakeSample():
                    samples = self._sample(request)
                    self._count_threads()
                    return Done(samples_ms=samples)
                case Rung():
                    return self._capture(request)
                case Batch():
                    self._batch(request)
                    self._count_threads()
                    return Done()
                case Renew():
                    return self._renew(request, descriptors)
                case BringBack():
                    return self._bring_back(request, descriptors)
                case Fetch():
                    return self._fetch(request)
                case Ask.RECORD:
                    return self._record()
                case Ask.SERVE:
                    return self._try_serving()
                case Tape():
                    return self._play(request)
                case Ask.FAREWELL:
                    patched = self._snapshot.differences() if self._snapshot is not None else ()
                    self._count_threads()
                    return LeftBehind(
                        patched=patched,
                        threads=self._threads,
                        children=0,
                        foreign_kernels=self._foreign_kernels.take(),
                    )
                case other:
                    raise AssertionError(f"a timer has no answer to {type(other).__name__}")
        except (SystemExit, AssertionError):
            raise
        except BaseException as error:  # noqa: BLE001 (foreign code may raise anything)
            return failed(error, self._file, self._kind_of(error))

    def leave(self) -> None:
        """Drop the case and the tape, with their memory and kernels."""
        self._forget()
        self._spacer = None
        if self._tape is not None:
            self._tape.unload()
            self._tape = None

    def _count_threads(self) -> None:
        """Count after each request: a thread that works between calls may have ended before the last request."""
        self._threads = max(self._threads, gpu.running_threads())

    @property
    def _watch(self) -> Stopwatch:
        assert self._stopwatch is not None, "no case was prepared"
        return self._stopwatch

    @property
    def _copies(self) -> InputCopies:
        assert self._inputs is not None, "no case was prepared"
        return self._inputs

    @property
    def _captured(self) -> CallSeries:
        assert self._series is not None, "no series was captured"
        return self._series

    def _load(self, request: Load) -> Loaded | Failed:
        """Import the source, and from now on watch what it launches and patches. Call it once per process.

        A missing entry point becomes `Failed`. Raises what the source raises.
        """
        warm.start_gpu(self._device)
        policy.mode, policy.race = Mode.FIXED, ConfigRace()
        policy.install()
        handle_launches(_launch_or_compile)
        self._foreign_kernels.watch()
        self._snapshot = Snapshot()
        self._source = request.source
        self._module = import_candidate(self._file, self._source)
        entries = {name: vars(self._module).get(name) for name in request.entry_points}
        missing = [name for name, entry in entries.items() if not callable(entry)]
        if missing:
            return missing_entry_points(missing)
        return Loaded(
            parameters={name: parameters_of(entry) for name, entry in entries.items() if callable(entry)}
        )

    def _prepare(self, request: Prepare, descriptors: tuple[int, ...]) -> Prepared:
        """Make a case ready for timing: its inputs on the device, warm calls, and a call that shows time and peak memory.

        With `request.ahead` the case's launches are only compiled. After that, the source is imported again: it must not keep
        anything of calls that ran no kernel. Raises what the source raises.
        """
        self._forget()
        policy.begin(request.chosen)
        if policy.race is not None:
            policy.race.nodes = MOST_LAUNCHES if request.graph_nodes is None else request.graph_nodes
        self._run = self._play_on
        if self._tape is None:
            if not request.ahead and not self._fresh:
                # Forget what the module may have stored during calls that ran no kernels.
                self._module, self._fresh = import_candidate(self._file, self._source), True
            entry = taking_parts(getattr(self._module, request.entry_point), request.arguments)
            changed, returns = request.changed_inputs, request.returns
            self._run = lambda at: entry(**self._copies.arguments[at])
            if changed or returns:
                self._run = lambda at: with_changed_inputs(
                    without_plain(entry(**self._copies.arguments[at]), returns)[0],
                    changed,
                    self._copies.arguments[at],
                )
        if request.ahead:
            self._compile(request, descriptors)
            return Prepared(call_ms=0.0, peak_bytes=0, configs={})
        self._make_copies(request, descriptors)
        if self._stopwatch is None:
            self._stopwatch = Stopwatch(request.flush_bytes)
        self._stopwatch.releases_lines = request.releases_lines
        for number in range(WARM_CALLS * len(self._copies)):
            self._call(number)
        torch.cuda.synchronize()
        self._kept.clear()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        self._call(0)
        torch.cuda.synchronize()
        peak = torch.cuda.max_memory_allocated() - before
        self._host_ms = host_ms(self._call)
        self._watch.leads_by(self._host_ms)
        return Prepared(call_ms=self._host_ms, peak_bytes=peak, configs=policy.chosen)

    def _compile(self, request: Prepare, descriptors: tuple[int, ...]) -> None:
        """Compile a case's launches without running them, before the lease. Raises what the source raises.

        Inputs are not read, so uninitialised memory is enough. Descriptors are closed unused.
        """
        for descriptor in descriptors:
            os.close(descriptor)
        self._inputs = InputCopies(request.arguments, request.arena_bytes, 1)
        self._fresh = False
        with policy.compiling():
            self._run(0)
        self._inputs = None

    def _sample(self, request: TakeSample) -> tuple[float, ...]:
        """Return the times of `count` calls in milliseconds, each between two events. A series that was captured is dropped.

        Between calls of a source, some inputs change; a tape gets ready instead.
        """
        self._drop_series()
        ready = self._tape.ready if self._tape is not None else self._stir
        samples = self._watch.sample(self._call, request.count, cold=request.cold, ready=ready)
        self._stirrer.settle()
        return samples

    def _stir(self) -> None:
        if self._stirs:
            self._stirrer.stir(self._copies.fractional_rows((self._at + 1) % len(self._copies)))

    def _make_copies(self, request: Prepare, descriptors: tuple[int, ...]) -> None:
        least = len(request.handles) or len(descriptors)
        copies = count_copies(least, request.arena_bytes, request.rotate_bytes)
        self._prepared = request
        self._stirs = True
        self._inputs = InputCopies(request.arguments, request.arena_bytes, copies)
        for number, handle in enumerate(request.handles):
            with device_memory.opened(handle, request.arena_bytes) as source:
                self._inputs.fill(source, number, least)
        for number, descriptor in enumerate(descriptors):
            self._inputs.fill(_read(descriptor, request.arena_bytes), number, least)

    def _capture(self, request: Rung) -> Done:
        """Capture calls on as many copies of the inputs, with the values of the copies so far by turns."""
        prepared, before = self._prepared, self._copies
        assert prepared is not None
        self._drop_series()
        if len(before) != request.launches:
            self._inputs = InputCopies(prepared.arguments, prepared.arena_bytes, request.launches)
            for number, memory in enumerate(before.memory[:SETS]):
                self._inputs.fill(memory, number, SETS)
        self._at = 0
        try:
            tape = self._tape
            run = self._run if tape is None else lambda at: tape.play(self._copies.memory[at])
            self._series = make_series(request.method, run, request.launches, request.nodes)
        except NotCaptured as why:
            return Done(problem=str(why))
        return Done()

    def _replay(self, request: TakeSample) -> Done:
        """Return times of the captured calls in milliseconds: the mean of a call in each of `count` replays."""
        series = self._captured
        rows = self._copies.fractional_rows() if self._stirs else []
        samples = series.sample(self._watch, request.count, lambda: self._stirrer.stir(rows))
        self._stirrer.settle()
        return Done(samples_ms=samples)

    def _renew(self, request: Renew, descriptors: tuple[int, ...]) -> Done:
        """Replace the values of all copies of the inputs by values that the oracle answered.

        From now on, more outputs are kept.
        """
        self._stirs = False  # the oracle's outputs are for exactly these values
        self._kept_calls = LEAST_IN_BLOCK  # the clock fetches from the outputs of the next calls
        self._kept = deque(maxlen=LEAST_IN_BLOCK)
        length = self._copies.memory[0].numel()
        for descriptor in descriptors:
            self._copies.fill(_read(descriptor, length))
        if request.handle:
            with device_memory.opened(request.handle, length) as source:
                self._copies.fill(source)
        return Done()

    def _bring_back(self, request: BringBack, descriptors: tuple[int, ...]) -> Done:
        """Write the current bytes of one copy of the inputs into the judge's memory, or into arenas, which are closed."""
        torch.cuda.synchronize()
        memory = self._copies.memory[request.copy]
        for descriptor in descriptors:
            _write(descriptor, memory)
        if request.handle:
            with device_memory.opened(request.handle, memory.numel()) as returned:
                returned.copy_(memory)
        return Done()

    def _call(self, number: int) -> object:
        """Call the source on the next copy of the inputs and keep the output."""
        del number
        self._at = (self._at + 1) % len(self._copies)
        value = self._run(self._at)
        self._kept.append(value)
        return value

    def _batch(self, request: Batch) -> None:
        """Make `count` calls, or only what surrounds a call; return when the device is done. The clock takes the time."""
        if request.kind == "graph":
            for _ in range(request.count):
                self._captured.replay()
        for _ in range(0 if request.kind == "graph" else request.count):
            if request.kind != "plain":
                self._watch.around(cold=request.cold)
            if request.kind != "around":
                self._call(0)
        torch.cuda.synchronize()

    def _fetch(self, request: Fetch) -> Returned:
        """Return parts of the outputs of the last calls, for the clock to check.

        Only the last few outputs are kept from now on.
        """
        torch.cuda.synchronize()
        outputs = self._kept if self._series is None else self._series.outputs
        returned = fetched_outputs.returned(request, tuple(outputs))
        self._kept_calls = KEPT_OUTPUTS
        self._kept = deque(maxlen=KEPT_OUTPUTS)
        return returned

    def _record(self) -> TapedCall:
        """Make one call on the first copy of the inputs, and return the tape of its launches, or why there is none."""
        try:
            tape = taped(lambda: self._run(0), self._copies.memory[0])
        except NotTaped as why:
            return TapedCall(why_not=str(why))
        return TapedCall(tape=tape)

    def _try_serving(self) -> TapedCall:
        """Make calls as a server makes them; return what they show. Overwrites the first copy of the inputs."""
        memory, other_values = self._copies.memory[:2]
        return TapedCall(
            served=served_call.try_serving(
                lambda: self._run(0), memory, other_values, self._watch, host_ms=self._host_ms
            )
        )

    def _play(self, tape: Tape) -> Done:
        """Load a tape in the place of the last one and its case. A refused tape becomes the answer's `problem`.

        The tape's memory begins at a random place, so that the addresses differ from tape to tape.
        """
        gpu.start(self._device)
        self.leave()
        torch.cuda.empty_cache()
        self._spacer = torch.empty(random.randrange(PLACES) * PLACE_BYTES, dtype=torch.uint8, device=gpu.HERE)
        try:
            self._tape = LoadedTape(tape)
        except NotPlayed as why:
            return Done(problem=str(why))
        return Done()

    def _play_on(self, at: int) -> Any:
        assert self._tape is not None
        return self._tape(self._copies.memory[at])

    def _drop_series(self) -> None:
        if self._series is not None:
            self._series = None
            self._kept = deque(maxlen=self._kept_calls)
            self._give_back()

    def _forget(self) -> None:
        """Drop the prepared case: its inputs, captured calls and outputs. Source and tape stay."""
        self._kept_calls = KEPT_OUTPUTS
        self._series = None
        self._kept = deque(maxlen=KEPT_OUTPUTS)
        self._inputs = None
        self._give_back()

    def _give_back(self) -> None:
        """Give memory back to the device, where several timers need some."""
        if torch.cuda.memory_reserved() > KEPT_BYTES:
            torch.cuda.empty_cache()

    def _kind_of(self, error: BaseException) -> FailedKind:
        """Return the kind of an error that the candidate's code raised; the verdict follows from the kind.

        A fault of a kernel, such as an access outside its memory, ends the process's use of the GPU. Then every later CUDA call
        raises an error, also `synchronize`.
        """
        if isinstance(error, torch.OutOfMemoryError):
            return OUT_OF_MEMORY
        try:
            torch.cuda.synchronize()
        except RuntimeError:
            return GPU_FAULT
        return EXCEPTION


def _launch_or_compile(launch: Launch) -> Any:
    """Before the lease, launches only compile."""
    return launch.go_on(warmup=launch.warmup or policy.mode is Mode.ALL)


def _reach(request: SharedAt) -> Done:
    """Try to open the judge's memory and to read it; if that fails, the answer says why."""
    try:
        with device_memory.opened(request.handle, request.size_bytes) as memory:
            memory.sum()
    except device_memory.NotShared as error:
        return Done(problem=str(error))
    return Done()


def _read(descriptor: int, length: int) -> torch.Tensor:
    """Read an arena's bytes; closes the descriptor."""
    with mmap.mmap(descriptor, length, prot=mmap.PROT_READ) as memory:
        os.close(descriptor)
        host = torch.empty(length, dtype=torch.uint8)
        host.numpy()[:] = memoryview(memory)
    return host


def _write(descriptor: int, memory: torch.Tensor) -> None:
    """Write device memory into an arena; closes the descriptor."""
    with mmap.mmap(descriptor, memory.numel()) as arena_memory:
        os.close(descriptor)
        arena_memory[:] = memory.cpu().numpy().data


def _unprepared(_: int) -> None:
    raise AssertionError("no case was prepared")


def _do_nothing(_: int) -> None:
    """A call that only loads the kernels that the stopwatch launches around a call."""
