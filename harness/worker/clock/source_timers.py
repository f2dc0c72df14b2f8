"""Timers that have a source: they record one call of it in each case, and time it where the call has no tape.

Before the lease they import the source and compile every case. Autotuned kernels are tuned under the lease.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from harness.wire.messages.clock import CANDIDATE, Measure
from harness.wire.messages.guest import Ask, LeftBehind, Load, Loaded
from harness.wire.messages.timer import (
    LEAST_IN_BLOCK,
    Batch,
    Done,
    Prepared,
    TapedCall,
)
from harness.wire.results.served_calls import ServedCall
from harness.worker.kit.arena import lay_out
from harness.worker.kit.binaries import BinaryUnreadable, code_digest
from harness.worker.oracle import integrity
from harness.worker.oracle.blame import CandidateStopped
from harness.worker.oracle.lines import CandidateRaised
from harness.worker.oracle.vault import Given
from suites.task import Case

from .case_inputs import CaseInputs, LaidOut
from .lines import TimerLine, TimingEngine
from .timed_seat import MOST_WORDS, STEP_S

MOST_CONFIGS = 1 << 16
"""Characters of all chosen configs of one case at most."""
PLAIN_BATCHES = 2


class SourceTimers:
    """The timers with a source of one timing."""

    def __init__(self, engine: TimingEngine, measure: Measure, inputs: CaseInputs) -> None:
        self._engine = engine
        self._measure = measure
        self._inputs = inputs
        self.links: list[TimerLine] = []

    def start(self, sides: Sequence[str], count: int) -> list[TimerLine]:
        """Start `count` timers of each side, and let them import their sources."""
        links = self._engine.timers(sides, count)
        self.links += links
        entry_points = tuple(entry.name for entry in self._measure.task.entry_points)
        call_s = self._measure.limits.call_s
        for link in links:
            link.hello()
        for link in links:
            source = self._measure.sources[link.side]
            link.send(Load(source, self._measure.target, entry_points), wall_s=call_s)
        for link in links:
            link.receive(Loaded, wall_s=call_s)
            self._engine.alive()
        return links

    def begin_compile(self, links: Sequence[TimerLine], case: Case) -> None:
        """Let timers compile a case's launches without running them; `end_compile` waits for them."""
        arguments, size_bytes = lay_out(self._inputs.values(case, 0).inputs)
        for link in links:
            self._inputs.send(link, self._measure, case, arguments, size_bytes)

    def end_compile(self, links: Sequence[TimerLine]) -> None:
        """Wait until a case is compiled. If that fails, the first call compiles."""
        for link in links:
            with suppress(CandidateRaised):
                link.receive(Prepared, wall_s=self._measure.limits.call_s)
            self._engine.alive()

    def record(self, links: Sequence[TimerLine], case: Case, sets: Sequence[Given]) -> dict[str, TapedCall]:
        """Record a call of each side, one timer after the other."""
        with self._inputs.laid_out(sets) as laid_out:
            return {link.side: self._record(link, case, self.prepare(link, case, laid_out)) for link in links}

    def prepare(
        self, link: TimerLine, case: Case, laid_out: Sequence[LaidOut], chosen: dict[str, str] | None = None
    ) -> Prepared:
        """Give a timer the values of a case; it makes warm calls, and tunes autotuned kernels that are not in `chosen`."""
        arguments, size_bytes = laid_out[0].arguments, laid_out[0].size_bytes
        self._inputs.send(link, self._measure, case, arguments, size_bytes, laid_out, chosen=chosen)
        prepared = link.receive(Prepared, wall_s=self._measure.limits.call_s)
        if sum(map(len, (*prepared.configs, *prepared.configs.values()))) > MOST_CONFIGS:
            raise link.lie("no kernels have configs as long as these")
        self._engine.alive()
        return prepared

    def _record(self, link: TimerLine, case: Case, prepared: Prepared) -> TapedCall:
        recorded = link.ask(Ask.RECORD, TapedCall, wall_s=STEP_S)
        tape, why_not = recorded.tape, recorded.why_not
        code: tuple[str, ...] = ()
        if tape is not None:
            try:
                code = tuple(code_digest(kernel.binary) for kernel in tape.kernels)
            except BinaryUnreadable as unreadable:
                tape, why_not = None, str(unreadable)
        rough = self._measure.effort.rough
        return TapedCall(
            tape=tape,
            why_not=why_not,
            code=code,
            configs=prepared.configs,
            plain_ms=None if rough else self._time_plain_calls(link),
            peak_bytes=prepared.peak_bytes,
            served=None if rough or link.side != CANDIDATE else self._try_serving(link, case),
        )

    def _try_serving(self, link: TimerLine, case: Case) -> ServedCall:
        """Find out what serving needs to know of a call. Last of a recording: a graph may change the state of the process."""
        call = link.ask(Ask.SERVE, TapedCall, wall_s=self._measure.limits.call_s).served
        if call is None or not 0 < call.host_us < math.inf:
            raise link.lie("what came are no times of a call")
        return msgspec.structs.replace(
            call, case=case.name, no_graph=call.no_graph and " ".join(call.no_graph.split())[:MOST_WORDS]
        )

    def _time_plain_calls(self, link: TimerLine) -> float:
        """Milliseconds of a plain call, by the clock's own watch."""
        batch = Batch(kind="plain", count=LEAST_IN_BLOCK, cold=False)
        batches_s = []
        for _ in range(PLAIN_BATCHES):
            began = time.perf_counter()
            link.ask(batch, Done, wall_s=STEP_S)
            batches_s.append(time.perf_counter() - began)
        return min(batches_s) * 1e3 / LEAST_IN_BLOCK

    def dismiss(self, links: Sequence[TimerLine]) -> None:
        """End timers that call their source no more. Refuses the candidate if it left something behind in one of them."""
        for link in links:
            left_behind = link.ask(Ask.FAREWELL, LeftBehind, wall_s=STEP_S)
            finding = integrity.of_farewell(left_behind) if link.side == CANDIDATE else None
            if finding is not None:
                raise CandidateStopped(finding)
            self.links.remove(link)
            link.close()

    def close(self) -> None:
        """Close the channels to all timers."""
        for link in self.links:
            link.close()
        self.links = []
