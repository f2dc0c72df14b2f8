"""Timers for a clock without a GPU: threads that speak a timer's messages; latencies are simulated, outputs the oracle's."""

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

from harness.wire.channel import Channel, ChannelClosed
from harness.wire.clock_messages import BASELINE, CANDIDATE, Floor, Measure, Measured
from harness.wire.effort import WHOLE, Effort
from harness.wire.encoding import ENCODER
from harness.wire.guest_messages import (
    Argument,
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
from harness.wire.limits import ANSWER_BYTES, TimeLimits
from harness.wire.timer_messages import (
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
)
from harness.worker.clock.clock import Clock
from harness.worker.clock.timer_link import TimerLink
from harness.worker.kit.arena import dtype_name, open_arguments, storage_bytes
from harness.worker.oracle.problem import Problem
from harness.worker.oracle.vault import Vault
from suites import load_task
from suites.task import Task
from suites.tolerances import dtype_of

FLOOR = Floor(empty_ms=0.002, copies=())
Behaviour = Callable[["FakeTimer", Any], "TimerReport | None"]
"""What a timer answers in place of the usual; `None` for the usual."""


class Dies(Exception):
    """The timer's process ends."""


class Silent(Exception):
    """The timer says nothing any more."""


@dataclass(frozen=True, slots=True)
class Event:
    """One request as a timer met it."""

    timer: FakeTimer
    request: TimerRequest

    @property
    def kind(self) -> str:
        return type(self.request).__name__


@dataclass(slots=True)
class Bench:
    """Stands in the place of the device, and of the engine (`clock.Engine`)."""

    task: Task
    ms: dict[str, float]
    """Latency by side, of every case."""
    bias: float = 0.0005
    """Relative, of a process."""
    noise: float = 0.0005
    """Relative, of a sample."""
    behaviours: dict[str, Behaviour] = field(default_factory=dict)
    """By side."""
    shorter: dict[str, float] = field(default_factory=dict)
    """Seconds that the candidate has for an answer of this kind, where it is not the usual."""
    meets: bool = False
    """Whether samples wait a moment for another timer's, so that two at once are sure to be seen."""
    leaves_at: int = -1
    """Words of life after which the engine is gone."""
    at_lease: Callable[[], None] | None = None
    """What happens when the device is asked for."""
    started: list[FakeTimer] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    """By the clock, of the engine."""
    together: int = 0
    """The most timers that were sampled at once."""
    problem: Problem = field(init=False)
    _active: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self.problem = Problem(self.task)

    def timers(self, sides: Sequence[str], count: int, *, instead: bool) -> list[TimerLink]:
        """More timers."""
        self.asked.append(f"timers {','.join(sides)} x{count}{' instead' if instead else ''}")
        first = max((one.pair for one in self.started), default=-1) + 1
        return [self._start(side, pair) for pair in range(first, first + count) for side in sides]

    def lease(self) -> None:
        """At once."""
        self.asked.append("lease")
        if self.at_lease is not None:
            self.at_lease()

    def alive(self) -> None:
        """`ChannelClosed` once the engine is gone."""
        self.asked.append("alive")
        if self.asked.count("alive") == self.leaves_at:
            raise ChannelClosed("the other side is gone")

    def met(self, side: str, kind: type[Any]) -> list[Any]:
        """Requests of one kind to one side, in order."""
        return [
            one.request for one in self.events if one.timer.side == side and isinstance(one.request, kind)
        ]

    def measure(
        self,
        *,
        source: str = "x = 1",
        floor: Floor = FLOOR,
        budget_s: float = 1e6,
        effort: Effort = WHOLE,
        energy_s: float = 0.0,
    ) -> Measured:
        """What the clock finds. Its timers were let go when this returns."""
        measure = Measure(
            task=self.task,
            sources=dict.fromkeys(self.ms, source),
            seed=1,
            target="sm_90",
            limits=TimeLimits(call_s=120.0),
            cold=True,
            against="triton",
            flush_bytes=1 << 20,
            budget_s=budget_s,
            effort=effort,
            energy_s=energy_s,
        )
        clock = Clock(self, measure, self.problem, Vault(), measure_floor=lambda _: floor)
        try:
            return clock.run()
        finally:
            clock.close()
            for timer in self.started:
                timer.join(60)
            assert not any(timer.is_alive() for timer in self.started), "a timer was not let go"

    @contextmanager
    def active(self) -> Iterator[None]:
        """While a timer is sampled."""
        with self._changed:
            self._active += 1
            self.together = max(self.together, self._active)
            self._changed.notify_all()
            if self.meets:
                self._changed.wait_for(lambda: self._active > 1, timeout=0.002)
        yield
        with self._changed:
            self._active -= 1

    def _start(self, side: str, pair: int) -> TimerLink:
        ours, theirs = socket.socketpair()
        timer = FakeTimer(self, side, pair, theirs)
        self.started.append(timer)
        timer.start()
        return _Link(self, Channel(ours), side, pair)


class _Link(TimerLink):
    """A timer's link, with limits that a test can wait for."""

    def __init__(self, bench: Bench, channel: Channel, side: str, pair: int) -> None:
        super().__init__(channel, side=side, pair=pair, pid=os.getpid(), answer_bytes=ANSWER_BYTES)
        self._bench = bench

    def receive(self, wanted: Any, *, wall_s: float) -> Any:
        short = self._bench.shorter.get(wanted.__name__) if self.side == CANDIDATE else None
        return super().receive(wanted, wall_s=short or wall_s)


class FakeTimer(threading.Thread):
    """One timer. What it computes is right unless its side behaves otherwise."""

    def __init__(self, bench: Bench, side: str, pair: int, end: socket.socket) -> None:
        super().__init__(daemon=True, name=f"{side} {pair}")
        self.bench, self.side, self.pair = bench, side, pair
        self._end = Channel(end)
        self._random = random.Random(f"{side} {pair}")
        own = 1 + bench.bias * self._random.gauss(0, 1)
        self.ms = bench.ms.get(side, bench.ms[CANDIDATE]) * own
        self.case = ""
        self.arguments: tuple[Argument, ...] = ()
        self.given: list[bytes] = []
        """Inputs of each set, as bytes of an arena."""
        self.size_bytes = 0

    def run(self) -> None:
        try:
            self._end.send(ENCODER.encode(Hello(sandbox=())))
            while True:
                frame = self._end.receive()
                request = TIMER_REQUESTS.decode(frame.payload)
                self._take(request, frame.descriptors)
                self.bench.events.append(Event(self, request))
                behaviour = self.bench.behaviours.get(self.side, _usual)
                report = behaviour(self, request)
                if isinstance(request, Sample | Batch):
                    with self.bench.active():
                        report = report or self.usual(request)
                self._end.send(ENCODER.encode(report or self.usual(request)))
        except Silent:
            with suppress(ChannelClosed):
                self._end.receive()
        except (ChannelClosed, Dies):
            return
        finally:
            self._end.close()

    def usual(self, request: TimerRequest) -> TimerReport:
        """What an honest timer answers."""
        nonce = request.nonce
        match request:
            case Load():
                return Loaded(nonce=nonce, parameters={})
            case Prepare():
                return Prepared(nonce=nonce, call_ms=0.01, peak_bytes=4096, configs={})
            case Sample(count=count):
                noise = self.bench.noise
                samples = tuple(self.ms * (1 + noise * self._random.gauss(0, 1)) for _ in range(count))
                return Sampled(nonce=nonce, samples_ms=samples)
            case Batch(kind="capture"):
                return Done(nonce=nonce, problem="nothing to capture")
            case Batch() | Renew() | BringBack() | Play():
                return Done(nonce=nonce)
            case Fetch():
                return self.returned(request)
            case Record():
                return Recorded(nonce=nonce, tape=None, why_not="no GPU here")
            case Farewell():
                return LeftBehind(nonce=nonce, patched=(), threads=0, children=0)
            case Reach():
                return Done(nonce=nonce, problem="a timer of a script's reaches no device memory")

    def returned(self, request: Fetch, given: bytes | None = None) -> Returned:
        """Parts of the oracle's outputs for what the timer holds now, or for these inputs."""
        outputs = tuple(
            OutputData(
                type="torch.Tensor",
                dtype=dtype_name(truth.dtype),
                shape=tuple(truth.shape),
                data=storage_bytes(truth.flatten()[start : start + count].clone()) if count else b"",
                from_kernel=True,
            )
            for truth, (start, count) in zip(self.truths(given), request.parts, strict=True)
        )
        return Returned(
            nonce=request.nonce,
            structure="tensor" if len(outputs) == 1 else "tuple",
            outputs=outputs,
            operators=(),
            host_elements=0,
            kernels=(),
            traffic=CaseTraffic("", 0, 0, 0, 0, 0, 0, 0, ()),
            unsupported="",
            changed_output=False,
        )

    def truths(self, given: bytes | None = None) -> list[torch.Tensor]:
        """The oracle's outputs in the dtypes that a kernel writes."""
        case = next(one for one in self.bench.task.cases if one.name == self.case)
        truths = self.bench.problem.oracle(case, self.inputs(given))
        names = [dtype_of(output, case) for output in self.bench.task.outputs]
        return [truth.to(getattr(torch, name)) for truth, name in zip(truths, names, strict=True)]

    def inputs(self, given: bytes | None = None) -> dict[str, Any]:
        """The arguments, from an arena's bytes."""
        memory = os.memfd_create("copy", os.MFD_CLOEXEC)
        try:
            os.write(memory, self.given[0] if given is None else given)
            return open_arguments(memory, self.size_bytes, self.arguments)
        finally:
            os.close(memory)

    def _take(self, request: TimerRequest, descriptors: Sequence[int]) -> None:
        if isinstance(request, Prepare):
            self.case, self.arguments, self.size_bytes = (
                request.case,
                request.arguments,
                request.arena_bytes,
            )
        if isinstance(request, BringBack):
            os.pwrite(descriptors[0], self.given[request.copy % len(self.given)], 0)
            os.close(descriptors[0])
            return
        given = [os.pread(descriptor, self.size_bytes, 0) for descriptor in descriptors]
        for descriptor in descriptors:
            os.close(descriptor)
        if given:
            self.given = given


def _usual(_timer: FakeTimer, _request: TimerRequest) -> None:
    return None


def small(*names: str, task: str = "vector_add") -> Task:
    """A task with these open cases alone, few elements each."""
    found = load_task(task)
    chosen = [case for case in found.cases if case.name in (names or ("fp32",))]
    cases = tuple(msgspec.structs.replace(case, cpu={"n": 257}) for case in chosen)
    return msgspec.structs.replace(found, cases=cases)


def bench(*names: str, candidate: float = 0.5, baseline: float = 1.0, **options: Any) -> Bench:
    """A candidate beside a baseline, in milliseconds."""
    return Bench(small(*names), {BASELINE: baseline, CANDIDATE: candidate}, **options)


def on(kind: type[Any], answer: Callable[[FakeTimer, Any], TimerReport | None]) -> Behaviour:
    """Answers one kind of request so."""

    def behave(timer: FakeTimer, request: TimerRequest) -> TimerReport | None:
        return answer(timer, request) if isinstance(request, kind) else None

    return behave


def raises(kind: str = "exception") -> Callable[[FakeTimer, Any], TimerReport]:
    def answer(_timer: FakeTimer, request: Any) -> TimerReport:
        return Failed(nonce=request.nonce, kind=kind, message="boom", trace="line 3", line=3)

    return answer


def dies(_timer: FakeTimer, _request: Any) -> TimerReport:
    raise Dies


def silent(_timer: FakeTimer, _request: Any) -> TimerReport:
    raise Silent


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture(autouse=True)
def no_descriptor_is_left() -> Iterator[None]:
    """Of a module that imports it: around each of its tests."""
    before = descriptors()
    yield
    assert descriptors() <= before
