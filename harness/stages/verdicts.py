"""The verdict on a candidate: follows from the kind of its error alone. No other module makes a verdict."""

from __future__ import annotations

from harness.wire.results.evaluation import ErrorReport, Verdict

_KINDS = {
    Verdict.WRONG: (
        "structure",
        "dtype",
        "shape",
        "mismatch",
        "not_repeatable",
        "race",
        "out_of_bounds",
        "gpu_sizes",
    ),
    Verdict.COMPILE_ERROR: ("compile",),
    Verdict.CALL_ERROR: (
        "too_large",
        "syntax",
        "missing_entry_point",
        "signature",
        "exception",
        "out_of_memory",
    ),
    Verdict.TIMEOUT: ("timeout",),
    Verdict.CRASH: ("gpu_fault", "exit", "limit"),
    Verdict.NO_CODE: ("no_code",),
    Verdict.UNSUPPORTED: ("unsupported", "recording"),
    Verdict.CANCELLED: ("cancelled",),
    Verdict.INFRA_ERROR: ("infra",),
}
_VERDICTS = {kind: verdict for verdict, kinds in _KINDS.items() for kind in kinds}
_SIGNALS = ("SIG", "signal ")
"""A process that a signal ended has the signal as the kind of its error."""


def conclude(error: ErrorReport | None) -> Verdict:
    """Return the verdict on a candidate with this error, or with none.

    Any other kind says that the candidate's kernels did not do the work of a call, or that a call has what the task's `strict` or
    `max_host_us` refuses.
    """
    if error is None:
        return Verdict.CORRECT
    if error.kind.startswith(_SIGNALS):
        return Verdict.CRASH
    return _VERDICTS.get(error.kind, Verdict.REJECTED)
