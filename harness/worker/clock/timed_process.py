"""One timer in one case, from the clock's side: what it is asked, and what it has shown."""

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
"""What a block of samples should take on the device."""
MOST_IN_BLOCK = 50
WALL_MS = 5.0
"""What a batch for the clock's own watch should take, less what is around the calls."""
MOST_IN_BATCH = 20
WALLS = 2
STEP_S = 60.0
"""For any request but the first of a case."""
MOST_WORDS = 500
"""Characters of a reason that are kept."""
_LONGEST_MS = STEP_S * 1e3


@dataclass(slots=True)
class TimedProcess:
    """A timer that holds a case."""

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
        """Of all blocks that count."""
        return [sample for block in self.blocks for sample in block.samples_ms]

    def block(self, count: int) -> Block:
        """Samples in a row; they count when they are added to `blocks`."""
        sample = partial(Sample, count=count, cold=self.cold)
        began = time.monotonic()
        sampled = self.link.ask(lambda nonce: sample(nonce=nonce), Sampled, wall_s=STEP_S)
        ended = time.monotonic()
        if len(sampled.samples_ms) != count or not all(0 < one < _LONGEST_MS for one in sampled.samples_ms):
            lie = GuestLied("what came are no times of the calls that were asked for")
            raise TimerFailed(self.link.side, lie)
        return Block(began, ended, sampled.samples_ms)

    def watch(self, *, launches_alone: bool = False) -> None:
        """The clock's own watch around batches: what a call adds to what is around it, unless `launches_alone`; plain calls; a graph of one."""
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
        """Plain calls for about so long, after `watch` has told what one takes."""
        assert self.plain_ms is not None
        count = max(1, int(seconds * 1e3 / max(self.plain_ms, 1e-3)))
        began = time.monotonic()
        self._batch("plain", count)
        self.drawn = Drawn(began, time.monotonic(), count)

    def times(self, case: str) -> ProcessTimes:
        """What it has shown."""
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
        """Milliseconds that the whole batch took, by the clock's watch."""
        batch = partial(Batch, kind=kind, count=count, cold=self.cold)
        began = time.perf_counter()
        self.link.ask(lambda nonce: batch(nonce=nonce), Done, wall_s=STEP_S)
        return (time.perf_counter() - began) * 1e3


def block_size(tried: Block) -> int:
    """Samples that a block should have, by what a few took that do not count."""
    each_ms = (tried.ended_s - tried.began_s) * 1e3 / len(tried.samples_ms)
    return max(LEAST_IN_BLOCK, min(MOST_IN_BLOCK, int(BLOCK_MS / max(each_ms, 1e-3))))
