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

import torch

from harness.wire import ratios
from harness.wire.clock_messages import (
    BASELINE,
    CANDIDATE,
    Floor,
    Measure,
    Measured,
    ProcessTimes,
    Taped,
    method_of,
)
from harness.wire.evaluation import ErrorReport, Verdict
from harness.wire.guest_messages import Farewell, LeftBehind, Load, Loaded
from harness.wire.latency import Method
from harness.wire.timer_messages import SETS, Prepared, count_copies
from harness.worker.kit import place
from harness.worker.kit.arena import lay_out
from harness.worker.kit.device_memory import NotShared
from harness.worker.oracle import integrity
from harness.worker.oracle.guest_link import CandidateRaised, GuestBroken, GuestGone, GuestLied
from harness.worker.oracle.problem import BadProblem, Problem
from harness.worker.oracle.vault import Vault
from suites.task import Case

from . import short_calls
from .blame import Refused, blamed, in_one_line, is_memory
from .case_inputs import CaseInputs
from .engine_line import Engine
from .spot_check import SpotCheck
from .tape_player import TapePlayer
from .timed_process import STEP_S, TimedProcess
from .timer_link import TimerFailed, TimerLink

CLEARLY_SHORT = 0.8
"""A case is too short already after its trial blocks if it stays below this share of the shortest time."""
LOOKS = 2
"""Checks of the inputs in each of the candidate's processes, after a case was sampled."""
LOOK_SHARE = 0.25
"""Share of the blocks after which the inputs are checked too: a timer cannot know which block is the last."""
MOST_CONFIGS = 1 << 16
"""Characters of all chosen configs of one case at most."""


