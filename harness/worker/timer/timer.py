"""Role `timer`: times one source in a sandboxed process. Its times are evidence; the clock compares them with its own."""

from __future__ import annotations

import gc
import mmap
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from harness.linux import syscalls
from harness.sandbox import sandbox
from harness.wire import limits
from harness.wire.channel import Channel, ChannelClosed
from harness.wire.device import Device
from harness.wire.encoding import ENCODER
from harness.wire.guest_messages import (
    GPU_FAULT,
    OUT_OF_MEMORY,
    CaseTraffic,
    Failed,
    Farewell,
    Hello,
    LeftBehind,
    Load,
    Loaded,
    OutputData,
    Returned,
)
from harness.wire.server_messages import Spawn
from harness.wire.timer_messages import (
    LEAST_IN_BLOCK,
    TIMER_REQUESTS,
    Batch,
    BringBack,
    Done,
    Fetch,
    Play,
    Prepare,
    Prepared,
    Reach,
    Record,
    Recorded,
    Renew,
    Sample,
    Sampled,
    TimerReport,
    TimerRequest,
    count_copies,
)
from harness.worker.candidate import outputs
from harness.worker.candidate.loading import broken, close_doors, failed, import_candidate, parameters_of
from harness.worker.candidate.patches import Snapshot
from harness.worker.kit import arena, candidate_trace, device_memory, gpu
from harness.worker.kit.stopwatch import Stopwatch, host_ms

from .player import NotPlayed, Player
from .stirring import Stirrer
from .taping import NotTaped, taped
from .tuned import Tuning

WARM_CALLS = 3
"""Warm calls on each copy of the inputs, before anything is timed."""
KEPT_BYTES = 1 << 30
"""Device memory that torch's cache may keep between cases, including the buffer that flushes the caches."""
KEPT_OUTPUTS = 2
"""Outputs kept of the last sampled calls, for the clock to fetch."""
_STIRRED = (("half", torch.float16), ("single", torch.float32))


def main(channel: Channel, spawn: Spawn) -> None:
    """Serve one clock until it closes the channel."""
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    torch.set_num_threads(1)
    scratch = Path(spawn.scratch)
    close_doors()
    layers = sandbox.apply(
        scratch, spawn.cpu_limit_s, limits.ADDRESS_SPACE_BYTES, run_programs=False, gpu=True
    )
    assert spawn.device is not None
    gpu.warm(spawn.device)
    with suppress(Exception):  # an error here occurs again in a request, which reports it
        Stopwatch(1 << 20).sample(_do_nothing, 1, cold=True)
        stirrer = Stirrer([{name: torch.zeros(64, 64, device=gpu.HERE).to(kind) for name, kind in _STIRRED}])
        stirrer.stir(0)
        stirrer.settle()
    channel.send(ENCODER.encode(Hello(sandbox=layers)))
    timer = Timer(scratch, spawn.device)
    while True:
        try:
            frame = channel.receive()
        except ChannelClosed:
            return
        request = TIMER_REQUESTS.decode(frame.payload)
        try:
            report = timer.answer(request, frame.descriptors)
        except Exception as error:  # noqa: BLE001 (`answer` catches what the source raises)
            report = broken(request.nonce, error)
        channel.send(ENCODER.encode(report))


