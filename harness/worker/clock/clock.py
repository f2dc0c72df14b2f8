"""
The clock: times baseline and candidate over the cases of a task. One seat is active at a time, in an order drawn each round.

It runs in the judge's process, with access to the inputs and the oracle's outputs. Of each side it records one call a case as a
launch tape, which players play: no foreign code runs there. A side without tapes is timed in seats with its source. Their
times are evidence, which the clock's own watch around whole batches confirms or bounds.
"""

from __future__ import annotations

import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain

import msgspec
import torch

from harness.wire.calls.launch_tape import TapedLaunch
from harness.wire.messages.clock import (
    BASELINE,
    CANDIDATE,
    SIDES,
    Floor,
    Measure,
    Measured,
    Taped,
)
from harness.wire.messages.guest import GPU_FAULT
from harness.wire.messages.timer import (
    EVENTS,
    METHOD_WORDS,
    MOST_LAUNCHES,
    NO_GRAPH_OF_A_SOURCE,
    SETS,
    UNTRUSTED_GRAPHS,
    Rung,
    TapedCall,
    count_copies,
    list_rungs,
)
from harness.wire.results import ratios
from harness.wire.results.evaluation import ErrorReport
from harness.wire.results.latency import TimingMethod
from harness.worker.kit import place
from harness.worker.kit.device_memory import NotShared
from harness.worker.oracle import integrity
from harness.worker.oracle.blame import CandidateStopped, blame, in_one_line, is_memory
from harness.worker.oracle.lines import CandidateRaised, GuestBroken, GuestGone, GuestSlow, NoAnswer
from harness.worker.oracle.problem import BadProblem, Problem
from harness.worker.oracle.vault import Given, Vault
from suites.task import Case

from . import short_calls
from .case_inputs import CaseInputs
from .lines import TimerLine, TimingEngine
from .players import Players
from .source_timers import SourceTimers
from .spot_check import SpotCheck
from .timed_seat import ClockFailed, TimedSeat

CLEARLY_SHORT = 0.8
"""A case is too short already after its trial blocks if it stays below this share of the shortest time."""
LOOKS_AT_INPUTS = 2
"""Checks of the inputs of each seat of the candidate, after a case was sampled."""
ROCM = "graphs of ROCm can (clr 279)"
MOST_CORRUPTED = 2
"""A case is timed without a graph after so many times in a row that graphs corrupted a right tape, each in new players (AMD)."""
LOOK_SHARE = 0.25
"""Share of the blocks after which the inputs are checked too: a timer cannot know which block is the last."""


