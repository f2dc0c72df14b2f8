"""The judge's process: trusted, long-lived, judges one candidate after the other."""

from __future__ import annotations

import gc
import socket
from contextlib import suppress
from pathlib import Path

import msgspec
import torch

from harness.linux import syscalls
from harness.wire.channels.channel import Channel, ChannelClosed
from harness.wire.errors import is_out_of_memory
from harness.wire.messages.clock import JUDGE_REQUESTS, Measure, Timer
from harness.wire.messages.judge import Attach, Begin, Judged, Proceed, Specified, Specify, Weigh, Weighed
from harness.wire.messages.server import Spawn
from harness.wire.results.evaluation import Basis, ErrorReport, Fact
from harness.worker.clock import floor
from harness.worker.clock.clock import Clock
from harness.worker.clock.lines import ClockLine
from harness.worker.kit import place
from harness.worker.oracle.lines import EngineLine, GuestBroken, WorkerLine
from harness.worker.oracle.problem import BadProblem, Problem
from harness.worker.oracle.recorded_problem import RecordedProblem
from harness.worker.oracle.script_runs import CannotJudge, ScriptRuns
from harness.worker.oracle.vault import Vault
from suites.task import Task

from .candidate_calls import CandidateCalls
from .wrong_answers import Strength


def main(channel: Channel, spawn: Spawn) -> None:
    """Serve requests of the engine until it closes the channel. An exception ends the process, and the engine sees its end.

    Between requests memory is given back; problems, inputs and the line to the script worker stay.
    """
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    torch.set_num_threads(1)
    place.take(spawn.device, spawn.sharers)
    judge = JudgeWorker(channel)
    loaded = 0
    while True:
        try:
            frame = channel.receive()
        except ChannelClosed:
            return
        request = JUDGE_REQUESTS.decode(frame.payload)
        judge.close_clock()
        match request:
            case Proceed() | Timer():
                continue  # meant for a request that is over
            case Attach():
                judge.runs.attach(Channel(socket.socket(fileno=frame.descriptors[0])), request.target)
                continue
            case Weigh():
                judge.weigh(request)
            case Specify():
                judge.specify(request)
            case Measure():
                judge.measure(request)
            case Begin():
                judge.judge(request, frame.descriptors)
        gc.collect()
        place.give_back(all_of_it=True)
        if judge.problems > loaded:  # exclude the modules of a new problem from later collections
            loaded = judge.problems
            gc.freeze()


_Key = tuple[Path, int, tuple[tuple[str, str], ...]]
"""Path and date of a task's `problem.py`, and the dtypes of its cases, which differ by target."""


class JudgeWorker:
    """Serves the engine's requests, and keeps loaded problems and their inputs."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._line = EngineLine(channel)
        self.vault = Vault()
        self._problems: dict[_Key, Problem] = {}
        self._strengths: dict[_Key, tuple[Fact, str]] = {}
        self.runs = ScriptRuns(self._line.alive)
        self._clock: Clock | None = None
        """The clock that timed last, with its timers."""

    @property
    def problems(self) -> int:
        """Number of loaded problems."""
        return len(self._problems)

    def judge(self, begin: Begin, ends: tuple[int, ...]) -> None:
        """Judge one candidate and report the verdict; `ends` has our end of the line to its guest, which is closed at the end.

        A failure of the task's own code, of the guest's code or of memory is reported as `infra`. Raises all other errors.
        """
        link = WorkerLine(Channel(socket.socket(fileno=ends[0])), begin.guest_pid, place.answer_bytes())
        try:
            judged = CandidateCalls(self._line, self.vault, link, begin, self._problem(begin.task)).run()
            # Tested at the interpreter's sizes, where it is cheap.
            if judged.error is None and not place.is_gpu():
                with suppress(CannotJudge):  # the result stays without this fact
                    fact, weak = self._strength(begin.task)
                    judged = msgspec.structs.replace(judged, facts=(*judged.facts, fact), weak_oracle=weak)
            self._line.tell(judged)
        except CannotJudge as reason:
            self._line.tell(Judged(ErrorReport(kind="unsupported", message=str(reason))))
        except (BadProblem, GuestBroken) as error:
            self._line.tell(Judged(ErrorReport(kind="infra", message=str(error))))
        except RuntimeError as error:
            if not is_out_of_memory(str(error)):
                raise
            message = f"the judge's own work on the GPU: {str(error).partition(chr(10))[0]}"
            self._line.tell(Judged(ErrorReport(kind="infra", message=message)))
        finally:
            self.vault.forget_drawn()
            link.close()

    def measure(self, measure: Measure) -> None:
        """Time a candidate that was judged correct."""
        line = ClockLine(self._channel)
        problem = self._problem(measure.task)
        if measure.new_floor:
            floor.forget()
        self._clock = Clock(line, measure, problem, self.vault, measure_floor=floor.measure)
        try:
            line.tell(self._clock.run())
        except ChannelClosed:
            return  # the engine is gone

    def close_clock(self) -> None:
        """Close the timers of the last timing."""
        if self._clock is not None:
            self._clock.close()
            self._clock = None

    def weigh(self, weigh: Weigh) -> None:
        """Report which wrong answers a task's oracle accepts, over all its cases."""
        try:
            strength = Strength(self._problem(weigh.task), weigh.task, weigh.seed)
            found = strength.weaknesses(weigh.task.cases)
            self._line.tell(Weighed(tried=strength.tried, weaknesses=found))
        except BadProblem as error:
            unsupported = isinstance(error, CannotJudge)
            self._line.tell(Weighed(tried=0, weaknesses=(), problem=str(error), unsupported=unsupported))

    def specify(self, specify: Specify) -> None:
        """Report the argument specifications of a task's open cases at `gpu` sizes."""
        try:
            cases = self._problem(specify.task).specifications(specify.task.open_cases)
            self._line.tell(Specified(cases=msgspec.Raw(msgspec.msgpack.encode(cases))))
        except BadProblem as error:
            self._line.tell(Specified(cases=msgspec.Raw(msgspec.msgpack.encode({})), problem=str(error)))

    def _strength(self, task: Task) -> tuple[Fact, str]:
        """Return how strong the task's oracle is on its open cases, and its weaknesses in words; computed once."""
        key = _key(task)
        if key not in self._strengths:
            strength = Strength(self._problem(task), task, seed=0)
            found = strength.weaknesses(task.open_cases)
            weak = "; ".join(f"case {weakness.case}: {weakness.problem}" for weakness in found[:3])
            weak += f" (and {len(found) - 3} more)" if len(found) > 3 else ""
            words = f"weak: {weak}" if weak else f"{strength.tried} wrong answers tried on it, none accepted"
            self._strengths[key] = Fact("oracle", words, Basis.PROOF), weak
        return self._strengths[key]

    def _problem(self, task: Task) -> Problem:
        key = _key(task)
        if key not in self._problems:
            self._problems[key] = Problem(task) if task.script is None else RecordedProblem(task, self.runs)
        return self._problems[key]


def _key(task: Task) -> _Key:
    file = task.folder / "problem.py"
    written = file.stat().st_mtime_ns if file.exists() else 0
    return file, written, tuple((case.name, case.dtype) for case in task.cases)
