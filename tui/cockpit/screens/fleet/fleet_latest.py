"""Lines below a short table of Fleet: the newest reasoning of each instance, the newest verdicts, a legend of letters."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from harness import Verdict
from sessions.state.state import InstanceState, SessionState
from tui.cockpit.data.attempts import ordered_instances
from tui.cockpit.draw.lines import ELLIPSIS, EMPTY, Line, Span, beginning, cells, clean
from tui.cockpit.draw.verdict_lines import pinned_lines
from tui.cockpit.screens.fleet.fleet_view import rule, state_words
from tui.facts import vocabulary
from tui.facts.instance import FactsCache, InstanceFacts
from tui.facts.vocabulary import FINDING, letter, verdict_style, words

MARGIN = "    "
LEGEND = " Letters "
LEGEND_LINES = 2


def latest_lines(
    state: SessionState,
    facts: FactsCache,
    *,
    letters: bool,
    now_wall: float,
    is_over: bool,
    width: int,
    height: int,
) -> list[Line]:
    """Return `height` lines, or none if the instances do not have a line each; `letters`: Fleet's cells have no words.

    Verdicts of a session that `is_over` say how long before its end they came: so its screen rests.
    """
    instances = ordered_instances(state)
    if not instances or len(instances) + 1 > height:
        return []
    all_facts = [facts.of(state, instance) for instance in instances]
    lines: list[Line] = []
    if thoughts := _thoughts(instances, all_facts, width):
        lines += [rule("Reasoning", [Span("the last line of each", "dim")], "", width), *thoughts]
    legend = _legend(all_facts, letters=letters, width=width)[: height - len(lines)]
    room = height - len(lines) - len(legend)
    if room > 1 and (verdicts := _verdicts(instances, room - 1, now_wall, width, is_over=is_over)):
        lines += [rule("Verdicts", [Span("newest first", "dim")], "", width), *verdicts]
    return [*lines, *[EMPTY] * (height - len(lines) - len(legend)), *legend]


def _thoughts(
    instances: Sequence[InstanceState], all_facts: Sequence[InstanceFacts], width: int
) -> list[Line]:
    thoughts = [
        (facts, *newest)
        for instance, facts in zip(instances, all_facts, strict=True)
        if (newest := _thought(instance))
    ]
    name = max((len(attempt) for _, attempt, _ in thoughts), default=0)
    word = max((len(facts.doing.word) for facts, _, _ in thoughts), default=0)
    room = max(width - len(MARGIN) - name - word - 4, 8)
    return [
        (
            Span(f"{MARGIN}{attempt:<{name}}  "),
            Span(f"{facts.doing.word:<{word}}  ", facts.doing.style),
            Span(_ending(thought, room), "reasoning"),
        )
        for facts, attempt, thought in thoughts
    ]


def _thought(instance: InstanceState) -> tuple[str, str] | None:
    """Return the newest attempt with reasoning or a plan, and the last line of its reasoning, else its plan."""
    for attempt in reversed(instance.attempts):
        reasonings = [call.reasoning.strip() for call in attempt.calls]
        text = next(filter(None, reversed(reasonings)), attempt.strategy or "")
        if text:
            return attempt.attempt, clean(text.rpartition("\n")[2].strip())
    return None


def _ending(text: str, width: int) -> str:
    """Return the last words of a text: it grows at its end."""
    end = beginning(text[::-1], width)[::-1]
    return end if end == text else f"{ELLIPSIS} {end[2:].partition(' ')[2]}"


def _verdicts(
    instances: Sequence[InstanceState], most: int, now_wall: float, width: int, *, is_over: bool
) -> list[Line]:
    judged = [
        (attempt.judged_seq, attempt, instance)
        for instance in instances
        for attempt in instance.attempts
        if attempt.verdict is not None
    ]
    newest = heapq.nlargest(most, judged, key=lambda verdict: verdict[0])
    name = max((len(attempt.attempt) for _, attempt, _ in newest), default=0)
    lines: list[Line] = []
    for _, attempt, instance in newest:
        since = (
            vocabulary.clock(now_wall - attempt.judged_wall) if attempt.judged_wall else vocabulary.UNKNOWN
        )
        start = (
            Span(f"{MARGIN}{attempt.attempt:<{name}}  "),
            Span(f"{since:>7} {'before the end' if is_over else 'ago'}  ", "dim"),
        )
        lines.append((*start, *pinned_lines(attempt, instance, width - cells(start))[0]))
    return lines


def _legend(all_facts: Sequence[InstanceFacts], *, letters: bool, width: int) -> list[Line]:
    """Return what the letters in the cells mean, those that are there."""
    items = [(sign, word, style) for word, sign, style, _ in state_words(all_facts)] if letters else []
    verdicts = dict.fromkeys(facts.verdict for facts in all_facts if facts.verdict is not None)
    items += [(letter(verdict), words(verdict), verdict_style(verdict)) for verdict in verdicts]
    if any(facts.has_findings for facts in all_facts):
        items.append((letter(Verdict.CORRECT) + FINDING, "with findings", "warn"))
    stuck = (
        {facts.verdict for facts in all_facts if facts.same_error and not facts.finished}
        if letters
        else set()
    )
    items += [(f"{letter(verdict)}!", "same error again", "bad") for verdict in stuck]
    lines: list[Line] = [(Span(LEGEND, "head"),)] if items else []
    for sign, meaning, style in items:
        item = (Span(f" {sign}", style), Span(f" {meaning} ", "dim"))
        if cells(lines[-1]) + cells(item) > width and len(lines) < LEGEND_LINES:
            lines.append((Span(" " * len(LEGEND)),))
        lines[-1] = (*lines[-1], *item)
    return lines
