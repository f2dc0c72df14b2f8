"""Paths of the home folder and of its sessions. Every command needs them, so nothing here imports the events."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from suites.privacy import make_private_folder

from .errors import HomeNotReadable, HomeNotWritable
from .files import is_locked, read_regular, write_whole

JOURNAL = "_journal"
"""Last part of the branch with a session's journal."""


def file_mark(path: Path) -> tuple[int, int, int]:
    """Returns numbers that change when the file at `path` does; zeros if there is none."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0, 0
    return status.st_ino, status.st_size, status.st_mtime_ns


DIGEST = re.compile("[0-9a-f]{64}")
"""SHA-256 of a text of the compiler; the journal of another home may have anything in its place."""
FETCHED = "fetched"
KEPT = ("journal.jsonl.gz", "summary.msgpack", "lock", "texts", FETCHED)
"""Files of a session that stay once it is finished; pieces of torn lines stay too."""


@dataclass(frozen=True, slots=True)
class SessionFiles:
    """The folder of a session: its journal, and what its engine needs."""

    folder: Path

    @property
    def session(self) -> str:
        """The session's name."""
        return self.folder.name

    @property
    def journal(self) -> Path:
        """The journal, to which events are added; a finished session has `stored_journal` in its place."""
        return self.folder / "journal.jsonl"

    @property
    def stored_journal(self) -> Path:
        """The compressed journal."""
        return self.folder / "journal.jsonl.gz"

    @property
    def has_journal(self) -> bool:
        """True if the journal is here, in either form. Raises `PermissionError`."""
        return self.journal.exists() or self.stored_journal.exists() or self.journal.exists()

    @property
    def stored(self) -> bool:
        """True if the session is finished and the store has all of it."""
        return self.stored_journal.exists() and not self.journal.exists()

    @property
    def journal_mark(self) -> tuple[int, int, int]:
        """Numbers that change when the journal does, in either form; zeros without one."""
        mark = file_mark(self.journal)
        return mark if any(mark) else file_mark(self.stored_journal)

    @property
    def summary(self) -> Path:
        """A cache of the facts that lists show (`sessions.listing.kept_summary`)."""
        return self.folder / "summary.msgpack"

    def note_fetched(self, last_decision: int, *, is_foreign: bool) -> None:
        """Note how far the session came from elsewhere: decisions up to this event are none of this home.

        `is_foreign` says that another home made the session, or went on with it.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(self.folder / FETCHED, f"{last_decision} {'foreign' if is_foreign else 'own'}\n".encode())

    @property
    def last_fetched_decision(self) -> int:
        """Number of the last decision that came with the session from elsewhere; 0 without one."""
        number = self._fetched_note().partition(" ")[0]
        return int(number) if number.isdecimal() else 0

    @property
    def is_foreign(self) -> bool:
        """True if another home made the session, or went on with it, when its journal came here."""
        return "foreign" in self._fetched_note()

    def _fetched_note(self) -> str:
        try:
            return (self.folder / FETCHED).read_text(errors="replace")
        except OSError:
            return ""

    @property
    def lock(self) -> Path:
        """An engine holds this lock for its whole life."""
        return self.folder / "lock"

    @property
    def plan(self) -> Path:
        """The checked plan, which an engine reads first."""
        return self.folder / "plan.json"

    @property
    def engine(self) -> Path:
        """The address of the engine: see `engine_info`."""
        return self.folder / "engine.json"

    @property
    def token(self) -> Path:
        """The token that every command must carry; only its owner can read it."""
        return self.folder / "token"

    @property
    def log(self) -> Path:
        """The engine's output."""
        return self.folder / "engine.log"

    @property
    def texts(self) -> Path:
        """The folder of the compiler's texts, as gzip; a file's name is the SHA-256 of its bytes."""
        return self.folder / "texts"

    def text(self, digest: str) -> bytes | None:
        """Returns a text of the compiler, as gzip; `None` if it is missing or has another digest."""
        try:
            data = read_regular(self.texts / digest) if DIGEST.fullmatch(digest) else b""
        except OSError:
            return None
        return data if hashlib.sha256(data).hexdigest() == digest else None

    def keep_texts(self, texts: Mapping[str, bytes]) -> None:
        """Write the compiler's texts, by their SHA-256, each once."""
        self.texts.mkdir(mode=0o700, exist_ok=True)
        for digest, text in texts.items():
            if not (self.texts / digest).exists():
                write_whole(self.texts / digest, text)

    @property
    def reachable(self) -> bool:
        """True if the engine, if one runs, has written its address and has not put the session away."""
        return self.engine.exists()

    @property
    def running(self) -> bool:
        """True if an engine holds the lock; a fact of the system, not a guess from a pid."""
        return is_locked(self.lock)

    def tidy(self) -> None:
        """Remove what only an engine needs."""
        for path in self.folder.iterdir():
            if path.name in KEPT or path.name.startswith("journal.torn-"):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    def delete(self) -> None:
        """Remove the folder in one visible step, and the remains of interrupted removals."""
        self.folder.rename(self.folder.with_name(f".{self.session}.gone-{secrets.token_hex(4)}"))
        for remains in self.folder.parent.glob(".*.gone-*"):
            # Another process may remove the same folder.
            shutil.rmtree(remains, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Home:
    """`$WAVEDECK_HOME`."""

    root: Path

    @property
    def store(self) -> Path:
        """The bare git repository of all sessions."""
        return self.root / "store.git"

    @property
    def store_lock(self) -> Path:
        """Held for each write of a ref."""
        return self.root / "store.lock"

    @property
    def repair_lock(self) -> Path:
        """Held while the store is repaired."""
        return self.root / "repair.lock"

    @property
    def store_key(self) -> Path:
        """The key below which the store marks the sessions that were made here (`sessions.store.origin`)."""
        return self.root / "store.key"

    @property
    def recordings(self) -> Path:
        """Recordings that people made."""
        return self.root / "recordings"

    @property
    def verifications(self) -> Path:
        """Results of `doctor --verify-gpu`, a file for each run."""
        return self.root / "verifications"

    @property
    def suites(self) -> Path:
        """The registry of suites that people added."""
        return self.root / "suites.toml"

    @property
    def judge_packages(self) -> Path:
        """Packages that the judge needs and a person's own Python lacks (`--python`), a folder for each version of Python."""
        return self.root / "judge-packages"

    def rows(self, session: str) -> Path:
        """Returns the file with the kept rows of a session (`sessions.metrics.row_cache`), whether it exists or not."""
        return self.root / "rows" / f"{session}.msgpack"

    @property
    def sessions(self) -> Path:
        """A folder for each session."""
        return self.root / "sessions"

    def session_mark(self, session: str) -> tuple[int, ...]:
        """Returns numbers that change when a session gets events; reads no file."""
        mark = self.files(session).journal_mark
        if any(mark):
            return mark
        branch = self.store / "refs" / "heads" / session / JOURNAL
        return (*file_mark(branch), *file_mark(self.store / "packed-refs"))

    def files(self, session: str) -> SessionFiles:
        """Returns the files of a session, whether they exist or not."""
        return SessionFiles(self.sessions / session)

    def session_folders(self) -> list[SessionFiles]:
        """Returns every session with a folder, by name; other folders are left out. Empty if the home does not exist.

        Raises `HomeNotReadable` if the home cannot be read, or is a file.
        """
        # Imported here: the help needs no names.
        from .names import SESSION

        try:
            folders = sorted(self.sessions.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise HomeNotReadable(self.root, why=error.strerror or str(error)) from error
        return [
            SessionFiles(folder) for folder in folders if SESSION.fullmatch(folder.name) and folder.is_dir()
        ]

    def ensure(self) -> None:
        """Create the missing folders, accessible only to their owner; a folder that exists keeps its mode.

        Raises `HomeNotWritable` if that, or a file in them, is refused.
        """
        try:
            os.fspath(self.root).encode()
        except UnicodeEncodeError as error:
            # Events and `engine.json` name files of the home, and JSON is UTF-8.
            raise HomeNotWritable(self.root, why="its path is not UTF-8") from error
        try:
            for folder in (self.sessions, self.recordings):
                make_private_folder(folder)
            with tempfile.TemporaryFile(dir=self.sessions) as file:
                file.write(b"\n")
        except OSError as error:
            raise HomeNotWritable(self.root, why=error.strerror or str(error)) from error


def home_from(environ: Mapping[str, str]) -> Home:
    """Returns the home folder by the environment; creates nothing.

    It is `$WAVEDECK_HOME`, else `$XDG_DATA_HOME/wavedeck`, else `~/.local/share/wavedeck`.
    """
    user_home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    named = environ.get("WAVEDECK_HOME")
    if named:
        rest = named.removeprefix("~/")
        return Home((user_home / rest if rest != named else Path(named)).absolute())
    data = environ.get("XDG_DATA_HOME")
    # The XDG specification says to ignore a relative path.
    base = Path(data) if data and Path(data).is_absolute() else user_home / ".local" / "share"
    return Home(base / "wavedeck")
