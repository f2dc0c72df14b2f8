"""The line to the engine: reports, and waits for its permission."""

from __future__ import annotations

import time

from harness.wire.channels.channel import ENCODER, Channel, ChannelClosed
from harness.wire.messages.clock import JUDGE_REQUESTS, ClockReport
from harness.wire.messages.guest import Alive
from harness.wire.messages.judge import AtStage, JudgeReport, Proceed, TurnWanted


class EngineLine:
    """Reports to the engine over one channel."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def tell(self, report: JudgeReport | ClockReport) -> None:
        """Send a report."""
        self._channel.send(ENCODER.encode(report))

    def enter(self, stage: str) -> None:
        """Report that a stage begins."""
        self.tell(AtStage(stage=stage, at_s=time.monotonic()))

    def leave(self, stage: str, detail: str, *, ok: bool | None) -> None:
        """Report that a stage is over."""
        self.tell(AtStage(stage=stage, at_s=time.monotonic(), ended=True, ok=ok, detail=detail))

    def alive(self) -> None:
        """Report that work continues."""
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
