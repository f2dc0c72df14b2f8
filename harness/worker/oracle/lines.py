"""The judge's lines: to a worker, with requests that have limits and answers that are checked; and to the engine.

The line to the engine sends reports, and waits for the engine's permission.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import msgspec

from harness.linux import syscalls
from harness.wire import limits
from harness.wire.channels.channel import (
    ENCODER,
    BadFrame,
    Channel,
    ChannelClosed,
    ChannelTimeout,
    decode_message,
)
from harness.wire.messages.clock import JUDGE_REQUESTS, ClockReport
from harness.wire.messages.guest import Alive, Broken, Failed, Hello
from harness.wire.messages.judge import AtStage, JudgeReport, Proceed, TurnWanted
from harness.wire.messages.requests import ANSWERS, WorkerRequest, encode_request

Wanted = TypeVar("Wanted", bound=msgspec.Struct)


class NoAnswer(Exception):
    """Foreign code in a worker failed, so a request has no answer."""

    side = ""
    """The side that a timer times; empty for other workers."""


class GuestGone(NoAnswer):
    """The worker ended when it should have answered."""

    def __init__(self) -> None:
        super().__init__("it ended")


class GuestLied(NoAnswer):
    """The message does not answer the request: foreign code wrote to the worker's channel."""


class GuestSlow(NoAnswer):
    """The worker ran out of CPU time (`cpu`) or wall time."""

    def __init__(self, seconds: float, *, cpu: bool) -> None:
        super().__init__(f"{seconds:g} s of {'CPU' if cpu else 'wall'} time passed")
        self.seconds, self.cpu = seconds, cpu


class CandidateRaised(NoAnswer):
    """The candidate's own exception, as the worker reports it."""

    def __init__(self, failure: Failed) -> None:
        super().__init__(failure.message)
        self.failure = failure


class GuestBroken(Exception):
    """The worker failed before foreign code ran, or its own code raised: our fault."""


class GuestFailed(GuestBroken):
    """Our own code raised in the worker after the import of the candidate had begun: perhaps the candidate's fault."""

    def __init__(self, worker: str, message: str) -> None:
        super().__init__(f"{worker} failed: {message}")
        self.message = message


