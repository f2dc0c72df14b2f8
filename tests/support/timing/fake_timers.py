"""Fake timers for tests of the clock: threads that answer a timer's messages without a GPU.

Latencies are simulated; outputs are the oracle's. `bench` makes the usual set-up, `on` changes one kind of answer. Calls have no
tape, unless a side is among `tapes`: then its tapes are played on seats of `played(side)`.
"""

from __future__ import annotations

import os
import random
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from harness.wire.calls.launch_tape import Tape
from harness.wire.calls.tensors import Arguments
from harness.wire.channels.channel import ENCODER, Channel, ChannelClosed
from harness.wire.limits import ANSWER_BYTES, TimeLimits
from harness.wire.messages.clock import BASELINE, CANDIDATE, SIDES, WHOLE, Effort, Floor, Measure, Measured
from harness.wire.messages.guest import (
    Ask,
    Failed,
    Hello,
    LeftBehind,
    Load,
    Loaded,
    OutputData,
    Returned,
    SharedAt,
)
from harness.wire.messages.requests import REQUESTS, AnswerMessage, WorkerAnswer, WorkerMessage, WorkerRequest
from harness.wire.messages.timer import (
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
)
from harness.wire.results.evaluation import Traffic
from harness.wire.results.served_calls import ServedCall
from harness.worker.clock.clock import Clock
from harness.worker.clock.lines import TimerLine
from harness.worker.kit.arena import dtype_name, open_arguments, storage_bytes
from harness.worker.oracle.problem import Problem
from harness.worker.oracle.vault import Vault
from suites import load_task
from suites.task import Task
from suites.tolerances import dtype_of

FLOOR = Floor(empty_ms=0.002, copies=())
Behaviour = Callable[["FakeSeat", Any], "WorkerAnswer | AnswerMessage | None"]
"""Returns a seat's answer to a request, `AnswerMessage` to choose its nonce too, or `None` for the usual answer."""


def played(side: str) -> str:
    """The name of the seats that play this side's tapes."""
    return f"played {side}"


def tape_of(side: str) -> Tape:
    """An empty tape; a player sees by it which side it plays."""
    return Tape(kernels=(), storages=(), steps=(), outputs=(), structure=side)


class Dies(Exception):
    """Ends the timer, as if its process died."""


class Silent(Exception):
    """Makes the timer stop answering."""


@dataclass(frozen=True, slots=True)
class Event:
    """One request that a timer received."""

    seat: FakeSeat
    request: WorkerRequest

    @property
    def kind(self) -> str:
        return self.request.value if isinstance(self.request, Ask) else type(self.request).__name__


LIMITS = TimeLimits(call_s=120.0)


