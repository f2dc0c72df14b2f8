"""Error reports for a kernel author: what failed, where, by how much, and what to do. Torch-free."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.wire.evaluation import ErrorReport, Finding, Mismatch
from suites.task import EntryPoint


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
        f"{wrong.wrong_share:.2%} of the elements are wrong",
    ]
    if wrong.max_abs is not None:
        largest = f"largest absolute error {wrong.max_abs:.4g}"
        parts.append(largest + (f", relative {wrong.max_rel:.4g}" if wrong.max_rel is not None else ""))
    if wrong.nan_got != wrong.nan_expected:
        parts.append(f"{wrong.nan_got} NaN where {wrong.nan_expected} are expected")
    if wrong.inf_got != wrong.inf_expected:
        parts.append(f"{wrong.inf_got} Inf where {wrong.inf_expected} are expected")
    if wrong.metrics:
        parts.append(", ".join(f"{name} {value:.6g}" for name, value in wrong.metrics.items()))
    more_nan = wrong.nan_got > wrong.nan_expected
    if undefined and (more_nan or not wrong.dtype.startswith(("float", "bfloat"))):
        parts.append(
            f"the masked load in {_lines(undefined)} has no `other`: lanes that its mask leaves out may hold anything "
            f"({'NaN' if more_nan else 'a large integer'} here), so give it a value"
        )
    return _mismatch("mismatch", "\n".join(["; ".join(parts), *wrong.pattern]), wrong)


def with_cases(error: ErrorReport, cases: str) -> ErrorReport:
    """The error, with a last line that says which cases fail and which pass."""
    if not cases:
        return error
    return msgspec.structs.replace(error, message=f"{error.message}\n{cases}", cases=cases)


def wrong_signature(entry: EntryPoint, problem: str) -> ErrorReport:
    """An entry point with a signature that differs from the task's."""
    return ErrorReport(
        kind="signature", message=f"`{entry.name}`: {problem}; the signature is {entry.signature}"
    )


def not_repeatable(case: str) -> ErrorReport:
    """Right in the first call, wrong in a second call with the same inputs."""
    return ErrorReport(
        kind="not_repeatable",
        message=(
            f"case {case}: a second call with the same inputs gave a wrong output; state kept between calls, "
            "uninitialised memory or a race"
        ),
    )


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
    return ErrorReport(
        kind="stale_output",
        message=f"case {case}: other inputs of the same shapes gave the outputs of the call before, bit for bit",
    )


def _mismatch(kind: str, message: str, wrong: Mismatch) -> ErrorReport:
    return ErrorReport(kind=kind, message=message, mismatch=wrong)
