"""Header of every screen: what it keeps at which width, and what it says of unusual states."""

from __future__ import annotations

import pytest

from benchmarks.generated_session.eighty_instances import session
from harness import Verdict
from sessions import events as ev
from sessions.state.folding import fold
from sessions.state.state import InstanceState, SessionState
from tests.support.cockpit.stories import read_story
from tests.support.sessions import fleets, story
from tests.support.sessions.journals import EventLog
from tui.cockpit.data.feed import EVERYTHING, Feed
from tui.cockpit.data.replays import Replay
from tui.cockpit.data.sources import EventBatch, LiveTail, TailHealth
from tui.cockpit.draw.lines import EMPTY, Line, Span, cells, plain
from tui.cockpit.screens.agent.agent_head import head_line, head_tail
from tui.cockpit.screens.header import header_line, status_line
from tui.facts import vocabulary
from tui.facts.attention import ConcernKind, attention
from tui.facts.instance import FactsCache


def header(log: EventLog, width: int, *, status: Line = EMPTY) -> str:
    state, cache = fold(log.events), FactsCache()
    line = header_line(
        state, cache.all(state), name="20261120-140300-geak-5f0a", status=status,
        concerns=attention(state, now_wall=log.wall, health=None), width=width,
    )  # fmt: skip
    assert cells(line) <= width
    return plain(line)


def status(source: object, log: EventLog, *, readonly: bool = False, after_s: float = 0.0) -> str:
    feed = Feed(source)
    feed.state = fold(log.events)
    line = status_line(feed, readonly=readonly, can_act=not readonly, now_wall=log.wall + after_s, remarks=[])
    return plain(line)


class Tail(LiveTail):
    """A live tail that reads nothing."""

    def __init__(self, health: TailHealth) -> None:
        self.health = health

    behind = 0

    def take(self, now: float) -> EventBatch:
        return EventBatch()


RUNNING = Tail(TailHealth(running=True))


@pytest.mark.parametrize(
    ("width", "kept"),
    [
        (118, "13 attempts, 62 % correct  $0.52 of $50  ! 1 review  1 stuck  3 other"),
        (78, "2/5 solved  13 judged, 62 % C  $0.52/$50  ! 5"),
        (58, "2/5 solved  $0.52/$50  ! 5"),
        (32, "! 5"),
    ],
)
def test_header_drops_the_least_important_first(width: int, kept: str) -> None:
    text = header(fleets.busy(), width)
    assert text.startswith("paged-attn tuning")
    assert text.endswith(kept)


def test_all_screens_count_the_same_that_needs_a_person() -> None:
    log = EventLog(events=session())
    log.wall = log.events[-1].wall
    concerns = attention(fold(log.events), now_wall=log.wall, health=None)
    assert {ConcernKind.MODEL, ConcernKind.REVIEW} <= {concern.kind for concern in concerns}
    assert "20/20 solved" in header(log, 78)
    assert header(log, 78).endswith(f"! {len(concerns)}")
    assert plain(head_tail(EMPTY, concerns, 20)) == f"! {len(concerns)}"


def test_header_says_the_session_and_what_its_calls_cost() -> None:
    log = fleets.opened(title="", budget_usd=None, budget_tokens=10_000)
    fleets.judge(log, "softmax#1/1", fleets.measured(1.2), usd=None)
    assert header(log, 158).startswith("20261120-140300-geak-5f0a")
    assert "2.45k of 10k tokens" in header(log, 158)
    log = fleets.opened()
    fleets.judge(log, "softmax#1/1", fleets.measured(1.2), usd=0.5)
    fleets.judge(log, "softmax#1/2", fleets.measured(1.2), usd=None)
    assert "$0.50 of $50 + 1 call without a price" in header(log, 158)


def test_budget_is_shown_as_it_counts() -> None:
    log = fleets.opened(budget_usd=None, budget_tokens=100_000)
    name = "softmax#1/1"
    log.add(ev.AttemptStarted(attempt=name, origin=ev.Origin.FRESH))
    for call in (f"{name}/generator/{number}" for number in (1, 2, 3)):
        log.add(
            ev.CallStarted(
                call=call, attempt=name, role=ev.Role.GENERATOR, model="m", messages=(), most_tokens=32_116
            )
        )
    assert "0 of 100k tokens + 96.3k held" in header(log, 158)
    log.add(ev.CallRetried(call=call, reason="cut", message="", wait_s=1, retry=1, billed=True))
    log.add(ev.CallFailed(call=call, reason="gave_up", message="", billed=True))
    log.add(ev.CallFinished(call=f"{name}/generator/1", text="x"))
    assert "96.3k of 100k tokens + 32.1k held" in header(log, 158)


def test_unread_events_are_said() -> None:
    log = fleets.opened()
    state = fold(log.events)
    state.skipped_events = 3
    line = header_line(state, [], name="x", status=EMPTY, concerns=[], width=158)
    assert "3 events unread" in plain(line)


def test_long_status_is_cut_and_what_waits_stays() -> None:
    text = header(fleets.busy(), 78, status=(Span("ENGINE ENDED 0:40 ago: " + "x" * 90, "bad"),))
    assert "ENGINE ENDED 0:40 ago: xx" in text
    assert text.endswith("! 5")