@dataclass(slots=True)
class Bench:
    """Replaces the device and the engine (`clock.Engine`); records requests and calls."""

    task: Task
    ms: dict[str, float]
    """Latency of every case, by side."""
    bias: float = 0.0005
    """Relative standard deviation between processes."""
    noise: float = 0.0005
    """Relative standard deviation between samples."""
    tapes: Sequence[str] = ()
    """Sides whose calls can be taped."""
    behaviours: dict[str, Behaviour] = field(default_factory=dict)
    """Changed behaviour by side, or by `played(side)`."""
    answer_limits_s: dict[str, float] = field(default_factory=dict)
    """Seconds that a candidate has for an answer, by the answer's kind; the usual limit for other kinds."""
    waits_for_overlap: bool = False
    """Whether each sample waits a moment for a second timer, so that two samples at once are certain to be seen."""
    gone_at: int = -1
    """Number of the `alive` call at which the engine is gone."""
    captures: bool = False
    """Whether calls can be captured in graphs."""
    at_lease: Callable[[], None] | None = None
    """Runs when the clock asks for the device."""
    started: list[FakeTimer] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    kept: dict[str, TapedCall] = field(default_factory=dict)
    """The baseline's calls that the engine keeps."""
    longest_waits_s: dict[str, float] = field(default_factory=dict)
    """The longest time that the clock would wait for an answer, by its kind."""
    engine_calls: list[str] = field(default_factory=list)
    """The clock's calls of the engine, in order."""
    most_at_once: int = 0
    """Largest number of timers that were sampled at the same time."""
    problem: Problem = field(init=False)
    _active: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self.problem = Problem(self.task)

    def timers(self, sides: Sequence[str], count: int) -> list[TimerLine]:
        """Starts `count` timers of each side."""
        self.engine_calls.append(f"timers {','.join(sides)} x{count}")
        return [self._start(side) for _ in range(count) for side in sides]

    def players(self, count: int) -> list[TimerLine]:
        """Starts `count` players."""
        self.engine_calls.append(f"players x{count}")
        return [self._start("") for _ in range(count)]

    def keep(self, baseline: dict[str, TapedCall]) -> None:
        """Keeps the baseline's calls."""
        self.kept = baseline

    def lease(self) -> None:
        """Records the request; the device is free at once."""
        self.engine_calls.append("lease")
        if self.at_lease is not None:
            self.at_lease()

    def alive(self) -> None:
        """Raises `ChannelClosed` once the engine is gone."""
        self.engine_calls.append("alive")
        if self.engine_calls.count("alive") == self.gone_at:
            raise ChannelClosed("the other side is gone")

    def requests(self, side: str, kind: type[Any] | Ask) -> list[Any]:
        """Requests of one kind to one side, in order."""
        return [
            event.request for event in self.events if event.seat.side == side and _is_of(event.request, kind)
        ]

    def measure(
        self,
        *,
        source: str = "x = 1",
        floor: Floor = FLOOR,
        budget_s: float = 1e6,
        effort: Effort = WHOLE,
        flush_bytes: int = 1 << 20,
        baseline_calls: dict[str, TapedCall] | None = None,
        target: str = "sm_90",
        graph_nodes: int | None = None,
    ) -> Measured:
        """Runs the clock and returns its result; all timers have ended when this returns."""
        measure = Measure(
            task=self.task,
            sources=dict.fromkeys(SIDES, source),
            seed=1,
            target=target,
            limits=LIMITS,
            cold=True,
            against="triton",
            flush_bytes=flush_bytes,
            budget_s=budget_s,
            effort=effort,
            baseline_calls=baseline_calls or {},
            graph_nodes=graph_nodes,
        )
        clock = Clock(self, measure, self.problem, Vault(), measure_floor=lambda *_: floor)
        try:
            return clock.run()
        finally:
            clock.close()
            for timer in self.started:
                timer.join(60)
            assert not any(timer.is_alive() for timer in self.started), "a timer did not end"

    @contextmanager
    def active(self) -> Iterator[None]:
        """Counts a timer as sampled inside the block."""
        with self._changed:
            self._active += 1
            self.most_at_once = max(self.most_at_once, self._active)
            self._changed.notify_all()
            if self.waits_for_overlap:
                self._changed.wait_for(lambda: self._active > 1, timeout=0.002)
        yield
        with self._changed:
            self._active -= 1

    def _start(self, side: str) -> TimerLine:
        ours, theirs = socket.socketpair()
        timer = FakeTimer(self, side, len(self.started), theirs)
        self.started.append(timer)
        timer.start()
        return _Link(Channel(ours), self, side=side)


class _Link(TimerLine):
    """A line to a seat with time limits that are short enough for a test."""

    def __init__(self, channel: Channel, bench: Bench, *, side: str, pair: int = 0, seat: int = 0) -> None:
        super().__init__(channel, side=side, pair=pair, pid=os.getpid(), answer_bytes=ANSWER_BYTES, seat=seat)
        self._bench = bench

    def seat(self, number: int, side: str, pair: int) -> TimerLine:
        return _Link(self._channel, self._bench, side=side, pair=pair, seat=number)

    def receive(self, wanted: Any, *, wall_s: float, cpu_s: float | None = None) -> Any:
        waits_s = self._bench.longest_waits_s
        waits_s[wanted.__name__] = max(wall_s, waits_s.get(wanted.__name__, 0.0))
        return super().receive(wanted, wall_s=self._limit_s(wanted) or wall_s, cpu_s=cpu_s)

    def ask(self, request: Any, wanted: Any, descriptors: Any = (), *, wall_s: float, **more: Any) -> Any:
        return super().ask(request, wanted, descriptors, wall_s=self._limit_s(wanted) or wall_s, **more)

    def _limit_s(self, wanted: Any) -> float | None:
        return self._bench.answer_limits_s.get(wanted.__name__) if self.side == CANDIDATE else None


