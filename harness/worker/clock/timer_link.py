"""The clock's line to one seat of a timer. Requests go to several seats at once; each timer answers in their order."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from harness.wire import limits
from harness.wire.channel import BadFrame, Channel, ChannelClosed, ChannelTimeout
from harness.wire.encoding import ENCODER, decode_message
from harness.wire.guest_messages import Broken, Failed, Hello
from harness.wire.timer_messages import TIMER_REPORTS, Seated, TimerReport, TimerRequest
from harness.worker.oracle.blame import Cause
from harness.worker.oracle.guest_link import (
    CandidateRaised,
    GuestBroken,
    GuestGone,
    GuestLied,
    GuestSlow,
    cpu_limit,
)

Report = TypeVar("Report", bound=TimerReport)


class TimerFailed(Exception):
    """A timer of one side failed, for a `Cause`."""

    def __init__(self, side: str, cause: Cause) -> None:
        super().__init__(str(cause) or "it ended")
        self.side, self.cause = side, cause


class TimerLink:
    """One seat. A failure of its source raises `TimerFailed`; a failure of our own code in the timer, `GuestBroken`."""

    def __init__(
        self, channel: Channel, *, side: str, pair: int, pid: int, answer_bytes: int, seat: int = 0
    ) -> None:
        self.side = side
        self.pair = pair
        self._channel = channel
        self._pid = pid
        self._answer_bytes = answer_bytes
        self._seat = seat
        self._nonce = ""
        self.greeted = False
        """The timer said hello before: an earlier clock used it."""

    def seat(self, number: int, side: str, pair: int) -> TimerLink:
        """A line to another seat of the same timer."""
        return TimerLink(
            self._channel,
            side=side,
            pair=pair,
            pid=self._pid,
            answer_bytes=self._answer_bytes,
            seat=number,
        )

    def hello(self) -> None:
        """Wait for the timer's first report, if it did not come before."""
        if self.greeted:
            return
        try:
            self._receive(Hello, time.monotonic() + limits.GUEST_START_S, None)
        except (ChannelTimeout, GuestGone, GuestLied) as error:
            raise GuestBroken(f"a timer did not get ready: {error}") from error

    def send(
        self, make: Callable[[str], TimerRequest], descriptors: Sequence[int] = (), *, wall_s: float
    ) -> None:
        """Send a request; returns before the answer."""
        self._nonce = secrets.token_hex(16)
        try:
            self._channel.send(
                ENCODER.encode(Seated(self._seat, make(self._nonce))),
                tuple(descriptors),
                deadline=time.monotonic() + wall_s,
            )
        except ChannelTimeout:
            raise TimerFailed(self.side, GuestSlow(wall_s, cpu=False)) from None
        except ChannelClosed:
            raise TimerFailed(self.side, GuestGone()) from None

    def receive(self, wanted: type[Report], *, wall_s: float) -> Report:
        """Wait for the answer to the last request."""
        try:
            return self._receive(wanted, time.monotonic() + wall_s, cpu_limit(self._pid, wall_s))
        except ChannelTimeout:
            raise TimerFailed(self.side, GuestSlow(wall_s, cpu=False)) from None
        except (CandidateRaised, GuestGone, GuestLied, GuestSlow) as cause:
            raise TimerFailed(self.side, cause) from cause

    def ask(
        self,
        make: Callable[[str], TimerRequest],
        wanted: type[Report],
        descriptors: Sequence[int] = (),
        *,
        wall_s: float,
    ) -> Report:
        """Send a request and wait for its answer."""
        self.send(make, descriptors, wall_s=wall_s)
        return self.receive(wanted, wall_s=wall_s)

    def close(self) -> None:
        """Close the channel; the timer then ends by itself."""
        self._channel.close()

    def _receive(self, wanted: type[Report], deadline: float, poll: Callable[[], None] | None) -> Report:
        try:
            frame = self._channel.receive(deadline=deadline, poll=poll, limit_bytes=self._answer_bytes)
            for descriptor in frame.descriptors:
                os.close(descriptor)
            report = decode_message(TIMER_REPORTS, frame.payload)
        except BadFrame as error:
            raise GuestLied(str(error)) from error
        except ChannelClosed as error:
            raise GuestGone("it ended") from error
        if not isinstance(report, Hello) and report.nonce != self._nonce:
            raise GuestLied("the nonce is not the request's")
        if isinstance(report, Failed):
            raise CandidateRaised(report)
        if isinstance(report, Broken):
            raise GuestBroken(f"a timer failed: {report.message}")
        if not isinstance(report, wanted):
            raise GuestLied(f"a {type(report).__name__} came where a {wanted.__name__} was due")
        return report
