"""One timer on one case, from the clock's side: sends the requests, keeps the results."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field
from functools import partial

from harness.wire.clock_messages import Block, Drawn, ProcessTimes
from harness.wire.timer_messages import LEAST_IN_BLOCK, Batch, Done, Prepared, Sample, Sampled
from harness.worker.oracle.guest_link import GuestLied

from .timer_link import TimerFailed, TimerLink

BLOCK_MS = 8.0
"""Target device time of a block of samples."""
MOST_IN_BLOCK = 50
WALL_MS = 5.0
"""Target time of a batch timed by the clock's own watch, without what surrounds the calls."""
MOST_IN_BATCH = 20
WALLS = 2
STEP_S = 60.0
"""Limit for any request except the first of a case."""
MOST_WORDS = 500
"""Characters kept of a reason."""
_LONGEST_MS = STEP_S * 1e3


@dataclass(slots=True)
class TimedProcess:
    """A timer that has prepared a case."""

    link: TimerLink
    prepared: Prepared
    cold: bool
    blocks: list[Block] = field(default_factory=list)
    wall_ms: float | None = None
    plain_ms: float | None = None
    graph_ms: float | None = None
    why_no_graph: str = ""
    drawn: Drawn | None = None

    @property
    def samples(self) -> list[float]:
        """The samples of all blocks that count."""
        return [sample for block in self.blocks for sample in block.samples_ms]

    def block(self, count: int) -> Block:
        """Take samples in a row. They count after the caller adds the block to `blocks`."""
        sample = partial(Sample, count=count, cold=self.cold)
        began = time.monotonic()
        sampled = self.link.ask(lambda nonce: sample(nonce=nonce), Sampled, wall_s=STEP_S)
        ended = time.monotonic()
        if len(sampled.samples_ms) != count or not all(0 < ms < _LONGEST_MS for ms in sampled.samples_ms):
            lie = GuestLied("what came are no times of the calls that were asked for")
            raise TimerFailed(self.link.side, lie)
        return Block(began, ended, sampled.samples_ms)

    def watch(self, *, launches_alone: bool = False) -> None:
        """Time batches by the clock's own watch: calls minus their surroundings, plain calls, a graph.

        With `launches_alone` the first of these is left out.
        """
        median = statistics.median(self.samples)
        count = max(LEAST_IN_BLOCK, min(MOST_IN_BATCH, int(WALL_MS / max(median, 1e-4))))
        if not launches_alone:
            extra = [self._batch("calls", count) - self._batch("around", count) for _ in range(WALLS)]
            self.wall_ms = statistics.median(extra) / count
        self.plain_ms = min(self._batch("plain", count) for _ in range(WALLS)) / count
        capture = partial(Batch, kind="capture", count=1, cold=False)
        captured = self.link.ask(lambda nonce: capture(nonce=nonce), Done, wall_s=STEP_S)
        self.why_no_graph = captured.problem[:MOST_WORDS]
        if not captured.problem:
            self.graph_ms = min(self._batch("graph", count) for _ in range(WALLS)) / count

    def draw(self, seconds: float) -> None:
        """Make plain calls for about `seconds`, while the device's power is read. Call `watch` first."""
        assert self.plain_ms is not None
        count = max(1, int(seconds * 1e3 / max(self.plain_ms, 1e-3)))
        began = time.monotonic()
        self._batch("plain", count)
        self.drawn = Drawn(began, time.monotonic(), count)

    def times(self, case: str) -> ProcessTimes:
        """All results."""
        return ProcessTimes(
            side=self.link.side,
            pair=self.link.pair,
            case=case,
            blocks=tuple(self.blocks),
            wall_ms=self.wall_ms,
            plain_ms=self.plain_ms,
            graph_ms=self.graph_ms,
            why_no_graph=self.why_no_graph,
            peak_bytes=self.prepared.peak_bytes,
            configs=self.prepared.configs,
            drawn=self.drawn,
        )

    def _batch(self, kind: str, count: int) -> float:
        """Milliseconds of the whole batch, by the clock's own watch."""
        batch = partial(Batch, kind=kind, count=count, cold=self.cold)
        began = time.perf_counter()
        self.link.ask(lambda nonce: batch(nonce=nonce), Done, wall_s=STEP_S)
        return (time.perf_counter() - began) * 1e3


def block_size(tried: Block) -> int:
    """Samples per block, from the time of a trial block, which does not count."""
    each_ms = (tried.ended_s - tried.began_s) * 1e3 / len(tried.samples_ms)
    return max(LEAST_IN_BLOCK, min(MOST_IN_BLOCK, int(BLOCK_MS / max(each_ms, 1e-3))))