class FakeTimer(threading.Thread):
    """One timer: with the source of `side`, or a player, whose side is empty."""

    def __init__(self, bench: Bench, side: str, number: int, end: socket.socket) -> None:
        super().__init__(daemon=True, name=f"{side or 'player'} {number}")
        self.bench, self.side, self.number = bench, side, number
        self._end = Channel(end)
        self._seats: dict[int, FakeSeat] = {}

    def run(self) -> None:
        try:
            self._end.send(ENCODER.encode(WorkerMessage("", Hello(sandbox=()))))
            while True:
                frame = self._end.receive()
                message = REQUESTS.decode(frame.payload)
                answer = self._answer(message.seat, message.body, frame.descriptors)
                answered = (
                    answer if isinstance(answer, WorkerMessage) else WorkerMessage(message.nonce, answer)
                )
                self._end.send(ENCODER.encode(answered))
        except Silent:
            with suppress(ChannelClosed):
                self._end.receive()
        except (ChannelClosed, Dies):
            return
        finally:
            self._end.close()

    def _answer(
        self, number: int, request: WorkerRequest, descriptors: Sequence[int]
    ) -> WorkerAnswer | AnswerMessage:
        if request is Ask.CLEAR:
            self._seats.clear()
            return Done()
        seat = self._seats.setdefault(number, FakeSeat(self.bench, self.side, self.number))
        if isinstance(request, Tape):
            seat = self._seats[number] = FakeSeat(self.bench, played(request.structure), self.number)
        seat.take(request, descriptors)
        self.bench.events.append(Event(seat, request))
        report = self.bench.behaviours.get(seat.side, _usual)(seat, request)
        if isinstance(request, TakeSample | Batch):
            with self.bench.active():
                report = report or seat.usual(request)
        return report or seat.usual(request)


class FakeSeat:
    """One seat, whose outputs are right unless its side has a changed behaviour."""

    def __init__(self, bench: Bench, side: str, number: int) -> None:
        self.bench, self.side, self.number = bench, side, number
        """`number` is the timer's."""
        self._random = random.Random(f"{side} {number}")
        bias = 1 + bench.bias * self._random.gauss(0, 1)
        self.ms = bench.ms[side.rpartition(" ")[2] or CANDIDATE] * bias
        self.name = f"{side} {number}"
        self.case = ""
        self.arguments: Arguments = {}
        self.input_sets: list[bytes] = []
        """Inputs of each set, as the bytes of an arena."""
        self.size_bytes = 0

    def usual(self, request: WorkerRequest) -> WorkerAnswer:
        """The answer of an honest seat."""
        match request:
            case Load():
                return Loaded(parameters={})
            case Prepare():
                return Prepared(call_ms=0.01, peak_bytes=4096, configs={})
            case TakeSample(count=count):
                noise = self.bench.noise
                samples = tuple(self.ms * (1 + noise * self._random.gauss(0, 1)) for _ in range(count))
                return Done(samples_ms=samples)
            case Rung():
                return Done(problem="" if self.bench.captures else "nothing to capture")
            case Batch() | Renew() | BringBack() | Tape():
                return Done()
            case Fetch():
                return self.returned(request)
            case Ask.RECORD:
                tape = tape_of(self.side) if self.side in self.bench.tapes else None
                return TapedCall(tape=tape, why_not="" if tape else "no GPU here")
            case Ask.SERVE:
                served = ServedCall(case="", host_us=10.0, no_graph="", host_waits=False, same_bits=True)
                return TapedCall(served=served)
            case Ask.FAREWELL:
                return LeftBehind(patched=(), threads=0, children=0)
            case SharedAt():
                return Done(problem="a fake timer has no device memory")
            case other:
                raise TypeError(f"a timer has no answer to {type(other).__name__}")

    def returned(self, request: Fetch, arena_bytes: bytes | None = None) -> Returned:
        """Parts of the oracle's outputs for the seat's current inputs, or for the inputs in `arena_bytes`."""
        outputs = tuple(
            OutputData(
                type="torch.Tensor",
                dtype=dtype_name(expected.dtype),
                shape=tuple(expected.shape),
                data=storage_bytes(expected.flatten()[start : start + count].clone()) if count else b"",
                from_kernel=True,
            )
            for expected, (start, count) in zip(
                self.expected_outputs(arena_bytes), request.parts, strict=True
            )
        )
        return Returned(
            structure="tensor" if len(outputs) == 1 else "tuple",
            outputs=outputs,
            operators=(),
            host_elements=0,
            kernels=(),
            traffic=Traffic(""),
            unsupported="",
            changed_output=False,
        )

    def expected_outputs(self, arena_bytes: bytes | None = None) -> list[torch.Tensor]:
        """The oracle's outputs, in the dtypes that a kernel writes."""
        case = next(case for case in self.bench.task.cases if case.name == self.case)
        outputs = self.bench.problem.oracle(case, self.inputs(arena_bytes))
        names = [dtype_of(output, case) for output in self.bench.task.outputs]
        return [output.to(getattr(torch, name)) for output, name in zip(outputs, names, strict=True)]

    def inputs(self, arena_bytes: bytes | None = None) -> dict[str, Any]:
        """The call's arguments, opened from an arena's bytes."""
        memory = os.memfd_create("copy", os.MFD_CLOEXEC)
        try:
            os.write(memory, self.input_sets[0] if arena_bytes is None else arena_bytes)
            return open_arguments(memory, self.size_bytes, self.arguments)
        finally:
            os.close(memory)

    def take(self, request: WorkerRequest, descriptors: Sequence[int]) -> None:
        """Take over a request's case, and the inputs that came with it."""
        if isinstance(request, Prepare):
            self.case, self.arguments, self.size_bytes = (
                request.case,
                request.arguments,
                request.arena_bytes,
            )
        if isinstance(request, BringBack):
            os.pwrite(descriptors[0], self.input_sets[request.copy % len(self.input_sets)], 0)
            os.close(descriptors[0])
            return
        input_sets = [os.pread(descriptor, self.size_bytes, 0) for descriptor in descriptors]
        for descriptor in descriptors:
            os.close(descriptor)
        if input_sets:
            self.input_sets = input_sets


