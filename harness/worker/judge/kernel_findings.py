"""Findings of a candidate's calls: each once, and raised to errors where the task is strict. Torch-free."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.evaluation import ErrorReport, Finding, line_in
from harness.worker.serving.messages import CaseTraffic


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
