"""Rows of a session from its file: right after each change of the journal, and folded once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness import Verdict
from sessions import Home
from sessions.catalog import delete_session, journal_of
from sessions.errors import NoSuchSession
from sessions.metrics.attempt_row import attempt_rows
from sessions.metrics.row_cache import rows_of_session
from sessions.state.folding import fold
from sessions.state.state import Confirmation
from tests.support.sessions import stored_sessions, story


@contextmanager
def hidden(path: Path) -> Iterator[None]:
    """Make a reading of the path fail for a while."""
    aside = path.rename(path.with_name("hidden"))
    yield
    aside.rename(path)


def test_rows_of_a_stored_session_need_its_journal_once(copied_home: Home) -> None:
    expected = list(attempt_rows(fold(journal_of(copied_home, story.SESSION).events)))
    assert rows_of_session(copied_home, story.SESSION) == expected
    with hidden(copied_home.store / "objects"):
        assert rows_of_session(copied_home, story.SESSION) == expected


def test_rows_follow_a_live_session_into_the_store(home: Home) -> None:
    recorder = stored_sessions.begin(home)
    for number, verdict in enumerate([Verdict.WRONG, Verdict.CORRECT], 1):
        stored_sessions.attempt(recorder, number, verdict)
        recorder.now(recorder.flush())
        assert len(rows_of_session(home, stored_sessions.FIRST)) == number
    stored_sessions.examine(recorder, 2, Verdict.WRONG)
    stored_sessions.finish(recorder)
    assert rows_of_session(home, stored_sessions.FIRST)[1].confirmation is Confirmation.NOT_CONFIRMED


@pytest.mark.parametrize("damage", [b"", b"\x93\x01\x02\x03", b"{}"])
def test_damaged_file_is_made_again(copied_home: Home, damage: bytes) -> None:
    rows = rows_of_session(copied_home, story.SESSION)
    file = copied_home.rows(story.SESSION)
    whole = file.read_bytes()
    file.write_bytes(damage)
    assert rows_of_session(copied_home, story.SESSION) == rows
    assert file.read_bytes() == whole


def test_rows_of_another_schema_are_made_again(copied_home: Home) -> None:
    rows = rows_of_session(copied_home, story.SESSION)
    file = copied_home.rows(story.SESSION)
    whole = file.read_bytes()
    key = whole[whole.index(b"key") + 5 :][:16]
    file.write_bytes(whole.replace(key, b"0" * 16).replace(b"softmax", b"softmin"))
    assert rows_of_session(copied_home, story.SESSION) == rows


def test_home_that_cannot_keep_rows_still_gives_them(copied_home: Home) -> None:
    (copied_home.root / "rows").write_text("a file, where the folder of the rows would be")
    assert len(rows_of_session(copied_home, story.SESSION)) == 6


def test_deleted_session_leaves_no_rows(copied_home: Home) -> None:
    rows_of_session(copied_home, story.SESSION)
    delete_session(copied_home, story.SESSION)
    assert not copied_home.rows(story.SESSION).exists()
    with pytest.raises(NoSuchSession):
        rows_of_session(copied_home, story.SESSION)
