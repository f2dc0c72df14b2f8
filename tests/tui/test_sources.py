"""A live tail hands over what is written, while it is written, and knows whether an engine is there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sessions import Home
from sessions.events import AnyEvent, DecisionMade
from sessions.files import FileLock
from sessions.fold import fold
from tests.support.journals import SESSION, append, finished, running, write_live
from tui.cockpit.feed import Feed
from tui.cockpit.sources import LiveTail

POLL_S = 0.005


@contextmanager
def watching(home: Home, **options: object) -> Iterator[Feed]:
    feed = Feed(LiveTail(home, SESSION, poll_s=POLL_S, **options))
    feed.source.start()
    try:
        yield feed
    finally:
        feed.source.close()


def drain_until(feed: Feed, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "never came true"
        feed.drain(time.monotonic())
        time.sleep(POLL_S)


def decided(events: list[AnyEvent]) -> DecisionMade:
    return DecisionMade(
        attempt="softmax#1/3", accepted=True, by="ada", seq=len(events) + 1, wall=events[-1].wall + 1
    )


def test_what_is_written_later_arrives_and_nothing_twice(home: Home) -> None:
    events = finished()
    journal = write_live(home, events[:40])
    with watching(home) as feed:
        drain_until(feed, lambda: feed.state.last_seq == 40)
        append(journal, events[40:])
        drain_until(feed, lambda: feed.state.last_seq == len(events))
        assert feed.state == fold(events)


def test_a_session_that_has_no_journal_yet_is_waited_for(home: Home) -> None:
    with watching(home) as feed:
        feed.drain(0.0)
        assert feed.state.started is None
        write_live(home, running())
        drain_until(feed, lambda: feed.state.started is not None)


def test_an_engine_that_is_gone_is_told_with_the_command_that_goes_on(home: Home) -> None:
    write_live(home, running())
    lock = FileLock(home.live(SESSION).lock)
    assert lock.acquire()
    with watching(home) as feed:
        drain_until(feed, lambda: feed.state.last_seq == len(running()))
        assert feed.trouble() == ""
        lock.release()
        drain_until(feed, lambda: feed.trouble() != "")
        assert f"wavedeck resume {SESSION}" in feed.trouble()
        assert feed.word().text == "engine gone"


def test_a_finished_session_is_no_trouble(home: Home) -> None:
    write_live(home, finished())
    with watching(home) as feed:
        drain_until(feed, lambda: feed.state.finished)
        assert feed.trouble() == ""


def test_a_torn_last_line_is_waited_for(home: Home) -> None:
    events = running()
    journal = write_live(home, events[:10])
    with watching(home) as feed:
        drain_until(feed, lambda: feed.state.last_seq == 10)
        whole = journal.read_bytes()
        append(journal, events[10:11])
        added = journal.read_bytes()[len(whole) :]
        journal.write_bytes(whole + added[:20])
        drain_until(feed, lambda: True)
        journal.write_bytes(whole + added)
        drain_until(feed, lambda: feed.state.last_seq == 11)
        assert feed.state.skipped_events == 0


def test_a_decision_that_only_the_store_knows_is_found(home: Home) -> None:
    events: list[AnyEvent] = finished()
    decision = decided(events)
    write_live(home, events)
    with watching(home, stored=lambda *_: [*events, decision]) as feed:
        drain_until(feed, lambda: feed.state.finished)
        assert feed.live is not None
        feed.live.look_again()
        drain_until(feed, lambda: feed.state.attempt("softmax#1/3").decision is not None)
        assert feed.state.last_seq == decision.seq


def test_a_store_that_cannot_be_read_is_said_and_read_again(home: Home) -> None:
    events: list[AnyEvent] = finished()
    broken = True

    def stored(*_: object) -> list[AnyEvent]:
        if broken:
            raise OSError(5, "Input/output error")
        return [*events, decided(events)]

    write_live(home, events)
    with watching(home, stored=stored) as feed:
        drain_until(feed, lambda: feed.state.finished)
        assert feed.live is not None
        live = feed.live
        live.look_again()
        drain_until(feed, lambda: live.health.error == "cannot read the store: Input/output error")
        broken = False
        drain_until(feed, lambda: feed.state.attempt("softmax#1/3").decision is not None)
        drain_until(feed, lambda: not live.health.error)


def test_a_decision_asked_for_while_another_one_holds_the_session_is_found_after_it(home: Home) -> None:
    events: list[AnyEvent] = finished()
    write_live(home, events)
    lock = FileLock(home.live(SESSION).lock)
    assert lock.acquire()
    with watching(home, stored=lambda *_: [*events, decided(events)]) as feed:
        drain_until(feed, lambda: feed.state.finished)
        assert feed.live is not None
        assert feed.live.health.running
        live = feed.live
        live.look_again()
        for _ in range(3):
            before = live.health
            drain_until(feed, lambda before=before: live.health is not before)  # type: ignore[misc]
        assert feed.state.attempt("softmax#1/3").decision is None
        lock.release()
        drain_until(feed, lambda: feed.state.attempt("softmax#1/3").decision is not None)
