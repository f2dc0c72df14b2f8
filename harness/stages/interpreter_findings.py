"""Adds the interpreter's counts, findings and facts to a GPU's evaluation.

The GPU decides; the interpreter's refusal is a finding.
"""

from __future__ import annotations

import msgspec

from harness.wire.results.evaluation import Basis, Evaluation, Fact, Finding, Verdict

WHERE = "in the interpreter"
_NO_REFUSAL = (Verdict.CORRECT, Verdict.INFRA_ERROR, Verdict.CANCELLED)


def add_interpreter_findings(
    on_gpu: Evaluation, interpreted: Evaluation | None, *, why: str = "not finished when the GPU was"
) -> Evaluation:
    """The GPU's evaluation with the interpreter's results; `interpreted` is `None` if it gave none, and `why` says why not.

    The interpreter's notes are left out: they tell what its small sizes did not run, and the GPU ran the full sizes.
    """
    if interpreted is None:
        fact = Fact("interpreter", f"{why}: no access was checked", Basis.EVIDENCE)
        return msgspec.structs.replace(on_gpu, facts=(*on_gpu.facts, fact))
    facts = [msgspec.structs.replace(fact, name=f"cpu, {fact.name}") for fact in interpreted.facts]
    findings = [
        msgspec.structs.replace(finding, message=f"{WHERE}: {finding.message}")
        for finding in interpreted.findings
    ]
    error = interpreted.error
    if error is not None and interpreted.verdict not in _NO_REFUSAL:
        message = f"{WHERE}: {interpreted.verdict}: {error.first_line}"
        findings.append(Finding(kind=f"interpreter_{error.kind}", message=message, line=error.line))
    return msgspec.structs.replace(
        on_gpu,
        traffic=interpreted.traffic,
        full_sizes=interpreted.full_sizes,
        not_sampled=interpreted.not_sampled,
        facts=(*facts, *on_gpu.facts),
        findings=(*on_gpu.findings, *findings),
    )
