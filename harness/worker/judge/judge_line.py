"""The judge's line to the engine: reports stages, and waits for permission to continue."""

from __future__ import annotations

import time

from harness.wire.channel import Channel, ChannelClosed
from harness.wire.clock_messages import JUDGE_REQUESTS
from harness.wire.encoding import ENCODER
from harness.wire.guest_messages import Alive
from harness.wire.judge_messages import Entered, JudgeReport, Left, Proceed, TurnWanted


class JudgeLine:
    """Reports to the engine over one channel."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def tell(self, report: JudgeReport) -> None:
        """Send a report."""
        self._channel.send(ENCODER.encode(report))

    def enter(self, stage: str) -> None:
        """Report that a stage begins."""
        self.tell(Entered(stage=stage, at_s=time.monotonic()))

    def leave(self, stage: str, detail: str, *, ok: bool | None) -> None:
        """Report that a stage is over."""
        self.tell(Left(stage=stage, at_s=time.monotonic(), ok=ok, detail=detail))

    def alive(self) -> None:
        """Report that work continues."""
        self.tell(Alive())

    def wait_for_go(self) -> bool:
        """Wait for the engine; True if the trial shall continue."""
        try:
            answer = JUDGE_REQUESTS.decode(self._channel.receive().payload)
        except ChannelClosed:
            return False
        return isinstance(answer, Proceed) and answer.go

    def take_turn(self) -> bool:
        """Ask for the next call's turn on the GPU and wait for it; True if the trial shall continue."""
        self.tell(TurnWanted())
        return self.wait_for_go()
