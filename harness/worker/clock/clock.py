"""
The clock: drives timers over the cases of a task, one active at a time, in an order that is drawn anew each round.

It runs in the judge's process, beside the inputs and the oracle's outputs. What timers say of time is evidence; the
clock's own watch around whole batches, which no guest reaches, confirms it or bounds it.
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
from harness.worker.oracle import call_checks
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
"""Rounds go on until each process's median is known this well."""
MOST_PLAYED = 60
"""Samples of a tape."""
PLAINLY = 0.8
"""A few samples that do not count else show that a case is too short, when this much of the time is not reached."""
LOOKS = 2
"""At copies of the inputs of each of the candidate's processes, when a case was sampled,"""
LOOKED_AT = 0.25
"""and at one after such a part of the blocks: when the last one is over nobody in a timer is to know."""
MOST_CONFIGS = 1 << 16
"""Characters of all configs that one case's kernels were tuned to."""


class Engine(Protocol):
    """Who started the clock, and starts timers for it."""

    def timers(self, sides: Sequence[str], count: int, *, instead: bool) -> list[TimerLink]:
        """More processes, `count` of each side; `instead` of those that there are."""

    def lease(self) -> None:
        """Waits until the device is the clock's alone."""

    def alive(self) -> None:
        """Says that work goes on."""


