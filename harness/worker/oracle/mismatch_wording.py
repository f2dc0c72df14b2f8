"""What the judge says to a kernel author: what failed, where, by how much, and what to do. Torch-free."""

from __future__ import annotations

from collections.abc import Sequence

from harness.wire.evaluation import ErrorReport, Finding, Mismatch
from suites.task import EntryPoint


def mismatch(found: Mismatch, when: str = "", undefined: Sequence[int] = ()) -> ErrorReport:
    """A wrong output. `undefined` are the lines of masked loads without `other`, which are named where they may be the cause."""
    lead = f"case {found.case}{', ' + when if when else ''}: output `{found.output}`"
    if found.dtype != found.expected_dtype:
        return _mismatch("dtype", f"{lead} has dtype {found.dtype}, expected {found.expected_dtype}", found)
    if found.shape != found.expected_shape:
        got, expected = list(found.shape), list(found.expected_shape)
        return _mismatch("shape", f"{lead} has shape {got}, expected {expected}", found)
    parts = [
        f"{lead} is wrong at index {list(found.index)}: expected {found.expected}, got {found.got}",
        f"{found.wrong_share:.2%} of the elements are wrong",
    ]
    if found.max_abs is not None:
        largest = f"largest absolute error {found.max_abs:.4g}"
        parts.append(largest + (f", relative {found.max_rel:.4g}" if found.max_rel is not None else ""))
    if found.nan_got != found.nan_expected:
        parts.append(f"{found.nan_got} NaN where {found.nan_expected} are expected")
    if found.inf_got != found.inf_expected:
        parts.append(f"{found.inf_got} Inf where {found.inf_expected} are expected")
    if found.metrics:
        parts.append(", ".join(f"{name} {value:.6g}" for name, value in found.metrics.items()))
    more_nan = found.nan_got > found.nan_expected
    if undefined and (more_nan or not found.dtype.startswith(("float", "bfloat"))):
        lines = f"line{'s' if len(undefined) > 1 else ''} {', '.join(map(str, undefined))}"
        parts.append(
            f"the masked load in {lines} has no `other`: lanes that its mask leaves out may hold anything "
            f"({'NaN' if more_nan else 'a large integer'} here), so give it a value"
        )
    return _mismatch("mismatch", "; ".join(parts), found)


def wrong_signature(entry: EntryPoint, problem: str) -> ErrorReport:
    """An entry point that cannot be called as the task says."""
    return ErrorReport(
        kind="signature", message=f"`{entry.name}`: {problem}; the signature is {entry.signature}"
    )


def too_slow(seconds: float, case: str, *, cpu: bool, gpu: bool = False) -> ErrorReport:
    """A limit passed."""
    where = f"case {case}" if case else "the import"
    kind = "CPU" if cpu else "wall"
    if gpu:
        return ErrorReport(
            kind="timeout",
            message=(
                f"{where} did not finish within {seconds:g} s of {kind} time on the GPU, compilation included; "
                "a loop in a kernel or around it may never end: check loop bounds, or try fewer autotune configs"
            ),
        )
    return ErrorReport(
        kind="timeout",
        message=(
            f"{where} did not finish within {seconds:g} s of {kind} time in the interpreter; a loop may never end, or "
            "there are very many small programs (about 1 ms each): check loop bounds, or use larger blocks"
        ),
    )


def lied(why: str) -> ErrorReport:
    """Something else than our code spoke on the guest's channel."""
    return ErrorReport(kind="tampering", message=f"the candidate interfered with the judge's channel: {why}")


def gone(case: str) -> ErrorReport:
    """The process ended; how is filled in by who knows."""
    where = f"case {case}" if case else "the import"
    return ErrorReport(kind="exit", message=f"the process ended in {where}")


def unsupported(why: str) -> ErrorReport:
    """The device cannot say."""
    return ErrorReport(kind="unsupported", message=why)


def not_repeatable(case: str) -> ErrorReport:
    """Right once, wrong on the same inputs."""
    return ErrorReport(
        kind="not_repeatable",
        message=(
            f"case {case}: a second call with the same inputs gave a wrong output; state kept between calls, "
            "uninitialised memory or a race"
        ),
    )


def not_deterministic(case: str) -> Finding:
    """Right both times, with other bits."""
    message = "a second call with the same inputs gave other bits within the tolerance: atomics, a race or state between calls"
    return Finding(kind="not_deterministic", message=message, case=case)


def stale(case: str) -> ErrorReport:
    """The outputs of an earlier call came back."""
    return ErrorReport(
        kind="stale_output",
        message=f"case {case}: other inputs of the same shapes gave the outputs of the call before, bit for bit",
    )


def _mismatch(kind: str, message: str, found: Mismatch) -> ErrorReport:
    return ErrorReport(kind=kind, message=message, mismatch=found)
