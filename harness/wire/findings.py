"""Rules from what was observed to an error report: findings where a task is strict, failures, patches, work left behind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .evaluation import ErrorReport, Finding, Verdict, line_in
from .guest_messages import GPU_FAULT, NOT_COMPILED, CaseTraffic, Failed


def each_once(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """One finding for each kind and line, that of the first case."""
    first: dict[tuple[str, int | str], Finding] = {}
    for finding in findings:
        first.setdefault((finding.kind, finding.line or finding.message), finding)
    return tuple(first.values())


def raised(findings: Iterable[Finding], strict: Sequence[str]) -> ErrorReport | None:
    """The error report of the first finding that the task is strict about; `None` where there is none."""
    for finding in findings:
        if finding.kind in strict:
            return as_error(finding)
    return None


def as_error(finding: Finding) -> ErrorReport:
    """The finding as the reason of a refusal."""
    message = f"case {finding.case}: {finding.message}" if finding.case else finding.message
    return ErrorReport(kind=finding.kind, message=message, line=finding.line)


def missed_stores(traffic: CaseTraffic) -> ErrorReport | None:
    """Stores outside every tensor, which always refuse; `None` where there are none."""
    if not traffic.missed_stores:
        return None
    first, others = traffic.missed_stores[0], len(traffic.missed_stores) - 1
    more = f" (and {others} more)" if others else ""
    return ErrorReport(
        kind="out_of_bounds",
        message=f"case {traffic.case}: {first}{more}",
        trace="\n".join(traffic.missed_stores),
        line=line_in(first),
    )


def verdict_of_failure(failure: Failed) -> Verdict:
    """What an exception of a candidate's is; a fault on the GPU ends all work of its process there, so it is a crash."""
    return {GPU_FAULT: Verdict.CRASH, NOT_COMPILED: Verdict.COMPILE_ERROR}.get(
        failure.kind, Verdict.CALL_ERROR
    )


def patched(*names: str) -> ErrorReport:
    """Functions and settings of libraries that are others than before the candidate was imported."""
    told = ", ".join(names[:5])
    return ErrorReport(
        kind="patched",
        message=f"the candidate changed {told}; leave libraries and their settings as they are",
    )


def left_behind(threads: int, processes: int) -> ErrorReport:
    """Work that may go on when the call has returned."""
    return ErrorReport(
        kind="left_behind",
        message=f"{threads} threads and {processes} processes were left running; do all work within the call",
    )
