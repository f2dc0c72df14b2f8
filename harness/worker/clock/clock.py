"""
The clock: drives timers over the cases of a task, one active at a time, in an order that each round draws anew.

It runs in the judge's process, with access to the inputs and the oracle's outputs. The times that timers report are evidence.
The clock's own watch around whole batches, which no candidate can reach, confirms or bounds them.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import msgspec
import torch

from harness.wire import ratios
from harness.wire.clock_messages import (
    BASELINE,
    CANDIDATE,
    RIVAL,
    TAPE,
    Floor,
    Measure,
    Measured,
    ProcessTimes,
    Taped,
)
from harness.wire.evaluation import ErrorReport, Verdict
from harness.wire.guest_messages import Argument, Farewell, LeftBehind, Load, Loaded
from harness.wire.launch_tape import Launch, Tape
from harness.wire.timer_messages import LEAST_IN_BLOCK, Done, Play, Prepare, Prepared, Record, Recorded
from harness.worker.kit import place
from harness.worker.kit.arena import lay_out
from harness.worker.kit.binaries import BinaryUnreadable, code_digest
from harness.worker.kit.device_memory import NotShared
from harness.worker.oracle import integrity
from harness.worker.oracle.guest_link import CandidateRaised, GuestBroken, GuestLied, GuestSlow
from harness.worker.oracle.problem import BadProblem, Problem
from harness.worker.oracle.vault import Given, Vault
from suites.task import Case

from .blame import Refused, blamed, in_one_line, is_memory
from .case_inputs import SETS, CaseInputs, LaidOut, descriptors, handles
from .spot_check import SpotCheck
from .timed_process import STEP_S, TimedProcess, block_size
from .timer_link import TimerFailed, TimerLink

MEDIAN_ERROR = 0.0025
"""Rounds go on until the relative error of each process's median is this small."""
TAPE_SAMPLES = 60
"""Samples of a tape at most."""
CLEARLY_SHORT = 0.8
"""A case is too short already after its trial blocks if it stays below this share of the shortest time."""
LOOKS = 2
"""Checks of the inputs in each of the candidate's processes, after a case was sampled."""
LOOK_SHARE = 0.25
"""Share of the blocks after which the inputs are checked too: a timer cannot know which block is the last."""
MOST_CONFIGS = 1 << 16
"""Characters of all chosen configs of one case at most."""


class Engine(Protocol):
    """Starts timers for the clock and leases the device to it."""

    def timers(self, sides: Sequence[str], count: int, *, instead: bool) -> list[TimerLink]:
        """Start `count` timers of each side; `instead`: replace the running timers."""

    def lease(self) -> None:
        """Wait until the device is leased to the clock alone."""

    def alive(self) -> None:
        """Report that the clock still works."""


