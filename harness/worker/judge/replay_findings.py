"""What a replay shows: the error that refuses a candidate, and findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from harness.wire.calls import operators
from harness.wire.messages.verifier import NotReplayed, Replayed, ReplayedOutput
from harness.wire.results.evaluation import ErrorReport, Finding, Mismatch
from harness.worker.oracle.caller import Run
from harness.worker.oracle.worker_line import GuestSlow
from suites.task import Output, Task


@dataclass(slots=True)
class ReplayOutcome:
    """The replay of one call."""

    run: Run
    replayed: Replayed | None = None
    own_values: bool = False
    """The replay had the inputs of the recorded call, because the host code reads values of tensors."""
    in_order: bool = False
    """Programs ran from first to last, because some of them wait for others."""
    why_not: str = ""
    seconds: float = 0.0


def of_replay(
    run: Run, report: Replayed, task: Task, *, mismatch: Callable[[], Mismatch | None]
) -> ErrorReport | None:
    """Return what is wrong with a replay, the most telling error first; `None` if nothing is."""
    lead = f"case {run.case.name}: "
    outputs = task.outputs_of(run.case)
    if len(report.outputs) != len(outputs):
        message = f"{lead}{len(report.outputs)} outputs can be replayed, of {len(outputs)}"
        return ErrorReport(kind="not_replayed", message=message)
    aliased = _aliased(run, report, task)
    if aliased:
        return ErrorReport(kind="aliased_output", message=lead + aliased)
    changed = [name for name in report.touched if name not in task.in_place]
    if changed:
        message = f"{lead}input `{changed[0]}` was written to, even if it was restored; write to a new tensor"
        return ErrorReport(kind="input_changed", message=message)
    wrong = mismatch()
    if wrong is not None:
        return _wrong_outputs(lead, report, outputs, wrong)
    if run.given.empty:
        return None
    for output, data in zip(outputs, report.outputs, strict=True):
        problem = _uncovered(output.name, data, task)
        if problem is not None:
            return ErrorReport(kind=problem[0], message=lead + problem[1])
    return None


def excessive(run: Run, excess: str) -> ErrorReport:
    """Return the error of a call that did more outside kernels than a record may hold."""
    return ErrorReport(
        kind="not_replayed", message=f"case {run.case.name}: {excess}; the work must be done in kernels"
    )


def refused(run: Run, report: NotReplayed) -> ErrorReport:
    """Return the error of a record with steps that no honest call makes."""
    message = f"case {run.case.name}: the call cannot be repeated by its kernels alone: {report.message}"
    return ErrorReport(kind=report.error_kind or "not_replayed", message=message, line=report.line)


def lost(error: Exception) -> str:
    """Return why a replay has no result: the verifier did not answer."""
    if isinstance(error, GuestSlow):
        return f"the launches, run again with their programs in reverse order, do not end within {error.seconds:g} s"
    return "the launches, run again with their programs in reverse order, end the process"


def by_order(run: Run, error: ErrorReport) -> ErrorReport:
    """Word the error of a race: the call is right with programs in order, and `error` says how it is wrong in another order."""
    message = (
        f"case {run.case.name}: a launch gives another answer when its programs run in another order; on a device "
        "they run in any order and at once: use a second launch for work that needs the results of other programs, and let no "
        "two programs store different values in one place"
    )
    return ErrorReport(kind="race", message=message, mismatch=error.mismatch)


def of_outcome(outcome: ReplayOutcome) -> Iterator[Finding]:
    """Yield the findings of one replay; a call that could not be replayed is a finding too."""
    case = outcome.run.case.name
    if outcome.replayed is not None:
        yield from outcome.replayed.traffic.findings
    else:
        message = f"the call could not be repeated without the host code: {outcome.why_not}"
        yield Finding(kind="not_replayed", message=message, case=case)


def _wrong_outputs(lead: str, report: Replayed, outputs: Sequence[Output], wrong: Mismatch) -> ErrorReport:
    data = next(
        data for output, data in zip(outputs, report.outputs, strict=True) if output.name == wrong.output
    )
    unwritten = data.origins.get("unwritten", 0)
    where = (
        f"output `{wrong.output}` at index {list(wrong.index)}: expected {wrong.expected}, got {wrong.got}"
    )
    if not report.kernels:
        where += "; no kernel was launched"
    elif unwritten:
        where += f"; nothing wrote {unwritten} of its {sum(data.origins.values())} elements"
    message = (
        f"{lead}the call's launches, copies and fills, run again on other values of the same shapes, give a wrong answer: "
        f"{where}; compute in kernels from the inputs, and keep no results between calls"
    )
    return ErrorReport(kind="not_replayed", message=message, mismatch=wrong)


def _uncovered(name: str, data: ReplayedOutput, task: Task) -> tuple[str, str] | None:
    """Return kind and message if the kernels did not do the work of an output."""
    elements = sum(data.origins.values())
    if not elements:
        return None
    moved, host = data.origins.get("moved", 0), data.origins.get("host", 0)
    may_move = any(operators.is_named(moving, task.allowed_operators) for moving in operators.MOVING)
    if moved and not may_move:
        message = f"{moved} of {elements} elements of output `{name}` were copied from an input outside the kernels; move them in a kernel"
        return "moved_by_host", message
    if host:
        message = f"{host} of {elements} elements of output `{name}` came from Python or an earlier call; compute them in a kernel"
        return "host_elements", message
    worked = data.origins.get("stored", 0) + data.origins.get("operated", 0)
    if not worked and not (may_move and moved):
        return "not_from_kernel", f"no Triton kernel stored into output `{name}`"
    return None


def _aliased(run: Run, report: Replayed, task: Task) -> str:
    record = run.returned.record
    assert record is not None
    outputs = task.outputs_of(run.case)
    inputs = {number: name for name, number in record.inputs.items()}
    for output, data in zip(outputs, report.outputs, strict=True):
        name = inputs.get(data.storage)
        if name is not None and name not in task.in_place and data.data:
            return f"output `{output.name}` shares memory with input `{name}`; return a new tensor"
    for (left, first), (right, second) in combinations(zip(outputs, report.outputs, strict=True), 2):
        if (
            first.storage == second.storage
            and first.first_byte < second.end_byte
            and second.first_byte < first.end_byte
        ):
            return f"outputs `{left.name}` and `{right.name}` share memory; return tensors of their own"
    return ""
