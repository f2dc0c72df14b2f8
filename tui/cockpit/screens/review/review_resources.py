"""Registers, spills, local memory and occupancy of an attempt, compared to the baseline or to its base."""

from __future__ import annotations

from harness import Evaluation
from sessions.state.state import AttemptState, InstanceState, SessionState
from tui.cockpit.data.attempts import base_of
from tui.cockpit.draw.lines import Span
from tui.cockpit.screens.review.review_claim import Fact
from tui.facts import vocabulary
from tui.facts.evaluation.resources import is_amd, usage_of


def resource_facts(state: SessionState, attempt: AttemptState, instance: InstanceState) -> list[Fact]:
    """Return the resources on the first target; differences are to the baseline, else to the base attempt."""
    evaluation = attempt.evaluation
    name = next(iter(evaluation.resources), None) if evaluation is not None else None
    if evaluation is None or name is None:
        return []
    baseline = state.baselines.get(instance.task)
    base = base_of(state, attempt)
    compared: tuple[tuple[str, Evaluation | None], ...] = (
        ("to the baseline", baseline),
        (f"to {base.attempt}" if base is not None else "", base.evaluation if base is not None else None),
    )
    words, before = next(
        (
            (words, usage_of(earlier))
            for words, earlier in compared
            if earlier is not None and next(iter(earlier.resources), None) == name
        ),
        ("", None),
    )
    now = usage_of(evaluation)
    amd = is_amd(evaluation.resources[name])
    titles = ("vgpr", "spill", "LDS", "waves") if amd else ("regs", "spill", "shared", "warps")
    phrases = [
        Span(f"{title} {_number(value)}{_change(value, old)}", "bad" if title == "spill" and value else "")
        for title, value, old in zip(titles, now, before or (None,) * 4, strict=True)
    ]
    target = Span(f"({', '.join(filter(None, (name, words)))})", "dim")
    errors = [Span(f"does not compile for {failed}", "bad") for failed in evaluation.compile_errors]
    return [("resources", [*phrases, target, *errors])]


def _number(value: float | None) -> str:
    return vocabulary.UNKNOWN if value is None else f"{value:g}"


def _change(value: float | None, before: float | None) -> str:
    if value is None or before is None or value == before:
        return ""
    return f" ({value - before:+g})"
