"""The home of an earlier version: unfinished sessions in `live/`, finished ones in git alone."""

from __future__ import annotations

import shutil

import pytest

from sessions import Home, fold, journal_of, list_sessions, record_at_rest
from sessions import events as ev
from sessions.errors import HomeNotWritable, SessionBusy
from sessions.files import FileLock
from sessions.journal.former_home import take_over
from tests.support.sessions import stored_sessions as stored
from tests.support.sessions.story import SESSION


@pytest.fixture
def former(copied_home: Home) -> Home:
    """Home with a finished session in git and a stopped one in `live/`."""
    shutil.rmtree(copied_home.files(SESSION).folder)
    stopped = copied_home.files(stored.stopped(copied_home))
    copied_home.former.unlink()
    copied_home.former.mkdir()
    stopped.folder.rename(copied_home.root / "live" / stopped.session)
    copied_home.sessions.rmdir()
    return copied_home


def test_sessions_of_an_earlier_version_are_taken_over(former: Home) -> None:
    assert take_over(former) == []
    assert [info.state for info in list_sessions(former)] == ["stopped", "finished"]
    assert fold(journal_of(former, SESSION).events).finished
    assert former.files(SESSION).stored
    record_at_rest(former, SESSION, ev.SessionTitled(title="mine"))
    assert {info.title for info in list_sessions(former)} >= {"mine"}
    assert "newer Wavedeck" in former.former.read_text()
    assert take_over(former) == []


def test_take_over_that_was_killed_goes_on(former: Home) -> None:
    [folder] = former.former.iterdir()
    (former.former / ".removed").mkdir()
    (former.former / ".DS_Store").touch()
    former.files(folder.name).folder.mkdir(parents=True)
    former.files(folder.name).lock.touch()
    assert take_over(former) == []
    former.former.unlink()  # killed before the file was written
    former.ensure()
    assert former.former.is_file(), "an earlier version stops here in a new home too"
    assert len(list_sessions(former)) == 2


def test_session_of_both_versions_stays_where_it_is(former: Home) -> None:
    [folder] = former.former.iterdir()
    shutil.copytree(folder, former.files(folder.name).folder)
    assert take_over(former) == [folder.name]
    assert folder.is_dir()
    assert len(list_sessions(former)) == 2


def test_session_that_an_earlier_version_runs_is_left_to_it(former: Home) -> None:
    [folder] = (former.root / "live").iterdir()
    lock = FileLock(folder / "lock")
    assert lock.acquire()
    assert take_over(former) == [folder.name]
    assert folder.is_dir()
    with pytest.raises(SessionBusy):
        journal_of(former, folder.name)
    lock.release()
    assert take_over(former) == []
    assert former.files(folder.name).has_journal


def test_home_that_cannot_be_written_is_named(former: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_arguments: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.rename", refused)
    with pytest.raises(HomeNotWritable, match="Permission denied"):
        take_over(former)
