"""One candidate before the judge: call, execution, integrity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import torch

from harness import limits, signatures
from harness.evaluation import ErrorReport, Layer, Margin, Mismatch, Verdict
from suites.dtypes import ITEM_BYTES
from suites.task import Case
from suites.tolerances import dtype_of, tolerance_of

from . import bounds, findings, seeds, wording
from .arena import Arena
from .compare import Comparison, compare
from .link import CandidateRaised, GuestGone, GuestLied, GuestLink, GuestSlow
from .messages import (
    Begin,
    Call,
    CaseTraffic,
    Farewell,
    FirstCallPassed,
    Judged,
    LeftBehind,
    Load,
    Loaded,
    OutputData,
    Returned,
)
from .problem import BadProblem, Inputs, Problem, torch_dtype

if TYPE_CHECKING:
    from .judge import Judge

FIRST = "first"
AGAIN = "again"
"""Purposes of seeds: of the run that is compared, and of the run with other values."""


class Stop(Exception):
    """The verdict stands."""

    def __init__(self, verdict: Verdict, error: ErrorReport) -> None:
        super().__init__(error.message)
        self.verdict, self.error = verdict, error


@dataclass(slots=True)
class Run:
    """One call of the entry point, seen from the judge."""

    case: Case
    inputs: Inputs
    returned: Returned
    changed_inputs: tuple[str, ...]
    """Proof: the judge compared the bytes."""
    broken_guards: tuple[str, ...]


class Trial:
    """Drives one guest through the stages that need it."""

    def __init__(self, judge: Judge, link: GuestLink, begin: Begin, problem: Problem) -> None:
        self._judge = judge
        self._link = link
        self._begin = begin
        self._task = begin.task
        self._cases = begin.task.exam_cases if begin.exam else begin.task.open_cases
        self._limits = begin.limits
        self._problem = problem
        self._sandbox: tuple[Layer, ...] = ()
        self._stage = "call"
        self._case = ""
        self._runs: list[Run] = []
        self._left: LeftBehind | None = None
        self._margins: list[Margin] = []
        self._elements = 0

    def run(self) -> Judged:
        """The verdict; whatever the guest does, there is one."""
        try:
            try:
                self._sandbox = self._link.hello().sandbox
                first = self._call()
                self._judge.tell(FirstCallPassed(cases=self._specifications()))
                if not self._judge.wait_for_go():
                    return self._judged(Verdict.CANCELLED, None)
                self._execute(first)
                self._check_integrity()
            except CandidateRaised as raised:
                raise Stop(Verdict.CALL_ERROR, self._raised(raised)) from raised
            except GuestSlow as slow:
                raise Stop(
                    Verdict.TIMEOUT, wording.too_slow(slow.seconds, self._case, cpu=slow.cpu)
                ) from slow
            except GuestLied as lie:
                raise Stop(Verdict.REJECTED, wording.lied(str(lie))) from lie
        except Stop as stop:
            ok = None if stop.verdict is Verdict.UNSUPPORTED else False
            self._judge.leave(self._stage, stop.error.message.partition("\n")[0], ok=ok)
            return self._judged(stop.verdict, stop.error)
        except GuestGone:
            error = wording.gone(self._case)
            self._judge.leave(self._stage, error.message, ok=False)
            return msgspec.structs.replace(self._judged(Verdict.CRASH, error), guest_ended=True)
        return self._judged(Verdict.CORRECT, None)

    def _call(self) -> Run:
        """Import and the first case; the guest's own words decide nothing but that it ran."""
        self._judge.enter("call")
        names = tuple(entry.name for entry in self._task.entry_points)
        loaded = self._link.ask(
            lambda nonce: Load(
                nonce=nonce, source=self._begin.source, entry_points=names, target=self._begin.target
            ),
            Loaded,
            wall_s=self._limits.call_s,
            cpu_s=self._limits.call_cpu_s,
        )
        for entry in self._task.entry_points:
            got = loaded.parameters.get(entry.name, ())
            wrong = signatures.difference(entry.signature, got) if got else ""
            if wrong:
                raise Stop(Verdict.CALL_ERROR, wording.wrong_signature(entry, wrong))
        run = self._run(self._cases[0], FIRST, first=True)
        detail = f"case {run.case.name}: {_launches(run.returned.traffic)}"
        self._judge.leave("call", detail, ok=True)
        return run

    def _execute(self, first: Run) -> None:
        """Every case against the oracle."""
        self._stage = "execution"
        self._judge.enter("execution")
        for case in self._cases:
            run = first if case is first.case else self._run(case, FIRST)
            self._runs.append(run)
            self._compare(run)
        if not self._elements:
            raise BadProblem(f"no case of {self._task.id} has an output with an element to compare")
        count = len(self._cases)
        self._judge.leave("execution", f"{count} of {count} cases match the oracle", ok=True)

    def _check_integrity(self) -> None:
        """The runs so far, the same inputs once more, other inputs, and what was left behind."""
        self._stage = "integrity"
        self._judge.enter("integrity")
        for run in self._runs:
            self._refuse(findings.of_call(run, self._task))
        run = self._runs[seeds.derive(self._begin.seed, self._task.id, "repeated case") % len(self._runs)]
        same = self._run(run.case, FIRST)
        self._refuse(findings.of_call(same, self._task))
        if self._mismatch(same) is not None:
            raise Stop(Verdict.WRONG, wording.not_repeatable(run.case.name))
        other = self._run(run.case, AGAIN)
        self._refuse(findings.of_call(other, self._task))
        mismatch = self._mismatch(other)
        if mismatch is not None:
            if _bytes(other) == _bytes(same):
                raise Stop(Verdict.REJECTED, wording.stale(run.case.name))
            raise Stop(Verdict.WRONG, wording.mismatch(mismatch, "with other values of the same shapes"))
        self._case = ""
        self._left = self._link.ask(
            lambda nonce: Farewell(nonce=nonce), LeftBehind, wall_s=limits.FAREWELL_S, cpu_s=limits.FAREWELL_S
        )
        self._refuse(findings.of_farewell(self._left))
        kernels = ", ".join(dict.fromkeys(name for run in self._runs for name in run.returned.kernels))
        self._judge.leave("integrity", f"launched in every case: {kernels}", ok=True)

    def _run(self, case: Case, purpose: str, *, first: bool = False) -> Run:
        """One call in the guest with inputs of the judge's; `Stop` where the interpreter cannot say."""
        self._judge.alive()
        self._case = case.name
        inputs = self._problem.inputs(case, self._begin.seed, purpose)
        arena = Arena(inputs)
        try:
            returned = self._link.ask(
                lambda nonce: Call(
                    nonce=nonce,
                    entry_point=self._task.entry_points[0].name,
                    case=case.name,
                    arguments=arena.arguments,
                    arena_bytes=arena.size_bytes,
                ),
                Returned,
                wall_s=self._limits.call_s if first else self._limits.case_s,
                cpu_s=self._limits.call_cpu_s if first else self._limits.case_cpu_s,
                descriptors=(arena.descriptor,),
            )
            run = Run(case, inputs, returned, arena.changed(), arena.broken_guards())
        finally:
            arena.close()
        if returned.unsupported:
            raise Stop(Verdict.UNSUPPORTED, wording.unsupported(returned.unsupported))
        return run

    def _compare(self, run: Run) -> None:
        """`Stop` when the run is wrong: structure first, then memory, then values."""
        problem = findings.structure(run.returned, self._task)
        if problem:
            raise Stop(
                Verdict.WRONG, ErrorReport(kind="structure", message=f"case {run.case.name}: {problem}")
            )
        out_of_bounds = findings.out_of_bounds(run)
        if out_of_bounds is not None:
            raise Stop(Verdict.WRONG, out_of_bounds)
        for compared in self._comparisons(run):
            self._margins += compared.margins
            self._elements += compared.elements
            if compared.mismatch is not None:
                raise Stop(Verdict.WRONG, wording.mismatch(compared.mismatch))

    def _mismatch(self, run: Run) -> Mismatch | None:
        """The first output that the oracle disagrees with."""
        found = (compared.mismatch for compared in self._comparisons(run))
        return next((mismatch for mismatch in found if mismatch is not None), None)

    def _comparisons(self, run: Run) -> Iterator[Comparison]:
        """Each output beside the oracle's."""
        for output, data, expected in zip(
            self._task.outputs, run.returned.outputs, self._problem.oracle(run.case, run.inputs), strict=True
        ):
            tolerance = tolerance_of(self._task, output, run.case)
            yield compare(
                _tensor(data),
                expected,
                case=run.case.name,
                output=output.name,
                dtype=torch_dtype(dtype_of(output, run.case)),
                tolerance=tolerance,
                quantization=self._task.quantization,
                terms=bounds.terms_of(tolerance, run.case.cpu),
            )

    def _refuse(self, finding: ErrorReport | None) -> None:
        if finding is not None:
            raise Stop(Verdict.REJECTED, finding)

    def _specifications(self) -> msgspec.Raw:
        return msgspec.Raw(msgspec.msgpack.encode(self._problem.specifications(self._cases)))

    def _raised(self, raised: CandidateRaised) -> ErrorReport:
        failure = raised.failure
        where = f"case {self._case}: " if self._case else "on import: "
        return ErrorReport(
            kind=failure.kind, message=where + failure.message, trace=failure.trace, line=failure.line
        )

    def _judged(self, verdict: Verdict, error: ErrorReport | None) -> Judged:
        return Judged(
            verdict=verdict,
            error=error,
            traffic=tuple(run.returned.traffic for run in self._runs),
            sandbox=self._sandbox,
            facts=findings.facts(self._runs, self._left),
            margins=tuple(self._margins),
        )


def _tensor(data: OutputData) -> torch.Tensor:
    """The guest's bytes as a tensor of the judge's; bytes that do not fill the shape are a lie."""
    if data.dtype not in ITEM_BYTES:
        raise GuestLied(f"no output has the dtype {data.dtype!r}")
    dtype = torch_dtype(data.dtype)
    count = 1
    for size in data.shape:
        count *= size
    if len(data.data) != count * dtype.itemsize or min(data.shape, default=0) < 0:
        raise GuestLied(f"{len(data.data)} bytes for {data.dtype}{list(data.shape)}")
    if count == 0:
        return torch.empty(data.shape, dtype=dtype)
    return torch.frombuffer(bytearray(data.data), dtype=dtype).reshape(data.shape)


def _bytes(run: Run) -> Sequence[bytes]:
    return [output.data for output in run.returned.outputs]


def _launches(traffic: CaseTraffic) -> str:
    return f"{traffic.launches} launch{'es' if traffic.launches != 1 else ''}, {traffic.programs} programs"
