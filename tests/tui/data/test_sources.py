"""Live tail of a session: it returns new events and knows if an engine runs."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from sessions import Home
from sessions.events import AnyEvent, DecisionMade, SessionExtended
from sessions.files import FileLock
from sessions.journal.codec import encode
from sessions.journal.file import compress_journal, expand_journal
from sessions.state.folding import fold
from tests.support.sessions.journals import SESSION, append, finished, running, write_live
from tests.support.waiting import wait_until
from tui.cockpit.data import sources
from tui.cockpit.data.feed import Feed
from tui.cockpit.data.sources import LiveTail

POLL_S = 0.005


@pytest.fixture(autouse=True)
def frequent_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a tail look ten times a second whether an engine runs."""
    monkeypatch.setattr(sources, "ALIVE_EVERY_S", 0.1)


@contextmanager
def watching(home: Home, **options: object) -> Iterator[Feed]:
    feed = Feed(LiveTail(home, SESSION, poll_s=POLL_S, **options))
    feed.source.start()
    try:
        yield feed
    finally:
        feed.source.close()


def drain_until(feed: Feed, condition: Callable[[], bool]) -> None:
    def drained() -> bool:
        feed.drain(time.monotonic())
        return condition()

    wait_until(drained, "the events", shown=lambda: f"event {feed.state.last_seq}", poll_s=POLL_S)


def decided(events: list[AnyEvent]) -> DecisionMade:
    return DecisionMade(
        attempt="softmax#1/3", accepted=True, by="ada", seq=len(events) + 1, wall=events[-1].wall + 1
    )


def test_later_events_arrive_once(home: Home) -> None:
    events = finished()
    journal = write_live(home, events[:40])
    with watching(home) as feed:
        drain_until(feed, lambda: feed.state.last_seq == 40)
        append(journal, events[40:])
        drain_until(feed, lambda: feed.state.last_seq == len(events))
        assert feed.state == fold(events)


def test_long_journal_is_read_no_faster_than_it_is_shown(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "PORTION_BYTES", 4000)
    monkeypatch.setattr(sources, "MOST_EVENTS", 20)
    events = finished()
    write_live(home, events)
    with watching(home) as feed:
        seen = 0
        while feed.state.last_seq < len(events):
            seen = max(seen, feed.live.behind)
            feed.drain(0.0)
            time.sleep(POLL_S)
        assert feed.state == fold(events)
        assert 20 < seen < len(events) // 2


def test_tail_waits_for_a_missing_journal(home: Home) -> None:
    with watching(home) as feed:
        feed.drain(0.0)
        assert feed.state.started is None
        write_live(home, running())
        drain_until(feed, lambda: feed.state.started is not None)


def test_missing_engine_is_reported_with_resume(home: Home) -> None:
    write_live(home, running())
    lock = FileLock(home.files(SESSION).lock)
    assert lock.acquire()
    with watching(home) as feed:
        drain_until(feed, lambda: feed.state.last_seq == len(running()))
        assert feed.trouble() == ""
        lock.release()
        drain_until(feed, lambda: feed.trouble() != "")
        assert f"wavedeck resume {SESSION}" in feed.trouble()


def test_finished_session_is_in_trouble_until_its_live_files_are_gone(home: Home) -> None:
    write_live(home, finished())
    with watching(home) as feed:
        drain_until(feed, lambda: feed.state.finished)
        drain_until(feed, lambda: feed.trouble() != "")
        assert feed.trouble().startswith("Finished, but not in the store.")
        assert f"wavedeck resume {SESSION}" in feed.trouble()
        shutil.rmtree(home.files(SESSION).folder)
        drain_until(feed, lambda: feed.trouble() == "")


def test_decision_about_a_session_that_was_finished_is_found(home: Home) -> None:
    events: list[AnyEvent] = finished()
    journal = write_live(home, events)
    with watching(home) as feed:
        drain_until(feed, lambda: feed.state.finished)
        compress_journal(journal)
        drain_until(feed, lambda: not feed.live.health.is_left)
        expand_journal(journal)
        with journal.open("ab") as file:
            file.write(encode(decided(events)) + b"\n")
        compress_journal(journal)
        drain_until(feed, lambda: feed.state.attempt("softmax#1/3").decision is not None)


def test_session_that_is_opened_again_elsewhere_goes_on(home: Home) -> None:
    events: list[AnyEvent] = finished()
    journal = write_live(home, events)
    with watching(home) as feed:
        drain_until(feed, lambda: feed.state.finished)
        journal.unlink()
        asked = SessionExtended(iterations=3, by="ada", seq=len(events) + 1, wall=events[-1].wall + 1)
        write_live(home, [*events, asked])
        drain_until(feed, lambda: not feed.state.finished)
        assert feed.state == fold([*events, asked])
