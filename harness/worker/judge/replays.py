"""Has recorded calls run again in the verifier, while the guest runs the next case."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass

from harness.cases.call_plan import PATIENCE, Plan, Step
from harness.cases.seeds import POOL, derive
from harness.wire import limits
from harness.wire.messages.guest import CaseTraffic, Load, Loaded
from harness.wire.messages.judge import Begin
from harness.wire.messages.script import DRAW_SEED
from harness.wire.messages.verifier import NotReplayed, Replay, Replayed, ReplayResult
from harness.wire.results.evaluation import ErrorReport, Finding, Mismatch
from harness.worker.kit.arena import Arena
from harness.worker.oracle.answers import compare_call
from harness.worker.oracle.caller import Run, tensor_of
from harness.worker.oracle.vault import Given
from harness.worker.oracle.worker_line import GuestBroken, GuestGone, NoAnswer, VerifierLine, Wanted
from suites.task import Task

from . import replay_findings
from .replay_findings import ReplayOutcome


@dataclass(slots=True)
class _Waiting:
    """A replay that is under way in the verifier."""

    run: Run
    given: Given
    arena: Arena
    backwards: bool
    doubted: ErrorReport | None
    """The error with programs in reverse; a race, if the replay in order is right."""


class Replays:
    """Replays one candidate's calls, one at a time: one drawn call, or every call in an exam."""

    def __init__(
        self,
        link: VerifierLine | None,
        begin: Begin,
        plan: Plan,
        given: Callable[[Step], Given],
        alive: Callable[[], None],
    ) -> None:
        """`alive` is called before each wait for the verifier, which may take minutes."""
        self._link = link
        self._alive = alive
        self._begin = begin
        self._task: Task = begin.task
        self._given = given
        drawn = derive(begin.seed, begin.source, "call that is replayed") % len(plan.execution)
        self._steps = (*plan.execution, *plan.repeats) if begin.exam else plan.execution[drawn:]
        self._waiting: _Waiting | None = None
        self._error: ErrorReport | None = None
        self.zero_lanes = False
        """Replays have zeros in the lanes that a masked load without `other` leaves out."""
        self._loaded = False
        """The verifier has answered that it has the source."""
        self.outcomes: list[ReplayOutcome] = []
        self.verifier_ended = False
        """The verifier ended when it should have answered; the engine knows how."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings of the replays; a call that could not be replayed is a finding too."""
        return tuple(finding for outcome in self.outcomes for finding in replay_findings.of_outcome(outcome))

    def wants(self, step: Step) -> bool:
        """True if the call must be recorded. If the drawn call is left out, the next call is."""
        wanted = self._link is not None and any(step is planned for planned in self._steps)
        return wanted and (self._begin.exam or not (self.outcomes or self._waiting))

    def study(self) -> None:
        """Send the source to the verifier, before the first replay."""
        if self._link is None:
            return
        self._link.hello()
        load = Load(self._begin.source, self._begin.target, allowed=self._task.allowed_operators)
        try:
            self._link.send(load, wall_s=limits.GUEST_START_S)
        except NoAnswer as lost:
            self._link, self.verifier_ended = None, isinstance(lost, GuestGone)

    def start(self, run: Run) -> None:
        """Start the replay of a recorded call, after waiting for the previous replay."""
        if not self.wants(run.step):
            return
        self._collect()
        if self._link is None or self._error is not None:
            return
        record = run.returned.record
        if DRAW_SEED in run.given.inputs:
            self.outcomes.append(ReplayOutcome(run, why_not="it draws random numbers"))
        elif record is None:
            self.outcomes.append(
                ReplayOutcome(run, why_not=run.returned.unrecorded or "the guest made no record")
            )
        elif record.excess:
            self._error = replay_findings.excessive(run, record.excess)
        else:
            offset = derive(self._begin.seed, self._begin.source, run.step.case.name, "replay") % (POOL - 1)
            place = (run.step.place + 1 + offset) % POOL
            self._send(run, self._given(dataclasses.replace(run.step, place=place)), backwards=True)

    def finish(self) -> ErrorReport | None:
        """Wait for the last replay; return the error that refuses the candidate, if any."""
        self._collect()
        return self._error

    def traffic(self, run: Run) -> CaseTraffic:
        """Return the memory traffic of a call: from its replay, else from the guest."""
        for outcome in self.outcomes:
            if outcome.run is run and outcome.replayed is not None:
                return outcome.replayed.traffic
        return run.returned.traffic

    def close(self) -> None:
        """Free the memory of a replay that is under way."""
        if self._waiting is not None:
            self._waiting.arena.close()
            self._waiting = None

    def _send(self, run: Run, given: Given, *, backwards: bool, doubted: ErrorReport | None = None) -> None:
        assert self._link is not None
        assert run.returned.record is not None
        arena = Arena(given.inputs)
        self._waiting = _Waiting(run, given, arena, backwards, doubted)
        request = Replay(
            case=run.case.name,
            record=run.returned.record,
            arguments=arena.arguments,
            arena_bytes=arena.size_bytes,
            backwards=backwards,
            zero_lanes=self.zero_lanes,
        )
        try:
            if not self._loaded:
                self._receive(Loaded)
                self._loaded = True
            self._alive()
            self._link.send(request, (arena.descriptor,), wall_s=limits.GUEST_START_S)
        except (NoAnswer, GuestBroken) as lost:
            self.close()
            self._lose_verifier(run, lost)

    def _collect(self) -> None:
        """Wait for the replay that is under way, and for those that it causes."""
        while self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            began = time.monotonic()
            try:
                self._judge(waiting, self._receive(ReplayResult), time.monotonic() - began)
            except (NoAnswer, GuestBroken) as lost:
                self._lose_verifier(waiting.run, lost)
            finally:
                waiting.arena.close()

    def _lose_verifier(self, run: Run, lost: NoAnswer | GuestBroken) -> None:
        """Note that this call has no replay. Later calls have none either."""
        self._link = None
        self.verifier_ended = isinstance(lost, GuestGone)
        self.outcomes.append(ReplayOutcome(run, why_not=replay_findings.lost(lost)))

    def _receive(self, wanted: type[Wanted]) -> Wanted:
        assert self._link is not None
        self._alive()
        allowed = self._begin.limits
        return self._link.receive(
            wanted, wall_s=PATIENCE * allowed.case_s, cpu_s=PATIENCE * allowed.case_cpu_s
        )

    def _judge(self, waiting: _Waiting, report: ReplayResult, seconds: float) -> None:
        run = waiting.run
        if isinstance(report, Replayed):
            self._judge_outputs(waiting, report, seconds)
            return
        assert isinstance(report, NotReplayed)
        own_values = waiting.given is run.given
        match report.kind:
            case "waits" if waiting.backwards:
                self._send(run, waiting.given, backwards=False)
            case "diverged" if not own_values:
                self._send(run, run.given, backwards=waiting.backwards)
            case "refused":
                self._error = replay_findings.refused(run, report)
            case _:
                self.outcomes.append(ReplayOutcome(run, why_not=report.message))

    def _judge_outputs(self, waiting: _Waiting, report: Replayed, seconds: float) -> None:
        """Judge the outputs of a replay. A wrong replay in reverse is repeated in order, to tell a race from a wrong kernel."""
        run = waiting.run
        error = replay_findings.of_replay(
            run, report, self._task, mismatch=lambda: self._mismatch(waiting, report)
        )
        if error is not None and error.mismatch is not None and waiting.backwards:
            self._send(run, waiting.given, backwards=False, doubted=error)
        elif error is not None:
            self._error = error
        elif waiting.doubted is not None:
            self._error = replay_findings.by_order(run, waiting.doubted)
        else:
            own_values = waiting.given is run.given
            outcome = ReplayOutcome(run, report, own_values, in_order=not waiting.backwards, seconds=seconds)
            self.outcomes.append(outcome)

    def _mismatch(self, waiting: _Waiting, report: Replayed) -> Mismatch | None:
        compared = (
            compare_call(self._task, waiting.given, number, tensor_of(data))
            for number, data in enumerate(report.outputs)
        )
        return next((result.mismatch for result in compared if result.mismatch is not None), None)
