"""The header of every screen of a session: what it is, how far it is, what it cost, what waits for a person."""

from __future__ import annotations

from collections.abc import Sequence

from harness import Verdict
from sessions.state.speed import baseline_names
from sessions.state.state import SessionState
from sessions.state.winners import confirmed_tasks
from tui.cockpit.data.feed import Feed
from tui.cockpit.draw.lines import GAP, Line, Span, cells, clean, joined, plain
from tui.facts import vocabulary
from tui.facts.attention import Concern, ConcernKind, ended_words, model_trouble, summary
from tui.facts.instance import InstanceFacts
from tui.facts.settings_words import method_words

LONGEST_NAME = 40
RIGHT = ("solved", "attempts", "spent", "waits")
"""Parts at the right end."""
SHORTENED = (
    *("verified", "method", "model", "against", "spent", "attempts", "solved", "waits"),
    *("attempts", "attempts", "spent", "name", "time", "unread", "spent", "solved", "solved"),
)
"""Parts that take their next shorter form, in this order, until the line fits."""

Forms = list[Line]
"""One part of the header, in forms from the longest to the shortest; an empty form is left out."""


def header_line(
    state: SessionState,
    facts: Sequence[InstanceFacts],
    *,
    name: str,
    status: Line,
    concerns: Sequence[Concern],
    width: int,
    now_wall: float = 0.0,
    shows_time: bool = True,
) -> Line:
    """
    Return the session in one line of at most `width` cells; while an engine works, its clock goes on until `now_wall`.

    `shows_time` is False if `status` has the time: in a replay.
    `status` (engine ended, replay, read-only) stays to the last, with the name, the solved tasks and what waits.
    """
    started = state.started
    title = clean(state.title or name)
    solved = len({instance.task for instance in facts if instance.correct})
    tasks = len(started.tasks) if started is not None else 0
    parts: dict[str, Forms] = {
        "name": [(Span(_cut(title, LONGEST_NAME), "key"),), (Span(_cut(title, 17), "key"),)],
        "status": [status],
        "method": _forms(method_words(started.method, started.options) if started else ""),
        "model": _forms(started.model if started else ""),
        "against": _forms(_against(state, facts)),
        "verified": _forms("; ".join(dict.fromkeys(state.verification.values()))),
        "time": _forms(vocabulary.clock(state.worked_until(now_wall)) if started and shows_time else ""),
        "solved": _forms(_solved(state, solved, tasks), f"{solved}/{tasks} solved", f"{solved} solved")
        if tasks
        else [()],
        "attempts": [*_attempts(facts), ()],
        "spent": _forms(*_spent(state)),
        "unread": _forms(f"{state.skipped_events} events unread" if state.skipped_events else ""),
        "waits": _waits(concerns),
    }
    for name in SHORTENED:
        if cells(_joined(parts)) <= width:
            break
        if len(parts[name]) > 1:
            del parts[name][0]
    over = cells(_joined(parts)) - width
    if over > 0 and status:
        text = plain(status)
        parts["status"] = [(Span(_cut(text, max(8, len(text) - over)), status[0].style),)]
    right = _joined({name: parts[name] for name in RIGHT})
    left = _joined({name: forms for name, forms in parts.items() if name not in RIGHT})
    space = max(GAP if right else 0, width - cells(left) - cells(right))
    return (*left, Span(" " * space), *right) if right else left


def status_line(
    feed: Feed, *, readonly: bool, can_act: bool, now_wall: float, remarks: Sequence[Span]
) -> Line:
    """Return what is unusual about the session or the view: `ENGINE ENDED 0:40 ago: cause`, `READ-ONLY`, `paused`."""
    state, spans = feed.state, []
    replay, live = feed.replay, feed.live
    if replay is not None:
        end_s = replay.story.worked_s
        whole = f" of {vocabulary.clock(end_s)}" if end_s is not None else ""
        place = f"{vocabulary.clock(state.worked_until(now_wall))}{whole}"
        spans.append(Span(f"REPLAY {place}" + (", you can decide" if can_act else ""), "warn"))
    if readonly and replay is None:
        spans.append(Span("READ-ONLY", "warn"))
    if live is not None and live.health.error:
        spans.append(Span("disconnected", "bad"))
    if live is not None and live.health.starting:
        spans.append(Span("starting the engine", "busy"))
    away = live is not None and live.health.running and live.health.reachable
    if away and (state.finished or state.stopped is not None):
        spans.append(Span(vocabulary.putting_away(state.last_wall or now_wall, now_wall), "busy"))
    elif feed.is_unstored:
        spans.append(Span("finished, not in the store", "bad"))
    elif state.finished:
        spans.append(Span("finished", "dim"))
    elif replay is None and (feed.abandoned or state.stopped is not None):
        crashed = state.stopped is None
        words = ended_words(state, now_wall, crashed=crashed, end_wall=feed.end_wall)
        spans.append(Span(clean(words), "bad"))
    elif state.stopped is not None:
        went_on = replay is not None and (replay.story.worked_s or 0.0) > state.worked_s
        words = "a break here, resumed later" if went_on else f"stopped: {state.stopped}"
        spans.append(Span(clean(words), "dim"))
    elif "" in state.on_hold:
        spans.append(Span("paused", "warn"))
    elif not feed.is_over and (trouble := model_trouble(state, now_wall)):
        spans.append(Span(trouble, "bad"))
    return joined([(span,) for span in (*spans, *remarks)])


