"""Finds what is damaged in a store, and repairs it from what is still there: `wavedeck doctor --repair`.

Git is a projection of the journals. So a damaged store is replaced by a new one, with every session that git can still
read; the other sessions are written again from their journals. No repair deletes anything: the damaged store stays in
the folder `damaged` of the new one.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from .catalog import session_names
from .errors import RemoteUnusable, SessionsError, StoreBroken, StoreDamaged, StoredJournalDamaged
from .events import DecisionMade, DecisionUndone
from .files import locked, write_whole
from .git_environment import SETTINGS
from .home import Home, SessionFiles
from .journal.codec import decode
from .journal.file import JournalFile
from .listing.info import ListedSession, Standing
from .listing.skimming import starts_of
from .names import SESSION, split_attempt, split_instance
from .store.origin import OWN
from .store.reconcile import take_up
from .store.recorder import LOCK_WAIT_S
from .store.refs import PACKED, check_skeleton, mend_skeleton, read_packed, read_refs
from .store.repository import HEADS, Repository
from .store.restoring import restore
from .store.sharing import Remote
from .store.store import ACCEPTED, AcceptedKernel, Store, journal_branch

DAMAGED = "damaged"
"""Folder in a new store for the damaged one."""
ASIDE = ".damaged-"
"""In the name of a file that git cannot read; a number follows."""
JOURNAL_MESSAGE = re.compile(f"journal of ({SESSION.pattern}):")
"""Beginning of the message of a journal's commit."""
DECISIONS = starts_of((DecisionMade, DecisionUndone))


class Repair(NamedTuple):
    """One damage, and what can be done about it."""

    damage: str
    remedy: str
    """The step that `act` will take; without `act`, a step for a person."""
    act: Callable[[], None] | None = None


def repairs(home: Home) -> Iterator[Repair]:
    """Yield each damage of the home's store. Call `act` before the next one: the search goes on in the repaired store.

    Raises `StoreBroken` if the store is not a git repository at all, or if another process repairs it.
    """
    stores = (home.store, _new_store(home))
    if not any(path.exists() for path in stores) and not any(
        files.stored for files in home.session_folders()
    ):
        return
    with locked(home.repair_lock, wait_s=LOCK_WAIT_S) as got:
        if not got:
            raise StoreBroken(f"another process repairs {home.store}; run the repair again when it has ended")
        yield from _repairs(home)


def _repairs(home: Home) -> Iterator[Repair]:
    if not home.store.exists() and _new_store(home).exists():
        _new_store(home).rename(home.store)  # a repair was killed before its last step
    if damage := _damage(home.store):
        if running := [files.session for files in home.session_folders() if files.running]:
            yield Repair(damage, f"stop {', '.join(running)} first; then run the repair again")
            return
        remedy = (
            f"make a new store of all that git can still read, and keep this one in {home.store / DAMAGED}"
        )
        before = home.store.stat().st_ino
        yield Repair(damage, remedy, partial(_renew, home))
        if home.store.stat().st_ino == before:
            return  # it failed
        yield from _lost_sessions(home)
    with Store.of(home) as store:
        accepted = store.accepted()
        for session in session_names(home):
            yield from _session_repairs(home, store, session, accepted)


# The store


def _damage(git_dir: Path) -> str:
    """Return what is damaged in a store, in words; empty if git finds all objects and refs sound, or if there is no store."""
    if not git_dir.exists():
        return ""
    if _was_mended(git_dir):
        return f"a repair of the store {git_dir} was interrupted"
    try:
        check_skeleton(git_dir)
        return Repository(git_dir).problem()
    except StoreDamaged as error:
        return error.damage


def _renew(home: Home) -> None:
    """Put a new store in the place of the damaged one, which becomes a folder of it."""
    git_dir, new = home.store, _new_store(home)
    _set_aside(new)  # of a repair that was killed
    _make_readable(git_dir)
    has_lost_refs = _was_mended(git_dir)
    with (
        Store.of(home) as old,
        Store(Repository.create(new, lock=home.store_lock)) as store,
        Remote(new, str(git_dir), settings=(*SETTINGS, "fetch.fsckObjects=true")) as remote,
    ):
        _step_back(old)
        if has_lost_refs:
            _find_journals(home, old)
        refs = read_refs(git_dir, "refs")
        incomplete = {_session_of(ref) for ref in refs.damaged}
        for session, group in groupby(sorted(refs.commits, key=_session_of), key=_session_of):
            files = home.files(session)
            if files.stored and (session in incomplete or has_lost_refs):
                continue  # it is written again from its journal
            try:
                remote.fetch([f"{ref}:{ref}" for ref in group], lambda _line: None)
            except RemoteUnusable:
                if session in old.journals() and not files.has_journal:
                    with suppress(SessionsError):
                        restore(old, files)
        with store.repository.writing():
            with suppress(FileNotFoundError):
                shutil.copy(git_dir / "config", new)
            git_dir.rename(new / DAMAGED)
            new.rename(git_dir)


