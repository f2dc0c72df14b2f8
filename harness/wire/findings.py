"""Error reports from observations: strict findings, missed stores, exceptions, patches, work left behind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from .results.evaluation import ErrorReport, Finding, line_in
from .results.served_calls import BatchRows


def drop_repeated(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return one finding for each kind and line, from the first case."""
    first: dict[tuple[str, int | str], Finding] = {}
    for finding in findings:
        first.setdefault((finding.kind, finding.line or finding.message), finding)
    return tuple(first.values())


def strict_error(findings: Iterable[Finding], strict: Sequence[str]) -> ErrorReport | None:
    """Return the error report of the first finding about which the task is strict; `None` if there is none."""
    for finding in findings:
        if finding.kind in strict:
            return as_error(finding)
    return None


def as_error(finding: Finding) -> ErrorReport:
    """Return the finding as an error report."""
    message = f"case {finding.case}: {finding.message}" if finding.case else finding.message
    return ErrorReport(kind=finding.kind, message=message, line=finding.line)


def missed_stores(case: str, stores: Sequence[str]) -> ErrorReport | None:
    """Return the error report for stores outside every tensor, which always refuse; `None` if there are none."""
    if not stores:
        return None
    first, *rest = stores
    more = f" (and {len(rest)} more)" if rest else ""
    return ErrorReport(
        kind="out_of_bounds",
        message=f"case {case}: {first}{more}",
        trace="\n".join(stores),
        line=line_in(first),
    )


def batch_error(batches: Iterable[BatchRows]) -> ErrorReport | None:
    """Return the error report for rows with bits that depend on the batch; `None` if there are none."""
    different = next((batch for batch in batches if batch.same_bits is False), None)
    if different is None:
        return None
    message = f"{different.words}: the bits differ; use one order of sums and one config for every batch"
    return ErrorReport(kind="batch_dependent", message=message)


def foreign_kernel(lead: str, kernel: str) -> ErrorReport:
    """Return the error report for a launched kernel that the candidate does not define."""
    message = f"{lead}the kernel {kernel} was launched; kernels that the candidate's own module defines must do the work"
    return ErrorReport(kind="foreign_kernel", message=message)


def race(lead: str, error: ErrorReport) -> ErrorReport:
    """Return the error report for a call that is right with programs in order; `error` says how it is wrong in another order."""
    message = (
        f"{lead}a launch gives another answer when its programs run in another order; on a device they run in any order and at "
        "once: use a second launch for work that needs the results of other programs, and let no two programs store different "
        "values in one place"
    )
    return ErrorReport(kind="race", message=message, mismatch=error.mismatch)


def patched(*names: str) -> ErrorReport:
    """Return the error report for functions and settings of libraries that the candidate changed."""
    changed = ", ".join(names[:5])
    message = f"the candidate changed {changed}; leave libraries and their settings as they are"
    return ErrorReport(kind="patched", message=message)


def name_running_line(error: ErrorReport, line: int | None, source: str) -> ErrorReport:
    """Return a timeout's error report with the candidate's line that ran last, if it is known."""
    lines = source.splitlines()
    if line is None or not 0 < line <= len(lines):
        return error
    message = f"{error.message}; it last ran line {line}: `{lines[line - 1].strip()}`"
    return msgspec.structs.replace(error, message=message, line=line)


def left_behind(threads: int, processes: int) -> ErrorReport:
    """Return the error report for work that runs on after the call returned."""
    message = f"{threads} threads and {processes} processes were left running; do all work within the call"
    return ErrorReport(kind="left_behind", message=message)
