"""The judge's line to one guest: requests with a nonce and limits, answers believed only when they are whole."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from harness.linux import syscalls
from harness.wire import limits
from harness.wire.channel import BadFrame, Channel, ChannelClosed, ChannelTimeout
from harness.wire.encoding import ENCODER, decode_message
from harness.wire.guest_messages import (
    GUEST_REPORTS,
    Broken,
    Call,
    Failed,
    Farewell,
    GuestReport,
    Hello,
    Load,
)
from harness.wire.verifier_messages import VERIFIER_REPORTS, VerifierReport, VerifierRequest

Report = TypeVar("Report", bound=GuestReport)


class GuestGone(Exception):
    """The guest ended when it should have answered."""


class GuestBroken(Exception):
    """The guest did not get ready before any foreign code ran, or its own code raised: our fault."""


class GuestLied(Exception):
    """What came is no answer to what was asked: somebody else wrote to the guest's channel."""


class GuestSlow(Exception):
    """A limit passed; `cpu` tells which."""

    def __init__(self, seconds: float, *, cpu: bool) -> None:
        super().__init__(f"{seconds:g} s of {'CPU' if cpu else 'wall'} time passed")
        self.seconds, self.cpu = seconds, cpu


class CandidateRaised(Exception):
    """The candidate's own exception, as the guest reports it."""

    def __init__(self, failure: Failed) -> None:
        super().__init__(failure.message)
        self.failure = failure


class GuestLink:
    """One guest. Every way it can fail to answer is one of this module's exceptions."""

    def __init__(self, channel: Channel, pid: int, answer_bytes: int = limits.ANSWER_BYTES) -> None:
        self._channel = channel
        self._pid = pid
        self._answer_bytes = answer_bytes

    def hello(self) -> Hello:
        """The guest's first words; it speaks by itself."""
        try:
            return self._receive(Hello, "", time.monotonic() + limits.GUEST_START_S, None)
        except (ChannelTimeout, GuestGone, GuestLied) as error:
            raise GuestBroken(f"a guest did not get ready: {error}") from error

    def ask(
        self,
        make: Callable[[str], Load | Call | Farewell],
        wanted: type[Report],
        *,
        wall_s: float,
        cpu_s: float,
        descriptors: tuple[int, ...] = (),
    ) -> Report:
        """The answer to `make(nonce)`, which is of the kind `wanted` and carries the nonce."""
        nonce = secrets.token_hex(16)
        deadline = time.monotonic() + wall_s
        held = cpu_limit(self._pid, cpu_s)
        try:
            self._channel.send(ENCODER.encode(make(nonce)), descriptors, deadline=deadline, poll=held)
            return self._receive(wanted, nonce, deadline, held)
        except ChannelTimeout as error:
            raise GuestSlow(wall_s, cpu=False) from error
        except ChannelClosed as error:
            raise GuestGone from error

    def close(self) -> None:
        """Hangs up; a guest that waits for a request then ends by itself."""
        self._channel.close()

    def _receive(
        self, wanted: type[Report], nonce: str, deadline: float, poll: Callable[[], None] | None
    ) -> Report:
        report = _receive(self._channel, GUEST_REPORTS, deadline, poll, self._answer_bytes)
        if not isinstance(report, Hello) and report.nonce != nonce:
            raise GuestLied("the nonce is not the request's")
        if isinstance(report, Failed):
            raise CandidateRaised(report)
        if isinstance(report, Broken):
            raise GuestBroken(f"the guest failed: {report.message}")
        if not isinstance(report, wanted):
            raise GuestLied(f"a {type(report).__name__} came where a {wanted.__name__} was due")
        return report


class VerifierLink:
    """One verifier. Requests do not wait for their answers, which come in order; one at a time is under way."""

    def __init__(self, channel: Channel, pid: int) -> None:
        self._channel = channel
        self._pid = pid

    def hello(self) -> Hello:
        """Its first words."""
        try:
            report = self.receive(wall_s=limits.GUEST_START_S, cpu_s=limits.GUEST_START_S)
        except (GuestGone, GuestLied, GuestSlow) as error:
            raise GuestBroken(f"a verifier did not get ready: {error}") from error
        if not isinstance(report, Hello):
            raise GuestBroken("a verifier did not get ready: it answered what nobody asked")
        return report

    def send(self, request: VerifierRequest, descriptors: tuple[int, ...] = ()) -> None:
        """Asks; returns when the request is under way."""
        try:
            self._channel.send(
                ENCODER.encode(request), descriptors, deadline=time.monotonic() + limits.GUEST_START_S
            )
        except ChannelTimeout as error:
            raise GuestBroken("a verifier does not read what it is sent") from error
        except ChannelClosed as error:
            raise GuestGone from error

    def receive(self, *, wall_s: float, cpu_s: float) -> VerifierReport:
        """The answer that is due."""
        deadline, held = time.monotonic() + wall_s, cpu_limit(self._pid, cpu_s)
        try:
            report: VerifierReport = _receive(
                self._channel, VERIFIER_REPORTS, deadline, held, limits.ANSWER_BYTES
            )
        except ChannelTimeout as error:
            raise GuestSlow(wall_s, cpu=False) from error
        return report

    def close(self) -> None:
        """Hangs up; it then ends by itself."""
        self._channel.close()


def _receive(
    channel: Channel,
    decoder: msgspec.msgpack.Decoder[Any],
    deadline: float,
    poll: Callable[[], None] | None,
    limit_bytes: int,
) -> Any:
    """The next report; descriptors beside it are closed."""
    try:
        frame = channel.receive(deadline=deadline, poll=poll, limit_bytes=limit_bytes)
        for descriptor in frame.descriptors:
            os.close(descriptor)
        return decode_message(decoder, frame.payload)
    except BadFrame as error:
        raise GuestLied(str(error)) from error
    except ChannelClosed as error:
        raise GuestGone("it ended") from error


def cpu_limit(pid: int, seconds: float) -> Callable[[], None]:
    """What raises `GuestSlow` when a candidate has used more CPU time than that since now; the judge's `OVERHEAD` is not the candidate's."""
    allowed = seconds * (1 + limits.OVERHEAD)
    spent = syscalls.cpu_seconds(pid)

    def check() -> None:
        now = syscalls.cpu_seconds(pid)
        if spent is not None and now is not None and now - spent > allowed:
            raise GuestSlow(seconds, cpu=True)

    return check
