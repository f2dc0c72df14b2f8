"""Finds what is damaged in a store, and repairs it from what is still there: `wavedeck doctor --repair`.

No repair deletes anything: damaged files move to the folder `damaged` of the store, and commits are only added.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

from .catalog import journal_of, session_names
from .errors import SessionsError, StoreDamaged, StoredJournalDamaged
from .events import DecisionMade, DecisionUndone
from .files import write_whole
from .home import JOURNAL, Home, SessionFiles
from .journal.file import JournalFile
from .listing.info import ListedSession, Standing
from .store.reconcile import take_up
from .store.refs import PACKED, check_skeleton, mend_skeleton, read_packed
from .store.repository import HEADS, Commit
from .store.restoring import restore
from .store.store import ACCEPTED, Store, journal_branch

DAMAGED = "damaged"
"""Folder in the store for damaged files."""
SHA_LENGTH = 40
DIGEST_BYTES = 20


class Repair(NamedTuple):
    """One damage, and what can be done about it."""

    damage: str
    remedy: str
    """The step that `act` will take; without `act`, a step for a person."""
    act: Callable[[], None] | None = None


def repairs(home: Home) -> Iterator[Repair]:
    """Yield each damage of the home's store. Call `act` before the next one: the search goes on in the repaired store.

    Raises `StoreBroken` if the store is not a git repository at all.
    """
    if not home.store.exists() and not any(files.stored for files in home.session_folders()):
        return
    yield from _skeleton(home.store)
    with Store.of(home) as store:
        yield from _StoreRepairs(home, store).all()


def _skeleton(git_dir: Path) -> Iterator[Repair]:
    try:
        check_skeleton(git_dir)
    except StoreDamaged as error:

        def act() -> None:
            set_aside(git_dir, git_dir / "HEAD")
            if not (git_dir / "refs").is_dir():
                set_aside(git_dir, git_dir / "refs")
            mend_skeleton(git_dir)

        yield Repair(error.damage, "write HEAD as in a new store; branches and objects stay as they are", act)


def set_aside(git_dir: Path, path: Path) -> None:
    """Move a damaged file of the store, or a folder in its place, to the folder `damaged`; no effect if there is none."""
    folder = git_dir / DAMAGED
    folder.mkdir(mode=0o700, exist_ok=True)
    name = path.relative_to(git_dir).as_posix().replace("/", "-")
    taken = len(list(folder.iterdir()))
    if os.path.lexists(path):
        path.rename(folder / f"{name}.{taken}")


class _StoreRepairs:
    """The repairs of a store that git can open."""

    def __init__(self, home: Home, store: Store) -> None:
        self._home = home
        self._store = store
        self._git_dir = store.repository.git_dir
        self._incomplete: set[str] = set()
        """Sessions of which a branch was set aside."""

    def all(self) -> Iterator[Repair]:
        yield from self._pack_indexes()
        yield from self._objects()
        yield from self._packed_refs()
        yield from self._branches()
        is_accepted_lost = False
        for repair in self._accepted():
            is_accepted_lost = True
            yield repair
        for session in session_names(self._home):
            yield from self._session(session, redo_decisions=is_accepted_lost)

    # Files

    def _pack_indexes(self) -> Iterator[Repair]:
        for pack in sorted((self._git_dir / "objects" / "pack").glob("*.pack")):
            index = pack.with_suffix(".idx")
            if _has_checksum(index):
                continue

            def act(pack: Path = pack, index: Path = index) -> None:
                set_aside(self._git_dir, index)
                self._store.repository.index_pack(pack)

            yield Repair(f"the index {index} is lost or damaged", "write it again from its pack", act)

    def _objects(self) -> Iterator[Repair]:
        damaged = [path for path in _loose_objects(self._git_dir / "objects") if not _is_sound(path)]
        if damaged:

            def act() -> None:
                for path in damaged:
                    set_aside(self._git_dir, path)

            words = ", ".join(path.parent.name + path.name for path in damaged[:3])
            words += ", ..." if len(damaged) > 3 else ""
            yield Repair(
                f"objects that cannot be read: {len(damaged)} ({words})",
                f"move them to {self._git_dir / DAMAGED}; their sessions then write them again",
                act,
            )

    def _packed_refs(self) -> Iterator[Repair]:
        commits, unreadable = read_packed(self._git_dir)
        if not unreadable:
            return
        path = self._git_dir / PACKED

        def act() -> None:
            with self._store.repository.writing():
                set_aside(self._git_dir, path)
                header = "# pack-refs with: peeled fully-peeled sorted \n"
                lines = [f"{sha} {ref}\n" for ref, sha in sorted(commits.items())]
                write_whole(path, "".join([header, *lines]).encode(errors="surrogateescape"))

        yield Repair(f"{path} has lines that cannot be read", "keep its other lines", act)
        here = {*self._store.journals(), *(files.session for files in self._home.session_folders())}
        for session in sorted(self._journals.keys() - here):
            yield self._point(journal_branch(session), f"the branch {journal_branch(session)} is lost")
        if self._store.repository.read_ref(ACCEPTED) is None and self._newest("accepted"):
            yield self._point("accepted", "the branch accepted is lost")

    # Branches

    @cached_property
    def _commits(self) -> list[Commit]:
        return sorted(self._store.repository.all_commits(), key=lambda commit: commit.wall, reverse=True)

    @cached_property
    def _journals(self) -> dict[str, list[Commit]]:
        """Returns the commits of journals by session, newest first."""
        journals: dict[str, list[Commit]] = {}
        for commit in self._commits:
            session, colon, _ = commit.message.removeprefix("journal of ").partition(":")
            if colon and commit.message.startswith("journal of "):
                journals.setdefault(session, []).append(commit)
        return journals

    def _newest(self, branch: str) -> Commit | None:
        """Returns the newest commit that was on the branch and has all its objects."""
        if branch == "accepted":
            candidates = [
                commit
                for commit in self._commits
                if commit.message.startswith(("accept ", "withdraw ", "fetch "))
            ]
        else:
            candidates = self._journals.get(branch.removesuffix(f"/{JOURNAL}"), [])
        parents = {parent for commit in candidates for parent in commit.parents}
        tips_first = sorted(candidates, key=lambda commit: commit.sha in parents)
        return next((c for c in tips_first if self._store.repository.is_complete([c.sha])), None)

    def _branches(self) -> Iterator[Repair]:
        for ref in sorted(self._store.repository.branches().damaged - {PACKED, ACCEPTED}):
            branch = ref.removeprefix(HEADS)
            session, _, rest = branch.partition("/")
            damage = f"the branch {branch} is damaged: its file has no commit id"
            if rest == JOURNAL and not self._home.files(session).has_journal:
                yield self._point(branch, damage)
            else:
                self._incomplete.add(session)
                yield Repair(
                    damage,
                    "set its file aside; the branch is then written again from the session's journal",
                    partial(set_aside, self._git_dir, self._git_dir / ref),
                )

    def _point(self, branch: str, damage: str) -> Repair:
        newest = self._newest(branch)
        if newest is None:
            return Repair(damage, self._copy_words())

        def act() -> None:
            with self._store.repository.writing():
                set_aside(self._git_dir, self._git_dir / HEADS / branch)
                self._store.repository.write_ref(HEADS + branch, newest.sha)

        subject = newest.message.partition("\n")[0]
        return Repair(damage, f"point it at its newest whole commit, {newest.sha[:12]} ({subject})", act)

    def _copy_words(self) -> str:
        objects = self._git_dir / "objects"
        return f"only another copy of the store can have it, add the copy's objects: cp -rn COPY/objects/. {objects}/"

    def _accepted(self) -> Iterator[Repair]:
        repository = self._store.repository
        head = repository.read_ref(ACCEPTED)
        is_damaged = ACCEPTED in repository.branches().damaged
        if not is_damaged and (head is None or repository.is_complete([head])):
            return
        repair = self._point("accepted", f"the branch accepted is damaged or lost objects (it was at {head})")
        if repair.act is not None:
            yield repair._replace(remedy=f"{repair.remedy}; the sessions' journals then add later decisions")
            return

        def act() -> None:
            message = "the accepted kernels, written again"
            empty = repository.write_commit(repository.write_tree({}), parents=[], message=message, wall=0.0)
            with repository.writing():
                set_aside(self._git_dir, self._git_dir / ACCEPTED)
                repository.write_ref(ACCEPTED, empty)

        yield Repair(repair.damage, "begin it anew; the sessions' journals then add their decisions", act)

    # Sessions

    def _session(self, session: str, *, redo_decisions: bool) -> Iterator[Repair]:
        files = self._home.files(session)
        if files.running:
            return
        info = ListedSession(files).info()
        if files.stored and not _is_readable(files):
            act = self._restoring(files)
            yield Repair(
                f"the journal of {session} is damaged",
                self._copy_words() if act is None else "write it again from the store",
                act,
            )
            return
        if info is not None and info.state is Standing.DAMAGED:
            yield Repair(f"{session} is damaged", info.problem)
            return
        if not self._store.session_is_complete(session) or session in self._incomplete:
            damage, remedy = f"the store lost objects of {session}", "write them again from its journal"
        elif info is not None and files.stored and session not in self._store.journals():
            damage, remedy = f"the store lost {session}", "write it again from its journal"
        elif info is not None and info.state is Standing.UNSTORED:
            damage, remedy = f"{session} is finished, but not in the store", "bring it to the store"
        elif redo_decisions and self._has_decisions(session):
            damage = f"the branch accepted may lack decisions of {session}"
            remedy = "add them from its journal"
        else:
            return
        try:
            journal_of(self._home, session)
        except SessionsError as error:
            what = error.damage if isinstance(error, StoreDamaged) else str(error)
            yield Repair(f"the journal of {session} is damaged: {what}", self._copy_words())
            return
        yield Repair(damage, remedy, partial(write_again, self._home, session))

    def _restoring(self, files: SessionFiles) -> Callable[[], None] | None:
        """The repair of a compressed journal that cannot be read, if the store has all of it."""
        if files.session not in self._store.journals() or not self._store.session_is_complete(files.session):
            return None

        def act() -> None:
            files.stored_journal.rename(files.folder / "journal.damaged.gz")
            restore(self._store, files)

        return act

    def _has_decisions(self, session: str) -> bool:
        try:
            events = journal_of(self._home, session).events
        except SessionsError:
            return False
        return any(isinstance(event, DecisionMade | DecisionUndone) for event in events)


def write_again(home: Home, session: str) -> None:
    """Bring git in line with a session's journal."""
    with take_up(home, session) as recorder:
        recorder.now(recorder.put_down())


def _is_readable(files: SessionFiles) -> bool:
    try:
        with JournalFile(files.journal) as journal:
            journal.read(0, journal.size)
    except StoredJournalDamaged:
        return False
    except OSError:
        pass  # the list says why
    return True


def _loose_objects(objects: Path) -> Iterator[Path]:
    for folder in sorted(objects.glob("??")):
        # An engine that packs the store removes empty folders.
        with suppress(FileNotFoundError):
            yield from folder.iterdir()


def _is_sound(path: Path) -> bool:
    """True if a loose object's content has the id that its name says; also for files that are no objects."""
    sha = path.parent.name + path.name
    if len(sha) != SHA_LENGTH:
        return True
    try:
        content = zlib.decompress(path.read_bytes())
    except FileNotFoundError:
        return True
    except (OSError, zlib.error):
        return False
    return hashlib.sha1(content, usedforsecurity=False).hexdigest() == sha


def _has_checksum(index: Path) -> bool:
    """True if the file ends with the checksum of its content."""
    try:
        content = index.read_bytes()
    except OSError:
        return False
    end = len(content) - DIGEST_BYTES
    return hashlib.sha1(content[: max(end, 0)], usedforsecurity=False).digest() == content[max(end, 0) :]