class WorkerLine:
    """The line to one worker. Raises `NoAnswer` if foreign code failed, `GuestBroken` if our own code did.

    `send` and `receive` are for workers that run while the judge does other work; one request at a time is under way.
    """

    worker = "a guest"
    """Names the worker in messages."""
    side = ""

    def __init__(self, channel: Channel, pid: int, answer_bytes: int = limits.ANSWER_BYTES) -> None:
        self._channel = channel
        self._pid = pid
        self._answer_bytes = answer_bytes
        self._seat = 0
        """Number of the seat that answers, in a timer with several."""
        self._nonce = ""
        """Random text of the last request, which its answer must repeat."""

    def hello(self) -> Hello:
        """Wait for the worker's first message, which comes without a request."""
        try:
            return self.receive(Hello, wall_s=limits.GUEST_START_S, cpu_s=math.inf)
        except NoAnswer as error:
            raise GuestBroken(f"{self.worker} did not get ready: {error}") from error

    def ask(
        self,
        request: WorkerRequest,
        wanted: type[Wanted],
        descriptors: tuple[int, ...] = (),
        *,
        wall_s: float,
        cpu_s: float | None = None,
    ) -> Wanted:
        """Send a request; return the answer, a `wanted`. Without `cpu_s`, the worker may use `wall_s` of CPU time."""
        deadline, check_cpu = time.monotonic() + wall_s, cpu_limit(self._pid, cpu_s or wall_s)
        with self._failures(wall_s):
            self._send(request, descriptors, deadline, check_cpu)
            return self._receive(wanted, deadline, check_cpu)

    def send(self, request: WorkerRequest, descriptors: tuple[int, ...] = (), *, wall_s: float) -> None:
        """Send a request; return before the answer.

        A worker that has ended raises in `receive`: the first request without an answer is that of the seat which failed.
        """
        with self._failures(wall_s), suppress(ChannelClosed):
            self._send(request, descriptors, time.monotonic() + wall_s, None)

    def receive(self, wanted: type[Wanted], *, wall_s: float, cpu_s: float | None = None) -> Wanted:
        """Wait for the answer to the last request."""
        with self._failures(wall_s):
            return self._receive(wanted, time.monotonic() + wall_s, cpu_limit(self._pid, cpu_s or wall_s))

    def lie(self, why: str) -> GuestLied:
        """The exception for an answer that no honest worker gives."""
        lie = GuestLied(why)
        lie.side = self.side
        return lie

    def close(self) -> None:
        """Close the channel; the worker then ends."""
        self._channel.close()

    def _send(
        self,
        request: WorkerRequest,
        descriptors: tuple[int, ...],
        deadline: float,
        poll: Callable[[], None] | None,
    ) -> None:
        """Send a request with a new nonce, which its answer must have. Raises like `Channel.send`."""
        self._nonce, payload = encode_request(request, self._seat)
        self._channel.send(payload, descriptors, deadline=deadline, poll=poll)

    def _receive(self, wanted: type[Wanted], deadline: float, poll: Callable[[], None]) -> Wanted:
        """Return the worker's answer to the last request.

        Raises `CandidateRaised` if foreign code raised, `GuestFailed` or `GuestBroken` if our own code did after or before the
        import, and `GuestLied` if the answer is of another request or kind. Descriptors that come with it are closed.
        """
        frame = self._channel.receive(deadline=deadline, poll=poll, limit_bytes=self._answer_bytes)
        for descriptor in frame.descriptors:
            os.close(descriptor)
        answered = decode_message(ANSWERS, frame.payload)
        if answered.nonce != self._nonce:
            raise GuestLied("the nonce is not the request's")
        match answered.body:
            case Failed() as failure:
                raise CandidateRaised(failure)
            case Broken(message=message, imported=True):
                raise GuestFailed(self.worker, message)
            case Broken(message=message):
                raise GuestBroken(f"{self.worker} failed: {message}")
            case wanted() as answer:
                return answer
            case other:
                raise GuestLied(f"a {type(other).__name__} came where a {wanted.__name__} was due")

    @contextmanager
    def _failures(self, wall_s: float) -> Iterator[None]:
        """Raise each failure of the channel as a `NoAnswer` of this worker."""
        try:
            try:
                yield
            except ChannelTimeout as error:
                raise GuestSlow(wall_s, cpu=False) from error
            except ChannelClosed as error:
                raise GuestGone from error
            except BadFrame as error:
                raise GuestLied(str(error)) from error
        except NoAnswer as failure:
            failure.side = self.side
            raise


def cpu_limit(pid: int, seconds: float) -> Callable[[], None]:
    """Return a check that raises `GuestSlow` after so many more CPU seconds, plus `OVERHEAD` for the judge's own work there."""
    allowed = seconds * (1 + limits.OVERHEAD)
    start = syscalls.cpu_seconds(pid)

    def check() -> None:
        now = syscalls.cpu_seconds(pid)
        if start is not None and now is not None and now - start > allowed:
            raise GuestSlow(seconds, cpu=True)

    return check


class EngineLine:
    """Reports to the engine over one channel."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._told_s = -math.inf
        """When the last report was sent, by `time.monotonic`."""

    def tell(self, report: JudgeReport | ClockReport) -> None:
        """Send a report."""
        self._channel.send(ENCODER.encode(report))
        self._told_s = time.monotonic()

    def enter(self, stage: str) -> None:
        """Report that a stage begins."""
        self.tell(AtStage(stage=stage, at_s=time.monotonic()))

    def leave(
        self, stage: str, detail: str, *, ok: bool | None, cases: tuple[int, int] | None = None
    ) -> None:
        """Report that a stage is over; `cases` are those that passed, and all."""
        self.tell(AtStage(stage=stage, at_s=time.monotonic(), ended=True, ok=ok, detail=detail, cases=cases))

    def alive(self) -> None:
        """Report that work continues, unless a report was sent within `ALIVE_S`."""
        if time.monotonic() - self._told_s >= limits.ALIVE_S:
            self.tell(Alive())

    def wait_for_go(self) -> bool:
        """Wait for the engine; True if the work shall continue."""
        try:
            answer = JUDGE_REQUESTS.decode(self._channel.receive().payload)
        except ChannelClosed:
            return False
        return isinstance(answer, Proceed) and answer.go

    def take_turn(self, *, alone: bool = False) -> bool:
        """Ask for a turn on the GPU, perhaps `alone`, and wait for it; True if the work shall continue."""
        self.tell(TurnWanted(alone))
        return self.wait_for_go()