def _make_readable(git_dir: Path) -> None:
    """Let git open a damaged store; files that it cannot read are renamed."""
    commits, unreadable = read_packed(git_dir)
    if unreadable:
        _set_aside(git_dir / PACKED)
        header = "# pack-refs with: peeled fully-peeled sorted \n"
        lines = [f"{sha} {ref}\n" for ref, sha in sorted(commits.items())]
        write_whole(git_dir / PACKED, "".join([header, *lines]).encode(errors="surrogateescape"))
    try:
        check_skeleton(git_dir)
    except StoreDamaged:
        _set_aside(git_dir / "HEAD")
        if not (git_dir / "refs").is_dir():
            _set_aside(git_dir / "refs")
        mend_skeleton(git_dir)
    repository = Repository(git_dir)
    repository.index_packs()
    repository.close()


def _set_aside(path: Path) -> None:
    if os.path.lexists(path):
        path.rename(path.with_name(f"{path.name}{ASIDE}{time.time_ns()}"))


def _was_mended(git_dir: Path) -> bool:
    """True if a repair set a file of this store aside, so that refs may be lost."""
    return any(git_dir.glob(f"*{ASIDE}*"))


def _new_store(home: Home) -> Path:
    return home.store.with_name(f"{home.store.name}.repaired")


def _session_of(ref: str) -> str:
    """Return the session of a ref; a ref of none is alone."""
    if ref.startswith(OWN):
        return ref.rpartition("/")[2]
    return ref.removeprefix(HEADS).partition("/")[0] if ref.startswith(HEADS) else ref


def _step_back(store: Store) -> None:
    """Point `accepted` at its newest commit that has all its objects; the sessions' journals have later decisions."""
    repository = store.repository
    head = repository.read_ref(ACCEPTED)
    with suppress(StoreDamaged):
        for commit, _ in repository.history(head) if head else ():
            if repository.is_complete([commit]):
                with repository.writing():
                    repository.write_ref(ACCEPTED, commit)
                return


def _lost_sessions(home: Home) -> Iterator[Repair]:
    """Yield the sessions that the damaged store had, and that neither the new one nor a journal has."""
    with Store.read_only(home.store / DAMAGED) as damaged:
        lost = damaged.journals().keys() - session_names(home)
    for session in sorted(lost):
        remedy = (
            f"only another copy of the store can have it: wavedeck sessions fetch COPY/store.git {session}"
        )
        yield Repair(f"the journal of {session} is damaged", remedy)


def _find_journals(home: Home, store: Store) -> None:
    """Write the branch of each session that only git has, and that no branch reaches: lines of `packed-refs` are lost."""
    repository, here = store.repository, session_names(home)
    for commit in repository.dangling():
        with suppress(StoreDamaged):
            _, message = next(repository.history(commit))
            match = JOURNAL_MESSAGE.match(message)
            if match and match[1] not in here and repository.is_complete([commit]):
                with repository.writing():
                    repository.write_ref(HEADS + journal_branch(match[1]), commit)


# Sessions


def _session_repairs(
    home: Home, store: Store, session: str, accepted: Mapping[str, AcceptedKernel]
) -> Iterator[Repair]:
    files = home.files(session)
    info = ListedSession(files).info()
    if info is None or files.running:
        return
    is_stored = session in store.journals()
    if files.stored and not _is_readable(files):
        damage = f"the journal of {session} is damaged"
        if is_stored:
            yield Repair(damage, "write it again from the store", partial(_restore, store, files))
        else:
            yield Repair(
                damage, f"only another copy of the home can have it: copy it to {files.stored_journal}"
            )
        return
    if info.state is Standing.DAMAGED:
        yield Repair(f"{session} is damaged", info.problem)
        return
    if files.stored and not is_stored:
        damage, remedy = f"the store lost {session}", "write it again from its journal"
    elif info.state is Standing.UNSTORED:
        damage, remedy = f"{session} is finished, but not in the store", "bring it to the store"
    elif info.accepted and _lacks_decision(files, accepted):
        damage, remedy = f"the branch accepted lacks decisions of {session}", "add them from its journal"
    else:
        return
    yield Repair(damage, remedy, partial(write_again, home, session))


def _restore(store: Store, files: SessionFiles) -> None:
    files.stored_journal.rename(files.folder / "journal.damaged.gz")
    restore(store, files)


def _lacks_decision(files: SessionFiles, accepted: Mapping[str, AcceptedKernel]) -> bool:
    """True if this home accepted a kernel of the session, and the store has neither it nor one that was accepted later."""
    decisions: dict[str, DecisionMade | DecisionUndone] = {}
    with JournalFile(files.journal) as journal:
        for event in (decode(line) for line in journal.lines() if line.startswith(DECISIONS)):
            if isinstance(event, DecisionMade | DecisionUndone) and event.seq > files.last_fetched_decision:
                decisions[event.attempt] = event
    kept = {task: kernel.wall for task, kernel in accepted.items()}
    return any(
        isinstance(decision, DecisionMade)
        and decision.accepted
        and kept.get(split_instance(split_attempt(attempt).instance).task, -1.0) < decision.wall
        for attempt, decision in decisions.items()
    )


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
