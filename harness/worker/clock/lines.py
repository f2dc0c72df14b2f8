"""The clock's lines: to the engine, which starts timers, lends players and leases the device; and to each seat of a timer.

Requests go to several seats at once; each timer answers in their order.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Protocol

from harness.wire.channels.channel import Channel, ChannelClosed
from harness.wire.messages.clock import JUDGE_REQUESTS, BaselineRecorded, NeedTimers, Timer
from harness.wire.messages.timer import TapedCall
from harness.worker.kit import place
from harness.worker.oracle.lines import EngineLine, WorkerLine

GAVE_UP = "the engine gave up timing"


class TimingEngine(Protocol):
    """Starts timers for the clock and leases the device to it."""

    def timers(self, sides: Sequence[str], count: int) -> list[TimerLine]:
        """Start `count` timers of each side."""

    def players(self, count: int) -> list[TimerLine]:
        """Get `count` processes that play tapes. Call it under the lease: all clocks of a device share them."""

    def keep(self, baseline: dict[str, TapedCall]) -> None:
        """Give the engine the baseline's recorded calls, for later timings."""

    def lease(self) -> None:
        """Wait until the device is leased to the clock alone."""

    def alive(self) -> None:
        """Report that the clock still works."""


class ClockLine(EngineLine):
    """Implements `TimingEngine`. Raises `ChannelClosed` if the engine is gone or has given up timing."""

    def timers(self, sides: Sequence[str], count: int) -> list[TimerLine]:
        """See `TimingEngine`."""
        return self._receive(NeedTimers(tuple(sides), count), count * len(sides))

    def players(self, count: int) -> list[TimerLine]:
        """See `TimingEngine`."""
        return self._receive(NeedTimers((), count), count)

    def keep(self, baseline: dict[str, TapedCall]) -> None:
        """See `TimingEngine`."""
        self.tell(BaselineRecorded(baseline))
        if not self.wait_for_go():
            raise ChannelClosed(GAVE_UP)

    def lease(self) -> None:
        """See `TimingEngine`."""
        if not self.take_turn(alone=True):
            raise ChannelClosed(GAVE_UP)

    def _receive(self, need: NeedTimers, count: int) -> list[TimerLine]:
        self.tell(need)
        links: list[TimerLine] = []
        try:
            for _ in range(count):
                links.append(self._timer())  # noqa: PERF401 -- after a failure the earlier links are closed
        except ChannelClosed:
            for link in links:
                link.close()
            raise
        return links

    def _timer(self) -> TimerLine:
        frame = self._channel.receive()
        timer = JUDGE_REQUESTS.decode(frame.payload)
        if not isinstance(timer, Timer):
            for descriptor in frame.descriptors:
                os.close(descriptor)
            raise ChannelClosed(GAVE_UP)
        end = Channel(socket.socket(fileno=frame.descriptors[0]))
        link = TimerLine(end, side=timer.side, pair=0, pid=timer.pid, answer_bytes=place.answer_bytes())
        link.greeted = timer.served
        return link


class TimerLine(WorkerLine):
    """One seat of a timer."""

    worker = "a timer"

    def __init__(
        self, channel: Channel, *, side: str, pair: int, pid: int, answer_bytes: int, seat: int = 0
    ) -> None:
        super().__init__(channel, pid, answer_bytes)
        self.side = side
        self.pair = pair
        self._seat = seat
        self.greeted = False
        """The timer said hello before: an earlier clock used it."""

    def seat(self, number: int, side: str, pair: int) -> TimerLine:
        """A line to another seat of the same timer."""
        return TimerLine(
            self._channel, side=side, pair=pair, pid=self._pid, answer_bytes=self._answer_bytes, seat=number
        )