def _usual(_timer: FakeSeat, _request: WorkerRequest) -> None:
    return None


def small(*names: str, task: str = "vector_add") -> Task:
    """The task with only the named open cases, at 257 elements each."""
    loaded = load_task(task)
    chosen = [case for case in loaded.cases if case.name in (names or ("fp32",))]
    cases = tuple(msgspec.structs.replace(case, cpu={"n": 257}) for case in chosen)
    return msgspec.structs.replace(loaded, cases=cases)


def bench(*names: str, candidate: float = 0.5, baseline: float = 1.0, **options: Any) -> Bench:
    """A bench of one candidate and one baseline with latencies in milliseconds."""
    return Bench(small(*names), {BASELINE: baseline, CANDIDATE: candidate}, **options)


def _is_of(request: WorkerRequest, kind: type[Any] | Ask) -> bool:
    return request is kind if isinstance(kind, Ask) else isinstance(request, kind)


def on(
    kind: type[Any] | Ask, answer: Callable[[FakeSeat, Any], WorkerAnswer | AnswerMessage | None]
) -> Behaviour:
    """Behaviour that answers requests of one kind with `answer`."""

    def behave(timer: FakeSeat, request: WorkerRequest) -> WorkerAnswer | AnswerMessage | None:
        return answer(timer, request) if _is_of(request, kind) else None

    return behave


def raises(kind: Any = "exception") -> Callable[[FakeSeat, Any], WorkerAnswer]:
    def answer(_timer: FakeSeat, request: Any) -> WorkerAnswer:
        return Failed(kind=kind, message="boom", trace="line 3", line=3)

    return answer


def dies(_timer: FakeSeat, _request: Any) -> WorkerAnswer:
    raise Dies


def silent(_timer: FakeSeat, _request: Any) -> WorkerAnswer:
    raise Silent


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture(autouse=True)
def no_descriptor_is_left() -> Iterator[None]:
    """Checks after each test of a module that imports this fixture that no file descriptor leaked."""
    before = descriptors()
    yield
    assert descriptors() <= before


def changed(**changes: Any) -> Callable[[FakeSeat, Any], WorkerAnswer]:
    """Answers correctly except for these fields of the output; a function gets the field's correct value."""

    def answer(timer: FakeSeat, request: Fetch) -> WorkerAnswer:
        returned = timer.returned(request)
        old = returned.outputs[0]
        new = {
            name: value(getattr(old, name)) if callable(value) else value for name, value in changes.items()
        }
        return msgspec.structs.replace(returned, outputs=(msgspec.structs.replace(old, **new),))

    return answer


def sides_and_pairs(measured: Measured) -> list[tuple[str, str, int]]:
    return sorted((process.case, process.side, process.pair) for process in measured.times)
