"""Keeps the rows of each session in a file of the home, so that a report folds a journal only once.

The files may be deleted at any time. Nothing else in the home depends on them.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress

import msgspec

from sessions.catalog import session_state
from sessions.files import write_whole
from sessions.home import Home
from sessions.store.restoring import session_journal
from suites.privacy import make_private_folder

from .attempt_row import AttemptRow, attempt_rows

MEANING = 1
"""Raise it if a field of a row, or the rank behind `place`, gets another meaning without another type."""
SCHEMA = hashlib.sha256(
    repr((MEANING, [(field.name, field.type) for field in msgspec.structs.fields(AttemptRow)])).encode()
).hexdigest()[:16]


class _Kept(msgspec.Struct, frozen=True):
    key: str
    """Version of the journal, and schema of the rows."""
    rows: list[AttemptRow]


_DECODER: msgspec.msgpack.Decoder[_Kept] = msgspec.msgpack.Decoder(_Kept)


def rows_of_session(home: Home, session: str) -> list[AttemptRow]:
    """Returns the rows of a session's judged attempts; folds its journal only if it changed since the last call.

    Raises `NoSuchSession`, `JournalNotReadable` or `StoreBroken`, as `session_state` does. A home that cannot be written
    costs only time.
    """
    session_journal(home, session).close()  # from here on it has a journal of its own
    file, key = home.rows(session), _key(home, session)
    with suppress(OSError, msgspec.DecodeError, msgspec.ValidationError):
        kept = _DECODER.decode(file.read_bytes())
        if key and kept.key == key:
            return kept.rows
    rows = list(attempt_rows(session_state(home, session)))
    if key:
        with suppress(OSError):
            make_private_folder(file.parent)
            write_whole(file, msgspec.msgpack.encode(_Kept(key, rows)), mode=0o600)
    return rows


def _key(home: Home, session: str) -> str:
    """Empty if the session has no journal of its own."""
    mark = home.files(session).journal_mark
    return f"{SCHEMA} {mark}" if any(mark) else ""