class Timer:
    """Times one source, or plays one tape, one case at a time."""

    def __init__(self, scratch: Path, device: Device) -> None:
        self._file = scratch / candidate_trace.NAME
        self._device = device
        self._source = ""
        self._module: ModuleType | None = None
        self._fresh = True
        """Whether the module was never called while launches only compiled."""
        self._snapshot: Snapshot | None = None
        self._tuning = Tuning()
        self._stopwatch: Stopwatch | None = None
        self._sets: list[dict[str, Any]] = []
        """Arguments of each copy of the inputs; adjacent copies have different values."""
        self._memory: list[torch.Tensor] = []
        self._run: Callable[[int], Any] = _unprepared
        """Calls the source on one copy of the inputs."""
        self._player: Player | None = None
        self._stirrer = Stirrer()
        self._stirs = False
        """Whether calls stir the inputs, because other calls use the same values."""
        self._kept: deque[Any] = deque(maxlen=KEPT_OUTPUTS)
        self._at = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._threads = 0
        """The most threads seen running after calls."""

    def answer(self, request: TimerRequest, descriptors: tuple[int, ...]) -> TimerReport:
        """Answer one request. An exception of the source becomes a report too."""
        try:
            match request:
                case Load():
                    return self._load(request)
                case Reach():
                    return _reach(request)
                case Prepare():
                    return self._prepare(request, descriptors)
                case Sample():
                    samples = self._sample(request)
                    self._count_threads()
                    return Sampled(nonce=request.nonce, samples_ms=samples)
                case Batch(kind="capture"):
                    return self._capture(request.nonce)
                case Batch():
                    self._batch(request)
                    self._count_threads()
                    return Done(nonce=request.nonce)
                case Renew():
                    return self._renew(request, descriptors)
                case BringBack():
                    return self._bring_back(request, descriptors)
                case Fetch():
                    return self._fetch(request)
                case Record(nonce=nonce):
                    return self._record(nonce)
                case Play():
                    return self._play(request)
                case Farewell(nonce=nonce):
                    patched = self._snapshot.differences() if self._snapshot is not None else ()
                    self._count_threads()
                    return LeftBehind(nonce=nonce, patched=patched, threads=self._threads, children=0)
        except (SystemExit, AssertionError):
            raise
        except BaseException as error:  # noqa: BLE001 (foreign code may raise anything)
            return failed(request.nonce, error, self._file, self._kind_of(error))

    def _count_threads(self) -> None:
        """Count after each request: a thread that works between calls may have ended before the last request."""
        self._threads = max(self._threads, gpu.running_threads())

    @property
    def _watch(self) -> Stopwatch:
        assert self._stopwatch is not None, "no case was prepared"
        return self._stopwatch

    def _load(self, request: Load) -> Loaded | Failed:
        gpu.start(self._device)
        gpu.build_driver()
        self._tuning.install()
        self._snapshot = Snapshot()
        self._source = request.source
        self._module = import_candidate(self._file, self._source)
        entries = {name: vars(self._module).get(name) for name in request.entry_points}
        missing = [name for name, entry in entries.items() if not callable(entry)]
        if missing:
            message = f"kernel.py defines no function `{missing[0]}`"
            return Failed(
                nonce=request.nonce, kind="missing_entry_point", message=message, trace="", line=None
            )
        return Loaded(
            nonce=request.nonce,
            parameters={name: parameters_of(entry) for name, entry in entries.items() if callable(entry)},
        )

    def _prepare(self, request: Prepare, descriptors: tuple[int, ...]) -> Prepared:
        self._forget()
        self._tuning.begin(request.chosen)
        self._run = self._play_on
        if self._player is None:
            if not request.ahead and not self._fresh:
                self._import_again()
            entry = getattr(self._module, request.entry_point)
            self._run = lambda at: entry(**self._sets[at])
        if request.ahead:
            self._compile(request, descriptors)
            return Prepared(nonce=request.nonce, call_ms=0.0, peak_bytes=0, configs={})
        self._make_copies(request, descriptors)
        if self._stopwatch is None:
            self._stopwatch = Stopwatch(request.flush_bytes)
        for number in range(WARM_CALLS * len(self._sets)):
            self._call(number)
        torch.cuda.synchronize()
        self._kept.clear()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        self._call(0)
        torch.cuda.synchronize()
        peak = torch.cuda.max_memory_allocated() - before
        call_ms = host_ms(self._call)
        self._watch.leads_by(call_ms)
        return Prepared(
            nonce=request.nonce, call_ms=call_ms, peak_bytes=peak, configs=dict(self._tuning.chosen)
        )

    def _compile(self, request: Prepare, descriptors: tuple[int, ...]) -> None:
        """Compile a case before the lease. Inputs are not read, so uninitialised memory is enough."""
        for descriptor in descriptors:
            os.close(descriptor)
        memory = torch.empty(request.arena_bytes, dtype=torch.uint8, device=gpu.HERE)
        inputs = {argument.name: gpu.view(memory, argument) for argument in request.arguments}
        self._sets = [inputs]
        self._fresh = False
        with self._tuning.ahead():
            self._run(0)
        self._sets = []

    def _import_again(self) -> None:
        """Forget what the module may have stored during calls that ran no kernels."""
        self._module = import_candidate(self._file, self._source)
        self._fresh = True

    def _sample(self, request: Sample) -> tuple[float, ...]:
        ready = self._player.ready if self._player is not None else self._stir
        samples = self._watch.sample(self._call, request.count, cold=request.cold, ready=ready)
        self._stirrer.settle()
        return samples

    def _stir(self) -> None:
        if self._stirs:
            self._stirrer.stir((self._at + 1) % len(self._sets))

    def _make_copies(self, request: Prepare, descriptors: tuple[int, ...]) -> None:
        least = len(request.handles) or len(descriptors)
        copies = count_copies(least, request.arena_bytes, request.rotate_bytes)
        self._stirs = True
        self._memory = [
            torch.empty(request.arena_bytes, dtype=torch.uint8, device=gpu.HERE) for _ in range(copies)
        ]
        self._sets = [
            {argument.name: gpu.view(memory, argument) for argument in request.arguments}
            for memory in self._memory
        ]
        self._stirrer = Stirrer(self._sets)
        for number, handle in enumerate(request.handles):
            with device_memory.opened(handle, request.arena_bytes) as source:
                self._fill(source, number, least)
        for number, descriptor in enumerate(descriptors):
            self._fill(_read(descriptor, request.arena_bytes), number, least)

    def _fill(self, source: torch.Tensor, first: int = 0, step: int = 1) -> None:
        for memory in self._memory[first::step]:
            memory.copy_(source)
        torch.cuda.synchronize()

    def _renew(self, request: Renew, descriptors: tuple[int, ...]) -> Done:
        self._stirs = False  # the oracle's outputs are for exactly these values
        self._kept = deque(maxlen=LEAST_IN_BLOCK)  # the clock may fetch the output of any of the next calls
        length = self._memory[0].numel()
        for descriptor in descriptors:
            self._fill(_read(descriptor, length))
        if request.handle:
            with device_memory.opened(request.handle, length) as source:
                self._fill(source)
        return Done(nonce=request.nonce)

    def _bring_back(self, request: BringBack, descriptors: tuple[int, ...]) -> Done:
        torch.cuda.synchronize()
        memory = self._memory[request.copy]
        for descriptor in descriptors:
            _write(descriptor, memory)
        if request.handle:
            with device_memory.opened(request.handle, memory.numel()) as returned:
                returned.copy_(memory)
        return Done(nonce=request.nonce)

    def _call(self, number: int) -> object:
        """Call the source on the next copy of the inputs and keep the output."""
        del number
        self._at = (self._at + 1) % len(self._sets)
        value = self._run(self._at)
        self._kept.append(value)
        return value

    def _batch(self, request: Batch) -> None:
        if request.kind == "graph":
            assert self._graph is not None
            for _ in range(request.count):
                self._graph.replay()
        for _ in range(0 if request.kind == "graph" else request.count):
            if request.kind != "plain":
                self._watch.around(cold=request.cold)
            if request.kind != "around":
                self._call(0)
        torch.cuda.synchronize()

    def _capture(self, nonce: str) -> Done:
        """Capture a graph of one call, on the first copy: a graph of all copies would hide where the copies lie."""
        graph = torch.cuda.CUDAGraph()
        try:
            with _captured(graph):
                self._kept.append(self._run(0))
        except Exception as error:  # noqa: BLE001 (many calls cannot be captured; the reason is reported)
            torch.cuda.synchronize()
            return Done(nonce=nonce, problem=str(error).partition("\n")[0] or type(error).__name__)
        self._graph = graph
        return Done(nonce=nonce)

    def _fetch(self, request: Fetch) -> Returned:
        torch.cuda.synchronize()
        fetched = len(self._kept) - 1 - request.back
        structure, parts = outputs.parts_of(self._kept[fetched])
        other_outputs = [
            tensor
            for number, value in enumerate(self._kept)
            if number != fetched
            for tensor in outputs.plain(outputs.parts_of(value)[1])
        ]
        self._kept = deque(maxlen=KEPT_OUTPUTS)
        return Returned(
            nonce=request.nonce,
            structure=structure,
            outputs=tuple(
                _output(part, *place, other_outputs)
                for part, place in zip(parts, request.parts, strict=False)
            ),
            operators=(),
            host_elements=0,
            kernels=(),
            traffic=CaseTraffic("", 0, 0, 0, 0, 0, 0, 0, ()),
            unsupported="",
            changed_output=False,
        )

    def _record(self, nonce: str) -> Recorded:
        try:
            tape = taped(lambda: self._run(0), self._memory[0])
        except NotTaped as why:
            return Recorded(nonce=nonce, tape=None, why_not=str(why))
        return Recorded(nonce=nonce, tape=tape)

    def _play(self, request: Play) -> Done:
        self._forget()
        gpu.start(self._device)
        try:
            self._player = Player(request.tape)
        except NotPlayed as why:
            return Done(nonce=request.nonce, problem=str(why))
        return Done(nonce=request.nonce)

    def _play_on(self, at: int) -> Any:
        assert self._player is not None
        return self._player(self._memory[at])

    def _forget(self) -> None:
        self._graph = None
        self._kept.clear()
        self._sets.clear()
        self._memory.clear()
        if torch.cuda.memory_reserved() > KEPT_BYTES:
            torch.cuda.empty_cache()

    def _kind_of(self, error: BaseException) -> str:
        """The kind of a source's error, as a guest reports it: after a fault the context is lost and `synchronize` fails."""
        if isinstance(error, torch.OutOfMemoryError):
            return OUT_OF_MEMORY
        try:
            torch.cuda.synchronize()
        except RuntimeError:
            return GPU_FAULT
        return "exception"


