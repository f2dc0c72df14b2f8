"""The clock's channel to the engine, which starts timers for it, lends it players and leases the device."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Protocol

from harness.wire.channel import Channel, ChannelClosed
from harness.wire.clock_messages import (
    JUDGE_REQUESTS,
    BaselineRecorded,
    ClockReport,
    Kept,
    Leased,
    LeaseWanted,
    NeedPlayers,
    NeedTimers,
    TapedCall,
    Timer,
)
from harness.wire.encoding import ENCODER
from harness.wire.judge_messages import Alive
from harness.worker.kit import place

from .timer_link import TimerLink


class Engine(Protocol):
    """Starts timers for the clock and leases the device to it."""

    def timers(self, sides: Sequence[str], count: int) -> list[TimerLink]:
        """Start `count` timers of each side."""

    def players(self, count: int) -> list[TimerLink]:
        """Get `count` processes that play tapes. Call it under the lease: all clocks of a device share them."""

    def keep(self, baseline: dict[str, TapedCall]) -> None:
        """Give the engine the baseline's recorded calls, for later timings."""

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

    def timers(self, sides: Sequence[str], count: int) -> list[TimerLink]:
        """See `Engine`."""
        return self._receive(NeedTimers(sides=tuple(sides), count=count), count * len(sides))

    def players(self, count: int) -> list[TimerLink]:
        """See `Engine`."""
        return self._receive(NeedPlayers(count=count), count)

    def _receive(self, need: NeedTimers | NeedPlayers, count: int) -> list[TimerLink]:
        self.tell(need)
        links: list[TimerLink] = []
        try:
            for _ in range(count):
                links.append(self._timer())  # noqa: PERF401 -- after a failure the earlier links are closed
        except ChannelClosed:
            for link in links:
                link.close()
            raise
        return links

    def _timer(self) -> TimerLink:
        frame = self._channel.receive()
        timer = JUDGE_REQUESTS.decode(frame.payload)
        if not isinstance(timer, Timer):
            for descriptor in frame.descriptors:
                os.close(descriptor)
            raise ChannelClosed("the engine gave up timing")
        end = Channel(socket.socket(fileno=frame.descriptors[0]))
        link = TimerLink(end, side=timer.side, pair=0, pid=timer.pid, answer_bytes=place.answer_bytes())
        link.greeted = timer.served
        return link

    def keep(self, baseline: dict[str, TapedCall]) -> None:
        """See `Engine`."""
        self._ask(BaselineRecorded(calls=baseline), Kept)

    def lease(self) -> None:
        """See `Engine`."""
        self._ask(LeaseWanted(), Leased)

    def _ask(self, report: BaselineRecorded | LeaseWanted, answer: type[Kept | Leased]) -> None:
        self.tell(report)
        if not isinstance(JUDGE_REQUESTS.decode(self._channel.receive().payload), answer):
            raise ChannelClosed("the engine gave up timing")

    def alive(self) -> None:
        """See `Engine`."""
        self.tell(Alive())