class Clock:
    """Times one candidate. A failure in the candidate's timers is its error; any other failure is a `problem`."""

    def __init__(
        self,
        engine: TimingEngine,
        measure: Measure,
        problem: Problem,
        vault: Vault,
        *,
        measure_floor: Callable[[int, str, int], Floor],
    ) -> None:
        self._engine = engine
        self._measure_floor = measure_floor
        self._measure = measure
        self._task = measure.task
        self._inputs = CaseInputs(problem, vault, measure.seed)
        self._sources = SourceTimers(engine, measure, self._inputs)
        self._players = Players(engine, measure, self._inputs)
        self._spot_check = SpotCheck(measure.task, self._inputs)
        self._calls: dict[str, dict[str, TapedCall]] = {CANDIDATE: {}, BASELINE: dict(measure.baseline_calls)}
        """Recorded calls by side and case."""
        self._from_source: dict[str, list[TimerLine]] = {}
        """Timers of each side that has no tape of some case."""
        self._tapes: list[Taped] = []
        self._random = random.SystemRandom()
        self._floor: Floor | None = None
        self._deadline = 0.0
        self._case = ""
        self._seconds: dict[str, float] = {}
        self._phase_began = time.monotonic()
        self._is_amd = measure.target.startswith("gfx")
        self._rungs: tuple[Rung, ...] = (EVENTS,)
        """The clocks of the ladder that did not fail yet."""
        self._why_rung = ""
        """Why clocks of the ladder are left out."""
        self._corrupted: Counter[str] = Counter()
        """Players in a row with wrong outputs in graphs alone, by case."""
        self._sampled: dict[str, list[TimedSeat]] = {}
        """The seats that sampled a case so far, by case. All have one method."""
        self._why_method: dict[str, str] = {}

    def run(self) -> Measured:
        """Time everything; returns a result whatever a timer does. Processes that time stay alive until `close`: a process that
        ends delays all processes that call the device's driver.
        """
        error: ErrorReport | None = None
        problem = ended = ""
        try:
            self._time_all()
        except NoAnswer as failure:
            ended = failure.side if isinstance(failure, GuestGone) else ""
            at = f"case {self._case}" if self._case else "the import"
            if failure.side == CANDIDATE and not is_memory(failure):
                error = blame(failure, self._case, f"while it was timed, {at}: ", gpu=True)
            else:
                problem = f"{at}: the {failure.side} could not be timed: {in_one_line(str(failure))}"
        except CandidateStopped as stop:
            error = stop.error
        except (BadProblem, GuestBroken, NotShared, OSError, torch.OutOfMemoryError) as failure:
            at = f"case {self._case}: " if self._case else ""
            problem = f"{at}{in_one_line(str(failure))}"
        return Measured(
            times=tuple(seat.times(case) for case, of_case in self._sampled.items() for seat in of_case),
            floor=self._floor,
            tapes=tuple(self._tapes),
            served=tuple(call.served for call in self._calls[CANDIDATE].values() if call.served is not None),
            confirmed_outputs=self._spot_check.confirmed,
            written_bytes=self._spot_check.written_bytes,
            error=error,
            problem=problem,
            ended=ended,
            why_method=self._why_method,
            seconds={phase: round(seconds, 3) for phase, seconds in self._seconds.items()},
            not_shared=self._inputs.not_shared or "",
            players_reusable=self._players.reusable,
            tapes_played=self._players.tapes,
        )

    def _end_phase(self, phase: str) -> None:
        """Count the time since the end of the previous phase for this phase."""
        now = time.monotonic()
        self._seconds[phase] = self._seconds.get(phase, 0.0) + now - self._phase_began
        self._phase_began = now

    def _time_all(self) -> None:
        unrecorded = [side for side in SIDES if not self._calls[side]]
        recorders = self._sources.start(unrecorded, 1)
        self._end_phase("start, import")
        self._inputs.try_sharing(recorders[0])
        # The case that is timed first comes last: a vault that is too small drops what was used longest ago.
        for case in reversed(self._task.open_cases):
            self._case = case.name
            self._sources.begin_compile(recorders, case)
            self._inputs.draw(case, unseen=1)
            self._end_phase("inputs, right outputs")
            self._sources.end_compile(recorders)
            self._end_phase("compile")
        tunes = [link for link in recorders if "autotune" in self._measure.sources[link.side]]
        self._record_calls([link for link in recorders if link not in tunes])
        self._start_untaped(recorders)
        # A recorder that is done gives its memory and its context back before anything is timed.
        self._sources.dismiss(
            [link for link in recorders if link not in (*tunes, *chain(*self._from_source.values()))]
        )
        place.give_back()
        self._engine.lease()
        self._end_phase("wait for the lease")
        self._deadline = time.monotonic() + self._measure.budget_s
        nodes = self._measure.graph_nodes
        # A graph that fails ends its process, here the judge's, and AMD's graphs are known to fail.
        safe_nodes = (0 if self._is_amd else MOST_LAUNCHES) if nodes is None else nodes
        self._floor = self._measure_floor(self._measure.flush_bytes, self._measure.matmul_dtype, safe_nodes)
        self._end_phase("floor")
        self._record_calls(tunes)
        self._start_untaped(tunes)
        self._why_rung = UNTRUSTED_GRAPHS if nodes == 0 else ""
        if self._from_source and self._is_amd:
            nodes, self._why_rung = 0, NO_GRAPH_OF_A_SOURCE
        self._rungs = list_rungs(nodes, taped=not self._from_source)
        for look in range(1 if self._from_source else self._measure.effort.looks):
            cases = [case for case in self._task.open_cases if not self._is_done(case, look)]
            if cases and len(self._from_source) < len(SIDES):
                self._players.take()
                self._end_phase("start of players")
            for case in cases:
                if not self._is_done(case, look):
                    self._time_case(case, look)
        self._sources.dismiss(tuple(self._sources.links))

    def _record_calls(self, recorders: Sequence[TimerLine]) -> None:
        """Record a call of each case in these timers. Under the lease for autotuned kernels, which choose their configs here."""
        for case in self._task.open_cases if recorders else ():
            self._case = case.name
            for side, call in self._sources.record(recorders, case, self._sets(case)).items():
                self._calls[side][case.name] = call
        if any(link.side == BASELINE for link in recorders):
            self._engine.keep(self._calls[BASELINE])
        self._end_phase("recording of calls")

    def _start_untaped(self, recorders: Sequence[TimerLine]) -> None:
        """Start the timers of each recorded side without a tape of some case. Its recorder is the first of them."""
        for side, calls in self._calls.items():
            if side in self._from_source or not calls or all(call.tape for call in calls.values()):
                continue
            own = [link for link in recorders if link.side == side]
            more = self._sources.start([side], self._measure.effort.pairs - len(own))
            for case in reversed(self._task.open_cases):
                self._case = case.name
                self._sources.begin_compile(more, case)
                self._inputs.draw(case, unseen=1)
                self._sources.end_compile(more)
            self._from_source[side] = [*own, *more]
            for pair, link in enumerate(self._from_source[side]):
                link.pair = pair
            self._end_phase("start of timers for calls without a tape")

    def _sets(self, case: Case) -> list[Given]:
        return [self._inputs.values(case, number) for number in range(SETS)]

    def _is_done(self, case: Case, look: int) -> bool:
        """Whether a look would change nothing, or the time for more looks is over."""
        if look == 0:
            return False
        is_resolved = look >= self._measure.effort.least_looks and self._is_resolved(self._sampled[case.name])
        return is_resolved or time.monotonic() > self._deadline

    def _time_case(self, case: Case, look: int) -> None:
        """Time one look at a case; a clock that fails is followed by the next one of the ladder, in new players."""
        self._case = case.name
        while True:
            place.give_back()
            earlier = self._sampled.get(case.name, [])
            rung = earlier[0].rung if earlier else self._rung_of(case)
            seats = self._prepare(case, look, rung)
            self._end_phase("inputs, warm calls")
            for seat in self._shuffled(seats):
                seat.try_calls()
            self._engine.alive()
            try:
                self._sample_and_check(case, seats, earlier)
            except ClockFailed as failure:
                self._step_down(case, rung, failure)
                self._players.take()
                self._end_phase("start of players")
                continue
            self._sampled[case.name] = [*earlier, *seats]
            if len(self._from_source) < len(SIDES):
                self._players.clear()
                self._end_phase("clearing of players")
            return

    def _sample_and_check(self, case: Case, seats: Sequence[TimedSeat], earlier: Sequence[TimedSeat]) -> None:
        """Sample and check after the trial calls. Raises `ClockFailed` if a player fails with a series of calls."""
        try:
            self._sample_case(case, seats, earlier)
            self._end_phase("samples")
            if not earlier:
                self._check(case, seats)
        except (GuestGone, GuestSlow, CandidateRaised) as failure:
            if self._is_clock_to_blame(failure, seats):
                raise ClockFailed(f"a player failed: {in_one_line(str(failure))}") from failure
            raise

    def _is_clock_to_blame(self, failure: NoAnswer, seats: Sequence[TimedSeat]) -> bool:
        """Whether players failed with a series of calls that they had made one by one.

        A fault of the GPU is the kernel's, except on AMD, where graphs are known to cause it.
        """
        if self._from_source or is_memory(failure) or not any(seat.has_series for seat in seats):
            return False
        is_fault = isinstance(failure, CandidateRaised) and failure.failure.kind == GPU_FAULT
        return self._is_amd or not is_fault

    def _rung_of(self, case: Case) -> Rung:
        """The best clock that did not fail; no graph for a case that graphs corrupted."""
        without_graph = self._corrupted[case.name] >= MOST_CORRUPTED
        return next(rung for rung in self._rungs if not (without_graph and rung.method is TimingMethod.GRAPH))

    def _step_down(self, case: Case, rung: Rung, failure: ClockFailed) -> None:
        """Forget what was sampled of a case, and leave out the clock that failed; after the time for timing all but events."""
        size = f" of at most {rung.nodes} calls" if rung.nodes else ""
        why = f"{METHOD_WORDS[rung.method]}{size}: {failure}"
        if failure.corrupted:
            self._corrupted[case.name] += 1
        elif rung in self._rungs:
            late = time.monotonic() > self._deadline
            self._rungs = self._rungs[-1:] if late else self._rungs[self._rungs.index(rung) + 1 :]
            self._why_rung = why
        self._why_method[case.name] = why
        self._sampled.pop(case.name, None)
        self._tapes = [tape for tape in self._tapes if tape.case != case.name]

    def _prepare(self, case: Case, look: int, rung: Rung) -> list[TimedSeat]:
        """A seat of each side for each pair of this look, with the case's inputs and warm."""
        pairs = range(look * self._measure.effort.pairs, (look + 1) * self._measure.effort.pairs)
        copies = count_copies(SETS, self._inputs.size_bytes(case), self._measure.flush_bytes)
        calls = {side: of_side[case.name] for side, of_side in self._calls.items()}
        sets = self._sets(case)
        self._end_phase("inputs of the judge's")
        seats, cold = [], self._measure.cold
        with self._inputs.laid_out(sets) as laid_out:
            for side, links in self._from_source.items():
                for link in links:
                    prepared = self._sources.prepare(link, case, laid_out, calls[side].configs)
                    seats.append(TimedSeat(link, prepared, cold, copies, calls[side], taped=False, rung=rung))
            links = [
                link
                for side in SIDES
                if side not in self._from_source
                for link in self._players.seats(side, pairs)
            ]
            if links:
                for link, prepared in zip(
                    links, self._players.prepare(case, links, calls, laid_out), strict=True
                ):
                    call = calls[link.side]
                    seats.append(TimedSeat(link, prepared, cold, copies, call, taped=True, rung=rung))
        return seats

    def _sample_case(self, case: Case, seats: Sequence[TimedSeat], earlier: Sequence[TimedSeat]) -> None:
        """Sample in rounds, one block per seat, until the medians are precise or time is up.

        `earlier`: the seats of an earlier look; their method stays.
        """
        is_short = (
            earlier[0].method is not TimingMethod.EVENTS
            if earlier
            else self._measure.cold and short_calls.are_short(seats)
        )
        why = self._why_rung if is_short and not earlier else ""
        if is_short and seats[0].rung.method is not TimingMethod.EVENTS:
            why = short_calls.capture(case, seats, self._inputs, self._measure, self._engine.alive) or why
        if why:
            self._why_method[case.name] = why
        method = seats[0].method
        in_series = method is not TimingMethod.EVENTS
        trials = [(seat.link.side, seat.trial.samples_ms) for seat in seats]
        if not in_series and self._is_short(trials, method, of=CLEARLY_SHORT):
            for seat in seats:
                seat.blocks.append(seat.trial)
            return
        least = min(seat.block_size() for seat in seats)
        effort = self._measure.effort
        for number in range(effort.most_rounds):
            for seat in self._shuffled(seats):
                seat.blocks.append(seat.block(seat.block_size() if in_series else least))
                if self._random.random() < LOOK_SHARE and not seat.taped:
                    self._check_inputs(case, seat)
            self._engine.alive()
            if self._is_short([(seat.link.side, seat.samples) for seat in seats], method):
                break
            if number + 1 < effort.least_rounds:
                continue
            error = max(ratios.median_error(seat.samples) for seat in seats)
            if error <= ratios.MEDIAN_ERROR or time.monotonic() > self._deadline:
                break

    def _check(self, case: Case, seats: Sequence[TimedSeat]) -> None:
        """Check the candidate's inputs and outputs once a case; read the watch and sustained times."""
        short = self._is_short_case(seats)
        if not short:  # a short case gets no ratio, so changed inputs do not matter
            for seat in seats:
                for _ in range(1 if seat.taped else LOOKS_AT_INPUTS):
                    self._check_inputs(case, seat)
                    self._engine.alive()
        self._end_phase("looks at inputs")
        pair = [seat for seat in seats if seat.link.pair == seats[0].link.pair]
        if not self._measure.effort.rough:
            for seat in self._shuffled(pair):
                if not seat.taped:
                    # The candidate itself reported the short times, so its calls are always timed.
                    seat.watch(launches_alone=short and seat.link.side != CANDIDATE)
                    self._engine.alive()
            self._end_phase("the clock's own watch")
            if self._measure.effort.sustained and not short and time.monotonic() < self._deadline:
                for seat in self._shuffled(pair):
                    seat.sustain()
                    self._engine.alive()
                self._end_phase("sustained calls")
        candidates = [seat for seat in seats if seat.link.side == CANDIDATE]
        self._check_outputs(case, self._random.choice(candidates))
        self._end_phase("check of outputs")
        call = self._calls[CANDIDATE][case.name]
        if candidates[0].taped and call.tape is not None:
            launches = sum(isinstance(step, TapedLaunch) for step in call.tape.steps)
            self._tapes.append(Taped(case.name, launches=launches, code=call.code))
        else:
            self._tapes.append(Taped(case.name, why_not=call.why_not or "another case has no tape"))

    def _check_inputs(self, case: Case, seat: TimedSeat) -> None:
        """Refuse the candidate if it changed a random copy of its inputs; not for tasks that work in place."""
        if seat.link.side != CANDIDATE or self._task.in_place:
            return
        copy = self._random.randrange(seat.copies)
        changed = self._inputs.changed(seat.link, case, copy)
        if changed and self._may_corrupt(seat):
            raise ClockFailed(f"a graph changed the input `{changed[0]}`, as {ROCM}", corrupted=True)
        if changed:
            where = f"case {case.name}, in calls that were timed: "
            raise CandidateStopped(integrity.changed_input(where, changed[0]))

    def _may_corrupt(self, seat: TimedSeat) -> bool:
        """Whether the graph itself may have corrupted what a right tape did."""
        return self._is_amd and seat.taped and seat.method is TimingMethod.GRAPH

    def _check_outputs(self, case: Case, seat: TimedSeat) -> None:
        """Refuse the candidate if timed calls on unseen values are wrong."""
        error = self._spot_check.find_error(seat, self._inputs.unseen(case))
        self._engine.alive()
        if error is None:
            self._corrupted[case.name] = 0
            return
        if self._may_corrupt(seat):
            seat.launches = 0  # calls between events: the player drops its graph
            if self._spot_check.find_error(seat, self._inputs.unseen(case)) is None:
                why = f"a graph gave wrong outputs where the same calls without a graph are right, as {ROCM}"
                raise ClockFailed(why, corrupted=True)
        if seat.taped:
            message = (
                f"case {case.name}: the launches of a call, made once more on other values in a process that never saw the source, give "
                f"other outputs: {error.message}; what a call returns has to come from its kernels, whatever the values"
            )
            error = msgspec.structs.replace(error, kind="not_replayed", message=message)
        raise CandidateStopped(error)

    def _is_resolved(self, seats: Sequence[TimedSeat]) -> bool:
        """Whether more pairs would change nothing."""
        if self._is_short_case(seats) or len(seats) < 2 * len(SIDES):
            return True
        slow, fast = ([seat.samples for seat in seats if seat.link.side == side] for side in SIDES)
        return ratios.ratio(slow, fast).is_resolved

    def _is_short_case(self, seats: Sequence[TimedSeat]) -> bool:
        samples = [(seat.link.side, seat.samples) for seat in seats]
        return self._is_short(samples, seats[0].method)

    def _is_short(
        self, by_seat: Sequence[tuple[str, Sequence[float]]], method: TimingMethod, *, of: float = 1.0
    ) -> bool:
        """Whether baseline and candidate are both so short that the case gets no ratio.

        `by_seat`: side and samples of each seat. `of`: share of the shortest time that gets a ratio.
        """
        if self._floor is None:
            return False
        medians = [
            statistics.median(statistics.median(samples) for of_side, samples in by_seat if of_side == side)
            for side in SIDES
        ]
        return max(medians) < of * ratios.FLOORS[method] * self._floor.empty_by(method)

    def _shuffled(self, seats: Sequence[TimedSeat]) -> list[TimedSeat]:
        return self._random.sample(seats, len(seats))

    def close(self) -> None:
        """Close the channels to all timers and players."""
        self._sources.close()
        self._players.close()