@contextmanager
def _captured(graph: torch.cuda.CUDAGraph) -> Iterator[None]:
    """Like `torch.cuda.graph` without its garbage collection and emptying of torch's cache, which take tens of milliseconds."""
    torch.cuda.synchronize()
    collects = gc.isenabled()
    gc.disable()  # freeing a tensor during the capture would end it
    try:
        with torch.cuda.stream(torch.cuda.Stream()):  # type: ignore[no-untyped-call]
            graph.capture_begin()
            try:
                yield
            finally:
                graph.capture_end()
    finally:
        if collects:
            gc.enable()


def _reach(request: Reach) -> Done:
    try:
        with device_memory.opened(request.handle, request.size_bytes) as memory:
            memory.sum()
    except device_memory.NotShared as error:
        return Done(nonce=request.nonce, problem=str(error))
    return Done(nonce=request.nonce)


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


def _output(part: Any, start: int, count: int, other_outputs: Sequence[torch.Tensor]) -> OutputData:
    """`count` elements of an output, which may share no memory with the outputs of other calls."""
    kind = type(part)
    name = "torch.Tensor" if kind is torch.Tensor else f"{kind.__module__}.{kind.__qualname__}"
    problem = outputs.problem(part) if isinstance(part, torch.Tensor) else ""
    if not isinstance(part, torch.Tensor) or problem:
        return OutputData(type=name, problem=problem)
    elements = part.detach().contiguous().flatten()[start : start + count]
    return OutputData(
        type=name,
        dtype=arena.dtype_name(part.dtype),
        shape=tuple(part.shape),
        data=arena.storage_bytes(elements) if elements.numel() else b"",
        aliases="the output of another call"
        if any(outputs.share_memory(part, output) for output in other_outputs)
        else "",
        from_kernel=True,
    )


def _unprepared(_: int) -> None:
    raise AssertionError("no case was prepared")


def _do_nothing(_: int) -> None:
    """A call that only loads the kernels that the stopwatch launches around a call."""
