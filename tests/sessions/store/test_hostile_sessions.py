"""Sessions of a stranger, read by this home: no name leaves the home, and no size fills its memory."""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec
import pytest

from sessions import Home, fold, journal_of, list_sessions, record_at_rest
from sessions.catalog import delete_session
from sessions.errors import BadRecording, SessionsError, StoreDamaged
from sessions.events import SessionTitled
from sessions.journal.codec import BadLine, decode
from sessions.recording import write_recording
from sessions.store import repository
from sessions.store.sharing import fetch_sessions
from sessions.store.store import Store
from tests.support.sessions import stored_sessions as stored
from tests.support.sessions.story import stored_events

NAME = stored.FIRST


def begun(**fields: object) -> bytes:
    """The first line of a session with these fields; the others are usual."""
    usual = {
        "type": "session_started", "seq": 1, "session": NAME, "method": "geak", "model": "openai:x", "seed": 1,
        "tasks": ["starter/softmax"], "instances": 1, "iterations": 1, "devices": ["cpu"], "targets": [],
        "review": "auto",
    }  # fmt: skip
    return json.dumps(usual | fields, separators=(",", ":")).encode()


def test_line_of_these_tests_is_an_event() -> None:
    assert not isinstance(decode(begun()), BadLine)


@pytest.mark.parametrize(
    "line",
    [
        begun(tasks=["../../../x"]),
        begun(tasks=["starter/.hidden"]),
        begun(tasks=["starter//softmax"]),
        begun(tasks=["/etc/softmax"]),
        begun(tasks=["starter/soft\u202emax"]),
        begun(tasks=["starter/soft\x1b[2Jmax"]),
        begun(tasks=["starter/softmax\n"]),
        begun(tasks=["starter/" + "a" * 5000]),
        begun(session="../../x"),
        begun(schema=99999),
        begun(schema=-1),
        begun(wall=1e300),
        begun(wall=-1.0),
        begun(instances=10**12),
        begun(iterations=-1),
        b'{"type":"instance_started","seq":2,"task":"../../../x","instance":1}',
        b'{"type":"attempt_started","seq":2,"attempt":"../../x#1/1","origin":"fresh"}',
        b'{"type":"attempt_started","seq":2,"attempt":"softmax#1/1","origin":"fresh","base":"../x#1/1"}',
        b'{"type":"attempt_started","seq":2,"attempt":"softmax#1/../../1","origin":"fresh"}',
        b'{"type":"attempt_committed","seq":2,"attempt":"softmax#1/1","branch":"x","commit":"refs/heads/accepted"}',
        b'{"type":"call_failed","seq":2,"call":"softmax#1/1/../x/1","reason":"x","message":"x"}',
        b'{"type":"notice","seq":2,"level":"info","message":' + b"[" * 200_000,
        b'{"type":"newer_event","seq":2,"x":' + b"[" * 200_000,
        b'{"type":"notice","seq":2,"level":"info","message":"\xff"}',
    ],
    ids=lambda line: f"{line[:30]!r}{zlib.crc32(line)}",
)
def test_line_with_a_name_or_number_that_nobody_writes_is_a_bad_line(line: bytes) -> None:
    event = decode(line)
    assert isinstance(event, BadLine)
    assert "regex" not in event.why


def fetched(home: Home, tmp_path: Path, files: dict[str, bytes], lines: bytes = begun() + b"\n") -> None:
    """Fetch a session with these files and lines on its journal branch."""
    sender = Home(tmp_path / "sender")
    sender.ensure()
    with Store.of(sender) as store:
        store.extend_journal(NAME, {"journal/00000001.jsonl": lines} | files, message="made up", wall=0.0)
    fetch_sessions(home, str(sender.store), on_progress=lambda _: None)


