"""The stages of an evaluation, and the reasons to trust its facts."""

from __future__ import annotations

from collections.abc import Iterable

from harness import STAGES, Basis, Evaluation, Stage
from sessions.names import stage_word
from tui.facts.tables import Cell, Column, Number, Row, Table, named_values
from tui.facts.vocabulary import UNKNOWN, seconds

from .provenance import provenance_words

BASES = (
    (Basis.PROOF, "proof (from the judge, the operating system, or kernels that ran in a clean process)"),
    (Basis.EVIDENCE, "evidence (observed inside the guest, so weaker than proof)"),
)
"""Kinds of facts in the order in which pages list them, each with its title."""


def stages_table(stages: Iterable[Stage], *, running: str | None = None, beside: str = "") -> Table:
    """Return the six stages, as far as they have come. A detail that the text `beside` has already is left out."""
    by_name = {stage.name: stage for stage in stages}
    # The stages run in order, so one before the running stage is over, even if its end was not recorded.
    over = STAGES.index(running) if running in STAGES else 0
    columns = (Column("", least=4), Column("", keep=True), Number(""), Column(""))
    return Table(
        "",
        columns,
        tuple(
            _stage(name, by_name.get(name), beside, is_running=name == running, is_over=place < over)
            for place, name in enumerate(STAGES)
        ),
    )


def _stage(name: str, stage: Stage | None, beside: str, *, is_running: bool, is_over: bool) -> Row:
    detail = stage.detail if stage is not None else ""
    if is_running:
        mark = Cell("..", "busy")
        detail = detail or "running"
    elif stage is None or stage.ok is None:
        mark = Cell(UNKNOWN, "dim")
        detail = detail or ("no record" if is_over else "not reached")
    else:
        mark = Cell("ok") if stage.ok else Cell("FAIL", "bad")
    took = seconds(stage.seconds) if stage is not None and (stage.ok is not None or stage.seconds) else ""
    return Row(
        "", (mark, Cell(stage_word(name)), Cell(took, "dim"), Cell("" if detail in beside else detail, "dim"))
    )


def trust_tables(evaluation: Evaluation) -> list[Table]:
    """Return the facts that prove the verdict or make it likely, the layers of the sandbox, and the provenance."""
    by_basis = (
        named_values(title, ((fact.name, fact.value) for fact in evaluation.facts if fact.basis is basis))
        for basis, title in BASES
    )
    layers: dict[str, list[str]] = {}
    for layer in evaluation.sandbox:
        why = f" ({layer.why})" if layer.why and layer.state != "active" else ""
        layers.setdefault(layer.state, []).append(layer.name + why)
    sandbox = named_values(
        "sandbox of the guest", ((state, ", ".join(names)) for state, names in layers.items())
    )
    return [*by_basis, sandbox, Table("provenance").with_sentences(provenance_words(evaluation.provenance))]