class Clock:
    """Times one candidate. A failure in the candidate's timers is a verdict; any other failure is a `problem`."""

    def __init__(
        self,
        engine: Engine,
        measure: Measure,
        problem: Problem,
        vault: Vault,
        *,
        measure_floor: Callable[[int], Floor],
    ) -> None:
        self._engine = engine
        self._measure_floor = measure_floor
        self._measure = measure
        self._task = measure.task
        self._inputs = CaseInputs(problem, vault, measure.seed)
        self._timers: list[TimerLink] = []
        self._times: list[ProcessTimes] = []
        self._spot_check = SpotCheck(measure.task)
        self._random = random.SystemRandom()
        self._floor: Floor | None = None
        self._deadline = 0.0
        self._case = ""
        self._seconds: dict[str, float] = {}
        self._phase_began = time.monotonic()
        self._rival_problem = ""
        """Why the rival was dropped; empty if it was not."""
        self._tapes: list[Taped] = []
        self._player: TimerLink | None = None
        self._configs: dict[tuple[str, str], dict[str, str]] = {}
        """Chosen configs of autotuned kernels, by side and case."""

    def _end_phase(self, phase: str) -> None:
        """Count the time since the end of the previous phase for this phase."""
        now = time.monotonic()
        self._seconds[phase] = self._seconds.get(phase, 0.0) + now - self._phase_began
        self._phase_began = now

    def run(self) -> Measured:
        """Time everything; returns a result whatever a timer does. Timers stay alive until `close`: a process that ends
        delays all processes that call the device's driver.
        """
        verdict: str = ""
        error: ErrorReport | None = None
        problem = ""
        try:
            try:
                self._time_all()
            except TimerFailed as failure:
                if failure.side != RIVAL:
                    raise
                self._drop_rival(failure)
                self._time_all()
        except TimerFailed as failure:
            if failure.side == CANDIDATE and not is_memory(failure.cause):
                verdict, error = blamed(failure.cause, self._case)
            else:
                problem = self._describe(failure)
        except Refused as refused:
            verdict, error = refused.verdict, refused.error
        except (BadProblem, GuestBroken, NotShared, OSError, torch.OutOfMemoryError) as failure:
            at = f"case {self._case}: " if self._case else ""
            problem = f"{at}{in_one_line(str(failure))}"
        return Measured(
            times=tuple(self._times),
            floor=self._floor,
            tapes=tuple(self._tapes),
            confirmed_outputs=self._spot_check.confirmed,
            verdict=verdict,
            error=error,
            problem=problem or self._rival_problem,
            seconds={phase: round(seconds, 3) for phase, seconds in self._seconds.items()},
            not_shared=self._inputs.not_shared or "",
        )

    def _time_all(self) -> None:
        self._start_timers()
        if self._floor is None:
            self._engine.lease()
            self._end_phase("wait for the lease")
            self._deadline = time.monotonic() + self._measure.budget_s
            self._floor = self._measure_floor(self._measure.flush_bytes)
            self._end_phase("floor")
        cases = self._task.open_cases
        for case in cases:
            self._time_case(case, check=True)
        for _ in range(1, self._measure.effort.looks):
            cases = tuple(case for case in cases if not self._is_resolved(case))
            if not cases or time.monotonic() > self._deadline:
                break
            self._say_farewell()
            self._start_timers()
            for case in cases:
                self._time_case(case, check=False)
        self._say_farewell()

    def _drop_rival(self, failure: TimerFailed) -> None:
        """The rival, correct before, failed now: forget it and all times, to start again without it."""
        self._rival_problem = self._describe(failure)
        sources = {side: source for side, source in self._measure.sources.items() if side != RIVAL}
        self._measure = msgspec.structs.replace(self._measure, sources=sources)
        self._times.clear()
        self._tapes.clear()

    def _start_timers(self) -> None:
        """Start timers, let them import their sources and compile the cases, before anything is timed."""
        self._case = ""
        sides = tuple(self._measure.sources)
        self.close()
        self._timers = self._engine.timers(sides, self._measure.effort.pairs, instead=True)
        entry_points = tuple(entry.name for entry in self._task.entry_points)
        call_s = self._measure.limits.call_s
        for timer in self._timers:
            timer.hello()
        self._end_phase("start")
        for timer in self._timers:
            load = partial(
                Load,
                source=self._measure.sources[timer.side],
                entry_points=entry_points,
                target=self._measure.target,
            )
            timer.send(lambda nonce, load=load: load(nonce=nonce), wall_s=call_s)  # type: ignore[misc]
        for timer in self._timers:
            timer.receive(Loaded, wall_s=call_s)
            self._engine.alive()
        self._end_phase("import")
        if self._inputs.not_shared is None:
            self._inputs.try_sharing(self._timers[0])
        for case in self._task.open_cases:
            self._compile_case(case)
        self._end_phase("compile")

    def _compile_case(self, case: Case) -> None:
        """Let timers compile a case's launches without running them. If that fails, the first call compiles."""
        self._case = case.name
        arguments, size_bytes = lay_out(self._inputs.values(case, 0).inputs)
        timers = self._first_timers() if self._has_autotuned() else self._timers
        for timer in timers:
            self._send_case(timer, case, arguments, size_bytes, None)
        for timer in timers:
            try:
                timer.receive(Prepared, wall_s=self._measure.limits.call_s)
            except TimerFailed as failure:
                if not isinstance(failure.cause, CandidateRaised):
                    raise
            self._engine.alive()

    def _time_case(self, case: Case, *, check: bool) -> None:
        self._case = case.name
        place.give_back()
        processes = self._prepare(case)
        self._end_phase("inputs, tuning, warm calls")
        self._sample_case(case, processes)
        self._end_phase("samples")
        short = self._is_short([(process.link.side, process.samples) for process in processes])
        if not short:  # a short case gets no ratio, so changed inputs do not matter
            for process in processes:
                for _ in range(LOOKS):
                    self._check_inputs(case, process)
                    self._engine.alive()
            self._end_phase("looks at inputs")
        if not self._measure.effort.rough:
            pair = [process for process in processes if process.link.pair == processes[0].link.pair]
            for process in self._shuffled(pair):
                # The candidate itself reported the short times, so its calls are always timed.
                process.watch(launches_alone=short and process.link.side != CANDIDATE)
                self._engine.alive()
            self._end_phase("the clock's own watch")
            if check and self._measure.energy_s and not short and time.monotonic() < self._deadline:
                self._draw_power(pair)
        self._times += [process.times(case.name) for process in processes]
        if check:
            candidates = [process for process in processes if process.link.side == CANDIDATE]
            error = self._check_outputs(self._random.choice(candidates), self._inputs.unseen(case))
            if error is not None:
                aliased = error.kind == "aliased_output"
                raise Refused(Verdict.REJECTED if aliased else Verdict.WRONG, error)
            self._engine.alive()
            self._end_phase("check of outputs")
            if not self._measure.effort.rough:
                self._replay_tape(case, candidates[0])
                self._engine.alive()
                self._end_phase("replay of the tape")

    def _sample_case(self, case: Case, processes: Sequence[TimedProcess]) -> None:
        """Sample in rounds, one block per process, until the medians are precise or time is up."""
        trials = [(process, process.block(LEAST_IN_BLOCK)) for process in self._shuffled(processes)]
        self._engine.alive()
        if self._is_short(
            [(process.link.side, block.samples_ms) for process, block in trials], of=CLEARLY_SHORT
        ):
            for process, block in trials:
                process.blocks.append(block)
            return
        count = min(block_size(block) for _, block in trials)
        effort = self._measure.effort
        for number in range(effort.most_rounds):
            for process in self._shuffled(processes):
                process.blocks.append(process.block(count))
                if self._random.random() < LOOK_SHARE:
                    self._check_inputs(case, process)
            self._engine.alive()
            if self._is_short([(process.link.side, process.samples) for process in processes]):
                break
            if number + 1 < effort.least_rounds:
                continue
            if self._is_precise(processes) or time.monotonic() > self._deadline:
                break

    def _check_inputs(self, case: Case, process: TimedProcess) -> None:
        """Refuse the candidate if it changed a random copy of its inputs; not for tasks that work in place."""
        if process.link.side != CANDIDATE or self._task.in_place:
            return
        copy = self._random.randrange(self._inputs.copies(case, self._measure.flush_bytes))
        changed = self._inputs.changed(process.link, case, copy)
        if changed:
            where = f"case {case.name}, in calls that were timed: "
            raise Refused(Verdict.REJECTED, integrity.changed_input(where, changed[0]))

    def _draw_power(self, processes: Sequence[TimedProcess]) -> None:
        """Make calls of the baseline and of the candidate, one after the other, while the device's power is read."""
        timed = [process for process in processes if process.link.side in (BASELINE, CANDIDATE)]
        for process in self._shuffled(timed):
            process.draw(self._measure.energy_s)
            self._engine.alive()
        self._end_phase("energy")

    def _is_precise(self, processes: Sequence[TimedProcess]) -> bool:
        return max(ratios.median_error(process.samples) for process in processes) <= MEDIAN_ERROR

    def _prepare(self, case: Case) -> list[TimedProcess]:
        """Send the inputs to every timer and let it make warm calls.

        The first process of a side tunes autotuned kernels; the side's later processes use the chosen configs. Processes
        that tune have the device to themselves, one after the other.
        """
        tuning = self._first_timers()
        later = [timer for timer in self._timers if timer not in tuning]
        groups = [*([timer] for timer in tuning), later] if self._has_autotuned() else [self._timers]
        processes = []
        sets = [self._inputs.values(case, number) for number in range(SETS)]
        self._end_phase("inputs of the judge's")
        with self._inputs.laid_out(sets) as laid_out:
            for group in groups:
                for timer in group:
                    self._send_case(timer, case, laid_out[0].arguments, laid_out[0].size_bytes, laid_out)
                for timer in group:
                    prepared = timer.receive(Prepared, wall_s=self._measure.limits.call_s)
                    if sum(map(len, (*prepared.configs, *prepared.configs.values()))) > MOST_CONFIGS:
                        raise TimerFailed(timer.side, GuestLied("no kernels have configs as long as these"))
                    self._engine.alive()
                    self._configs.setdefault((timer.side, case.name), prepared.configs)
                    processes.append(TimedProcess(timer, prepared, self._measure.cold))
        return processes

    def _send_case(
        self,
        timer: TimerLink,
        case: Case,
        arguments: tuple[Argument, ...],
        size_bytes: int,
        laid_out: Sequence[LaidOut] | None,
    ) -> None:
        """Send a case; without inputs (`laid_out` is `None`) the timer compiles it and does not run it."""
        prepare = partial(
            Prepare,
            entry_point=self._task.entry_points[0].name,
            case=case.name,
            arguments=arguments,
            arena_bytes=size_bytes,
            rotate_bytes=self._measure.flush_bytes,
            flush_bytes=self._measure.flush_bytes,
            chosen=self._configs.get((timer.side, case.name), {}),
            handles=handles(laid_out or ()),
            ahead=laid_out is None,
        )
        timer.send(
            lambda nonce: prepare(nonce=nonce),
            descriptors(laid_out or ()),
            wall_s=self._measure.limits.call_s,
        )

    def _first_timers(self) -> list[TimerLink]:
        """The first process of each side."""
        return list({timer.side: timer for timer in reversed(self._timers)}.values())

    def _has_autotuned(self) -> bool:
        return any("autotune" in source for source in self._measure.sources.values())

    def _check_outputs(self, process: TimedProcess, values: Given) -> ErrorReport | None:
        """Sample on new values in the same tensors; returns the error in a part of the outputs, if any."""
        self._inputs.renew(process.link, values)
        changes = bool(self._task.in_place)
        process.block(1 if changes else LEAST_IN_BLOCK)
        try:
            back = 0 if changes else self._random.randrange(LEAST_IN_BLOCK)
            return self._spot_check.find_error(process.link, values, back=back)
        except GuestLied as lie:
            raise TimerFailed(process.link.side, lie) from lie

    def _replay_tape(self, case: Case, candidate: TimedProcess) -> None:
        """Repeat the candidate's launches in a process that never saw its source, so the candidate cannot reach these times."""
        taped = self._record_and_play(case, candidate)
        if taped.played and self._tape_contradicts(case):
            # A single recording may be disturbed: only a second one withdraws a time.
            self._times.pop()
            taped = self._record_and_play(case, candidate)
        self._tapes.append(taped)

    def _tape_contradicts(self, case: Case) -> bool:
        """Whether the tape's times, the last ones, contradict the candidate's of the same case."""
        medians = [
            statistics.median(sample for block in times.blocks for sample in block.samples_ms)
            for times in self._times
            if times.case == case.name and times.side in (CANDIDATE, TAPE)
        ]
        return ratios.tape_contradicts(medians[-1], statistics.median(medians[:-1]))

    def _record_and_play(self, case: Case, candidate: TimedProcess) -> Taped:
        recorded = candidate.link.ask(lambda nonce: Record(nonce=nonce), Recorded, wall_s=STEP_S)
        if recorded.tape is None:
            return Taped(case.name, why_not=recorded.why_not)
        tape = recorded.tape
        launches = sum(isinstance(step, Launch) for step in tape.steps)
        code: tuple[str, ...] = ()
        try:
            code = tuple(code_digest(kernel.binary) for kernel in tape.kernels)
            why_not = self._time_tape(case, tape, count=len(candidate.samples))
        except BinaryUnreadable as unreadable:
            why_not = str(unreadable)
        except TimerFailed as failure:
            if failure.side != TAPE or isinstance(failure.cause, GuestSlow):
                raise  # a launch that hangs in a player keeps the device busy and disturbs all later timing
            why_not = str(failure)
            if self._player is not None:
                self._player.close()
            self._player = None
        return Taped(case.name, launches, code, played=not why_not, why_not=why_not)

    def _time_tape(self, case: Case, tape: Tape, *, count: int) -> str:
        """Time the tape and check its outputs; returns why the tape cannot replace the candidate, empty if it can."""
        if self._player is None:
            (self._player,) = self._engine.timers((TAPE,), 1, instead=False)
            self._player.hello()
        link = self._player
        play = partial(Play, tape=tape)
        problem = link.ask(lambda nonce: play(nonce=nonce), Done, wall_s=STEP_S).problem
        if problem:
            return problem
        sets = [self._inputs.values(case, number) for number in range(SETS)]
        with self._inputs.laid_out(sets) as laid_out:
            self._send_case(link, case, laid_out[0].arguments, laid_out[0].size_bytes, laid_out)
            process = TimedProcess(
                link, link.receive(Prepared, wall_s=self._measure.limits.call_s), self._measure.cold
            )
        size = block_size(process.block(LEAST_IN_BLOCK))
        while len(process.samples) < min(count, TAPE_SAMPLES):
            process.blocks.append(process.block(min(size, count)))
        error = self._check_outputs(process, self._inputs.unseen(case, by_candidate=True))
        if error is not None:
            message = (
                f"case {case.name}: the launches of a call, made once more on other values in a process that never saw the source, give "
                f"other outputs: {error.message}; what a call returns has to come from its kernels, whatever the values"
            )
            raise Refused(
                Verdict.REJECTED, msgspec.structs.replace(error, kind="not_replayed", message=message)
            )
        self._times.append(process.times(case.name))
        return ""

    def _is_resolved(self, case: Case) -> bool:
        by_side = {
            side: [
                [sample for block in times.blocks for sample in block.samples_ms]
                for times in self._times
                if times.case == case.name and times.side == side
            ]
            for side in (BASELINE, CANDIDATE)
        }
        if self._is_short([(side, samples) for side, processes in by_side.items() for samples in processes]):
            return True
        return ratios.ratio(by_side[BASELINE], by_side[CANDIDATE]).half_width <= ratios.RESOLVED

    def _is_short(self, by_process: Sequence[tuple[str, Sequence[float]]], *, of: float = 1.0) -> bool:
        """Whether baseline and candidate are both so short that the case gets no ratio; the rival does not matter.

        `by_process`: side and samples of each process. `of`: share of the shortest time that gets a ratio.
        """
        if self._floor is None:
            return False
        medians = [
            statistics.median(
                statistics.median(samples) for of_side, samples in by_process if of_side == side
            )
            for side in (BASELINE, CANDIDATE)
        ]
        return max(medians) < of * ratios.FLOORS * self._floor.empty_ms

    def _shuffled(self, processes: Sequence[TimedProcess]) -> list[TimedProcess]:
        return self._random.sample(processes, len(processes))

    def _say_farewell(self) -> None:
        """Ask the timers what their sources left behind, and refuse the candidate if it left anything."""
        for timer in self._timers:
            left_behind = timer.ask(lambda nonce: Farewell(nonce=nonce), LeftBehind, wall_s=STEP_S)
            finding = integrity.of_farewell(left_behind) if timer.side == CANDIDATE else None
            if finding is not None:
                raise Refused(Verdict.REJECTED, finding)

    def close(self) -> None:
        """Close the channels to all timers."""
        for timer in (*self._timers, *((self._player,) if self._player is not None else ())):
            timer.close()
        self._timers, self._player = [], None

    def _describe(self, failure: TimerFailed) -> str:
        where = f"case {self._case}" if self._case else "the import"
        return f"{where}: the {failure.side} could not be timed: {in_one_line(str(failure))}"
