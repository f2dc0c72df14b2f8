"""What a replay shows, as the finding a kernel author should mend, and as facts for people. Torch-free."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from harness.evaluation import Basis, ErrorReport, Fact, Mismatch
from harness.worker.guest import operators
from harness.worker.serving.messages import NotReplayed, Replayed, ReplayedOutput
from suites.task import Task

if TYPE_CHECKING:
    from .caller import Run
    from .replays import Outcome

UNPROVEN = "unproven"
"""Kind of what ran and was right, and of which nobody but the guest says who computed it."""

KERNEL_FINDINGS = frozenset({"race", "false_promise", "division_by_zero", "kept_state"})
"""Kinds of what is wrong in a kernel though its outputs are right, each message with its line first."""
_LINE = re.compile(r"line (\d+)")


def of_replay(
    run: Run,
    report: Replayed,
    task: Task,
    *,
    mismatch: Callable[[], Mismatch | None],
) -> ErrorReport | None:
    """What is wrong with a replay, the finding that says most first; `None` when nothing is."""
    lead = f"case {run.case.name}: "
    if len(report.outputs) != len(task.outputs):
        message = f"{lead}{len(report.outputs)} outputs can be replayed, of {len(task.outputs)}"
        return ErrorReport(kind="not_replayed", message=message)
    aliased = _aliased(run, report, task)
    if aliased:
        return ErrorReport(kind="aliased_output", message=lead + aliased)
    kept = [name for name in report.touched if name not in task.in_place]
    if kept:
        message = (
            f"{lead}input `{kept[0]}` was written to, whether or not it was put back; write to a new tensor"
        )
        return ErrorReport(kind="input_changed", message=message)
    wrong = mismatch()
    if wrong is not None:
        return _not_replayed(lead, report, task, wrong)
    if run.given.empty:
        return None
    for output, data in zip(task.outputs, report.outputs, strict=True):
        problem = _uncovered(output.name, data, task)
        if problem is not None:
            return ErrorReport(kind=problem[0], message=lead + problem[1])
    return None


def incomplete(run: Run, excess: str) -> ErrorReport:
    """The call did more than a record holds."""
    return ErrorReport(
        kind="not_replayed", message=f"case {run.case.name}: {excess}; the work must be done in kernels"
    )


def refused(run: Run, report: NotReplayed) -> ErrorReport:
    """The record did not run to its end."""
    if report.finding in ("read_otherwise", "mixed_constants"):
        return ErrorReport(
            kind=report.finding, message=f"case {run.case.name}: {report.message}", line=report.line
        )
    if report.finding in KERNEL_FINDINGS:
        line = _LINE.match(report.message)
        return ErrorReport(
            kind=report.finding,
            message=f"case {run.case.name}: {report.message}",
            line=int(line[1]) if line else None,
        )
    return ErrorReport(
        kind=report.finding or "not_replayed",
        message=f"case {run.case.name}: what the call did cannot be done again by its kernels alone: {report.message}",
        line=report.line,
    )


def slow(run: Run, seconds: float) -> ErrorReport:
    """The replay does not come to its end where the call did."""
    return ErrorReport(
        kind="not_replayed",
        message=f"case {run.case.name}: the call's launches, made again, do not end within {seconds:g} s",
    )


def lost(run: Run) -> ErrorReport:
    """The verifier's process ended."""
    return ErrorReport(
        kind="not_replayed", message=f"case {run.case.name}: the call's launches, made again, end the process"
    )


def other_bytes(run: Run) -> ErrorReport:
    """The outputs are right both times, but not the same."""
    message = (
        f"case {run.case.name}: the call's launches, made again on the very same values, give other bits than the call "
        "returned: something else computed them"
    )
    return ErrorReport(kind="not_replayed", message=message)


def by_order(run: Run, error: ErrorReport) -> ErrorReport:
    """Right in the interpreter's own order and arithmetic, wrong in another order and with another device's."""
    message = (
        f"case {run.case.name}: a launch gives another answer when its programs, and the lanes of each, come from the last to the "
        "first and round as another device may; on a device they come in any order and at once, so use a second launch for what needs "
        "the work of others, let no two programs store different values in one place, nor two lanes with no tl.debug_barrier() "
        "between, and let nothing depend on what no device "
        "promises: integer results without a value (a shift by the width, a division by zero), quotients of negative numbers told apart from their aligned "
        "neighbours', what lies in memory that nobody wrote, elements whose order was given away, "
        "the order and brackets of a reduction, whether a product is rounded before it is added, the last bits of `/`, `exp` and the like"
    )
    return ErrorReport(kind="race", message=message, mismatch=error.mismatch)


def read_otherwise(run: Run, wrong: Mismatch) -> ErrorReport:
    """Right as the interpreter takes the kernel's text, wrong as the compiler does."""
    where = (
        f"output `{wrong.output}` at index {list(wrong.index)}: expected {wrong.expected}, got {wrong.got}"
    )
    message = (
        f"case {run.case.name}: as Triton's compiler reads the kernels they do not give the answer that its interpreter gives: "
        f"{where}; look for types and constants that the two take differently, for reductions whose order counts and for values that no "
        "device promises"
    )
    return ErrorReport(kind="read_otherwise", message=message, mismatch=wrong)


