"""The header of every screen of a session: what it is, how far it is, what it cost, what waits for a person."""

from __future__ import annotations

from collections.abc import Sequence

from harness import Verdict
from sessions.state import AttemptState, Confirmation, InstanceState, SessionState
from tui import vocabulary
from tui.cockpit.lines import Line, Span, cells, joined, line
from tui.doing import live_calls
from tui.method_words import method_words
from tui.timed_against import timing_words


def header_line(state: SessionState, *, name: str, word: Span, extra: Sequence[Span], width: int) -> Line:
    """The session in one line; what matters least goes first when it does not fit.

    `word` says what the session does; `extra` (mouse off, read only, replay) stays longest.
    """
    started = state.started
    correct = {each.task for each in state.instances.values() if _solved(each)}
    said = {each.task for each in state.instances.values() for one in each.attempts if is_confirmed(one)}
    confirmed = f", {len(said)} confirmed" if said else ""
    unpriced = (
        f" + {state.unpriced_calls} unpriced" if state.cost_usd is not None and state.unpriced_calls else ""
    )
    parts: list[tuple[int, Line]] = [
        (0, (Span(name, "key"),)),
        (1, (word,)),
        (2, tuple(extra)),
        (1, line(model_trouble(state), "bad")),
        (5, line(f"{method_words(started.method, started.options)} {started.model}") if started else ()),
        (4, line(vocabulary.clock(state.worked_s)) if started else ()),
        (3, line(f"{len(correct)}/{len(started.tasks)} tasks correct{confirmed}") if started else ()),
        (2, line(timing_words(started)) if started and timing_words(started) else ()),
        (6, line(vocabulary.tokens(state.input_tokens, state.output_tokens))),
        (7, line(f"cost {vocabulary.money(state.cost_usd)}{unpriced}") if state.cost_usd is not None else ()),
        (2, line(f"{state.skipped_events} events unread", "warn") if state.skipped_events else ()),
    ]
    kept = [part for part in parts if part[1]]
    while len(kept) > 1 and cells(joined([spans for _, spans in kept])) > width:
        kept.remove(max(kept, key=lambda part: part[0]))
    return joined([spans for _, spans in kept])


def is_confirmed(attempt: AttemptState) -> bool:
    """Whether the attempt passed its exam."""
    return attempt.confirmation is Confirmation.CONFIRMED


def model_trouble(state: SessionState) -> str:
    """Why a model gives no words at the moment, and how many calls that holds up; empty if none."""
    held = [
        call
        for instance in state.instances.values()
        for call in live_calls(instance)
        if call.retries and not call.text_words and not call.reasoning_words
    ]
    if not held:
        return ""
    reason = held[-1].last_retry.partition(":")[0].replace("_", " ")
    return f"MODEL {reason}, {len(held)} {'waits' if len(held) == 1 else 'wait'}"


def _solved(instance: InstanceState) -> bool:
    best = next((each for each in instance.attempts if each.attempt == instance.best), None)
    return best is not None and best.verdict is Verdict.CORRECT
