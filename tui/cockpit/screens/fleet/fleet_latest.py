"""Lines below a short table of Fleet: the instance under the cursor, the newest verdicts, a legend of letters."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from harness import Verdict
from sessions.events import DecisionMade, Origin
from sessions.state.state import AttemptState, InstanceState, SessionState
from tui.cockpit.data.attempts import lineage, ordered_instances, short_name
from tui.cockpit.draw.lines import ELLIPSIS, EMPTY, Line, Span, cells, clean, fit, wrap
from tui.cockpit.draw.verdict_lines import pinned_lines
from tui.cockpit.screens.fleet.fleet_view import rule, state_words
from tui.facts import vocabulary
from tui.facts.attempt import decided_words
from tui.facts.instance import FactsCache, InstanceFacts
from tui.facts.vocabulary import FINDING, REJECTED, letter, verdict_style, words

MARGIN = "    "
LEGEND = " Letters "
LEGEND_LINES = 2
LEAST_LINES = 3
"""Least free lines: a title, a line of reasoning and a verdict."""
OWN_SHARE = 3
"""The reasoning of the instance gets at most one part of so many of the free lines."""


def latest_lines(
    state: SessionState,
    facts: FactsCache,
    chosen: InstanceState | None,
    *,
    letters: bool,
    width: int,
    height: int,
) -> list[Line]:
    """Return `height` lines about the `chosen` instance and the newest verdicts, or none if they have no room.

    `letters`: states are letters in the table or in its title.
    """
    if not state.instances or height < LEAST_LINES:
        return []
    lines = _chosen_lines(chosen, facts.of(state, chosen), width, height) if chosen is not None else []
    legend = _legend(facts.all(state), letters=letters, width=width)[: height - len(lines)]
    room = height - len(lines) - len(legend)
    if room > 1 and (verdicts := _verdicts(state, room - 1, width)):
        lines += [
            rule("Verdicts", [Span("newest first, on the session's clock", "dim")], "", width),
            *verdicts,
        ]
    return [*lines, *[EMPTY] * (height - len(lines) - len(legend)), *legend]


def _chosen_lines(instance: InstanceState, facts: InstanceFacts, width: int, height: int) -> list[Line]:
    """Title, end of the newest reasoning, newest verdict of the instance."""
    lines = [rule(instance.key, [Span(facts.doing.word, facts.doing.style)], "", width)]
    number = len(f"#{instance.instance}/{facts.attempt}")
    room = max(width - len(MARGIN) - number - 2, 8)

    def block(name: str, rows: Sequence[Line]) -> list[Line]:
        return [
            (Span(f"{MARGIN}{'' if place else name:<{number}}  "), *row) for place, row in enumerate(rows)
        ]

    judged = [attempt for attempt in instance.attempts if attempt.verdict is not None]
    newest = max(judged, key=lambda attempt: attempt.judged_seq, default=None)
    pinned = [row for row in pinned_lines(newest, instance, room) if row] if newest is not None else []
    verdict = block(short_name(newest.attempt), pinned) if newest is not None else []
    if thought := _thought(instance):
        most = max(1, min(height // OWN_SHARE, height - 1 - len(verdict)))
        attempt, text = thought
        rows = [row for row in wrap(clean(text[-room * (most + 2) :]), room - 2) if row.strip()]
        if len(rows) > most:
            rows = [f"{ELLIPSIS} {rows[-most].lstrip()}", *rows[len(rows) - most + 1 :]]
        lines += block(short_name(attempt), [(Span(row, "reasoning"),) for row in rows])
    return [*lines, *verdict][:height]


def _thought(instance: InstanceState) -> tuple[str, str] | None:
    """Return the newest attempt with reasoning or a plan, and its reasoning, else its plan."""
    for attempt in reversed(instance.attempts):
        reasonings = [call.reasoning.strip() for call in attempt.calls]
        text = next(filter(None, reversed(reasonings)), attempt.strategy or "")
        if text:
            return attempt.attempt, text
    return None


def _verdicts(state: SessionState, most: int, width: int) -> list[Line]:
    """The newest verdicts and decisions; a decision has no time, because engines need not work when a person decides."""
    rows: list[tuple[int, AttemptState, InstanceState, DecisionMade | None]] = []
    for instance in ordered_instances(state):
        for attempt in instance.attempts:
            if attempt.verdict is not None:
                rows.append((attempt.judged_seq, attempt, instance, None))
            if attempt.decision is not None:
                rows.append((attempt.decision.seq, attempt, instance, attempt.decision))
    newest = heapq.nlargest(most, rows, key=lambda row: row[0])
    name = max((len(attempt.attempt) for _, attempt, *_ in newest), default=0)
    clock = max((len(vocabulary.clock(attempt.judged_worked_s)) for _, attempt, *_ in newest), default=0)
    lines: list[Line] = []
    for _, attempt, instance, decision in newest:
        at = f"at {vocabulary.clock(attempt.judged_worked_s):>{clock}}"
        start = (
            Span(f"{MARGIN}{attempt.attempt:<{name}}  "),
            Span(f"{'' if decision else at:<{clock + 3}}  ", "dim"),
        )
        room = width - cells(start)
        if decision is not None:
            words, style = (
                fit(clean(decided_words(decision)), room).rstrip(),
                "good" if decision.accepted else "bad",
            )
            lines.append((*start, Span(words, style)))
        else:
            if attempt.origin is Origin.HUMAN and attempt.base:
                edit = Span(f"{lineage(state, attempt)} · ", "dim")
                lines.append((*start, edit, *pinned_lines(attempt, instance, room - cells((edit,)))[0]))
                continue
            lines.append((*start, *pinned_lines(attempt, instance, width - cells(start))[0]))
    return lines


def _legend(all_facts: Sequence[InstanceFacts], *, letters: bool, width: int) -> list[Line]:
    """Return what the letters in the cells mean, those that are there."""
    items = [(sign, word, style) for word, sign, style, _ in state_words(all_facts)] if letters else []
    verdicts = dict.fromkeys(facts.verdict for facts in all_facts if facts.verdict is not None)
    items += [(letter(verdict), words(verdict), verdict_style(verdict)) for verdict in verdicts]
    if any(facts.has_findings for facts in all_facts):
        items.append((letter(Verdict.CORRECT) + FINDING, "with findings", "warn"))
    if any(facts.has_rejection for facts in all_facts):
        items.append((REJECTED, "a person rejected an attempt", "bad"))
    if letters and any(facts.same_error and not facts.finished for facts in all_facts):
        items.append(("!", "stuck: the same error again", "bad"))
    lines: list[Line] = [(Span(LEGEND, "head"),)] if items else []
    for sign, meaning, style in items:
        item = (Span(f" {sign}", style), Span(f" {meaning} ", "dim"))
        if cells(lines[-1]) + cells(item) > width and len(lines) < LEGEND_LINES:
            lines.append((Span(" " * len(LEGEND)),))
        lines[-1] = (*lines[-1], *item)
    return lines