def test_status_of_a_running_session_is_empty() -> None:
    assert status(RUNNING, fleets.busy()) == ""


def test_status_says_what_is_unusual() -> None:
    log = fleets.opened()
    assert status(RUNNING, log, readonly=True) == "READ-ONLY"
    assert status(Tail(TailHealth(running=True, error="no such file")), log) == "disconnected"
    crashed = status(Tail(TailHealth(running=False)), log, after_s=40.0)
    assert crashed == "ENGINE ENDED 0:40 ago: it crashed or was killed"
    log.add(ev.Paused(by="ada"))
    assert status(RUNNING, log) == "paused"
    log.add(ev.EngineStopped(reason="stopped by ada"))
    assert status(RUNNING, log, after_s=90.0) == "ENGINE ENDED 1:30 ago: stopped by ada"
    log.add(ev.SessionFinished())
    assert status(RUNNING, log) == "finished"
    assert status(Tail(TailHealth(running=True, reachable=True)), log, after_s=70.0) == "being stored, 1:10"


def test_clock_of_a_killed_engine_stays_where_it_was_last_seen() -> None:
    log = fleets.opened()
    tail = Tail(TailHealth(running=True))
    feed = Feed(tail)
    feed.state = fold(log.events)
    feed.drain(0.0, log.wall + 70.0)
    tail.health = TailHealth(running=False)
    feed.drain(2.0, log.wall + 72.0)
    line = status_line(feed, readonly=False, can_act=True, now_wall=log.wall + 73.0, remarks=[])
    assert plain(line) == "ENGINE ENDED 0:03 ago: it crashed or was killed"
    assert feed.end_wall == log.wall + 70.0


def test_killed_engine_leaves_no_instance_at_work() -> None:
    log = fleets.busy()
    tail = Tail(TailHealth(running=True))
    feed = Feed(tail)
    feed.state = fold(log.events)
    feed.drain(0.0, log.wall)
    assert {"generate", "judge", "review"} <= {facts.doing.state for facts in feed.facts.all(feed.state)}
    tail.health = TailHealth(running=False)
    assert EVERYTHING in feed.drain(2.0, log.wall + 2.0)
    states = {facts.doing.state for facts in feed.facts.all(feed.state)}
    assert states == {"stopped", "not decided", "done", "failed"}


def test_status_of_a_replay_is_its_moment() -> None:
    log = fleets.busy()
    replay = Replay(read_story("x", log.events), playing=False)
    replay.seek(len(log.events) // 2)
    feed = Feed(replay)
    feed.drain(0.0)
    text = plain(
        status_line(feed, readonly=True, can_act=False, now_wall=feed.state.last_wall or 0.0, remarks=[])
    )
    assert text.startswith("REPLAY 0:")
    assert " of 1:" in text


def test_clock_of_a_replay_is_the_session_s_clock() -> None:
    """A night between two engines counts in neither."""
    log = fleets.opened()
    log.add(ev.EngineStopped(reason="interrupted"), after_s=60.0)
    log.add(ev.EngineStarted(host="mi300x-07", pid=4242, resumed=True), after_s=10 * 3600.0)
    log.add(ev.EngineStopped(reason="interrupted"), after_s=20.0)
    replay = Replay(read_story("x", log.events), playing=False)
    replay.seek(len(log.events))
    worked = vocabulary.clock(fold(log.events).worked_s)
    assert status(replay, log) == f"REPLAY {worked} of {worked}, you can decide  stopped: interrupted"


def test_stop_in_a_replay_is_of_the_past() -> None:
    log = fleets.opened()
    log.add(ev.EngineStopped(reason="stopped by ada"), after_s=60.0)
    stopped = len(log.events)
    log.add(ev.EngineStarted(host="mi300x-07", pid=4242, resumed=True), after_s=10.0)
    log.add(ev.SessionFinished(), after_s=20.0)
    replay = Replay(read_story("x", log.events).with_marks(), playing=False)
    replay.seek(stopped)
    feed = Feed(replay)
    feed.drain(0.0)
    line = status_line(feed, readonly=True, can_act=False, now_wall=log.wall, remarks=[])
    assert plain(line).endswith("  a break here, resumed later")


def test_head_says_why_an_instance_ended_without_an_attempt() -> None:
    instance = InstanceState(
        "softmax#1", "starter/softmax", 1, finished="model_failed", message="key refused"
    )
    head = head_line(SessionState(), instance, "softmax#1", None, wall=0.0, width=80, facts=FactsCache())
    assert plain(head) == " softmax#1 · ended without an attempt: the model failed (key refused)"


def test_limit_of_attempts_counts_the_kernel_that_a_person_gave_besides_the_iterations() -> None:
    log = EventLog()
    log.open(iterations=2)
    log.attempt("softmax#1/1", story.KERNEL, story.evaluation(Verdict.CORRECT), origin=ev.Origin.HUMAN)
    for number in (2, 3):
        log.attempt(f"softmax#1/{number}", story.KERNEL, story.evaluation(Verdict.WRONG))
    state = fold(log.events)
    instance = state.instances["softmax#1"]
    head = head_line(
        state, instance, "softmax#1", instance.attempts[-1], wall=log.wall, width=120, facts=FactsCache()
    )
    assert "attempt 3 of 3 (limit 3)" in plain(head)
