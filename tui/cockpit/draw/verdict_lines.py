"""The first lines of a verdict: what to do about an error, or how fast and how sure a correct attempt is."""

from __future__ import annotations

from sessions.state.state import AttemptState, InstanceState
from tui.cockpit.draw.lines import Line, Span, cells, fit, joined, line
from tui.facts.evaluation.verdict import Facts, verdict_facts

DOT = Span(" · ", "dim")
LEAST_CELLS = 16
"""A fact that gets less room than this is left out."""


def head_lines(attempt: AttemptState, instance: InstanceState | None) -> list[Line]:
    """Return the verdict in two lines, of any length: first what to do about an error, else speed and certainty."""
    return [joined([(span,) for span in spans_of(facts)], DOT) for facts in verdict_facts(attempt, instance)]


def spans_of(facts: Facts) -> Line:
    """Return facts as spans of one line."""
    return tuple(span for text, style, *_ in facts for span in line(text, style))


def pinned_lines(attempt: AttemptState, instance: InstanceState | None, width: int) -> list[Line]:
    """Return `head_lines` in at most `width` cells each; facts that do not fit go, a single fact is shortened."""
    return [_fitted(head, width) for head in head_lines(attempt, instance)]


def _fitted(head: Line, width: int) -> Line:
    """Cut the last fact that fits in part; facts after it go."""
    while cells(head) > width:
        *first, last = head
        room = width - cells(first)
        if room >= LEAST_CELLS or not first:
            return (*first, Span(fit(last.text, max(room, 1)), last.style))
        head = tuple(first[:-1] if first[-1] == DOT else first)
    return head
