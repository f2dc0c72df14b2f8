"""Rate of commits into the store, compared with GitPython: `python -m benchmarks.store_commits [ATTEMPTS]`.

Both write the same invented attempts (eight files, about 34 KB) to branches of a new bare repository, in turns, so that a busy
machine slows both. The store commits them one by one, and a second store ten together, as an engine does with attempts that wait.
The store syncs every object and ref. GitPython's default object database starts a process per object and syncs nothing. Prints
commits per second and the ratios.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path

import git
from gitdb.base import IStream

from benchmarks.usage import arguments
from sessions.home import Home
from sessions.store.store import NewCommit, Store

BRANCHES = 80
ROUND = 10
"""Attempts per turn."""
SIZES = {
    "kernel.py": 4_000,
    "attempt.json": 600,
    "evaluation.json": 6_000,
    "trace.txt": 400,
    "prompt.md": 9_000,
    "reply.md": 5_000,
    "calls.jsonl": 7_000,
    "reasoning.jsonl": 2_000,
}


def attempt(number: int) -> dict[str, bytes]:
    """Return the files of one attempt: text-like, different for each number."""
    words = random.Random(number)
    return {
        name: b" ".join(b"%06x" % words.getrandbits(20) for _ in range(size // 7))
        for name, size in SIZES.items()
    }


def commit_with_store(root: Path, *, together: bool) -> Callable[[Sequence[int]], None]:
    """Return a function that commits attempts with `sessions.store.store`, one by one or all with one wait for the disk."""
    home = Home(root)
    home.ensure()
    store = Store.of(home)
    last: dict[str, str] = {}

    def new_commit(number: int) -> NewCommit:
        branch = f"session/starter/softmax/{number % BRANCHES}"
        parents = [last[branch]] if branch in last else []
        message = f"softmax#{number % BRANCHES}/{number // BRANCHES + 1} correct"
        return NewCommit(branch, attempt(number), parents, message, float(number))

    def commit(numbers: Sequence[int]) -> None:
        for group in [numbers] if together else [[number] for number in numbers]:
            new = [new_commit(number) for number in group]
            last.update(zip((entry.branch for entry in new), store.commit_all(new), strict=True))

    return commit


def commit_with_gitpython(root: Path) -> Callable[[Sequence[int]], None]:
    """Return a function that commits attempts with GitPython's default object database."""
    repo = git.Repo.init(root, mkdir=True, bare=True)
    who = git.Actor("Wavedeck", "wavedeck@localhost")
    last: dict[str, git.Commit] = {}

    def store(kind: bytes, data: bytes) -> bytes:
        return bytes(repo.odb.store(IStream(kind, len(data), BytesIO(data))).binsha)

    def commit(numbers: Sequence[int]) -> None:
        for number in numbers:
            commit_one(number)

    def commit_one(number: int) -> None:
        branch = f"session/starter/softmax/{number % BRANCHES}"
        entries = b"".join(
            b"100644 %s\0" % name.encode() + store(b"blob", data)
            for name, data in sorted(attempt(number).items())
        )
        tree = git.Tree(repo, store(b"tree", entries))
        parents = [last[branch]] if branch in last else []
        last[branch] = git.Commit.create_from_tree(
            repo, tree, "softmax", parent_commits=parents, author=who, committer=who
        )
        git.Head(repo, f"refs/heads/{branch}").set_commit(last[branch])

    return commit


def main() -> None:
    """Run both in turns and print the rates."""
    [attempts] = map(int, arguments(__doc__)[:1] or [200])
    with tempfile.TemporaryDirectory() as folder:
        ways = {
            "wavedeck": commit_with_store(Path(folder) / "home", together=False),
            "together": commit_with_store(Path(folder) / "together", together=True),
            "gitpython": commit_with_gitpython(Path(folder) / "gitpython"),
        }
        spent_s = dict.fromkeys(ways, 0.0)
        for begin in range(0, attempts, ROUND):
            for name, commit in ways.items():
                start = time.perf_counter()
                commit(range(begin, min(begin + ROUND, attempts)))
                spent_s[name] += time.perf_counter() - start
    rates = {name: attempts / seconds for name, seconds in spent_s.items()}
    for name, rate in rates.items():
        sys.stdout.write(f"{name:10} {rate:8.1f} commits/s\n")
    for name in ("wavedeck", "together"):
        sys.stdout.write(f"{name} / gitpython {rates[name] / rates['gitpython']:.1f}\n")


if __name__ == "__main__":
    main()
