"""The judge's side of replays: records of calls are run again in the verifier while the guest goes on with the next case."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec

from harness.evaluation import ErrorReport, Mismatch
from harness.worker.serving.arena import Arena
from harness.worker.serving.messages import (
    Begin,
    CaseTraffic,
    NotReplayed,
    OutputData,
    Replay,
    Replayed,
    Study,
    VerifierReport,
)
from harness.worker.serving.records import Record, Table
from suites.task import Task
from suites.tolerances import dtype_of

from . import bounds, host_reads, replay_findings
from .answers import judged_by
from .caller import Run, tensor_of
from .compare import compare
from .link import GuestGone, GuestLied, GuestSlow, VerifierLink
from .plan import PATIENCE, Plan, Step
from .problem import torch_dtype
from .seeds import POOL, derive
from .vault import Given

OWN_VALUES = "Python reads what kernels made, and goes on by it, so that they can be made again with the call's own values alone"
WORKED_OUT = (
    "Python reads so much of the inputs, and goes on by it, that it could have worked the answer out itself; read sizes and scales, "
    "and leave the work to kernels"
)


@dataclass(slots=True)
class Outcome:
    """What came of one call's replay."""

    run: Run
    replayed: Replayed | None = None
    other_values: bool = False
    """The inputs were others than those of the call that was recorded."""
    why_not: str = ""
    """Why there was no replay, or none with other values."""
    seconds: float = 0.0
    """That the judge waited for it."""


@dataclass(slots=True)
class _Waiting:
    """A replay that runs in the verifier."""

    run: Run
    given: Given
    arena: Arena
    other_values: bool
    began: float
    exact: bool = False
    """The call's own values once more, whose outputs must be the guest's to the last bit."""
    backwards: bool = False
    """Programs from the last to the first, which must make no difference."""
    elsewhere: int = 0
    """Whose arithmetic it is, of many devices, which must make none either; 0 for the interpreter's own."""
    compiled: bool = False
    """Kernels are run as Triton's compiler reads them, which must make no difference."""
    doubted: ErrorReport | None = None
    """What was wrong backwards or elsewhere: it is the order's or the arithmetic's doing if nothing is wrong now."""
    reads: bool = True
    """What Python read was what these inputs give; where it was not, right answers prove as much, but wrong ones nothing."""
    why: str = ""
    """Why the call is not made again on other values that Python would have read alike."""


