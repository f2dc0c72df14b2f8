"""A GPU's evaluation with what the interpreter said of the same candidate. The GPU's outcome decides; the interpreter refuses nothing there."""

from __future__ import annotations

import msgspec

from harness.wire.evaluation import Basis, Evaluation, Fact, Finding, Verdict

WHERE = "in the interpreter"
_FIELDS = ("traffic", "estimate", "sampled", "not_sampled")


def beside(on_gpu: Evaluation, interpreted: Evaluation | None) -> Evaluation:
    """The GPU's evaluation with the interpreter's counts, findings and facts; `None`: the interpreter did not end in time."""
    if interpreted is None:
        fact = Fact("interpreter", "not finished when the GPU was: nothing was replayed", Basis.EVIDENCE)
        return msgspec.structs.replace(on_gpu, facts=(*on_gpu.facts, fact))
    facts = tuple(msgspec.structs.replace(fact, name=f"cpu, {fact.name}") for fact in interpreted.facts)
    findings = tuple(
        msgspec.structs.replace(finding, message=f"{WHERE}: {finding.message}")
        for finding in interpreted.findings
    )
    fields = {name: getattr(interpreted, name) for name in _FIELDS}
    notes = tuple(dict.fromkeys((*on_gpu.notes, *interpreted.notes)))
    return msgspec.structs.replace(
        on_gpu,
        **fields,
        notes=notes,
        facts=(*facts, *on_gpu.facts),
        findings=(*on_gpu.findings, *findings, *_refusal(interpreted)),
    )


def _refusal(interpreted: Evaluation) -> tuple[Finding, ...]:
    """Why the interpreter would refuse the candidate, as a finding; none where it accepts it or cannot judge it."""
    error = interpreted.error
    if error is None or interpreted.verdict in (Verdict.CORRECT, Verdict.INFRA_ERROR, Verdict.CANCELLED):
        return ()
    message = f"{WHERE}: {interpreted.verdict}: {error.message}"
    return (Finding(kind=f"interpreter_{error.kind}", message=message, line=error.line),)
