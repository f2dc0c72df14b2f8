"""The stages tab: what the judge did, stage by stage, and why its facts are believed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness import STAGES, Stage
from sessions.state.state import AttemptState
from tui import vocabulary
from tui.certainty import BASES, facts_of
from tui.cockpit.lines import EMPTY, Line, Span, clean, line, wrap


def cascade_lines(attempt: AttemptState, width: int) -> list[Line]:
    """Return the six stages with seconds and detail, as far as they have come."""
    stages = {stage.name: stage for stage in attempt.stages}
    return [
        row
        for name in STAGES
        for row in _stage(name, stages.get(name), running=attempt.stage == name, width=width)
    ]


def stage_lines(attempt: AttemptState, width: int) -> list[Line]:
    """Return the six stages, then sandbox layers, proof, evidence, versions."""
    lines = cascade_lines(attempt, width)
    evaluation = attempt.evaluation
    if evaluation is None:
        return lines
    layers = [
        (layer.name, layer.state + (f": {layer.why}" if layer.why else "")) for layer in evaluation.sandbox
    ]
    by_basis = [
        (title, [(fact.name, fact.value) for fact in facts_of(evaluation, basis)]) for basis, title in BASES
    ]
    for title, facts in (
        ("sandbox of the guest", layers),
        *by_basis,
        ("versions", list(evaluation.versions.items())),
    ):
        if facts:
            lines += [EMPTY, line(title, "head"), *_facts(facts, width)]
    return lines


def _stage(name: str, stage: Stage | None, *, running: bool, width: int) -> Iterator[Line]:
    if running:
        mark = Span("..  ", "busy")
    elif stage is None or stage.ok is None:
        mark = Span("-   ", "dim")
    else:
        mark = Span("ok  ") if stage.ok else Span("FAIL", "bad")
    took = (
        vocabulary.seconds(stage.seconds)
        if stage is not None and (stage.ok is not None or stage.seconds)
        else ""
    )
    head = (mark, Span(f" {name:<12}"), Span(f"{took:>8}  ", "dim"))
    detail = clean(stage.detail) if stage is not None else "running" if running else ""
    if not detail and (stage is None or stage.ok is None):
        detail = "not reached"
    for place, text in enumerate(wrap(detail, width - 27)):
        yield (*head, Span(text, "dim")) if not place else (Span(" " * 27), Span(text, "dim"))


def _facts(facts: Sequence[tuple[str, str]], width: int) -> Iterator[Line]:
    names = max(len(name) for name, _ in facts)
    for name, value in facts:
        for place, text in enumerate(wrap(clean(value), width - names - 4)):
            yield Span(f"  {name if not place else '':<{names}}  ", "dim"), Span(text)