def unproven(outcome: Outcome) -> ErrorReport:
    """The outputs are right, but who computed them is the guest's word alone."""
    message = (
        f"case {outcome.run.case.name}: the outputs are right, but the launches cannot be made again without the host code, so "
        f"nothing proves that the kernels computed them: {outcome.why_not}"
    )
    return ErrorReport(kind=UNPROVEN, message=message)


def only_these_values(run: Run, error: ErrorReport) -> ErrorReport:
    """The launches give the right answer for the call's own values alone."""
    message = (
        f"case {run.case.name}: the call's launches give the right answer for the values they were recorded with and for no "
        "others: results entered from the host, or kernels are right for some values alone; compute in kernels, and rightly for all inputs"
    )
    return ErrorReport(kind=error.kind, message=message, mismatch=error.mismatch)


def unread(case: str, operation: str) -> ErrorReport:
    """Right as the interpreter takes the text, and nobody can say what the compiler makes of it."""
    message = (
        f"case {case}: the outputs are right in Triton's interpreter, but `{operation}`, which its compiler makes of a kernel, cannot be "
        "run without a GPU, so nothing shows that the compiled kernel gives them too"
    )
    return ErrorReport(kind=UNPROVEN, message=message)


def steered_otherwise(case: str) -> ErrorReport:
    """Right as the interpreter takes the text; as the compiler reads it, Python would have gone on by other values."""
    message = (
        f"case {case}: the outputs are right in Triton's interpreter, but Python reads what kernels made, and goes on by it, and as Triton's "
        "compiler reads those kernels they make something else of it, so nothing shows that the compiled kernels give the outputs too"
    )
    return ErrorReport(kind=UNPROVEN, message=message)


def facts(outcomes: Sequence[Outcome]) -> tuple[Fact, ...]:
    """What replays prove, and what they could not."""
    known: list[Fact] = []
    told_of: set[str] = set()
    for outcome in outcomes:
        case, report = outcome.run.case.name, outcome.replayed
        if report is None:
            known.append(Fact(f"{case}: replay", f"not replayed: {outcome.why_not}", Basis.EVIDENCE))
            continue
        if case in told_of:
            continue
        told_of.add(case)
        traffic = report.traffic
        values = "with other values" if outcome.other_values else "with the values that Python had read"
        stored = sum(data.origins.get("stored", 0) for data in report.outputs)
        elements = sum(sum(data.origins.values()) for data in report.outputs)
        told = (
            f"{values}: {traffic.launches} launches ({', '.join(report.kernels)}), {traffic.programs} programs, "
            f"{traffic.unique_read_bytes} bytes read, {traffic.unique_write_bytes} written, "
            f"{stored} of {elements} output elements stored by kernels"
        )
        known.append(Fact(f"{case}: replay", told, Basis.PROOF))
    return tuple(known)


def _not_replayed(lead: str, report: Replayed, task: Task, wrong: Mismatch) -> ErrorReport:
    data = next(
        data for output, data in zip(task.outputs, report.outputs, strict=True) if output.name == wrong.output
    )
    said = "the call's launches, copies and fills, made again on other values of the same shapes, do not give its answer"
    unwritten = data.origins.get("unwritten", 0)
    where = (
        f"output `{wrong.output}` at index {list(wrong.index)}: expected {wrong.expected}, got {wrong.got}"
    )
    if not report.kernels:
        where += "; no kernel was launched"
    elif unwritten:
        where += f"; nobody wrote {unwritten} of its {sum(data.origins.values())} elements"
    advice = "compute in kernels from the inputs, and keep no results between calls"
    return ErrorReport(kind="not_replayed", message=f"{lead}{said}: {where}; {advice}", mismatch=wrong)


def _uncovered(name: str, data: ReplayedOutput, task: Task) -> tuple[str, str] | None:
    """Why the kernels did not do the work of an output; `None` when they did."""
    elements = sum(data.origins.values())
    if not elements:
        return None
    moved, host = data.origins.get("moved", 0), data.origins.get("host", 0)
    may_move = any(operators.is_named(one, task.allowed_operators) for one in operators.MOVING)
    if moved and not may_move:
        return (
            "moved_by_host",
            (
                f"{moved} of {elements} elements of output `{name}` were copied from an input outside the kernels; "
                "move them in a kernel"
            ),
        )
    if host:
        return (
            "host_elements",
            f"{host} of {elements} elements of output `{name}` came from Python; compute them in a kernel",
        )
    worked = data.origins.get("stored", 0) + data.origins.get("operated", 0)
    if not worked and not (may_move and moved):
        return ("not_from_kernel", f"no Triton kernel stored into output `{name}`")
    return None


def _aliased(run: Run, report: Replayed, task: Task) -> str:
    record = run.returned.record
    assert record is not None
    inputs = {number: name for name, number in record.inputs.items()}
    for output, data in zip(task.outputs, report.outputs, strict=True):
        name = inputs.get(data.storage)
        if name is not None and name not in task.in_place and data.data:
            return f"output `{output.name}` shares memory with input `{name}`; return a new tensor"
    for (left, one), (right, two) in combinations(zip(task.outputs, report.outputs, strict=True), 2):
        if one.storage == two.storage and one.first_byte < two.end_byte and two.first_byte < one.end_byte:
            return f"outputs `{left.name}` and `{right.name}` share memory; return tensors of their own"
    return ""
