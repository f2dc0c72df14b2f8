"""The clock's channel to the engine, which starts timers for it, lends it players and leases the device."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Protocol

from harness.wire.channel import Channel, ChannelClosed
from harness.wire.clock_messages import (
    JUDGE_REQUESTS,
    ClockReport,
    Leased,
    LeaseWanted,
    NeedPlayers,
    NeedTimers,
    Timer,
)
from harness.wire.encoding import ENCODER
from harness.wire.guest_messages import Alive
from harness.worker.kit import place

from .timer_line import TimerLine


class Engine(Protocol):
    """Starts timers for the clock and leases the device to it."""

    def timers(self, sides: Sequence[str], count: int) -> list[TimerLine]:
        """Start `count` timers of each side."""

    def players(self, count: int) -> list[TimerLine]:
        """Get `count` processes that play tapes. Call it under the lease: all clocks of a device share them."""

    def lease(self) -> None:
        """Wait until the device is leased to the clock alone."""

    def alive(self) -> None:
        """Report that the clock still works."""


class EngineLine:
    """Implements `Engine`. Raises `ChannelClosed` if the engine is gone or has given up timing."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def tell(self, report: ClockReport) -> None:
        """Send a report to the engine."""
        self._channel.send(ENCODER.encode(report))

    def timers(self, sides: Sequence[str], count: int) -> list[TimerLine]:
        """See `Engine`."""
        return self._receive(NeedTimers(sides=tuple(sides), count=count), count * len(sides))

    def players(self, count: int) -> list[TimerLine]:
        """See `Engine`."""
        return self._receive(NeedPlayers(count=count), count)

    def _receive(self, need: NeedTimers | NeedPlayers, count: int) -> list[TimerLine]:
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
            raise ChannelClosed("the engine gave up timing")
        end = Channel(socket.socket(fileno=frame.descriptors[0]))
        link = TimerLine(end, side=timer.side, pair=0, pid=timer.pid, answer_bytes=place.answer_bytes())
        link.greeted = timer.served
        return link

    def lease(self) -> None:
        """See `Engine`."""
        self.tell(LeaseWanted())
        if not isinstance(JUDGE_REQUESTS.decode(self._channel.receive().payload), Leased):
            raise ChannelClosed("the engine gave up timing")

    def alive(self) -> None:
        """See `Engine`."""
        self.tell(Alive())
