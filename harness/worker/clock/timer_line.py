"""The clock's line to one seat of a timer. Requests go to several seats at once; each timer answers in their order."""

from __future__ import annotations

from harness.wire.channels.channel import Channel
from harness.worker.oracle.worker_line import WorkerLine


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
            self._channel,
            side=side,
            pair=pair,
            pid=self._pid,
            answer_bytes=self._answer_bytes,
            seat=number,
        )
