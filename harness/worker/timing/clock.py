"""
The clock: drives timers over the cases of a task, one active at a time, in an order that is drawn anew each round.

It runs in the judge's process, beside the inputs and the oracle's outputs. What timers say of time is evidence; the
clock's own watch around whole batches, which no guest reaches, confirms it or bounds it.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import torch

from harness import ratios
from harness.evaluation import ErrorReport, Verdict
from harness.worker.judge import findings, wording
from harness.worker.judge.cases import JudgedCase
from harness.worker.judge.link import CandidateRaised, GuestBroken, GuestGone, GuestLied, GuestSlow
from harness.worker.judge.problem import BadProblem, Problem
from harness.worker.judge.vault import Given, Vault
from harness.worker.serving.arena import Arena, lay_out
from harness.worker.serving.messages import Argument, Farewell, LeftBehind, Load, Loaded
from suites.task import Case

from .link import Cause, TimerFailed, TimerLink
from .messages import (
    BASELINE,
    CANDIDATE,
    Batch,
    Block,
    Done,
    Floor,
    Measure,
    Measured,
    Prepare,
    Prepared,
    ProcessTimes,
    Reach,
    Renew,
    Sample,
    Sampled,
)
from .shared import NotShared, SharedInputs
from .spot_check import SpotCheck

SETS = 2
"""Sets of other values that the copies of the inputs hold by turns."""
BLOCK_MS = 8.0
"""What a block of samples should take on the device."""
LEAST_IN_BLOCK, MOST_IN_BLOCK = 5, 50
LEAST_ROUNDS, MOST_ROUNDS = 3, 15
MEDIAN_ERROR = 0.0025
"""Rounds go on until each process's median is known this well."""
WALL_MS = 5.0
"""What a batch for the clock's own watch should take, less what is around the calls."""
MOST_IN_BATCH = 50
WALLS = 2
STEP_S = 60.0
"""For any request but the first of a case."""


_LaidOut = Arena | SharedInputs


class Engine(Protocol):
    """Who started the clock, and starts timers for it."""

    def timers(self, count: int) -> list[TimerLink]:
        """As many more processes of each side."""

    def lease(self) -> None:
        """Waits until the device is the clock's alone."""

    def alive(self) -> None:
        """Says that work goes on."""


@dataclass(slots=True)
class _Process:
    """What one timer has shown in one case."""

    link: TimerLink
    blocks: list[Block] = field(default_factory=list)
    peak_bytes: int = 0
    configs: dict[str, str] = field(default_factory=dict)
    wall_ms: float | None = None
    plain_ms: float | None = None
    graph_ms: float | None = None
    why_no_graph: str = ""

    @property
    def samples(self) -> list[float]:
        return [sample for block in self.blocks for sample in block.samples_ms]


