"""The players of a timing: processes that never see a source, and play the tapes of baseline and candidate side by side.

Each tape has a seat of its own: kernels loaded anew, and memory at another place. A pair of seats is in one process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.wire.messages.clock import PLAYERS, SIDES, Measure
from harness.wire.messages.guest import Ask
from harness.wire.messages.timer import Done, Prepared, TapedCall
from harness.worker.oracle.lines import GuestBroken
from suites.task import Case

from .case_inputs import CaseInputs, LaidOut
from .lines import TimerLine, TimingEngine
from .timed_seat import STEP_S


class Players:
    """The seats of one timing."""

    def __init__(self, engine: TimingEngine, measure: Measure, inputs: CaseInputs) -> None:
        self._engine = engine
        self._measure = measure
        self._inputs = inputs
        self._links: list[TimerLine] = []
        self._busy = False
        self.tapes = 0
        """Tapes played so far."""

    @property
    def reusable(self) -> bool:
        """True if there are players, and all of them answered each request."""
        return bool(self._links) and not self._busy

    def take(self) -> None:
        """Get players, under the lease: each time other processes."""
        self.close()
        self._busy = True
        self._links = self._engine.players(min(PLAYERS, self._measure.effort.pairs))
        for link in self._links:
            if not link.greeted:
                link.hello()
        self._busy = False

    def seats(self, side: str, pairs: Sequence[int]) -> list[TimerLine]:
        """A seat of this side for each pair."""
        count = len(self._links)
        return [
            self._links[pair % count].seat(len(SIDES) * (pair // count) + SIDES.index(side), side, pair)
            for pair in pairs
        ]

    def prepare(
        self,
        case: Case,
        seats: Sequence[TimerLine],
        calls: Mapping[str, TapedCall],
        laid_out: Sequence[LaidOut],
    ) -> list[Prepared]:
        """Put the tape of its side and the values of a case on each seat; the tape is played on each copy of the values.

        A player answers in the order of the requests, so all seats get a request before the first answer is read.
        """
        self._busy = True
        for seat in seats:
            tape = calls[seat.side].tape
            assert tape is not None
            seat.send(tape, wall_s=STEP_S)
        for seat in seats:
            if problem := seat.receive(Done, wall_s=STEP_S).problem:
                raise GuestBroken(f"the tape of the {seat.side} cannot be played: {problem}")
            self.tapes += 1
        arguments, size_bytes = laid_out[0].arguments, laid_out[0].size_bytes
        for seat in seats:
            self._inputs.send(seat, self._measure, case, arguments, size_bytes, laid_out)
        prepared = []
        for seat in seats:
            self._engine.alive()
            # Shorter than the engine waits for a report: a tape that hangs is a timeout, and no silence of the clock.
            prepared.append(seat.receive(Prepared, wall_s=self._measure.limits.call_s))
        self._engine.alive()
        return prepared

    def clear(self) -> None:
        """Empty all seats: what was played there is over."""
        for link in self._links:
            link.send(Ask.CLEAR, wall_s=STEP_S)
        for link in self._links:
            link.receive(Done, wall_s=STEP_S)
        self._busy = False

    def close(self) -> None:
        """Close the lines to the players, which wait for the next timing."""
        for link in self._links:
            link.close()
        self._links = []
