"""A timer: times one source in a process of its own, sandboxed. Its times are evidence; the clock holds them against its own."""

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
from harness.worker.candidate.integrity import Snapshot
from harness.worker.candidate.loading import broken, close_doors, failed, import_candidate, parameters_of
from harness.worker.kit import arena, candidate_trace, device_memory, gpu
from harness.worker.kit.stopwatch import Stopwatch, host_ms

from .player import NotPlayed, Player
from .stirring import Stirrer
from .taping import NotTaped, taped
from .tuned import Tuning

WARM_CALLS = 3
"""Of each copy of the inputs, before anything is timed."""
KEPT_BYTES = 1 << 30
"""Of device memory, by torch's cache between cases, the buffer that empties the caches among it."""
KEPT = 2
"""Outputs of the calls sampled last, for the clock to ask for."""


_STIRRED = (("half", torch.float16), ("single", torch.float32))


def main(channel: Channel, spawn: Spawn) -> None:
    """Serves one clock until it hangs up."""
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    torch.set_num_threads(1)
    scratch = Path(spawn.scratch)
    close_doors()
    layers = sandbox.apply(
        scratch, spawn.cpu_limit_s, limits.ADDRESS_SPACE_BYTES, run_programs=False, gpu=True
    )
    assert spawn.device is not None
    gpu.warm(spawn.device)
    with suppress(Exception):  # what fails here fails again where it is told
        Stopwatch(1 << 20).sample(_nothing, 1, cold=True)
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
        except Exception as error:  # noqa: BLE001 (what the source raises is caught where its code runs)
            report = broken(request.nonce, error)
        channel.send(ENCODER.encode(report))