class Refused(Exception):
    """Timing shows that the candidate is not what it was judged to be."""

    def __init__(self, verdict: Verdict, error: ErrorReport) -> None:
        super().__init__(error.message)
        self.verdict, self.error = verdict, error


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
        self._problem = problem
        self._vault = vault
        self._timers: list[TimerLink] = []
        self._times: list[ProcessTimes] = []
        self._spot_check = SpotCheck(measure.task)
        self._random = random.SystemRandom()
        self._floor: Floor | None = None
        self._until = 0.0
        self._case = ""
        self._seconds: dict[str, float] = {}
        self._since = time.monotonic()
        self._not_shared: str | None = None
        """Why device memory is not shared with timers; `None` until it was tried."""
        self._chosen: dict[tuple[str, str], dict[str, str]] = {}
        """Configs of autotuned kernels, by side and case."""

    def _spent(self, phase: str) -> None:
        """All time since the last such call went into this phase."""
        now = time.monotonic()
        self._seconds[phase] = self._seconds.get(phase, 0.0) + now - self._since
        self._since = now

    def run(self) -> Measured:
        """All times; whatever a timer does, there is an answer."""
        verdict: str = ""
        error: ErrorReport | None = None
        problem = ""
        try:
            self._begin()
            self._engine.lease()
            self._spent("wait for the lease")
            self._until = time.monotonic() + self._measure.budget_s
            self._floor = self._measure_floor(self._measure.flush_bytes)
            self._spent("floor")
            cases = self._task.open_cases
            for case in cases:
                self._time(case, check=True)
            for _ in range(1, ratios.LOOKS):
                cases = tuple(case for case in cases if not self._resolved(case))
                if not cases or time.monotonic() > self._until:
                    break
                self._part()
                self._begin()
                for case in cases:
                    self._time(case, check=False)
            self._part()
        except TimerFailed as failure:
            if failure.side == CANDIDATE:
                verdict, error = self._blamed(failure.cause)
            else:
                problem = f"case {self._case}: the {failure.side} could not be timed: {failure}"
        except Refused as refused:
            verdict, error = refused.verdict, refused.error
        except (BadProblem, GuestBroken) as failure:
            problem = str(failure)
        finally:
            self._close()
        return Measured(
            times=tuple(self._times),
            floor=self._floor,
            confirmed_outputs=self._spot_check.right,
            verdict=verdict,
            error=error,
            problem=problem,
            seconds={phase: round(seconds, 3) for phase, seconds in self._seconds.items()},
            not_shared=self._not_shared or "",
        )

    def _begin(self) -> None:
        """Timers are started, import their sources, and compile what they can before anything is timed."""
        self._timers = self._engine.timers(ratios.PAIRS_A_LOOK)
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
        if self._not_shared is None:
            self._not_shared = self._reached(self._timers[0])
        for case in self._task.open_cases:
            self._compile(case)
        self._spent("compile")

    def _compile(self, case: Case) -> None:
        """What a case launches. Where that cannot be told without running it, it compiles when it is called."""
        arguments, size_bytes = lay_out(self._given(case, 0).inputs)
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
        processes = self._prepare(case)
        self._spent("inputs, tuning, warm calls")
        count = self._count(processes)
        for number in range(MOST_ROUNDS):
            for process in self._shuffled(processes):
                process.blocks.append(self._block(process.link, count))
            self._engine.alive()
            if number + 1 >= LEAST_ROUNDS and (self._is_known(processes) or time.monotonic() > self._until):
                break
        self._spent("samples")
        first = processes[0].link.pair
        for process in self._shuffled([one for one in processes if one.link.pair == first]):
            self._watch(process)
        self._spent("the clock's own watch")
        if check:
            candidates = [process.link for process in processes if process.link.side == CANDIDATE]
            self._check(case, self._random.choice(candidates))
        self._spent("check of outputs")
        self._times += [
            ProcessTimes(
                side=one.link.side,
                pair=one.link.pair,
                case=case.name,
                blocks=tuple(one.blocks),
                wall_ms=one.wall_ms,
                plain_ms=one.plain_ms,
                graph_ms=one.graph_ms,
                why_no_graph=one.why_no_graph,
                peak_bytes=one.peak_bytes,
                configs=one.configs,
            )
            for one in processes
        ]

    def _is_known(self, processes: Sequence[_Process]) -> bool:
        """Whether more samples would change nothing: each median is known well, or no ratio will be given."""
        errors = [ratios.median_error(process.samples) for process in processes]
        return max(errors) <= MEDIAN_ERROR or self._is_short([process.samples for process in processes])

    def _prepare(self, case: Case) -> list[_Process]:
        """Inputs to every timer. An autotuned kernel is tuned in the first process of its side, the others are held to that."""
        tuning = self._tuning()
        processes = []
        with self._laid_out(case, range(SETS)) as laid_out:
            for group in (tuning, [timer for timer in self._timers if timer not in tuning]):
                for timer in group:
                    self._send_case(timer, case, laid_out[0].arguments, laid_out[0].size_bytes, laid_out)
                for timer in group:
                    prepared = timer.receive(Prepared, wall_s=self._measure.limits.call_s)
                    self._engine.alive()
                    self._chosen.setdefault((timer.side, case.name), prepared.configs)
                    processes.append(
                        _Process(timer, peak_bytes=prepared.peak_bytes, configs=prepared.configs)
                    )
        return processes

    @contextmanager
    def _laid_out(self, case: Case, numbers: Sequence[int]) -> Iterator[Sequence[_LaidOut]]:
        """Inputs where timers can read them."""
        inputs = [self._given(case, number).inputs for number in numbers]
        self._engine.alive()
        if self._not_shared:
            found: list[_LaidOut] = [Arena(one, shared=True) for one in inputs]
        else:
            found = [SharedInputs(one) for one in inputs]
        self._spent("inputs of the judge's")
        try:
            yield found
        finally:
            for one in found:
                one.close()

    def _reached(self, timer: TimerLink) -> str:
        """Why a timer cannot reach device memory of the clock's; empty when it can."""
        try:
            tried = SharedInputs({"tried": torch.zeros(1024)})
        except NotShared as error:
            return str(error)
        try:
            reach = partial(Reach, handle=tried.handle, size_bytes=tried.size_bytes)
            return timer.ask(lambda nonce: reach(nonce=nonce), Done, wall_s=STEP_S).problem
        finally:
            tried.close()

    def _send_case(
        self,
        timer: TimerLink,
        case: Case,
        arguments: tuple[Argument, ...],
        size_bytes: int,
        laid_out: Sequence[_LaidOut] | None,
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
            handles=tuple(one.handle for one in laid_out or () if isinstance(one, SharedInputs)),
            ahead=laid_out is None,
        )
        timer.send(
            lambda nonce: prepare(nonce=nonce),
            [one.descriptor for one in laid_out or () if isinstance(one, Arena)],
            wall_s=self._measure.limits.call_s,
        )

    def _tuning(self) -> list[TimerLink]:
        """The first process of each side."""
        return list({timer.side: timer for timer in reversed(self._timers)}.values())

    def _is_tuned(self) -> bool:
        return any("autotune" in source for source in self._measure.sources.values())

    def _count(self, processes: Sequence[_Process]) -> int:
        """Samples of a block: a first few tell what one takes."""
        longest = 0.0
        for process in processes:
            block = self._block(process.link, LEAST_IN_BLOCK)
            longest = max(longest, (block.ended_s - block.began_s) * 1e3 / LEAST_IN_BLOCK)
        return max(LEAST_IN_BLOCK, min(MOST_IN_BLOCK, int(BLOCK_MS / max(longest, 1e-3))))

    def _block(self, link: TimerLink, count: int) -> Block:
        began = time.monotonic()
        cold = self._measure.cold
        sampled = link.ask(lambda nonce: Sample(nonce=nonce, count=count, cold=cold), Sampled, wall_s=STEP_S)
        ended = time.monotonic()
        if len(sampled.samples_ms) != count or not all(0 < one < 1e7 for one in sampled.samples_ms):
            raise GuestLied("what came are no times of the calls that were asked for")
        return Block(began, ended, sampled.samples_ms)

    def _watch(self, process: _Process) -> None:
        """The clock's own watch around batches: what a call adds to what is around it; plain calls; a graph of one."""
        median = statistics.median(process.samples)
        count = max(LEAST_IN_BLOCK, min(MOST_IN_BATCH, int(WALL_MS / max(median, 1e-4))))
        extra = [
            self._batch(process.link, "calls", count) - self._batch(process.link, "around", count)
            for _ in range(WALLS)
        ]
        process.wall_ms = statistics.median(extra) / count
        process.plain_ms = min(self._batch(process.link, "plain", count) for _ in range(WALLS)) / count
        captured = process.link.ask(
            lambda nonce: Batch(nonce=nonce, kind="capture", count=1, cold=False), Done, wall_s=STEP_S
        )
        process.why_no_graph = captured.problem
        if not captured.problem:
            process.graph_ms = min(self._batch(process.link, "graph", count) for _ in range(WALLS)) / count

    def _batch(self, link: TimerLink, kind: str, count: int) -> float:
        """Milliseconds that the whole batch took, by the clock's watch."""
        cold = self._measure.cold
        began = time.perf_counter()
        link.ask(lambda nonce: Batch(nonce=nonce, kind=kind, count=count, cold=cold), Done, wall_s=STEP_S)
        return (time.perf_counter() - began) * 1e3

    def _check(self, case: Case, link: TimerLink) -> None:
        """Other values in the same tensors, sampled like all others; then parts of outputs are asked for."""
        given = self._given(case, SETS)
        with self._laid_out(case, (SETS,)) as (renewed,):
            handle = renewed.handle if isinstance(renewed, SharedInputs) else b""
            descriptors = (renewed.descriptor,) if isinstance(renewed, Arena) else ()
            link.ask(lambda nonce: Renew(nonce=nonce, handle=handle), Done, descriptors, wall_s=STEP_S)
        changes = bool(self._task.in_place)
        self._block(link, 1 if changes else LEAST_IN_BLOCK)
        wrong = self._spot_check.wrong(link, given, back=0 if changes else self._random.randrange(2))
        if wrong is not None:
            raise Refused(Verdict.WRONG, wrong)

    def _given(self, case: Case, number: int) -> Given:
        return self._vault.given(self._problem, JudgedCase(case), self._measure.seed, number)

    def _resolved(self, case: Case) -> bool:
        by_side = {
            side: [
                [sample for block in one.blocks for sample in block.samples_ms]
                for one in self._times
                if one.case == case.name and one.side == side
            ]
            for side in (BASELINE, CANDIDATE)
        }
        if self._is_short([samples for processes in by_side.values() for samples in processes]):
            return True
        return ratios.ratio(by_side[BASELINE], by_side[CANDIDATE]).half_width <= ratios.RESOLVED

    def _is_short(self, by_process: Sequence[Sequence[float]]) -> bool:
        """No ratio will be given, whatever more is measured."""
        least = min(statistics.median(samples) for samples in by_process)
        return self._floor is not None and least < ratios.FLOORS * self._floor.empty_ms

    def _shuffled(self, processes: Sequence[_Process]) -> list[_Process]:
        return self._random.sample(processes, len(processes))

    def _part(self) -> None:
        """The candidate's timers say what they find changed, and all are let go."""
        for timer in self._timers:
            left = timer.ask(lambda nonce: Farewell(nonce=nonce), LeftBehind, wall_s=STEP_S)
            finding = findings.of_farewell(left) if timer.side == CANDIDATE else None
            if finding is not None:
                raise Refused(Verdict.REJECTED, finding)
        self._close()

    def _close(self) -> None:
        for timer in self._timers:
            timer.close()
        self._timers = []

    def _blamed(self, cause: Cause) -> tuple[Verdict, ErrorReport]:
        """The verdict on a candidate whose timer failed."""
        match cause:
            case CandidateRaised(failure=failure):
                message = f"while it was timed, case {self._case}: {failure.message}"
                error = ErrorReport(
                    kind=failure.kind, message=message, trace=failure.trace, line=failure.line
                )
                return findings.verdict_of(failure), error
            case GuestSlow(seconds=seconds, cpu=cpu):
                return Verdict.TIMEOUT, wording.too_slow(seconds, self._case, cpu=cpu, gpu=True)
            case GuestLied():
                return Verdict.REJECTED, wording.lied(str(cause))
            case GuestGone():
                return Verdict.CRASH, wording.gone(self._case)