def test_recording_of_a_fetched_session_stays_in_its_folder(home: Home, tmp_path: Path) -> None:
    lines = b"".join(
        msgspec.json.encode({"type": tag, "seq": number} | fields) + b"\n"
        for number, (tag, fields) in enumerate(
            [
                ("instance_started", {"task": "../../../../escaped", "instance": 1}),
                ("attempt_started", {"attempt": "../../../../escaped#1/1", "origin": "fresh"}),
                ("call_started", {"call": "../../../../escaped#1/1/generator/1", "attempt": "../../../../escaped#1/1",
                                  "role": "generator", "model": "x", "messages": []}),
                ("call_finished", {"call": "../../../../escaped#1/1/generator/1", "text": "x", "stop_reason": "end",
                                   "usage": {}, "seconds": 1.0}),
            ],
            start=2,
        )
    )  # fmt: skip
    fetched(home, tmp_path, {}, begun() + b"\n" + lines)
    with pytest.raises(BadRecording):
        write_recording([fold(journal_of(home, NAME).events)], "mine", home.recordings)
    assert not list(tmp_path.rglob("escaped*"))


def test_odd_files_of_a_fetched_session_are_no_segments(home: Home, tmp_path: Path) -> None:
    deep = b"[" * 200_000
    files = {
        "journal/x.jsonl": b"no",
        "journal/-1.jsonl": b"no",
        "journal/1/2.jsonl": b"no",
        "summary.json": deep,
        "session.json": b"\xff",
    }
    fetched(home, tmp_path, files)
    assert len(journal_of(home, NAME).events) == 1
    assert [info.name for info in list_sessions(home)] == [NAME]


@pytest.mark.parametrize("most", ["file", "journal", "files"])
def test_size_of_a_fetched_session_is_bounded(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: str
) -> None:
    same = begun() + b"\n"
    big = b"\0" * 4000 if most == "file" else same
    fetched(home, tmp_path, {f"journal/{number}.jsonl": big for number in range(2, 9)})
    from sessions.store import store as store_module

    monkeypatch.setattr(repository, "MOST_BYTES", 3000 if most == "file" else 1 << 20)
    monkeypatch.setattr(store_module, "MOST_BYTES", 3000 if most == "file" else len(same) * 3)
    monkeypatch.setattr(repository, "MOST_FILES", 4 if most == "files" else 100)
    with pytest.raises(StoreDamaged):
        journal_of(home, NAME)


def test_pieces_of_a_fetched_journal_with_odd_numbers_go_on_in_git_as_here(
    home: Home, tmp_path: Path
) -> None:
    end = b'{"type":"session_finished","seq":2}\n'
    fetched(home, tmp_path, {"journal/99999999999999999999.jsonl": end})
    record_at_rest(home, NAME, SessionTitled(title="mine"))
    assert home.files(NAME).stored
    with Store.of(home) as store:
        assert [event.seq for event in stored_events(store, NAME)] == [1, 2, 3]


def test_fetched_journal_with_a_torn_end_goes_on_in_git_as_here(home: Home, tmp_path: Path) -> None:
    fetched(
        home, tmp_path, {}, begun() + b'\n{"type":"notice","seq":2,"level":"info","message":"' + b"x" * 9000
    )
    for title in ("mine", "ours"):
        record_at_rest(home, NAME, SessionTitled(title=title))
        with Store.of(home) as store:
            assert b"".join(store.session_lines(NAME)) == home.files(NAME).journal.read_bytes()


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def dangling_link(path: Path) -> None:
    path.symlink_to("/nowhere/at/all")


@pytest.mark.parametrize("trick", [pipe, link_to_zeros, link_to_itself, dangling_link, Path.mkdir])
@pytest.mark.parametrize(
    "name", ["journal.jsonl", "journal.jsonl.gz", "summary.msgpack", "lock", "fetched", ""]
)
def test_odd_file_in_a_sessions_folder_is_one_line_and_no_wait(
    home: Home, name: str, trick: Callable[[Path], None]
) -> None:
    folder = home.files(stored.finished(home)).folder
    if not name:
        shutil.rmtree(folder)
    else:
        (folder / name).unlink(missing_ok=True)
    trick(folder / name)
    title = partial(record_at_rest, home, NAME, SessionTitled(title="mine"))
    for act in (
        partial(list_sessions, home),
        partial(journal_of, home, NAME),
        title,
        partial(delete_session, home, NAME),
    ):
        with suppress(SessionsError):
            act()
