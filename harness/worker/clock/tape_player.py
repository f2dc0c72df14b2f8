"""Launch tapes: recorded in a side's timer, played and timed in a process that never sees a source."""

from __future__ import annotations

import statistics
from itertools import pairwise

import msgspec

from harness.wire.clock_messages import TAPE, Measure, ProcessTimes, Taped
from harness.wire.evaluation import Verdict
from harness.wire.latency import LaunchTime
from harness.wire.launch_tape import Launch, Tape
from harness.wire.timer_messages import (
    LEAST_IN_BLOCK,
    SETS,
    Done,
    Play,
    Prepared,
    Record,
    Recorded,
    count_copies,
)
from harness.worker.kit.binaries import BinaryUnreadable, code_digest
from harness.worker.oracle.guest_link import GuestSlow
from suites.task import Case

from .blame import Refused
from .case_inputs import CaseInputs
from .engine_line import Engine
from .spot_check import SpotCheck
from .timed_process import STEP_S, TimedProcess
from .timer_link import TimerFailed, TimerLink

TAPE_SAMPLES = 60
"""Samples of a tape at most."""
MOST_STEPS = 8
"""A tape of more steps is not timed by launch: each needs a graph of its own."""
STEP_REPLAYS = 3
FILL = "fill"


class TapePlayer:
    """Plays tapes in one process, started when it is first needed."""

    def __init__(self, engine: Engine, measure: Measure, inputs: CaseInputs, spot_check: SpotCheck) -> None:
        self._engine = engine
        self._measure = measure
        self._inputs = inputs
        self._spot_check = spot_check
        self._link: TimerLink | None = None
        self._is_ready = False

    def start(self) -> None:
        """Start the process, which gets ready while others work."""
        if self._link is None:
            (self._link,) = self._engine.timers((TAPE,), 1)
            self._is_ready = False

    def replay(self, case: Case, candidate: TimedProcess) -> tuple[Taped, ProcessTimes | None]:
        """Record a call of the candidate, check the outputs of its launches, and time them as the candidate was timed.

        Raises `Refused` if the launches give other outputs, `TimerFailed` if the device hangs.
        """
        tape, why_not = _record(candidate)
        if tape is None:
            return Taped(case.name, why_not=why_not), None
        launches = sum(isinstance(step, Launch) for step in tape.steps)
        taped = Taped(case.name, launches=launches)
        try:
            code = tuple(code_digest(kernel.binary) for kernel in tape.kernels)
            process, why_not = self._prepare(case, tape)
            if process is None:
                return msgspec.structs.replace(taped, code=code, why_not=why_not), None
            self._check(case, process)
            times = self._time(case, process, candidate)
            by_launch = self._by_launch(case, process, tape)
        except BinaryUnreadable as unreadable:
            return msgspec.structs.replace(taped, why_not=str(unreadable)), None
        except TimerFailed as failure:
            if failure.side != TAPE or isinstance(failure.cause, GuestSlow):
                raise  # a launch that hangs in a player keeps the device busy and disturbs all later timing
            self.close()
            return msgspec.structs.replace(taped, why_not=str(failure)), None
        return msgspec.structs.replace(taped, code=code, played=True, by_launch=by_launch), times

    def time_launches(self, case: Case, process: TimedProcess) -> Taped | None:
        """The time by launch of another side's call; `None` if it makes one launch, or cannot be taped."""
        tape, _ = _record(process)
        if tape is None or not _has_several_steps(tape):
            return None
        try:
            player, _ = self._prepare(case, tape)
            if player is None:
                return None
            return Taped(case.name, side=process.link.side, by_launch=self._by_launch(case, player, tape))
        except TimerFailed as failure:
            if failure.side != TAPE or isinstance(failure.cause, GuestSlow):
                raise
            self.close()
            return None

    def close(self) -> None:
        """Close the channel to the player."""
        if self._link is not None:
            self._link.close()
        self._link = None

    def _prepare(self, case: Case, tape: Tape) -> tuple[TimedProcess | None, str]:
        """The player with the tape and the case's inputs; or why the tape cannot be played."""
        self.start()
        link = self._link
        assert link is not None
        if not self._is_ready:
            link.hello()
            self._is_ready = True
        problem = link.ask(lambda nonce: Play(nonce=nonce, tape=tape), Done, wall_s=STEP_S).problem
        if problem:
            return None, problem
        sets = [self._inputs.values(case, number) for number in range(SETS)]
        with self._inputs.laid_out(sets) as laid_out:
            size_bytes = laid_out[0].size_bytes
            self._inputs.send(link, self._measure, case, laid_out[0].arguments, size_bytes, laid_out)
            prepared = link.receive(Prepared, wall_s=self._measure.limits.call_s)
        copies = count_copies(SETS, size_bytes, self._measure.flush_bytes)
        return TimedProcess(link, prepared, self._measure.cold, copies), ""

    def _check(self, case: Case, process: TimedProcess) -> None:
        error = self._spot_check.find_error(process, self._inputs.unseen(case, by_candidate=True))
        if error is not None:
            message = (
                f"case {case.name}: the launches of a call, made once more on other values in a process that never saw the source, give "
                f"other outputs: {error.message}; what a call returns has to come from its kernels, whatever the values"
            )
            raise Refused(
                Verdict.REJECTED, msgspec.structs.replace(error, kind="not_replayed", message=message)
            )

    def _time(self, case: Case, process: TimedProcess, candidate: TimedProcess) -> ProcessTimes | None:
        """The times of the tape by the candidate's method; `None` if the tape cannot be captured and the candidate could."""
        process.try_calls()
        if candidate.launches:
            process.begin_capture(candidate.launches)
            if process.end_capture(candidate.launches, cold=candidate.cold):
                return None
        size = process.block_size()
        wanted = min(len(candidate.samples), TAPE_SAMPLES)
        while len(process.samples) < wanted:
            process.blocks.append(process.block(min(size, wanted)))
        return process.times(case.name)

    def _by_launch(self, case: Case, process: TimedProcess, tape: Tape) -> tuple[LaunchTime, ...]:
        """The time of each step: what it adds to a graph of the steps before it, where it finds the caches as they left them."""
        if not _has_several_steps(tape):
            return ()
        launches = process.launches
        if not launches:
            call_ms = statistics.median(process.block(LEAST_IN_BLOCK).samples_ms)
            own_bytes, rotate_bytes = process.prepared.peak_bytes, self._measure.flush_bytes
            launches = self._inputs.count_launches(case, call_ms, own_bytes, rotate_bytes)
        ends_ms = [0.0]
        for steps in range(1, len(tape.steps) + 1):
            process.begin_capture(launches or 1, steps=steps)
            if process.end_capture(launches or 1, cold=process.cold):
                return ()
            ends_ms.append(statistics.median(process.block(STEP_REPLAYS).samples_ms))
        return tuple(
            LaunchTime(
                tape.kernels[step.kernel].name if isinstance(step, Launch) else FILL, max(end - start, 0.0)
            )
            for step, (start, end) in zip(tape.steps, pairwise(ends_ms), strict=True)
        )


def _record(process: TimedProcess) -> tuple[Tape | None, str]:
    """A tape of one call, or why there is none."""
    recorded = process.link.ask(lambda nonce: Record(nonce=nonce), Recorded, wall_s=STEP_S)
    return recorded.tape, recorded.why_not


def _has_several_steps(tape: Tape) -> bool:
    return 1 < len(tape.steps) <= MOST_STEPS