class Clock:
    """Times one candidate. A failure in the candidate's timers is a verdict; any other failure is a `problem`."""

    def __init__(
        self,
        engine: Engine,
        measure: Measure,
        problem: Problem,
        vault: Vault,
        *,
        measure_floor: Callable[[int, str], Floor],
    ) -> None:
        self._engine = engine
        self._measure_floor = measure_floor
        self._measure = measure
        self._task = measure.task
        self._inputs = CaseInputs(problem, vault, measure.seed)
        self._timers: list[TimerLink] = []
        self._times: list[ProcessTimes] = []
        self._spot_check = SpotCheck(measure.task, self._inputs)
        self._random = random.SystemRandom()
        self._floor: Floor | None = None
        self._deadline = 0.0
        self._case = ""
        self._seconds: dict[str, float] = {}
        self._phase_began = time.monotonic()
        self._tapes: list[Taped] = []
        self._why_events: dict[str, str] = {}
        self._tape_player = TapePlayer(engine, measure, self._inputs, self._spot_check)
        self._configs = {
            (side, case): configs for side, cases in measure.chosen.items() for case, configs in cases.items()
        }
        """Chosen configs of autotuned kernels, by side and case."""
        self._is_first_look = not measure.unresolved
        self._cases = (
            self._task.open_cases
            if self._is_first_look
            else tuple(case for case in self._task.open_cases if case.name in measure.unresolved)
        )

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
        problem = ended = ""
        try:
            self._time_all()
        except TimerFailed as failure:
            ended = failure.side if isinstance(failure.cause, GuestGone) else ""
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
            problem=problem,
            ended=ended,
            why_events=self._why_events,
            seconds={phase: round(seconds, 3) for phase, seconds in self._seconds.items()},
            not_shared=self._inputs.not_shared or "",
        )

    def _time_all(self) -> None:
        self._start_timers()
        self._engine.lease()
        self._end_phase("wait for the lease")
        self._deadline = time.monotonic() + self._measure.budget_s
        self._floor = self._measure_floor(self._measure.flush_bytes, self._measure.matmul_dtype)
        self._end_phase("floor")
        for case in self._cases:
            self._time_case(case)
        self._say_farewell()

    def _start_timers(self) -> None:
        """Start timers, let them import their sources and compile the cases, before anything is timed."""
        self._timers = self._engine.timers(tuple(self._measure.sources), self._measure.effort.pairs)
        if self._is_first_look and not self._measure.effort.rough:
            self._tape_player.start()
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
        self._inputs.try_sharing(self._timers[0])
        # The case that is timed first comes last: a vault that is too small drops what was used longest ago.
        for case in reversed(self._cases):
            self._compile_case(case)
        place.give_back()
        self._end_phase("compile")

    def _compile_case(self, case: Case) -> None:
        """Let timers compile a case's launches without running them, and draw its values meanwhile.

        If compiling fails, the first call compiles.
        """
        self._case = case.name
        arguments, size_bytes = lay_out(self._inputs.values(case, 0).inputs)
        timers = self._first_timers() if self._has_autotuned() else self._timers
        for timer in timers:
            self._inputs.send(timer, self._measure, case, arguments, size_bytes)
        self._inputs.draw(case, unseen=self._compared_sets)
        for timer in timers:
            try:
                timer.receive(Prepared, wall_s=self._measure.limits.call_s)
            except TimerFailed as failure:
                if not isinstance(failure.cause, CandidateRaised):
                    raise
            self._engine.alive()

    def _time_case(self, case: Case) -> None:
        self._case = case.name
        place.give_back()
        processes = self._prepare(case)
        self._end_phase("inputs, tuning, warm calls")
        self._sample_case(case, processes)
        self._end_phase("samples")
        graph = all(process.launches for process in processes)
        method = Method.GRAPH if graph else Method.EVENTS
        short = self._is_short([(process.link.side, process.samples) for process in processes], method)
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
            if self._measure.energy_s and not short and time.monotonic() < self._deadline:
                self._draw_power(pair)
        self._times += [process.times(case.name) for process in processes]
        if self._is_first_look:
            candidates = [process for process in processes if process.link.side == CANDIDATE]
            process = self._random.choice(candidates)
            error = self._spot_check.find_error(process, self._inputs.unseen(case))
            if error is not None:
                aliased = error.kind == "aliased_output"
                raise Refused(Verdict.REJECTED if aliased else Verdict.WRONG, error)
            self._engine.alive()
            self._end_phase("check of outputs")
            if not self._measure.effort.rough:
                self._replay_tapes(case, processes)
                self._end_phase("replay of the tape")

    def _sample_case(self, case: Case, processes: Sequence[TimedProcess]) -> None:
        """Sample in rounds, one block per process, until the medians are precise or time is up."""
        for process in self._shuffled(processes):
            process.try_calls()
        self._engine.alive()
        graph = self._measure.cold and short_calls.are_short(processes)
        if graph:
            why = short_calls.capture(case, processes, self._inputs, self._measure, self._engine.alive)
            graph = not why
            if why:
                self._why_events[case.name] = why
        method = Method.GRAPH if graph else Method.EVENTS
        trials = [(process.link.side, process.trial.samples_ms) for process in processes]
        if not graph and self._is_short(trials, method, of=CLEARLY_SHORT):
            for process in processes:
                process.blocks.append(process.trial)
            return
        least = min(process.block_size() for process in processes)
        effort = self._measure.effort
        for number in range(effort.most_rounds):
            for process in self._shuffled(processes):
                process.blocks.append(process.block(process.block_size() if graph else least))
                if self._random.random() < LOOK_SHARE:
                    self._check_inputs(case, process)
            self._engine.alive()
            if self._is_short([(process.link.side, process.samples) for process in processes], method):
                break
            if number + 1 < effort.least_rounds:
                continue
            if self._is_precise(processes) or time.monotonic() > self._deadline:
                break

    def _check_inputs(self, case: Case, process: TimedProcess) -> None:
        """Refuse the candidate if it changed a random copy of its inputs; not for tasks that work in place."""
        if process.link.side != CANDIDATE or self._task.in_place:
            return
        copy = self._random.randrange(process.copies)
        changed = self._inputs.changed(process.link, case, copy)
        if changed:
            where = f"case {case.name}, in calls that were timed: "
            raise Refused(Verdict.REJECTED, integrity.changed_input(where, changed[0]))

    def _draw_power(self, processes: Sequence[TimedProcess]) -> None:
        """Make calls of the baseline and of the candidate, one after the other, while the device's power is read."""
        for process in self._shuffled(processes):
            process.draw(self._measure.energy_s)
            self._engine.alive()
        self._end_phase("energy")

    def _is_precise(self, processes: Sequence[TimedProcess]) -> bool:
        return max(ratios.median_error(process.samples) for process in processes) <= ratios.MEDIAN_ERROR

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
        copies = count_copies(SETS, self._inputs.size_bytes(case), self._measure.flush_bytes)
        self._end_phase("inputs of the judge's")
        with self._inputs.laid_out(sets) as laid_out:
            for group in groups:
                for timer in group:
                    chosen = self._configs.get((timer.side, case.name), {})
                    arguments, size_bytes = laid_out[0].arguments, laid_out[0].size_bytes
                    self._inputs.send(
                        timer, self._measure, case, arguments, size_bytes, laid_out, chosen=chosen
                    )
                for timer in group:
                    prepared = timer.receive(Prepared, wall_s=self._measure.limits.call_s)
                    if sum(map(len, (*prepared.configs, *prepared.configs.values()))) > MOST_CONFIGS:
                        raise TimerFailed(timer.side, GuestLied("no kernels have configs as long as these"))
                    self._engine.alive()
                    self._configs.setdefault((timer.side, case.name), prepared.configs)
                    processes.append(TimedProcess(timer, prepared, self._measure.cold, copies))
        return processes

    @property
    def _compared_sets(self) -> int:
        """Sets of unseen values for which outputs are compared: by the spot check, and by the tape player."""
        return 0 if not self._is_first_look else 1 if self._measure.effort.rough else 2

    def _first_timers(self) -> list[TimerLink]:
        """The first process of each side."""
        return list({timer.side: timer for timer in reversed(self._timers)}.values())

    def _has_autotuned(self) -> bool:
        return any("autotune" in source for source in self._measure.sources.values())

    def _replay_tapes(self, case: Case, processes: Sequence[TimedProcess]) -> None:
        """Repeat the candidate's launches in a process that never saw its source, so the candidate cannot reach these times."""
        baseline, candidate = (
            next(process for process in processes if process.link.side == side)
            for side in (BASELINE, CANDIDATE)
        )
        taped, times = self._tape_player.replay(case, candidate)
        if times is not None and self._tape_contradicts(times, processes):
            # A single recording may be disturbed: only a second one withdraws a time.
            taped, times = self._tape_player.replay(case, candidate)
        self._engine.alive()
        self._tapes.append(taped)
        if times is not None:
            self._times.append(times)
        if taped_baseline := self._tape_player.time_launches(case, baseline):
            self._tapes.append(taped_baseline)
        self._engine.alive()

    def _tape_contradicts(self, tape: ProcessTimes, processes: Sequence[TimedProcess]) -> bool:
        played = [sample for block in tape.blocks for sample in block.samples_ms]
        medians = [
            statistics.median(process.samples) for process in processes if process.link.side == CANDIDATE
        ]
        return ratios.tape_contradicts(
            statistics.median(played), statistics.median(medians), method_of((tape,))
        )

    def _is_short(
        self, by_process: Sequence[tuple[str, Sequence[float]]], method: Method, *, of: float = 1.0
    ) -> bool:
        """Whether baseline and candidate are both so short that the case gets no ratio.

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
        return max(medians) < of * ratios.FLOORS[method] * self._floor.empty_by(method)

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
        for timer in self._timers:
            timer.close()
        self._timers = []
        self._tape_player.close()

    def _describe(self, failure: TimerFailed) -> str:
        where = f"case {self._case}" if self._case else "the import"
        return f"{where}: the {failure.side} could not be timed: {in_one_line(str(failure))}"