class Timer:
    """One source, one case at a time."""

    def __init__(self, scratch: Path, device: Device) -> None:
        self._file = scratch / candidate_trace.NAME
        self._device = device
        self._source = ""
        self._module: ModuleType | None = None
        self._fresh = True
        """No call of the module's was made that ran nothing."""
        self._snapshot: Snapshot | None = None
        self._tuning = Tuning()
        self._stopwatch: Stopwatch | None = None
        self._sets: list[dict[str, Any]] = []
        """Arguments of each copy of the inputs; neighbours hold other values."""
        self._memory: list[torch.Tensor] = []
        self._run: Callable[[int], Any] = _unprepared
        """A call on one copy of the inputs."""
        self._player: Player | None = None
        self._stirrer = Stirrer()
        self._stirs = False
        """Whether the inputs hold values that other calls had too."""
        self._kept: deque[Any] = deque(maxlen=KEPT)
        self._at = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._threads = 0
        """The most that were running when calls were over."""

    def answer(self, request: TimerRequest, descriptors: tuple[int, ...]) -> TimerReport:
        """The report on one request; what the source raises is a report too."""
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
        except BaseException as error:  # noqa: BLE001 (foreign code: whatever it raises is its report)
            return failed(request.nonce, error, self._file, self._kind_of(error))

    def _count_threads(self) -> None:
        """One that works between calls may be gone when the last one is over."""
        self._threads = max(self._threads, gpu.running_threads())

    @property
    def _watch(self) -> Stopwatch:
        assert self._stopwatch is not None, "no case was prepared"
        return self._stopwatch

    def _load(self, request: Load) -> Loaded | Failed:
        gpu.start(self._device)
        gpu.build_driver()
        self._tuning.install()
        self._snapshot = Snapshot.take()
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
        self._copies(request, descriptors)
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
        """Before the lease: inputs are not read, so memory that nobody wrote stands for them."""
        for descriptor in descriptors:
            os.close(descriptor)
        memory = torch.empty(request.arena_bytes, dtype=torch.uint8, device=gpu.HERE)
        inputs = {one.name: gpu.view(memory, one) for one in request.arguments}
        self._sets = [inputs]
        self._fresh = False
        with self._tuning.ahead():
            self._run(0)
        self._sets = []

    def _import_again(self) -> None:
        """What a module keeps of calls whose kernels did not run is not what it would keep of a call."""
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

    def _copies(self, request: Prepare, descriptors: tuple[int, ...]) -> None:
        least = len(request.handles) or len(descriptors)
        copies = count_copies(least, request.arena_bytes, request.rotate_bytes)
        self._stirs = True
        self._memory = [
            torch.empty(request.arena_bytes, dtype=torch.uint8, device=gpu.HERE) for _ in range(copies)
        ]
        self._sets = [
            {one.name: gpu.view(memory, one) for one in request.arguments} for memory in self._memory
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
        self._stirs = False  # the oracle's outputs are for these very values
        self._kept = deque(maxlen=LEAST_IN_BLOCK)  # any of the calls that follow may be asked for
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
            with device_memory.opened(request.handle, memory.numel()) as brought:
                brought.copy_(memory)
        return Done(nonce=request.nonce)

    def _call(self, number: int) -> object:
        """The next call, on the next copy of the inputs."""
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
        """A graph of one call of each copy of the inputs would hide where copies lie: one call, on the first."""
        graph = torch.cuda.CUDAGraph()
        try:
            with _captured(graph):
                self._kept.append(self._run(0))
        except Exception as error:  # noqa: BLE001 (many calls cannot be captured; why is for people)
            torch.cuda.synchronize()
            return Done(nonce=nonce, problem=str(error).partition("\n")[0] or type(error).__name__)
        self._graph = graph
        return Done(nonce=nonce)

    def _fetch(self, request: Fetch) -> Returned:
        torch.cuda.synchronize()
        asked = len(self._kept) - 1 - request.back
        structure, parts = outputs.parts_of(self._kept[asked])
        others = [
            one
            for number, value in enumerate(self._kept)
            if number != asked
            for one in outputs.plain(outputs.parts_of(value)[1])
        ]
        self._kept = deque(maxlen=KEPT)
        return Returned(
            nonce=request.nonce,
            structure=structure,
            outputs=tuple(
                _output(part, *place, others) for part, place in zip(parts, request.parts, strict=False)
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
        """As a guest tells it: after a fault the context is lost."""
        if isinstance(error, torch.OutOfMemoryError):
            return OUT_OF_MEMORY
        try:
            torch.cuda.synchronize()
        except RuntimeError:
            return GPU_FAULT
        return "exception"


@contextmanager
def _captured(graph: torch.cuda.CUDAGraph) -> Iterator[None]:
    """As `torch.cuda.graph`, which first collects garbage and empties torch's cache: tens of milliseconds, each time."""
    torch.cuda.synchronize()
    collects = gc.isenabled()
    gc.disable()  # a tensor that is freed meanwhile would end the capture
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
    """An arena's bytes; closes the descriptor."""
    with mmap.mmap(descriptor, length, prot=mmap.PROT_READ) as memory:
        os.close(descriptor)
        host = torch.empty(length, dtype=torch.uint8)
        host.numpy()[:] = memoryview(memory)
    return host


def _write(descriptor: int, memory: torch.Tensor) -> None:
    """Into an arena; closes the descriptor."""
    with mmap.mmap(descriptor, memory.numel()) as arena_memory:
        os.close(descriptor)
        arena_memory[:] = memory.cpu().numpy().data


def _output(part: Any, start: int, count: int, others: Sequence[torch.Tensor]) -> OutputData:
    """So many of its elements; `others` are outputs of other calls, with which it may share no memory."""
    kind = type(part)
    name = "torch.Tensor" if kind is torch.Tensor else f"{kind.__module__}.{kind.__qualname__}"
    problem = outputs.problem(part) if isinstance(part, torch.Tensor) else ""
    if not isinstance(part, torch.Tensor) or problem:
        return OutputData(type=name, problem=problem)
    asked = part.detach().contiguous().flatten()[start : start + count]
    return OutputData(
        type=name,
        dtype=arena.dtype_name(part.dtype),
        shape=tuple(part.shape),
        data=arena.storage_bytes(asked) if asked.numel() else b"",
        aliases="the output of another call"
        if any(outputs.share_memory(part, one) for one in others)
        else "",
        from_kernel=True,
    )


def _unprepared(_: int) -> None:
    raise AssertionError("no case was prepared")


def _nothing(_: int) -> None:
    """To load what the stopwatch launches around a call."""