class Clock:
    """Times one candidate. Its timers' failures are the candidate's where they are its own, else a `problem`."""

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
        self._until = 0.0
        self._case = ""
        self._seconds: dict[str, float] = {}
        self._since = time.monotonic()
        self._without_rival = ""
        """Why there is no rival any more; empty while there is none, or it does."""
        self._tapes: list[Taped] = []
        self._player: TimerLink | None = None
        self._chosen: dict[tuple[str, str], dict[str, str]] = {}
        """Configs of autotuned kernels, by side and case."""

    def _spent(self, phase: str) -> None:
        """All time since the last such call went into this phase."""
        now = time.monotonic()
        self._seconds[phase] = self._seconds.get(phase, 0.0) + now - self._since
        self._since = now

    def run(self) -> Measured:
        """All times; whatever a timer does, there is an answer. Timers wait on, until `close`: as they end they hold up whoever
        asks the device's driver.
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
                self._forget_rival(failure)
                self._time_all()
        except TimerFailed as failure:
            if failure.side == CANDIDATE and not is_memory(failure.cause):
                verdict, error = blamed(failure.cause, self._case)
            else:
                problem = self._not_timed(failure)
        except Refused as refused:
            verdict, error = refused.verdict, refused.error
        except (BadProblem, GuestBroken, NotShared, OSError, torch.OutOfMemoryError) as failure:
            at = f"case {self._case}: " if self._case else ""
            problem = f"{at}{in_one_line(str(failure))}"
        return Measured(
            times=tuple(self._times),
            floor=self._floor,
            tapes=tuple(self._tapes),
            confirmed_outputs=self._spot_check.right,
            verdict=verdict,
            error=error,
            problem=problem or self._without_rival,
            seconds={phase: round(seconds, 3) for phase, seconds in self._seconds.items()},
            not_shared=self._inputs.not_shared or "",
        )

    def _time_all(self) -> None:
        self._begin()
        if self._floor is None:
            self._engine.lease()
            self._spent("wait for the lease")
            self._until = time.monotonic() + self._measure.budget_s
            self._floor = self._measure_floor(self._measure.flush_bytes)
            self._spent("floor")
        cases = self._task.open_cases
        for case in cases:
            self._time(case, check=True)
        for _ in range(1, self._measure.effort.looks):
            cases = tuple(case for case in cases if not self._resolved(case))
            if not cases or time.monotonic() > self._until:
                break
            self._part()
            self._begin()
            for case in cases:
                self._time(case, check=False)
        self._part()

    def _forget_rival(self, failure: TimerFailed) -> None:
        """The best so far fails where it was right before: the candidate is timed from the start, without it."""
        self._without_rival = self._not_timed(failure)
        sources = {side: source for side, source in self._measure.sources.items() if side != RIVAL}
        self._measure = msgspec.structs.replace(self._measure, sources=sources)
        self._times.clear()
        self._tapes.clear()

    def _begin(self) -> None:
        """Timers are started, import their sources, and compile what they can before anything is timed."""
        self._case = ""
        sides = tuple(self._measure.sources)
        self.close()
        self._timers = self._engine.timers(sides, self._measure.effort.pairs, instead=True)
        entry_points = tuple(entry.name for entry in self._task.entry_points)
        call_s = self._measure.limits.call_s
        for timer in self._timers:
            timer.hello()
        self._spent("start")
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
        self._spent("import")
        if self._inputs.not_shared is None:
            self._inputs.try_sharing(self._timers[0])
        for case in self._task.open_cases:
            self._compile(case)
        self._spent("compile")

    def _compile(self, case: Case) -> None:
        """What a case launches. Where that cannot be told without running it, it compiles when it is called."""
        self._case = case.name
        arguments, size_bytes = lay_out(self._inputs.given(case, 0).inputs)
        timers = self._tuning() if self._is_tuned() else self._timers
        for timer in timers:
            self._send_case(timer, case, arguments, size_bytes, None)
        for timer in timers:
            try:
                timer.receive(Prepared, wall_s=self._measure.limits.call_s)
            except TimerFailed as failure:
                if not isinstance(failure.cause, CandidateRaised):
                    raise
            self._engine.alive()

    def _time(self, case: Case, *, check: bool) -> None:
        """One case, every process."""
        self._case = case.name
        place.give_back()
        processes = self._prepare(case)
        self._spent("inputs, tuning, warm calls")
        self._sample(case, processes)
        self._spent("samples")
        short = self._is_short([(one.link.side, one.samples) for one in processes])
        if not short:  # else no ratio hangs on inputs
            for process in processes:
                for _ in range(LOOKS):
                    self._look_at_inputs(case, process)
                    self._engine.alive()
            self._spent("looks at inputs")
        if not self._measure.effort.rough:
            first = processes[0].link.pair
            for process in self._shuffled([one for one in processes if one.link.pair == first]):
                # That it is short is the candidate's own word.
                process.watch(launches_alone=short and process.link.side != CANDIDATE)
                self._engine.alive()
            self._spent("the clock's own watch")
            if check and self._measure.energy_s and not short and time.monotonic() < self._until:
                self._draw([one for one in processes if one.link.pair == first])
        self._times += [process.times(case.name) for process in processes]
        if check:
            candidates = [process for process in processes if process.link.side == CANDIDATE]
            wrong = self._check(self._random.choice(candidates), self._inputs.unseen(case))
            if wrong is not None:
                aliased = wrong.kind == "aliased_output"
                raise Refused(Verdict.REJECTED if aliased else Verdict.WRONG, wrong)
            self._engine.alive()
            self._spent("check of outputs")
            if not self._measure.effort.rough:
                self._play(case, candidates[0])
                self._engine.alive()
                self._spent("replay of the tape")

    def _sample(self, case: Case, processes: Sequence[TimedProcess]) -> None:
        """Rounds of blocks, one of each process, until more would change nothing."""
        tried = [(process, process.block(LEAST_IN_BLOCK)) for process in self._shuffled(processes)]
        self._engine.alive()
        if self._is_short([(one.link.side, block.samples_ms) for one, block in tried], of=PLAINLY):
            for process, block in tried:
                process.blocks.append(block)
            return
        count = min(block_size(block) for _, block in tried)
        effort = self._measure.effort
        for number in range(effort.most_rounds):
            for process in self._shuffled(processes):
                process.blocks.append(process.block(count))
                if self._random.random() < LOOKED_AT:
                    self._look_at_inputs(case, process)
            self._engine.alive()
            if self._is_short([(one.link.side, one.samples) for one in processes]):
                break
            if number + 1 < effort.least_rounds:
                continue
            if self._is_known(processes) or time.monotonic() > self._until:
                break

    def _look_at_inputs(self, case: Case, process: TimedProcess) -> None:
        """A copy of the inputs that is drawn must still be what the candidate was given, where the task leaves inputs as they are."""
        if process.link.side != CANDIDATE or self._task.in_place:
            return
        copy = self._random.randrange(self._inputs.copies(case, self._measure.flush_bytes))
        changed = self._inputs.changed(process.link, case, copy)
        if changed:
            where = f"case {case.name}, in calls that were timed: "
            raise Refused(Verdict.REJECTED, call_checks.changed_input(where, changed[0]))

    def _draw(self, processes: Sequence[TimedProcess]) -> None:
        """What the baseline's and the candidate's calls draw, one after the other."""
        for process in self._shuffled([one for one in processes if one.link.side in (BASELINE, CANDIDATE)]):
            process.draw(self._measure.energy_s)
            self._engine.alive()
        self._spent("energy")

    def _is_known(self, processes: Sequence[TimedProcess]) -> bool:
        """Whether more samples would change nothing."""
        return max(ratios.median_error(process.samples) for process in processes) <= MEDIAN_ERROR

    def _prepare(self, case: Case) -> list[TimedProcess]:
        """Inputs to every timer. An autotuned kernel is tuned in the first process of its side, the others are held to that.

        Those that tune have the device to themselves, one after the other.
        """
        tuning = self._tuning()
        others = [timer for timer in self._timers if timer not in tuning]
        groups = [*([timer] for timer in tuning), others] if self._is_tuned() else [self._timers]
        processes = []
        given = [self._inputs.given(case, number) for number in range(SETS)]
        self._spent("inputs of the judge's")
        with self._inputs.laid_out(given) as laid_out:
            for group in groups:
                for timer in group:
                    self._send_case(timer, case, laid_out[0].arguments, laid_out[0].size_bytes, laid_out)
                for timer in group:
                    prepared = timer.receive(Prepared, wall_s=self._measure.limits.call_s)
                    if sum(map(len, (*prepared.configs, *prepared.configs.values()))) > MOST_CONFIGS:
                        raise TimerFailed(timer.side, GuestLied("no kernels have configs as long as these"))
                    self._engine.alive()
                    self._chosen.setdefault((timer.side, case.name), prepared.configs)
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
        """Without inputs the case is compiled and not run."""
        prepare = partial(
            Prepare,
            entry_point=self._task.entry_points[0].name,
            case=case.name,
            arguments=arguments,
            arena_bytes=size_bytes,
            rotate_bytes=self._measure.flush_bytes,
            flush_bytes=self._measure.flush_bytes,
            chosen=self._chosen.get((timer.side, case.name), {}),
            handles=handles(laid_out or ()),
            ahead=laid_out is None,
        )
        timer.send(
            lambda nonce: prepare(nonce=nonce),
            descriptors(laid_out or ()),
            wall_s=self._measure.limits.call_s,
        )

    def _tuning(self) -> list[TimerLink]:
        """The first process of each side."""
        return list({timer.side: timer for timer in reversed(self._timers)}.values())

    def _is_tuned(self) -> bool:
        return any("autotune" in source for source in self._measure.sources.values())

    def _check(self, process: TimedProcess, given: Given) -> ErrorReport | None:
        """Other values in the same tensors, sampled like all others; what is wrong with parts of the outputs."""
        self._inputs.renew(process.link, given)
        changes = bool(self._task.in_place)
        process.block(1 if changes else LEAST_IN_BLOCK)
        try:
            back = 0 if changes else self._random.randrange(LEAST_IN_BLOCK)
            return self._spot_check.wrong(process.link, given, back=back)
        except GuestLied as lie:
            raise TimerFailed(process.link.side, lie) from lie

    def _play(self, case: Case, candidate: TimedProcess) -> None:
        """The candidate's launches once more, in a process that never saw its source: its times are out of a guest's reach."""
        recorded = candidate.link.ask(lambda nonce: Record(nonce=nonce), Recorded, wall_s=STEP_S)
        if recorded.tape is None:
            self._tapes.append(Taped(case.name, why_not=recorded.why_not))
            return
        tape = recorded.tape
        launches = sum(isinstance(step, Launch) for step in tape.steps)
        code: tuple[str, ...] = ()
        try:
            code = tuple(code_digest(kernel.binary) for kernel in tape.kernels)
            why_not = self._played(case, tape, count=len(candidate.samples))
        except BinaryUnreadable as unreadable:
            why_not = str(unreadable)
        except TimerFailed as failure:
            if failure.side != TAPE or isinstance(failure.cause, GuestSlow):
                raise  # what hangs in a player holds the device, and disturbs whatever is timed after it
            why_not = str(failure)
            if self._player is not None:
                self._player.close()
            self._player = None
        self._tapes.append(Taped(case.name, launches, code, played=not why_not, why_not=why_not))

    def _played(self, case: Case, tape: Tape, *, count: int) -> str:
        """Why the tape does not stand for the candidate; empty when it does."""
        if self._player is None:
            (self._player,) = self._engine.timers((TAPE,), 1, instead=False)
            self._player.hello()
        link = self._player
        play = partial(Play, tape=tape)
        refused = link.ask(lambda nonce: play(nonce=nonce), Done, wall_s=STEP_S).problem
        if refused:
            return refused
        given = [self._inputs.given(case, number) for number in range(SETS)]
        with self._inputs.laid_out(given) as laid_out:
            self._send_case(link, case, laid_out[0].arguments, laid_out[0].size_bytes, laid_out)
            process = TimedProcess(
                link, link.receive(Prepared, wall_s=self._measure.limits.call_s), self._measure.cold
            )
        size = block_size(process.block(LEAST_IN_BLOCK))
        while len(process.samples) < min(count, MOST_PLAYED):
            process.blocks.append(process.block(min(size, count)))
        wrong = self._check(process, self._inputs.unseen(case, by_candidate=True))
        if wrong is not None:
            message = (
                f"case {case.name}: the launches of a call, made once more on other values in a process that never saw the source, give "
                f"other outputs: {wrong.message}; what a call returns has to come from its kernels, whatever the values"
            )
            raise Refused(
                Verdict.REJECTED, msgspec.structs.replace(wrong, kind="not_replayed", message=message)
            )
        self._times.append(process.times(case.name))
        return ""

    def _resolved(self, case: Case) -> bool:
        by_side = {
            side: [
                [sample for block in one.blocks for sample in block.samples_ms]
                for one in self._times
                if one.case == case.name and one.side == side
            ]
            for side in (BASELINE, CANDIDATE)
        }
        if self._is_short([(side, samples) for side, every in by_side.items() for samples in every]):
            return True
        return ratios.ratio(by_side[BASELINE], by_side[CANDIDATE]).half_width <= ratios.RESOLVED

    def _is_short(self, by_process: Sequence[tuple[str, Sequence[float]]], *, of: float = 1.0) -> bool:
        """No ratio will be given, whatever more is measured; `of`: of the time below which there is none.

        By side and samples of each process; a rival's time decides nothing.
        """
        if self._floor is None:
            return False
        medians = [
            statistics.median(
                statistics.median(samples) for of_side, samples in by_process if of_side == side
            )
            for side in (BASELINE, CANDIDATE)
        ]
        return min(medians) < of * ratios.FLOORS * self._floor.empty_ms

    def _shuffled(self, processes: Sequence[TimedProcess]) -> list[TimedProcess]:
        return self._random.sample(processes, len(processes))

    def _part(self) -> None:
        """The candidate's timers say what they find changed."""
        for timer in self._timers:
            left = timer.ask(lambda nonce: Farewell(nonce=nonce), LeftBehind, wall_s=STEP_S)
            finding = call_checks.of_farewell(left) if timer.side == CANDIDATE else None
            if finding is not None:
                raise Refused(Verdict.REJECTED, finding)

    def close(self) -> None:
        """Hangs up on every timer."""
        for timer in (*self._timers, *((self._player,) if self._player is not None else ())):
            timer.close()
        self._timers, self._player = [], None

    def _not_timed(self, failure: TimerFailed) -> str:
        where = f"case {self._case}" if self._case else "the import"
        return f"{where}: the {failure.side} could not be timed: {in_one_line(str(failure))}"
