"""Words for the end of a recording, and for tokens that no provider reported."""

from __future__ import annotations

import msgspec

from sessions import events as ev
from sessions.state.folding import fold
from tests.support.sessions.journals import finished
from tui.commands.keep.sessions import INSTANCES
from tui.facts.endings import ending_cause
from tui.facts.spending import session_spent_words
from tui.print.narrate import Narrator
from tui.print.plain import listing
from tui.print.summary import summary


def test_the_end_of_a_recording_is_said_in_words_everywhere() -> None:
    narrator = Narrator()
    printed = [line for event in finished() for line in narrator.lines(event)]
    state = narrator.state
    ended = [instance for instance in state.instances.values() if instance.finished == "recording_exhausted"]
    text = "\n".join((*printed, summary(state), listing(INSTANCES, ended), *map(ending_cause, ended)))
    assert "recording_exhausted" not in text
    assert text.count("the recording has no further reply: with a model it would go on") == 2 * len(ended)
    assert not any(
        "recording_exhausted" in call.failed for attempt in state.attempts() for call in attempt.calls
    )


def test_tokens_that_no_provider_reported_are_unknown() -> None:
    silent = [
        msgspec.structs.replace(event, usage=ev.Usage()) if isinstance(event, ev.CallFinished) else event
        for event in finished()
    ]
    words = session_spent_words(fold(silent))
    assert words.startswith("tokens unknown (none reported)")
    assert "0 tokens" not in words
    assert " 0 " not in listing(INSTANCES, fold(silent).instances.values())
