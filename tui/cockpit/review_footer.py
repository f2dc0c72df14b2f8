"""The last line of the Review screen: what was decided, and what a decision would do."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from harness import Verdict
from sessions.state.state import SessionState
from tui.cockpit.lines import Line, Span, fit
from tui.cockpit.review_queue import Entry, Kind, decided_words
from tui.cockpit.review_reasons import accept_words, reject_words

GAP = "   "


def footer(
    state: SessionState,
    entries: Sequence[Entry],
    entry: Entry | None,
    undoable: str | None,
    *,
    over: bool,
    width: int,
) -> Line:
    """Return `decided 7: 5 accepted, 2 rejected   if accepted: ...`; the longest words that fit into `width` cells.

    `u` takes the decision about `undoable` back.
    """
    head = f" {decided_words(entries)}"
    choices = [""]
    if entry is not None and entry.kind is not Kind.DECIDED:
        rejected = f"if rejected: {reject_words(state, entry.attempt, entry.instance, over=over)}"
        choices = [rejected]
        if entry.attempt.verdict is Verdict.CORRECT:
            long, short = (
                f"if accepted: {accept_words(state, entry.attempt, entry.instance, over=over, short=short)}"
                for short in (False, True)
            )
            choices = [f"{long}{GAP}{rejected}", long, f"{short}{GAP}{rejected}", short]
    elif undoable is not None:
        choices = [f"u takes the decision about {undoable} back"]
    room = width - cell_len(head) - len(GAP)
    if cell_len(choices[0]) > room:
        head = head.partition(":")[0]
        room = width - cell_len(head) - len(GAP)
    words = next((choice for choice in choices if cell_len(choice) <= room), choices[-1])
    return Span(head, "key"), Span(fit(f"{GAP}{words}", room + len(GAP)).rstrip(), "dim")
