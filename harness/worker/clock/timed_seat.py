"""One seat of a timer on one case, from the clock's side: sends the requests, keeps the results."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field

from msgspec.structs import replace

from harness.wire.messages.clock import Block, ProcessTimes
from harness.wire.messages.timer import (
    EVENTS,
    LEAST_IN_BLOCK,
    Batch,
    Done,
    Prepared,
    Rung,
    TakeSample,
    TapedCall,
)
from harness.wire.results.latency import TimingMethod

from .lines import TimerLine

BLOCK_MS = 5.0
"""Target device time of a block of samples."""
MOST_IN_BLOCK = 50
LEAST_REPLAYS = 2
"""Replays in a block at least; each is the mean of many calls."""
MOST_REPLAYS = 3
WALL_MS = 5.0
"""Target time of a batch timed by the clock's own watch, without what surrounds the calls."""
MOST_IN_BATCH = 20
WALLS = 2
SUSTAINED_MS = 1000.0
"""Duration of plain calls before the sustained time is taken, and while it is taken."""
STEP_S = 60.0
"""Limit for any request except the first of a case."""
MOST_WORDS = 500
"""Characters kept of a reason."""
NO_BLOCK = Block(0.0, 0.0, ())
_LONGEST_MS = STEP_S * 1e3


class ClockFailed(Exception):
    """A clock of the ladder gave no time, which is no fault of a candidate: its tape was played before. The message says why."""

    def __init__(self, why: str, *, corrupted: bool = False) -> None:
        super().__init__(why[:MOST_WORDS])
        self.corrupted = corrupted
        """Outputs are wrong in a graph alone."""


@dataclass(slots=True)
class TimedSeat:
    """A seat that has prepared a case."""

    link: TimerLine
    prepared: Prepared
    cold: bool
    """The caches do not hold the inputs of a call."""
    copies: int
    """Copies of the inputs that the timer holds."""
    call: TapedCall
    """The recorded call, with what only a process with the source measures."""
    taped: bool
    """The seat plays the tape of the call; otherwise it calls the source."""
    rung: Rung = EVENTS
    """The clock for series of calls."""
    method: TimingMethod = TimingMethod.EVENTS
    """How the blocks were timed."""
    has_series: bool = False
    """A series was asked for."""
    trial: Block = NO_BLOCK
    """Calls between events that do not count; the size of the later blocks and the method follow from them."""
    launches: int = 0
    """Calls in the captured series; 0: calls are timed between events."""
    blocks: list[Block] = field(default_factory=list)
    wall_ms: float | None = None
    sustained_ms: float | None = None

    @property
    def samples(self) -> list[float]:
        """The samples of all blocks that count."""
        return [sample for block in self.blocks for sample in block.samples_ms]

    def block(self, count: int) -> Block:
        """Take samples in a row: replays of the series, if there is one. They count once they are in `blocks`."""
        request = TakeSample(count=count, cold=self.cold, replays=self.launches > 0)
        began = time.monotonic()
        sampled = self.link.ask(request, Done, wall_s=STEP_S)
        ended = time.monotonic()
        if len(sampled.samples_ms) != count or not all(0 < ms < _LONGEST_MS for ms in sampled.samples_ms):
            if self.taped and self.launches:
                raise ClockFailed(f"a call cannot take {min(sampled.samples_ms, default=0.0):.3g} ms")
            raise self.link.lie("what came are no times of the calls that were asked for")
        return Block(began, ended, sampled.samples_ms)

    def try_calls(self) -> None:
        """Take the trial block, before a series is captured."""
        self.trial = self.block(LEAST_IN_BLOCK)

    def block_size(self) -> int:
        """Samples per block: replays of the series, if there is one."""
        if self.launches:
            replay_ms = statistics.median(self.trial.samples_ms) * self.launches
            return max(LEAST_REPLAYS, min(MOST_REPLAYS, int(BLOCK_MS / replay_ms)))
        each_ms = (self.trial.ended_s - self.trial.began_s) * 1e3 / len(self.trial.samples_ms)
        return max(LEAST_IN_BLOCK, min(MOST_IN_BLOCK, int(BLOCK_MS / max(each_ms, 1e-3))))

    def begin_capture(self, launches: int) -> None:
        """Ask the timer to capture a series; `end_capture` waits for it."""
        self.has_series = True
        self.link.send(replace(self.rung, launches=launches), wall_s=STEP_S)

    def end_capture(self, launches: int, *, cold: bool) -> str:
        """Return why there is no series; empty if later samples are replays of it."""
        problem = self.link.receive(Done, wall_s=STEP_S).problem
        self.copies = launches
        if not problem:
            self.launches, self.cold = launches, cold
        return problem[:MOST_WORDS]

    def watch(self, *, launches_alone: bool = False) -> None:
        """Time batches of calls, as they were timed, by the clock's own watch. With `launches_alone` only those of a graph."""
        call_ms = max(statistics.median(self.samples), 1e-4)
        if self.launches:
            replays = max(LEAST_REPLAYS, int(WALL_MS / call_ms / self.launches))
            self.wall_ms = min(self._batch("graph", replays) for _ in range(WALLS)) / replays / self.launches
        elif not launches_alone:
            count = max(LEAST_IN_BLOCK, min(MOST_IN_BATCH, int(WALL_MS / call_ms)))
            extra = [self._batch("calls", count) - self._batch("around", count) for _ in range(WALLS)]
            self.wall_ms = statistics.median(extra) / count

    def sustain(self) -> None:
        """Time plain calls after a second of plain calls: clock and power have followed the load by then."""
        plain_ms = min(self._batch("plain", LEAST_IN_BLOCK) for _ in range(WALLS)) / LEAST_IN_BLOCK
        count = max(1, int(SUSTAINED_MS / max(plain_ms, 1e-3)))
        self._batch("plain", count)
        self.sustained_ms = self._batch("plain", count) / count

    def times(self, case: str) -> ProcessTimes:
        """All results."""
        return ProcessTimes(
            side=self.link.side,
            pair=self.link.pair,
            case=case,
            blocks=tuple(self.blocks),
            wall_ms=self.wall_ms,
            plain_ms=self.call.plain_ms,
            peak_bytes=self.call.peak_bytes,
            configs=self.call.configs,
            method=self.method,
            launches=self.launches,
            cold=self.cold,
            sustained_ms=self.sustained_ms,
            taped=self.taped,
            host_ms=self.prepared.call_ms,
        )

    def _batch(self, kind: str, count: int) -> float:
        """Milliseconds of the whole batch, by the clock's own watch."""
        batch = Batch(kind=kind, count=count, cold=self.cold)
        began = time.perf_counter()
        self.link.ask(batch, Done, wall_s=STEP_S)
        return (time.perf_counter() - began) * 1e3
