"""The git store: branches for instances, journals and accepted kernels; one commit per attempt.

docs/data.md defines the layout, and says how to read it with plain git. All functions block, so
an event loop calls them through `asyncio.to_thread`.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec

from harness import Verdict
from harness.wire.limits import memory_words
from sessions.errors import NoSuchSession, StoreDamaged
from sessions.home import JOURNAL, Home
from sessions.names import SESSION, split_instance
from sessions.settings import SCHEMA, Schema

from .attempt_commits import trailers_of, with_trailers
from .loose_objects import SYNCS
from .origin import home_key, own_ref
from .repository import HEADS, MOST_BYTES, Repository

SEGMENT = re.compile(r"journal/[0-9]{1,20}\.jsonl")
TEXT = re.compile(r"texts/([0-9a-f]{64})\.gz")
ACCEPTED = "refs/heads/accepted"


class AcceptedKernel(msgspec.Struct, frozen=True, kw_only=True):
    """`decision.json` beside an accepted kernel."""

    schema: Schema = SCHEMA
    session: str
    attempt: str
    commit: str
    why: str
    by: str
    wall: float
    """Seconds since the epoch, UTC."""
    verdict: Verdict


ACCEPTED_KERNEL: msgspec.json.Decoder[AcceptedKernel] = msgspec.json.Decoder(AcceptedKernel)


class NewCommit(NamedTuple):
    """A commit to be written to a branch."""

    branch: str
    files: Mapping[str, bytes]
    parents: Sequence[str]
    message: str
    wall: float
    """Seconds since the epoch, UTC."""


class DecisionCommit(NamedTuple):
    """A commit of the branch `accepted`."""

    commit: str
    accepts: bool
    """False if it withdraws."""
    task: str
    attempt: tuple[str, str]
    """Session and attempt."""


def attempt_branch(session: str, instance: str) -> str:
    """Returns the branch `<session>/<suite>/<task>/<instance>` for an instance's key."""
    task, number = split_instance(instance)
    return f"{session}/{task}/{number}"


def journal_branch(session: str) -> str:
    """Returns the branch of a session's journal."""
    return f"{session}/{JOURNAL}"


def segment_name(first_seq: int) -> str:
    """Returns the path of the piece that begins with this event."""
    return f"journal/{first_seq:08d}.jsonl"


def text_path(digest: str) -> str:
    """Returns the path of a text of the compiler in a `_journal` tree."""
    return f"texts/{digest}.gz"


def segments_of(tree: Mapping[str, str]) -> list[str]:
    """Returns the paths of the journal's segments in a `_journal` tree, in order."""
    return sorted(filter(SEGMENT.fullmatch, tree), key=lambda path: int(path[8:-6]))


def texts_of(tree: Mapping[str, str]) -> dict[str, str]:
    """Returns the id of each text of the compiler in a `_journal` tree, by the text's digest."""
    return {match[1]: sha for path, sha in tree.items() if (match := TEXT.fullmatch(path))}