def _forms(*texts: str) -> Forms:
    return [*((Span(clean(text)),) for text in texts if text), ()]


def _against(state: SessionState, facts: Sequence[InstanceFacts]) -> str:
    if state.started is not None and state.started.against:
        return f"against {state.started.against}"
    bests = [instance.best for instance in facts if instance.best is not None]
    names = baseline_names(*(best.timed_evaluation for best in bests))
    if not names:
        return ""
    return "against the tasks' baselines" if "," in names else f"against {names}"


def _solved(state: SessionState, solved: int, tasks: int) -> str:
    confirmed = len(confirmed_tasks(state, state.tasks()) or ())
    return f"{solved}/{tasks} solved" + (f", {confirmed} confirmed" if confirmed else "")


def _attempts(facts: Sequence[InstanceFacts]) -> list[Line]:
    judged = sum(instance.judged for instance in facts)
    if not judged:
        return []
    share = f"{sum(instance.correct for instance in facts) / judged * 100:.0f} %"
    letter = vocabulary.letter(Verdict.CORRECT)
    attempts = vocabulary.counted(judged, "attempt")
    return [
        (Span(f"{attempts}, {share} correct"),),
        (Span(f"{judged:,} judged, {share} {letter}"),),
        (Span(f"{judged:,} judged"),),
    ]


def _spent(state: SessionState) -> list[str]:
    """Money, or tokens if no price is known, each with its cap; with a cap, as the budget counts."""
    started = state.started
    cap = None if started is None or started.budget_usd is None else started.budget_usd + state.added_usd
    counted, reserved = state.counted, state.total_reserved
    token_cap = started.budget_tokens if started is not None else None
    used = counted.tokens if token_cap else state.input_tokens + state.output_tokens
    limit = f" of {vocabulary.count(token_cap)}" if token_cap else ""
    tokens = f"{vocabulary.count(used)}{limit} tokens" if used or (token_cap and reserved.tokens) else ""
    if token_cap and reserved.tokens:
        tokens += f" + {vocabulary.count(reserved.tokens)} held"
    if state.cost_usd is None and cap is None:
        return [tokens, tokens]
    money = vocabulary.money(state.cost_usd if cap is None else counted.usd)
    unpriced = (
        f" + {vocabulary.counted(state.unpriced_calls, 'call')} without a price"
        if state.unpriced_calls
        else ""
    )
    if cap is not None and reserved.usd:
        unpriced += f" + {vocabulary.money(reserved.usd)} held"
    long = f"{money} of {_dollars(cap)}{unpriced}" if cap is not None else f"{money}{unpriced}"
    short = f"{money}/{_dollars(cap)}" if cap is not None else money
    return [f"{tokens}  {long}" if token_cap else long, short]


def _dollars(usd: float) -> str:
    return f"${usd:,.0f}" if usd == int(usd) else vocabulary.money(usd)


def _waits(concerns: Sequence[Concern]) -> Forms:
    """`! 2 reviews  1 stuck`, or `! 3`: as many as Fleet's Next lists."""
    if not concerns:
        return [()]
    style = "warn" if any(concern.kind is ConcernKind.REVIEW for concern in concerns) else concerns[0].style
    return [(Span(f"! {summary(concerns)}", style),), (Span(f"! {len(concerns)}", style),)]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _joined(parts: dict[str, Forms]) -> Line:
    return joined([forms[0] for forms in parts.values()])
