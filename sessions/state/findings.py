"""The findings about an attempt: possible bugs that do not refuse it, and that every surface names beside *correct*."""

from __future__ import annotations

from collections.abc import Sequence

from harness import Finding, Verdict

from .state import AttemptState


def findings_of(attempt: AttemptState) -> tuple[Finding, ...]:
    """Returns the findings of the verdict, then those of the exam; each kind and line once, and none if not correct."""
    if attempt.judged is None or attempt.verdict is not Verdict.CORRECT:
        return ()
    of_exam = attempt.examined.findings if attempt.examined is not None else ()
    findings: dict[tuple[str, int | None, str], Finding] = {}
    for finding in (*attempt.judged.findings, *of_exam):
        findings.setdefault((finding.kind, finding.line, "" if finding.line else finding.message), finding)
    return tuple(findings.values())


def finding_words(findings: Sequence[Finding]) -> str:
    """Returns `2 findings, first: line 14: out of bounds: ...`; empty without findings."""
    if not findings:
        return ""
    count = "1 finding" if len(findings) == 1 else f"{len(findings)} findings, first"
    return f"{count}: {located(findings[0])}"


def located(finding: Finding) -> str:
    """Returns a finding on one line, with its line of the candidate: `line 14: out of bounds: ...`."""
    text = " ".join(finding.text.split())
    return text if finding.line is None or f"line {finding.line}" in text else f"line {finding.line}: {text}"