class Store:
    """The store of a home, or a bare clone of it (read only)."""

    def __init__(self, repository: Repository, home: Home | None = None) -> None:
        self.repository = repository
        self._home = home
        """`None` if the store is only read."""
        self._key = home_key(home, repository) if home is not None else ""
        """Key of the home (`origin`)."""

    @classmethod
    def of(cls, home: Home) -> Store:
        """Open the home's store; creates it if needed."""
        repository = Repository.create(home.store, lock=home.store_lock)
        return cls(repository, home)

    @classmethod
    def read_only(cls, path: Path) -> Store:
        """Open a store or a bare clone of it, at any path."""
        return cls(Repository(path))

    def close(self) -> None:
        """End the reading processes."""
        self.repository.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # Reading

    def heads(self) -> dict[str, str]:
        """Returns the commit of each branch."""
        commits = self.repository.branches().commits
        return {ref.removeprefix(HEADS): sha for ref, sha in commits.items()}

    def journals(self) -> dict[str, str | None]:
        """Returns the commit of each session's journal by session, oldest first; `None` if its branch is damaged."""
        damaged = {ref.removeprefix(HEADS): None for ref in self.repository.branches().damaged}
        branches: dict[str, str | None] = {**damaged, **self.heads()}
        suffix = f"/{JOURNAL}"
        return {
            branch.removesuffix(suffix): commit
            for branch, commit in sorted(branches.items())
            if branch.endswith(suffix) and SESSION.fullmatch(branch.removesuffix(suffix))
        }

    def session_tree(self, session: str) -> dict[str, str]:
        """Returns the ids of the files on the session's `_journal` branch, by path.

        Raises `NoSuchSession` if there is none.
        """
        return self.repository.read_tree(self._journal_head(session))

    def _journal_head(self, session: str) -> str:
        sha = self._head(journal_branch(session))
        if sha is not None:
            return sha
        if session in self.journals():
            branch = journal_branch(session)
            raise StoreDamaged(f"the store's branch {branch} is damaged: its file has no commit id")
        raise NoSuchSession(session)

    def segments(self, session: str) -> list[tuple[str, int]]:
        """Returns id and size of each piece of the journal, in order. Raises `NoSuchSession` or `StoreDamaged`."""
        tree = self.session_tree(session)
        return [(tree[path], self.repository.size_of(tree[path])) for path in segments_of(tree)]

    def session_lines(self, session: str, *, commit: str | None = None) -> Iterator[bytes]:
        """Return the lines of the journal at a commit of its branch, by default the newest; one piece is in memory at a time.

        Raises `StoreDamaged` after `MOST_BYTES`: each piece may be the same file.
        """
        tree = self.repository.read_tree(commit or self._journal_head(session))
        size = 0
        for path in segments_of(tree):
            data = self.repository.read_file(tree[path])
            size += len(data)
            if size > MOST_BYTES:
                raise StoreDamaged(f"the journal of {session} has more than {memory_words(MOST_BYTES)}")
            yield from io.BytesIO(data)

    def _head(self, branch: str) -> str | None:
        return self.repository.read_ref(HEADS + branch)

    # Origin

    def is_own(self, session: str) -> bool:
        """True if this home made all of a session's journal, or a person trusted it; also if only a journal file has it."""
        head, mark = self._head(journal_branch(session)), self.repository.read_ref(self._own_ref(session))
        if head is None:
            return self._home is None or not self._home.files(session).is_foreign
        return mark is not None and (mark == head or self.repository.is_ancestor(head, mark))

    def trust(self, session: str) -> None:
        """Mark a session as made here, up to the last event that the store has."""
        with self.repository.writing():
            self.repository.write_ref(self._own_ref(session), self._journal_head(session))

    def _own_ref(self, session: str) -> str:
        return own_ref(self._key, session)

    # Writing

    def commit_all(self, new: Sequence[NewCommit]) -> list[str]:
        """Commit to several branches with one wait for the disk; returns the ids in order.

        Durable; without effect on a branch that already has its commit.
        """
        repository = self.repository
        shas = [
            repository.add_commit(
                repository.write_tree(repository.write_files(commit.files)),
                parents=commit.parents,
                message=commit.message,
                wall=commit.wall,
            )
            for commit in new
        ]
        repository.sync_added()

        def point(branch: str, sha: str) -> None:
            if repository.read_ref(HEADS + branch) != sha:
                repository.write_ref(HEADS + branch, sha)

        with repository.writing(), ThreadPoolExecutor(max_workers=SYNCS) as pool:
            for _ in pool.map(point, [commit.branch for commit in new], shas):
                pass
        return shas

    def extend_journal(self, session: str, files: Mapping[str, bytes], *, message: str, wall: float) -> str:
        """Add files to the branch `_journal`, a piece of the journal among them, unless it has them; returns its commit."""
        written = self.repository.write_files(files)
        with self.repository.writing():
            head = self._head(journal_branch(session))
            tree = self.repository.read_tree(head) if head else {}
            if head and tree | written == tree:
                return head
            commit = self.repository.write_commit(
                self.repository.write_tree(tree | written),
                parents=[head] if head else [],
                message=message,
                wall=wall,
            )
            self._point_journal(session, commit, own=self.is_own(session))
        return commit

    def adopt(self, session: str, branches: Mapping[str, str], *, keeps_journal: bool) -> bool:
        """Point a session's branches at commits that were written anew; returns True if that includes `_journal`.

        With `keeps_journal`, the history of `_journal` stays if it is whole: it may have been pushed. A further branch that lost
        objects goes: a kill came before its first event, and its attempt is committed again.
        """
        own, branch = self.is_own(session), journal_branch(session)
        with self.repository.writing():
            heads = self.repository.branches().commits
            further = {ref for ref in heads if ref.startswith(f"{HEADS}{session}/")} - {
                HEADS + name for name in branches
            }
            self.repository.delete_refs(
                [ref for ref in further if not self.repository.is_complete([heads[ref]])]
            )
            head = self.repository.read_ref(HEADS + branch)
            keeps = keeps_journal and head is not None and self.repository.is_complete([head])
            for name in branches.keys() - {branch}:
                self.repository.write_ref(HEADS + name, branches[name])
            if not keeps and branch in branches:
                self._point_journal(session, branches[branch], own=own)
        return not keeps

    def _point_journal(self, session: str, commit: str, *, own: bool) -> None:
        if own:
            # Before the branch: a kill in between must not make the session foreign.
            self.repository.write_ref(self._own_ref(session), commit)
        self.repository.write_ref(HEADS + journal_branch(session), commit)

    def session_is_complete(self, session: str, commits: Sequence[str] = ()) -> bool:
        """True if all that the session's branches and `commits` reach is here; one git process."""
        refs = self.repository.branches()
        prefix = f"{HEADS}{session}/"
        heads = [sha for ref, sha in refs.commits.items() if ref.startswith(prefix)]
        is_damaged = any(ref.startswith(prefix) for ref in refs.damaged)
        return not is_damaged and self.repository.is_complete([*heads, *commits])

    # Accepted kernels

    def accepted(self) -> dict[str, AcceptedKernel]:
        """Returns the accepted kernels by full task name."""
        head = self._head("accepted")
        return self._accepted_at(head) if head else {}

    def accepted_source(self, task: str) -> str:
        """Returns the accepted kernel of a task (full name); `KeyError` if there is none."""
        head = self._head("accepted")
        tree = self.repository.read_tree(head) if head else {}
        return self.repository.read_file(tree[f"{task}/kernel.py"]).decode("utf-8", "replace")

    def _accepted_at(self, commit: str) -> dict[str, AcceptedKernel]:
        kernels = {}
        for path, sha in self.repository.read_tree(commit).items():
            task, _, name = path.rpartition("/")
            if name == "decision.json":
                kernels[task] = ACCEPTED_KERNEL.decode(self.repository.read_file(sha))
        return kernels

    def accept(
        self, task: str, source: bytes, decision: AcceptedKernel, *, keeps_later: bool = False
    ) -> None:
        """Put a kernel on `accepted`; has no effect if the branch already has this decision.

        With `keeps_later`, a kernel of the task that was accepted after this decision stays.
        """
        with self.repository.writing():
            head = self._head("accepted")
            last = self._last_decision(head, decision) if head else None
            if last and last.accepts and self._accepted_at(last.commit)[task].wall == decision.wall:
                return
            present = self._accepted_at(head).get(task) if head and keeps_later else None
            if present and present.wall > decision.wall:
                return
            tree = self.repository.read_tree(head) if head else {}
            record = msgspec.json.encode(decision) + b"\n"
            tree |= self.repository.write_files(
                {f"{task}/kernel.py": source, f"{task}/decision.json": record}
            )
            self._commit_accepted(head, tree, "accept", task, decision)

    def withdraw(self, task: str, decision: AcceptedKernel) -> None:
        """Withdraw an attempt's acceptance; the kernel accepted before it for the task is restored, if there is one."""
        with self.repository.writing():
            head = self._head("accepted")
            last = self._last_decision(head, decision) if head else None
            if head is None or last is None or not last.accepts:
                return
            tree = {
                path: sha
                for path, sha in self.repository.read_tree(head).items()
                if path.rpartition("/")[0] != task
            }
            before = self._accepted_before(head, task, decision)
            if before:
                earlier = self.repository.read_tree(before)
                tree |= {path: sha for path, sha in earlier.items() if path.rpartition("/")[0] == task}
            self._commit_accepted(head, tree, "withdraw", task, decision)

    def _decisions(self, head: str) -> Iterator[DecisionCommit]:
        """Yield the commits of `accepted` from `head` on, newest first."""
        for commit, message in self.repository.history(head):
            trailers = trailers_of(message)
            attempt = (trailers.get("Session", ""), trailers.get("Attempt", ""))
            yield DecisionCommit(commit, message.startswith("accept "), trailers.get("Task", ""), attempt)

    def _last_decision(self, head: str, decision: AcceptedKernel) -> DecisionCommit | None:
        """The newest commit about this attempt."""
        attempt = (decision.session, decision.attempt)
        return next((last for last in self._decisions(head) if last.attempt == attempt), None)

    def _accepted_before(self, head: str, task: str, leaving: AcceptedKernel) -> str | None:
        """The newest commit that accepted another attempt for the task and was not withdrawn."""
        withdrawn = {(leaving.session, leaving.attempt)}
        for last in self._decisions(head):
            if last.task == task and last.attempt not in withdrawn:
                if last.accepts:
                    return last.commit
                withdrawn.add(last.attempt)
        return None

    def _commit_accepted(
        self, head: str | None, tree: Mapping[str, str], verb: str, task: str, decision: AcceptedKernel
    ) -> None:
        trailers = {
            "Task": task,
            "Session": decision.session,
            "Attempt": decision.attempt,
            "Commit": decision.commit,
            "Verdict": decision.verdict,
            "By": decision.by,
            "Why": decision.why,
        }
        commit = self.repository.write_commit(
            self.repository.write_tree(tree),
            parents=[head] if head else [],
            message=with_trailers(f"{verb} {decision.attempt}", trailers),
            wall=decision.wall,
        )
        self.repository.write_ref(ACCEPTED, commit)

    # Housekeeping

    def delete_session(self, session: str) -> None:
        """Delete all branches of a session; accepted kernels stay.

        The journal goes last: while it is there, the session is listed, and a deletion that was killed can be repeated.
        """
        prefix, journal = f"{HEADS}{session}/", HEADS + journal_branch(session)
        with self.repository.writing():
            refs = [ref for ref in self.repository.branches().commits if ref.startswith(prefix)]
            self.repository.delete_refs([ref for ref in refs if ref != journal])
            mark = self._own_ref(session)
            marks = [mark] if self.repository.read_ref(mark) else []
            self.repository.delete_refs([*marks, *(ref for ref in refs if ref == journal)])
