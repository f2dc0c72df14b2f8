"""Coming back to a session: what happened since the person last watched it."""

from __future__ import annotations

from sessions import Home
from sessions.state.folding import fold
from tests.support.sessions.journals import SESSION, running, write_live
from tui.cockpit.viewer import away_words, last_watched, remember


def test_person_hears_what_happened_since_the_last_visit(home: Home) -> None:
    events = running()
    write_live(home, events)
    state = fold(events)
    first = min(attempt.judged_seq for attempt in state.attempts() if attempt.judged_seq)
    assert last_watched(home, SESSION) == 0
    remember(home, SESSION, fold(events[:first]))
    assert last_watched(home, SESSION) == first
    judged = sum(attempt.judged_seq > first for attempt in state.attempts())
    assert away_words(state, first) == f"while you were away: {judged} attempts, 1 new best"


def test_nothing_is_said_at_the_first_visit_or_if_nothing_happened() -> None:
    state = fold(running())
    assert away_words(state, 0) == ""
    assert away_words(state, state.last_seq) == ""
