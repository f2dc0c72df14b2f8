"""Error reports for a kernel author: what failed, where, by how much, and what to do. Torch-free."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import msgspec

from harness.wire.results.evaluation import ErrorReport, Finding, Mismatch
from suites.task import EntryPoint

_MOST_LINES = 6
"""Further failures that have a line each. More are grouped, in as many lines at most."""
_MOST_NAMES = 4
_SMALL_SHARE = 0.01
"""A smaller share of wrong elements is said as a number."""
_NUMBER = re.compile(r"-?[\d.]+(e[+-]\d+)?")


class CaseError(NamedTuple):
    """An error of one case; a case may have one for each of its outputs."""

    case: str
    error: ErrorReport


def mismatch(wrong: Mismatch, when: str = "", undefined: Sequence[int] = ()) -> ErrorReport:
    """A wrong output. `undefined` are lines of masked loads without `other`, named if they may be the cause."""
    lead = f"case {wrong.case}{', ' + when if when else ''}: output `{wrong.output}`"
    if wrong.dtype != wrong.expected_dtype:
        return _mismatch("dtype", f"{lead} has dtype {wrong.dtype}, expected {wrong.expected_dtype}", wrong)
    if wrong.shape != wrong.expected_shape:
        got, expected = list(wrong.shape), list(wrong.expected_shape)
        return _mismatch("shape", f"{lead} has shape {got}, expected {expected}", wrong)
    parts = [
        f"{lead} is wrong at index {list(wrong.index)}: expected {wrong.expected}, got {wrong.got}",
        _extent(wrong),
    ]
    if wrong.off or (wrong.largest_error and not wrong.metrics):
        parts.append(wrong.off or f"largest error {wrong.largest_error}")
    if wrong.nan_got != wrong.nan_expected:
        parts.append(f"{wrong.nan_got} NaN where {wrong.nan_expected} are expected")
    if wrong.inf_got != wrong.inf_expected:
        parts.append(f"{wrong.inf_got} Inf where {wrong.inf_expected} are expected")
    if wrong.metrics:
        metrics = ", ".join(f"{name} {value:.6g}" for name, value in wrong.metrics.items())
        parts += filter(None, (metrics, wrong.largest_error))
    more_nan = wrong.nan_got > wrong.nan_expected
    if undefined and (more_nan or not wrong.dtype.startswith(("float", "bfloat"))):
        hint = (
            f"the masked load in {_lines(undefined)} has no `other`: lanes that its mask leaves out may hold anything "
            f"({'NaN' if more_nan else 'a large integer'} here), so give it a value"
        )
        common = wrong.common if wrong.pattern else hint
        wrong = msgspec.structs.replace(wrong, pattern=(*wrong.pattern, hint), common=common)
    return _mismatch("mismatch", "\n".join(["; ".join(parts), *wrong.pattern]), wrong)


def _extent(wrong: Mismatch) -> str:
    """Say how many elements are wrong: their number if they are few, else their share."""
    elements = math.prod(wrong.shape)
    count = round(wrong.wrong_share * elements)
    if wrong.wrong_share < _SMALL_SHARE:
        return f"{count:,} of {elements:,} elements {'is' if count == 1 else 'are'} wrong"
    return (
        "every element is wrong"
        if count == elements
        else f"{wrong.wrong_share:.2%} of the elements are wrong"
    )


def further_lines(first: CaseError, further_failures: Sequence[CaseError]) -> tuple[str, ...]:
    """A line for each of the other failures; one for all with the same message, or for many outputs that are wrong alike."""
    ways: dict[Hashable, list[CaseError]] = {}
    for number, failure in enumerate((first, *further_failures)):
        is_alone = failure.error.kind == "mismatch" and len(further_failures) <= _MOST_LINES
        ways.setdefault(number if is_alone else _way(failure), []).append(failure)
    lines: list[str] = []
    for number, failures in enumerate(ways.values()):
        line = [failures[0].error.in_one_line] if number else []
        if same := list(dict.fromkeys(failure.case for failure in failures[1:])):
            shown = ", ".join(same[:_MOST_NAMES]) + (", ..." if len(same) > _MOST_NAMES else "")
            plural = "cases fail" if len(same) > 1 else "case fails"
            line.append(f"{len(same)} more {plural} in the same way: {shown}")
        lines += filter(None, ["; ".join(line)])
    excess = len(lines) - _MOST_LINES
    return tuple(lines) if excess <= 0 else (*lines[:_MOST_LINES], f"and failures of {excess} more kinds")


def _way(failure: CaseError) -> Hashable:
    """Key that failures of one cause share: name and pattern of a wrong output, else the message; without numbers."""
    error, wrong = failure.error, failure.error.mismatch
    if error.kind != "mismatch" or wrong is None:
        return error.kind, _NUMBER.sub("#", error.first_line.replace(failure.case, ""))
    more = (wrong.nan_got > wrong.nan_expected, wrong.inf_got > wrong.inf_expected)
    return wrong.output, more, _NUMBER.sub("#", wrong.common)


def wrong_signature(entry: EntryPoint, problem: str) -> ErrorReport:
    """An entry point with a signature that differs from the task's."""
    return ErrorReport(
        kind="signature", message=f"`{entry.name}`: {problem}; the signature is {entry.signature}"
    )


def not_repeatable(case: str) -> ErrorReport:
    """Return the error of a case that was right in the first call and wrong in a second call with the same inputs."""
    message = (
        f"case {case}: a second call with the same inputs gave a wrong output; state kept between calls, "
        "uninitialised memory or a race"
    )
    return ErrorReport(kind="not_repeatable", message=message)


def not_deterministic(case: str) -> Finding:
    """Right in both calls, with different bits."""
    message = "a second call with the same inputs gave other bits within the tolerance: atomics, a race or state between calls"
    return Finding(kind="not_deterministic", message=message, case=case)


def undefined_lanes(case: str, lines: Sequence[int]) -> Finding:
    """Right only with zeros in the lanes that masked loads leave out."""
    message = (
        f"the masked load in {_lines(lines)} has no `other`, and lanes that its mask leaves out reach the output: "
        "right only if they hold 0, and Triton leaves them undefined; give the load an `other`"
    )
    return Finding(kind="undefined_lanes", message=message, case=case, line=lines[0])


def _lines(numbers: Sequence[int]) -> str:
    return f"line{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def stale(case: str) -> ErrorReport:
    """The outputs of an earlier call with different inputs."""
    message = f"case {case}: other inputs of the same shapes gave the outputs of the call before, bit for bit"
    return ErrorReport(kind="stale_output", message=message)


def _mismatch(kind: str, message: str, wrong: Mismatch) -> ErrorReport:
    return ErrorReport(kind=kind, message=message, mismatch=wrong)
