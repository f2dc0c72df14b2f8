"""Checks of one call beside its values: return structure, memory, operators, launches, state. Torch-free."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.wire import findings, limits
from harness.wire.calls import operators
from harness.wire.messages.guest import LeftBehind, Plain, Returned
from harness.wire.results.evaluation import ErrorReport
from suites.task import Output, Task

if TYPE_CHECKING:
    from .caller import Run


_PLAIN_RTOL = 1e-6
"""Relative tolerance of a returned float that is no tensor."""
_MOST_OPERATORS = 6
"""Operators that one error names."""


def structure(returned: Returned, outputs: Sequence[Output]) -> str:
    """Return why the returned value cannot be compared with the oracle; empty if it can."""
    names = ", ".join(output.name for output in outputs)
    expected = "one tensor" if len(outputs) == 1 else f"a tuple of {len(outputs)} tensors ({names})"
    is_sequence = returned.structure in ("tuple", "list")
    if is_sequence != (len(outputs) > 1) or len(returned.outputs) != len(outputs):
        return f"expected {expected}, got {_returned_words(returned, is_sequence=is_sequence)}"
    problems = []
    for output, data in zip(outputs, returned.outputs, strict=True):
        if data.problem:
            problems.append(f"output `{output.name}` {data.problem}")
        elif not data.dtype:
            problems.append(f"output `{output.name}` is a {data.type}, not a tensor")
    return "; ".join(problems)


def plain_parts(returned: Returned, truths: Sequence[Plain], returns: Sequence[str]) -> str:
    """Return why the parts of the result that are no tensors are wrong; empty if they are right."""
    if returned.plain is None:
        values = iter(truths)
        words = ", ".join(name or ("None" if next(values) is None else "a number") for name in returns)
        return f"expected a tuple of {len(returns)}: {words}"
    places = [place for place, name in enumerate(returns) if not name]
    for place, got, truth in zip(places, returned.plain, truths, strict=True):
        if isinstance(got, float) and isinstance(truth, float):
            is_right = math.isclose(got, truth, rel_tol=_PLAIN_RTOL)
        else:
            is_right = type(got) is type(truth) and got == truth
        if not is_right:
            return f"part {place} of the result is {got!r}, not {truth!r}"
    return ""


def _returned_words(returned: Returned, *, is_sequence: bool) -> str:
    """Return the returned value in words: `a tuple of 1 tensor`, `None (no return statement?)`."""
    if returned.structure == "NoneType":
        return "None (no return statement?)"
    if not is_sequence:
        return f"{'an' if returned.structure[:1] in 'aeiou' else 'a'} {returned.structure}"
    count = len(returned.outputs)
    unit = "tensor" if all(data.dtype or data.problem for data in returned.outputs) else "value"
    return f"a {returned.structure} of {count} {unit}{'' if count == 1 else 's'}"


def out_of_bounds(run: Run, task: Task) -> ErrorReport | None:
    """Return the error of a store outside every tensor, or of such a load if the task is strict."""
    error = findings.missed_stores(run.case.name, run.returned.missed_stores)
    if error is None and run.broken_guards:
        message = f"case {run.case.name}: memory {run.broken_guards[0]} was written"
        error = ErrorReport(kind="out_of_bounds", message=message)
    return error or findings.strict_error(
        [finding for finding in run.returned.findings if finding.kind == "out_of_bounds"], task.strict
    )


def of_call(run: Run, task: Task) -> ErrorReport | None:
    """Return the first sign that the kernels did not do the work of a call; `None` if there is none."""
    returned, lead = run.returned, f"case {run.case.name}: "
    if not returned.kernels and not run.given.empty:
        message = f"{lead}no Triton kernel was launched; the kernels must do the work in every case"
        return ErrorReport(kind="no_launch", message=message)
    if returned.foreign_kernels:
        return findings.foreign_kernel(lead, returned.foreign_kernels[0])
    if returned.race:
        message = (
            f"{lead}{returned.race}; programs run in any order and at once: use an atomic, or one program"
        )
        return ErrorReport(kind="race", message=message)
    if returned.unwatched:
        message = f"{lead}{returned.unwatched} that no input, no kernel and no watched operator wrote; compute them in a kernel"
        return ErrorReport(kind="unwatched", message=message)
    refused = [
        operator
        for operator in returned.operators
        if not operators.is_allowed(operator.name, task.allowed_operators)
    ]
    if refused:
        names = ", ".join(
            f"`{operator.name}`" + ("" if operator.line is None else f" (line {operator.line})")
            for operator in refused[:_MOST_OPERATORS]
        )
        more = f" and {len(refused) - _MOST_OPERATORS} more" if len(refused) > _MOST_OPERATORS else ""
        subject = (
            f"the tensor operators {names}{more} compute"
            if len(refused) > 1
            else f"the tensor operator `{refused[0].name}` computes"
        )
        message = f"{lead}{subject} outside the Triton kernels; do it in a kernel (allocations, views, copies and casts are free)"
        return ErrorReport(kind="operator", message=message, line=refused[0].line)
    if returned.host_elements > limits.HOST_ELEMENTS:
        message = f"{lead}{returned.host_elements} elements went between tensors and Python; the work must be done in kernels"
        return ErrorReport(kind="host_elements", message=message)
    if returned.copies > limits.COPIES:
        message = f"{lead}{returned.copies} copies into parts of tensors move elements outside the Triton kernels; move them in a kernel"
        return ErrorReport(kind="moved_by_host", message=message, line=returned.copying_line)
    changed = [name for name in run.changed_inputs if name not in task.in_place]
    if changed:
        return changed_input(lead, changed[0])
    stored = [name for name in returned.stored_inputs if name not in task.in_place]
    if stored:
        message = (
            f"{lead}kernels stored to input `{stored[0]}`, even if they restored it; write to a new tensor"
        )
        return ErrorReport(kind="input_changed", message=message)
    outputs = task.outputs_of(run.case)
    if shared := aliased(lead, returned, task, outputs):
        return shared
    may_copy = any(operators.is_named(name, task.allowed_operators) for name in operators.MOVING)
    for output, data in zip(outputs, returned.outputs, strict=False):
        if data.copied and not may_copy:
            elements = f"{data.copied} of {math.prod(data.shape)} elements of output `{output.name}`"
            message = f"{lead}{elements} were copied outside the Triton kernels; move them in a kernel"
            return ErrorReport(kind="moved_by_host", message=message)
    operated = any(
        operators.is_named(operator.name, task.allowed_operators) for operator in returned.operators
    )
    for output, data in zip(outputs, returned.outputs, strict=False):
        if not data.from_kernel and not run.given.empty and not operated:
            return ErrorReport(
                kind="not_from_kernel", message=f"{lead}no Triton kernel stored into output `{output.name}`"
            )
    if returned.unfinished:
        message = (
            f"{lead}the entry point returned while {returned.unfinished}; let the current stream wait for all work "
            "before it returns"
        )
        return ErrorReport(kind="unfinished", message=message)
    if returned.changed_state:
        message = (
            f"{lead}the call changed {', '.join(returned.changed_state[:5])}; leave global state as it is, "
            "or restore it before the call returns (random numbers: use a torch.Generator of your own)"
        )
        return ErrorReport(kind="global_state", message=message)
    if returned.changed_output:
        message = (
            f"{lead}this call changed the output of the call before; allocate the output anew in each call"
        )
        return ErrorReport(kind="shared_output", message=message)
    return None


def aliased(lead: str, returned: Returned, task: Task, outputs: Sequence[Output]) -> ErrorReport | None:
    """Return the error of an output that shares memory, unless it is an input that the task changes in place."""
    may_be_returned = {f"input `{name}`" for name in task.in_place}
    for output, data in zip(outputs, returned.outputs, strict=False):
        if data.aliases and data.aliases not in may_be_returned:
            message = f"{lead}output `{output.name}` shares memory with {data.aliases}; return a new tensor"
            return ErrorReport(kind="aliased_output", message=message)
    return None


def changed_input(lead: str, name: str) -> ErrorReport:
    """Return the error of an input that was changed; `lead` names the place."""
    return ErrorReport(
        kind="input_changed", message=f"{lead}input `{name}` was changed; write to a new tensor"
    )


def of_farewell(left: LeftBehind) -> ErrorReport | None:
    """Return the error of patches, threads or processes that a candidate leaves behind, or of what it launched when timed."""
    if left.foreign_kernels:
        return findings.foreign_kernel("in a call that was timed: ", left.foreign_kernels[0])
    if left.patched:
        return findings.patched(*left.patched)
    if left.threads or left.children:
        return findings.left_behind(left.threads, left.children)
    return None
