"""The calls of one candidate: makes those of the plan and judges them, in the stages call, execution and integrity."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from harness.cases.call_plan import Step
from harness.cases.seeds import POOL
from harness.wire import findings, limits
from harness.wire.calls import signatures
from harness.wire.calls.tensors import CaseSpecs
from harness.wire.messages.guest import (
    GPU_FAULT,
    OUT_OF_MEMORY,
    Ask,
    LeftBehind,
    Load,
    Loaded,
)
from harness.wire.messages.judge import Begin, Failure, Judged, Specified
from harness.wire.messages.script import CALL
from harness.wire.results.evaluation import Basis, ErrorReport, Fact, Finding, Layer
from harness.wire.results.served_calls import BatchRows
from harness.worker.kit import place
from harness.worker.oracle import integrity
from harness.worker.oracle.answers import Answers
from harness.worker.oracle.blame import CandidateStopped, blame
from harness.worker.oracle.caller import Caller, Run
from harness.worker.oracle.comparison import mismatch_wording
from harness.worker.oracle.comparison.mismatch_wording import CaseError
from harness.worker.oracle.lines import (
    CandidateRaised,
    EngineLine,
    GuestFailed,
    GuestGone,
    NoAnswer,
    WorkerLine,
)
from harness.worker.oracle.problem import BadProblem, Problem
from harness.worker.oracle.vault import Given, Vault

from .batch_rows import compare_batch_rows
from .further_cases import judge_the_rest

_ENDS_ALL = ("unsupported", "cancelled", GPU_FAULT, OUT_OF_MEMORY)
"""Kinds of errors after which no other case can be judged."""
CALLED_OFF = ErrorReport(kind="cancelled", message="the engine needs no verdict any more")


class CandidateCalls:
    """Drives one guest through the stages that need it."""

    def __init__(
        self,
        line: EngineLine,
        vault: Vault,
        link: WorkerLine,
        begin: Begin,
        problem: Problem,
    ) -> None:
        self._line = line
        self._vault = vault
        self._link = link
        self._begin = begin
        self._task = begin.task
        self._plan = begin.plan
        self._limits = begin.limits
        self._problem = problem
        self._sandbox: tuple[Layer, ...] = ()
        self._stage = "call"
        self._case = ""
        self._further_failures: tuple[CaseError, ...] = ()
        """Failures of other outputs and cases, after a first one."""
        self._failing_cases = ""
        """Which cases fail and pass, after a first wrong one."""
        self._runs: list[Run] = []
        self._left: LeftBehind | None = None
        self._kept_findings: list[Finding] = []
        """Findings about several calls together."""
        is_tf32_possible = any(word in begin.source for word in ("dot", "approx"))
        self._answers = Answers(begin.task, tf32=place.has_tf32() and is_tf32_possible)
        self._batch_rows: tuple[BatchRows, ...] = ()
        self._left_out: dict[str, str] = {}
        self._unfit: set[tuple[str, int]] = set()
        """Case and place of inputs that the task's code does not accept: a neighbour, or one tensor for two inputs."""
        self._caller = Caller(link, begin.task, begin.limits, self._given)

    def run(self) -> Judged:
        """Report the arguments of the cases, then make the calls; always returns a result, whatever the guest does."""
        failure: Failure | None = None
        detail = ""
        try:
            self._line.tell(self._specify())
            self._prepare()
            self._sandbox = self._link.hello().sandbox
            self._execute(self._call())
            self._check_integrity()
            return self._judged(None)
        except CandidateStopped as stop:
            error, self._further_failures = stop.error, (*stop.further_failures, *self._further_failures)
        except GuestFailed as failed:
            error, failure = ErrorReport(kind="limit", message=str(failed)), Failure.GUEST_FAILED
            detail = "the judge's code failed in the candidate's process"
        except NoAnswer as cause:
            lead = f"case {self._case}: " if self._case else "on import: "
            error = blame(cause, self._case, lead, gpu=place.is_gpu())
            failure = Failure.GUEST_ENDED if isinstance(cause, GuestGone) else None
        finally:
            self._caller.close()
        ok = None if error.kind == "unsupported" else False
        self._line.leave(self._stage, detail or error.first_line, ok=ok)
        return self._judged(error, failure)

    def _call(self) -> Run:
        """Let the guest import the candidate and run the first case: the stage *call*. Return the run, not compared yet.

        Raises `Stop` for a wrong signature, and `NoAnswer` if the candidate fails; after an exception of the call, further
        cases are judged first.
        """
        self._take_turn()
        self._line.enter("call")
        names = tuple(entry.name for entry in self._task.entry_points)
        shared = self._caller.try_sharing()
        loaded = self._link.ask(
            Load(
                source=self._begin.source,
                entry_points=names,
                target=self._begin.target,
                reach=None if shared is None else shared.place,
            ),
            Loaded,
            wall_s=self._limits.call_s,
            cpu_s=self._limits.call_cpu_s,
        )
        if shared is not None and not loaded.not_reached:
            self._caller.share()
        for entry in self._task.entry_points:
            got = loaded.parameters.get(entry.name, ())
            wrong = signatures.signature_error(entry.signature, got) if got else ""
            if wrong:
                raise CandidateStopped(mismatch_wording.wrong_signature(entry, wrong))
        step = self._plan.execution[0]
        try:
            run = self._run(step, first=True)
        except CandidateRaised as failure:
            self._judge_the_rest(step, failure.failure.kind)
            raise
        traffic = run.returned.traffic
        launches = f"{traffic.launches} launch{'es' if traffic.launches != 1 else ''}"
        detail = (
            f"case {run.case.name}: {launches}, {traffic.programs} program{'s' * (traffic.programs != 1)}"
        )
        self._line.leave("call", detail, ok=True)
        return run

    def _execute(self, first: Run) -> None:
        """Compare every case with the oracle; skip hidden cases of a candidate that is refused anyway."""
        self._stage = "execution"
        self._line.enter("execution")
        for step in filter(self._is_possible, self._plan.execution):
            if step.case.hidden and any(integrity.of_call(run, self._task) for run in self._runs):
                break
            try:
                run = first if step is first.step else self._run(step)
                run = self._compare(run)
            except (CandidateRaised, CandidateStopped) as failure:
                for earlier in self._runs:  # work outside kernels says more than a later wrong value
                    self._refuse(integrity.of_call(earlier, self._task))
                error = failure.error if isinstance(failure, CandidateStopped) else failure.failure
                self._judge_the_rest(step, error.kind)
                raise
            self._runs.append(run)
            run.shared_outputs.clear()  # compared; only the small parts of the run are needed later
        if not self._answers.elements:
            raise BadProblem(f"no case of {self._task.id} has an output with an element to compare")
        count, hidden = len(self._runs), sum(run.step.case.hidden for run in self._runs)
        detail = f"{count} of {count} cases match the oracle, {hidden} of them hidden"
        self._line.leave("execution", detail, ok=True, cases=(count, count))

    def _judge_the_rest(self, failed: Step, kind: str) -> None:
        """Note which other cases fail, and how; `kind` is the kind of the first error."""
        if self._begin.exam or kind in _ENDS_ALL:
            return
        self._further_failures, self._failing_cases = judge_the_rest(
            self._task,
            self._runs,
            filter(self._is_possible, self._plan.execution),
            failed,
            rest_s=self._limits.rest_s,
            given=self._given,
            call=lambda further, wall_s: self._run(further, wall_s=wall_s),
        )

    def _check_integrity(self) -> None:
        """Check the calls so far, repeat cases in an order that exposes kept state, and check what is left behind."""
        self._stage = "integrity"
        self._line.enter("integrity")
        for run in self._runs:
            self._refuse(integrity.of_call(run, self._task))
        for step in self._plan.repeats:
            if self._is_possible(step):
                run = self._run(step)
                self._refuse(integrity.of_call(run, self._task))
                self._repeated(run)
        if place.is_gpu():
            self._compare_batch_rows()
        self._case = ""
        self._left = self._link.ask(
            Ask.FAREWELL, LeftBehind, wall_s=limits.FAREWELL_S, cpu_s=limits.FAREWELL_S
        )
        self._refuse(integrity.of_farewell(self._left))
        self._refuse(findings.strict_error(self._findings(), self._task.strict))
        kernels = ", ".join(dict.fromkeys(name for run in self._runs for name in run.returned.kernels))
        self._line.leave(
            "integrity", f"{self._answers.calls} calls right; launched in every case: {kernels}", ok=True
        )

    def _compare_batch_rows(self) -> None:
        """Compare rows alone with rows in a batch, which only a GPU's arithmetic decides."""

        def call(step: Step, values: Given) -> Run:
            """Make a call and judge it. Raises `Stop` if it is wrong."""
            run = self._run(step, values=values)
            self._refuse(integrity.of_call(run, self._task))
            # Without a comparison, a candidate that returns zeros in these calls would have the same bits.
            errors = self._answers.errors(run, run.step.case.sizes)
            if errors:
                raise CandidateStopped(errors[0].error, errors[1:])
            return run

        steps = [run.step for run in self._runs if not run.step.case.hidden]
        self._batch_rows = compare_batch_rows(self._task, self._problem, steps, self._given, call)
        if "batch_dependent" in self._task.strict:
            self._refuse(findings.batch_error(self._batch_rows))

    def _run(
        self, step: Step, *, first: bool = False, wall_s: float | None = None, values: Given | None = None
    ) -> Run:
        """Make one call in the guest; `CandidateStopped` with `unsupported` if this device cannot judge it."""
        self._line.alive()
        place.give_back()
        if not first:
            self._take_turn()
        if wall_s is None:
            self._case = step.case.name
        try:
            run = self._caller.call(step, first=first, wall_s=wall_s, values=values)
        except CandidateRaised as raised:
            if raised.failure.kind != "waits":
                raise
            self._caller.in_order = True
            run = self._caller.call(step, first=first, wall_s=wall_s, values=values)
        if run.returned.unsupported:
            raise CandidateStopped(ErrorReport(kind="unsupported", message=run.returned.unsupported))
        return run

    def _take_turn(self) -> None:
        """Wait for the engine before a call on a GPU: a timing that waits goes first."""
        if not self._begin.asks:
            return
        place.settle()
        if not self._line.take_turn():
            raise CandidateStopped(CALLED_OFF)

    def _given(self, step: Step) -> Given:
        return self._vault.given(self._problem, step.case, self._begin.seed, step.place)

    def _specify(self) -> Specified:
        """The arguments of the declared cases at `gpu` sizes, and for a GPU those of the hidden cases."""
        self._given(self._plan.execution[0])  # the specifications of a script come from its latest recording
        ahead: CaseSpecs = {}
        hidden = self._plan.hidden if self._begin.asks else ()
        for step in hidden:
            with suppress(BadProblem):  # `_prepare` leaves the case out too
                ahead |= self._problem.specifications((step.case.case,))
        # Configs are compiled for the first case. In a drawn order an exam could use no binary of the attempt.
        in_order = sorted(self._plan.declared, key=lambda case: case.gpu.get(CALL, 0))
        return Specified(
            cases=msgspec.Raw(msgspec.msgpack.encode(self._problem.specifications(in_order))),
            ahead=msgspec.Raw(msgspec.msgpack.encode(ahead)),
            configs={step.case.case.name: step.config for step in hidden},
        )

    def _prepare(self) -> None:
        """Make the inputs of every step before foreign code runs, and note which steps the task's code cannot do."""
        for step in (*self._plan.execution, *self._plan.repeats):
            if not self._is_possible(step):
                continue
            self._line.alive()
            try:
                given = self._given(step)
                if (step.place >= POOL or step.case.twice) and not all(
                    bool(output.isfinite().all()) for output in given.expected
                ):
                    self._unfit.add((step.case.name, step.place))
                if step.case.hidden:
                    _ = given.expected
            except BadProblem as error:
                if step.place >= POOL or step.case.twice:
                    self._unfit.add((step.case.name, step.place))
                elif step.case.hidden:
                    self._left_out[step.case.name] = str(error)
                else:
                    raise

    def _is_possible(self, step: Step) -> bool:
        """True if the task's own code accepts the inputs of this step."""
        return step.case.name not in self._left_out and (step.case.name, step.place) not in self._unfit

    def _compare(self, run: Run) -> Run:
        """Return the call, or its repeat with other undefined lanes, if it is right. Raises `CandidateStopped` if it is wrong."""
        errors = self._answers.errors(run, ", ".join(filter(None, (run.step.case.sizes, self._config(run)))))
        if errors and errors[0].error.mismatch and (repeat := self._right_with_zeros(run)):
            return repeat
        if errors and errors[0].error.mismatch and self._is_right_in_order(run):
            raise CandidateStopped(findings.race(f"case {run.case.name}: ", errors[0].error))
        if errors:
            raise CandidateStopped(errors[0].error, errors[1:])
        return run

    def _is_right_in_order(self, run: Run) -> bool:
        """Call again with programs in order, after a wrong answer in another order.

        A third call must be wrong again in the other order: else state between calls made the difference.
        """
        if not run.step.order or self._caller.in_order or place.is_gpu():
            return False
        in_order = self._run(dataclasses.replace(run.step, order=0))
        return self._is_right(in_order) and not self._is_right(self._run(run.step))

    def _right_with_zeros(self, run: Run) -> Run | None:
        """Repeat a wrong call with zeros in the lanes that masked loads leave undefined; return it if it is right.

        A third call must be wrong again without the zeros: else state between calls made the difference. A finding then
        names the loads, and all later calls have zeros in such lanes.
        """
        lines = run.returned.undefined_lanes
        if not lines or self._caller.zero_lanes:
            return None
        self._caller.zero_lanes = True
        repeat = self._run(run.step)
        self._caller.zero_lanes = False
        if not self._is_right(repeat) or self._is_right(self._run(run.step)):
            return None
        self._caller.zero_lanes = True
        self._kept_findings.append(mismatch_wording.undefined_lanes(run.case.name, lines))
        return repeat

    def _is_right(self, run: Run) -> bool:
        return not self._answers.errors(run)

    def _repeated(self, run: Run) -> None:
        """Judge a call that repeats an earlier one, with the same inputs or with others of the same shapes.

        Raises `Stop` if it is wrong; the error says so if the answer is that of other inputs, or was right the first time. In
        an exam, a right answer with other bits becomes a finding.
        """
        before, stale, tuned = self._answers.was_right(run), self._answers.is_stale(run), self._tuned(run)
        config = "" if run.returned.undefined_lanes else self._config(run)
        errors = self._answers.errors(run, config if tuned else "with other values of the same shapes")
        if not errors:
            if self._begin.exam and self._answers.has_other_bits(run) and not tuned:
                self._kept_findings.append(mismatch_wording.not_deterministic(run.case.name))
            return
        if errors[0].error.mismatch is not None:
            if self._right_with_zeros(run):
                return
            if stale:
                raise CandidateStopped(mismatch_wording.stale(run.case.name))
            if before and not tuned:
                raise CandidateStopped(mismatch_wording.not_repeatable(run.case.name))
        raise CandidateStopped(errors[0].error, errors[1:])

    def _tuned(self, run: Run) -> bool:
        """True if the source autotunes and this call runs with a later config than declared cases do."""
        return run.step.config > 0 and "autotune" in self._begin.source

    def _config(self, run: Run) -> str:
        return (
            f"with config {run.step.config} of autotuned kernels, counted from 0" if self._tuned(run) else ""
        )

    def _refuse(self, finding: ErrorReport | None) -> None:
        if finding is not None:
            raise CandidateStopped(finding)

    def _findings(self) -> tuple[Finding, ...]:
        of_calls = (finding for run in self._runs for finding in run.returned.findings)
        return findings.drop_repeated((*of_calls, *self._kept_findings, *self._answers.weak.values()))

    def _judged(self, error: ErrorReport | None, failure: Failure | None = None) -> Judged:
        """Return the verdict on all calls so far, with the facts that they showed.

        `error`: the first error; `None` if all are right.
        """
        if error is not None:
            first = CaseError(self._case, error)
            further = mismatch_wording.further_lines(first, self._further_failures)
            error = error.with_further(further, self._failing_cases)
        facts = [Fact("calls with right answers", str(self._answers.calls), Basis.PROOF)]
        facts += [Fact(f"{name}: left out", why, Basis.PROOF) for name, why in self._left_out.items()]
        return Judged(
            error=error,
            traffic=tuple(run.returned.traffic for run in self._runs if not run.step.case.hidden),
            sandbox=self._sandbox,
            facts=(*_observed_facts(self._runs, self._left), *facts),
            margins=self._answers.margins,
            findings=self._findings(),
            kernels=tuple(dict.fromkeys(name for run in self._runs for name in run.returned.kernels)),
            batch_rows=self._batch_rows,
            failure=failure,
        )


def _observed_facts(runs: Sequence[Run], left_behind: LeftBehind | None) -> tuple[Fact, ...]:
    """The launches and operators of each case, and what the candidate left behind, as the guest reported them."""
    facts: list[Fact] = []
    for run in runs:
        traffic = run.returned.traffic
        launches = f"{traffic.launches} ({', '.join(run.returned.kernels)})"
        facts.append(Fact(f"{run.case.name}: launches", launches, Basis.EVIDENCE))
        if run.returned.operators:
            counted = ", ".join(f"{operator.name} x{operator.count}" for operator in run.returned.operators)
            facts.append(Fact(f"{run.case.name}: operators", counted, Basis.EVIDENCE))
    if left_behind is not None:
        value = f"{left_behind.threads} threads, {left_behind.children} processes, {len(left_behind.patched)} patches"
        facts.append(Fact("left behind", value, Basis.EVIDENCE))
    return tuple(facts)