class Replays:
    """Replays of one candidate's calls, one at a time and in order."""

    def __init__(
        self, link: VerifierLink | None, begin: Begin, plan: Plan, given: Callable[[Step], Given]
    ) -> None:
        self._link = link
        self._begin = begin
        self._task: Task = begin.task
        self._given = given
        drawn = derive(begin.seed, begin.source, "repeat that is replayed") % len(plan.repeats)
        self._steps = (*plan.execution, *plan.repeats[: drawn + 1])
        """What is replayed, with no call left out between: every case, and repeats up to one that the guest cannot know."""
        own = tuple(step for step in plan.execution if not step.case.hidden)
        self._exact = (*own, plan.repeats[drawn])
        """Those also with their own values: the guest must have got from its kernels what they give here."""
        self._waiting: _Waiting | None = None
        self._finding: ErrorReport | None = None
        self.outcomes: list[Outcome] = []
        self._unread: ErrorReport | None = None
        """The first call that no replay runs as the compiler reads its kernels, and why."""

    def study(self, tables: tuple[Table, ...]) -> None:
        """Before the first replay: the source, and what its import left."""
        if self._link is None:
            return
        self._link.hello()
        self._link.send(
            Study(
                source=self._begin.source,
                target=self._begin.target,
                allowed=self._task.allowed_operators,
                tables=tables,
            )
        )

    def start(self, run: Run) -> None:
        """Has the call replayed; the replay before it is waited for first."""
        if self._link is None or not any(run.step is step for step in self._steps):
            return
        self._collect()
        if self._finding is not None:
            return
        if run.returned.record is None:
            self.outcomes.append(Outcome(run, why_not=run.returned.unrecorded or "the guest made no record"))
            return
        if run.returned.record.excess:
            self._finding = replay_findings.incomplete(run, run.returned.record.excess)
            return
        self._start(run, run.returned.record)

    def finish(self) -> ErrorReport | None:
        """What is wrong with the first call whose replay showed something; `None` when all is well."""
        self._collect()
        return self._finding

    def unproven(self) -> ErrorReport | None:
        """Why nobody but the guest says that kernels did the work in some call; `None` when replays say it of all.

        A replay with the call's own values alone says nothing of launch arguments, grids and fills: results may be among them.
        """
        for outcome in self.outcomes:
            if outcome.replayed is None or not outcome.other_values:
                return replay_findings.unproven(outcome)
        return self._unread

    def traffic(self, run: Run) -> CaseTraffic:
        """What the kernels did in the call: as replayed, or as the guest says."""
        for outcome in self.outcomes:
            if outcome.run is run and outcome.replayed is not None:
                return msgspec.structs.replace(
                    outcome.replayed.traffic, uninitialised=run.returned.traffic.uninitialised
                )
        return run.returned.traffic

    def close(self) -> None:
        """Lets go what is held."""
        if self._waiting is not None:
            self._waiting.arena.close()
            self._waiting = None

    def _start(self, run: Run, record: Record) -> None:
        """The first replay of a call."""
        places, device = self._others(run.step), self._other_device(run.step)
        first = self._given(dataclasses.replace(run.step, place=next(places)))
        if not host_reads.reads_inputs(record):
            self._send(run, record, first, other_values=True, backwards=True, elsewhere=device)
            return
        others = [first, *(self._given(dataclasses.replace(run.step, place=place)) for place in places)]
        pairs = [(host_reads.with_elements_read(record, run.given, other), other) for other in others]
        if host_reads.leaves_the_work(record, self._task, run.given, pairs):
            self._send(run, record, pairs[0][0], other_values=True, backwards=True, elsewhere=device)
        else:
            self._send(
                run,
                record,
                first,
                other_values=True,
                backwards=True,
                elsewhere=device,
                reads=False,
                why=WORKED_OUT,
            )

    def _others(self, step: Step) -> Iterator[int]:
        """The other places of the pool, in an order that the guest cannot know."""
        away = derive(self._begin.seed, self._begin.source, step.case.name, "replay")
        for further in range(POOL - 1):
            yield (step.place + 1 + (away + further) % (POOL - 1)) % POOL

    def _other_device(self, step: Step) -> int:
        """One of many, which nobody but the judge knows."""
        drawn = derive(self._begin.seed, self._begin.source, step.case.name, str(step.place), "device")
        return 1 + drawn % ((1 << 32) - 1)

    def _send(
        self,
        run: Run,
        record: Record,
        given: Given,
        *,
        other_values: bool,
        again: bool = False,
        exact: bool = False,
        backwards: bool = False,
        in_order: bool = False,
        elsewhere: int = 0,
        doubted: ErrorReport | None = None,
        reads: bool = True,
        why: str = "",
        compiled: bool = False,
    ) -> None:
        arena = Arena(given.inputs)
        self._waiting = _Waiting(
            run,
            given,
            arena,
            other_values,
            time.monotonic(),
            exact,
            backwards,
            elsewhere,
            compiled,
            doubted,
            reads,
            why,
        )
        request = Replay(
            case=run.case.name,
            record=record,
            arguments=arena.arguments,
            arena_bytes=arena.size_bytes,
            again=again or not other_values,
            backwards=backwards,
            in_order=in_order,
            elsewhere=elsewhere,
            reads=reads,
            compiled=compiled,
            gap=any(outcome.replayed is None for outcome in self.outcomes),
        )
        assert self._link is not None
        self._link.send(request, (arena.descriptor,))

    def _collect(self) -> None:
        """Takes the answer that is due; a replay with other values that fails is tried with the call's own."""
        while self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            asked = time.monotonic()
            try:
                report = self._receive()
                self._judge(waiting, report, time.monotonic() - asked)
            except (GuestSlow, GuestGone, GuestLied) as error:
                self._lost(waiting, error)
            finally:
                waiting.arena.close()

    def _lost(self, waiting: _Waiting, error: GuestSlow | GuestGone | GuestLied) -> None:
        """There is no verifier any more: the call's doing, but for a replay in which Python did not go by the values."""
        if not waiting.reads:
            self._link = None
            self.outcomes.append(Outcome(waiting.run, why_not=waiting.why))
        elif isinstance(error, GuestSlow):
            self._finding = self._finding or replay_findings.slow(waiting.run, error.seconds)
        else:
            self._finding = self._finding or replay_findings.lost(waiting.run)

    def _receive(self) -> VerifierReport:
        assert self._link is not None
        limits = self._begin.limits
        return self._link.receive(wall_s=PATIENCE * limits.case_s, cpu_s=PATIENCE * limits.case_cpu_s)

    def _judge(self, waiting: _Waiting, report: VerifierReport, seconds: float) -> None:
        run, record = waiting.run, waiting.run.returned.record
        assert record is not None
        if waiting.compiled:
            self._judge_compiled(waiting, report, record)
            return
        if isinstance(report, Replayed):
            if waiting.exact:
                if [output.data for output in report.outputs] != [
                    output.data for output in run.returned.outputs
                ]:
                    self._finding = self._finding or replay_findings.other_bytes(run)
                return
            error = self._wrong(waiting, report)
            if error is not None and not waiting.reads:
                self._own_values(waiting, record)
                return
            if error is None and waiting.doubted is not None:
                self._finding = self._finding or replay_findings.by_order(run, waiting.doubted)
                return
            if error is not None and error.kind == "not_replayed" and waiting.elsewhere:
                self._forwards(waiting, record, doubted=error)
                return
            if error is None and self._begin.compiled:
                self._compiled(waiting, record)
            elif error is None:
                self._exactly(waiting, record)
            if error is None:
                why = "" if waiting.other_values else waiting.why
                self.outcomes.append(Outcome(run, report, waiting.other_values, why, seconds))
            elif waiting.other_values and error.kind == "not_replayed":
                self._send(run, record, run.given, other_values=False)
                self._keep_values_only(waiting, error)
            else:
                self._finding = self._finding or error
            return
        assert isinstance(report, NotReplayed)
        match report.kind:
            case "in_order" if waiting.backwards:
                self._forwards(waiting, record, elsewhere=waiting.elsewhere)
            case "refused" if not waiting.reads:
                self._own_values(waiting, record)
            case "refused" if waiting.elsewhere and report.finding == "not_replayed":
                self._forwards(waiting, record, doubted=replay_findings.refused(run, report))
            case "diverged" if waiting.other_values:
                self._send(run, record, run.given, other_values=False, why=waiting.why or OWN_VALUES)
            case "unknown":
                self.outcomes.append(Outcome(run, why_not=report.message))
            case _:
                self._finding = self._finding or replay_findings.refused(run, report)

    def _judge_compiled(self, waiting: _Waiting, report: VerifierReport, record: Record) -> None:
        """What the interpreter found right must be right as the compiler reads it."""
        run = waiting.run
        if isinstance(report, Replayed):
            wrong = self._mismatch(waiting, report)
            if wrong is not None and waiting.reads:
                self._finding = self._finding or replay_findings.read_otherwise(run, wrong)
                return
        else:
            assert isinstance(report, NotReplayed)
            if report.kind == "refused" and waiting.reads:
                self._finding = self._finding or replay_findings.refused(run, report)
                return
            if report.kind == "unread":
                self._unread = self._unread or replay_findings.unread(run.case.name, report.message)
            elif report.kind == "diverged":
                self._unread = self._unread or replay_findings.steered_otherwise(run.case.name)
        self._exactly(waiting, record)

    def _compiled(self, waiting: _Waiting, record: Record) -> None:
        """The same replay once more, kernels as the compiler reads them."""
        self._send(
            waiting.run,
            record,
            waiting.given,
            other_values=waiting.other_values,
            again=True,
            elsewhere=waiting.elsewhere,
            reads=waiting.reads,
            compiled=True,
        )

    def _exactly(self, waiting: _Waiting, record: Record) -> None:
        """With the call's own values, where the guest's bytes must be what its kernels give."""
        run = waiting.run
        if waiting.other_values and any(run.step is step for step in self._exact):
            self._send(run, record, run.given, other_values=False, exact=True)

    def _forwards(
        self,
        waiting: _Waiting,
        record: Record,
        *,
        elsewhere: int = 0,
        doubted: ErrorReport | None = None,
    ) -> None:
        """The same replay once more, programs in the order in which the interpreter takes them; `elsewhere`: all else as before."""
        self._send(
            waiting.run,
            record,
            waiting.given,
            other_values=waiting.other_values,
            again=True,
            backwards=bool(elsewhere),
            in_order=bool(elsewhere),
            elsewhere=elsewhere,
            doubted=doubted,
            reads=waiting.reads,
            why=waiting.why,
        )

    def _own_values(self, waiting: _Waiting, record: Record) -> None:
        """Once more as the call was, which Python's reading has a part in."""
        self._send(waiting.run, record, waiting.run.given, other_values=False, why=waiting.why)

    def _keep_values_only(self, waiting: _Waiting, error: ErrorReport) -> None:
        """The call's own values are tried for the sake of the message alone: the finding stands."""
        self._finding = self._finding or error
        again, self._waiting = self._waiting, None
        assert again is not None
        try:
            report = self._receive()
            if isinstance(report, Replayed) and self._wrong(again, report) is None:
                self._finding = replay_findings.only_these_values(waiting.run, error)
        finally:
            again.arena.close()

    def _wrong(self, waiting: _Waiting, report: Replayed) -> ErrorReport | None:
        """Why a replay does not stand for the call; `None` when it does."""
        return replay_findings.of_replay(
            waiting.run,
            report,
            self._task,
            mismatch=lambda: self._mismatch(waiting, report),
        )

    def _mismatch(self, waiting: _Waiting, report: Replayed) -> Mismatch | None:
        case = waiting.run.case
        for output, data, expected in zip(
            self._task.outputs, report.outputs, waiting.given.expected, strict=True
        ):
            tolerance, quantization = judged_by(self._task, output, waiting.run.step.case)
            compared = compare(
                tensor_of(
                    OutputData(type="torch.Tensor", dtype=data.dtype, shape=data.shape, data=data.data)
                ),
                expected,
                case=case.name,
                output=output.name,
                dtype=torch_dtype(dtype_of(output, case)),
                tolerance=tolerance,
                quantization=quantization,
                terms=bounds.terms_of(tolerance, case.cpu),
            )
            if compared.mismatch is not None:
                return compared.mismatch
        return None
