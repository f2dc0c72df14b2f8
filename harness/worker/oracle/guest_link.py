"""The judge's line to a guest and to a verifier: requests with a nonce and limits, answers checked."""

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
    """The guest failed before foreign code ran, or its own code raised: our fault."""


class GuestFailed(GuestBroken):
    """Our own code raised in the guest after the import of the candidate had begun: perhaps the candidate's fault."""


class GuestLied(Exception):
    """The message does not answer the request: foreign code wrote to the guest's channel."""


class GuestSlow(Exception):
    """The guest ran out of CPU time (`cpu`) or wall time."""

    def __init__(self, seconds: float, *, cpu: bool) -> None:
        super().__init__(f"{seconds:g} s of {'CPU' if cpu else 'wall'} time passed")
        self.seconds, self.cpu = seconds, cpu


class CandidateRaised(Exception):
    """The candidate's own exception, as the guest reports it."""

    def __init__(self, failure: Failed) -> None:
        super().__init__(failure.message)
        self.failure = failure


class GuestLink:
    """The line to one guest. Each way to fail is an exception of this module."""

    def __init__(self, channel: Channel, pid: int, answer_bytes: int = limits.ANSWER_BYTES) -> None:
        self._channel = channel
        self._pid = pid
        self._answer_bytes = answer_bytes

    def hello(self) -> Hello:
        """Wait for the guest's first message, which comes without a request."""
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
        """Send `make(nonce)`; return the answer, which must be a `wanted` with the same nonce."""
        nonce = secrets.token_hex(16)
        deadline = time.monotonic() + wall_s
        check_cpu = cpu_limit(self._pid, cpu_s)
        try:
            self._channel.send(ENCODER.encode(make(nonce)), descriptors, deadline=deadline, poll=check_cpu)
            return self._receive(wanted, nonce, deadline, check_cpu)
        except ChannelTimeout as error:
            raise GuestSlow(wall_s, cpu=False) from error
        except ChannelClosed as error:
            raise GuestGone from error

    def close(self) -> None:
        """Close the channel; a waiting guest then ends."""
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
            raise (
                GuestFailed(report.message)
                if report.imported
                else GuestBroken(f"the guest failed: {report.message}")
            )
        if not isinstance(report, wanted):
            raise GuestLied(f"a {type(report).__name__} came where a {wanted.__name__} was due")
        return report


class VerifierLink:
    """The line to one verifier. `send` does not wait; one request at a time is under way."""

    def __init__(self, channel: Channel, pid: int) -> None:
        self._channel = channel
        self._pid = pid

    def hello(self) -> Hello:
        """Wait for the verifier's first message."""
        try:
            report = self.receive(wall_s=limits.GUEST_START_S, cpu_s=limits.GUEST_START_S)
        except (GuestGone, GuestLied, GuestSlow) as error:
            raise GuestBroken(f"a verifier did not get ready: {error}") from error
        if not isinstance(report, Hello):
            raise GuestBroken("a verifier did not get ready: it sent an answer before its greeting")
        return report

    def send(self, request: VerifierRequest, descriptors: tuple[int, ...] = ()) -> None:
        """Send a request, without waiting for its answer."""
        try:
            self._channel.send(
                ENCODER.encode(request), descriptors, deadline=time.monotonic() + limits.GUEST_START_S
            )
        except ChannelTimeout as error:
            raise GuestBroken("a verifier does not read what it is sent") from error
        except ChannelClosed as error:
            raise GuestGone from error

    def receive(self, *, wall_s: float, cpu_s: float) -> VerifierReport:
        """Wait for the answer to the last request."""
        deadline, check_cpu = time.monotonic() + wall_s, cpu_limit(self._pid, cpu_s)
        try:
            report: VerifierReport = _receive(
                self._channel, VERIFIER_REPORTS, deadline, check_cpu, limits.ANSWER_BYTES
            )
        except ChannelTimeout as error:
            raise GuestSlow(wall_s, cpu=False) from error
        return report

    def close(self) -> None:
        """Close the channel; the verifier then ends."""
        self._channel.close()


def _receive(
    channel: Channel,
    decoder: msgspec.msgpack.Decoder[Any],
    deadline: float,
    poll: Callable[[], None] | None,
    limit_bytes: int,
) -> Any:
    """Return the next message; close descriptors that came with it."""
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
    """Return a check that raises `GuestSlow` once the process used more CPU seconds from now on.

    The limit leaves `OVERHEAD` on top for the judge's own work in that process.
    """
    allowed = seconds * (1 + limits.OVERHEAD)
    start = syscalls.cpu_seconds(pid)

    def check() -> None:
        now = syscalls.cpu_seconds(pid)
        if start is not None and now is not None and now - start > allowed:
            raise GuestSlow(seconds, cpu=True)

    return check
