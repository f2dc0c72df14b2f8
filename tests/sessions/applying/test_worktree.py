"""A branch has exactly the files that `apply` made, whatever the repository's settings and the person's command do."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from sessions.applying import worktree
from sessions.applying.worktree import PersonRepository
from sessions.errors import NotApplicable
from tests.support.sessions.story import commit_all, git
from tests.support.waiting import wait_until

PATH = 'ops/a "b" é.py'
OLD = b"# coding: latin-1\r\n# caf\xe9 $Id$\nA = 1\r"
NEW = OLD.replace(b"1", b"2")


def count(root: Path, *arguments: str) -> int:
    return len(git(root, *arguments).split())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / PATH).parent.mkdir(parents=True)
    (root / PATH).write_bytes(OLD)
    (root / PATH).chmod(0o755)
    return commit_all(root)


def apply(root: Path, test: str = "", files: dict[str, bytes] | None = None) -> str:
    folder = root.parent / "place" / "tree"
    files = {PATH: NEW} if files is None else files
    return PersonRepository(root).apply(
        files, branch="fast", folder=folder, message="Run fast\n\nÜber", test=test
    )


def test_commit_has_exactly_the_new_bytes_in_a_messy_repository(root: Path) -> None:
    git(root, "checkout", "-q", "--detach")
    marker = root.parent / "hook"
    for name in (
        "post-checkout",
        "reference-transaction",
        "post-commit",
        "commit-msg",
        "pre-commit",
        "post-index-change",
    ):
        hook = root / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch '{marker}'\nexit 1\n")
        hook.chmod(0o755)
    (root / ".git/info/attributes").write_text("*.py text eol=crlf ident filter=mess\n")
    (root / ".git/info/exclude").write_text("ops/\nnew/\n")
    with (root / ".git/config").open("a") as config:
        config.write(
            "[core]\n autocrlf = true\n splitIndex = true\n[commit]\n gpgSign = true\n cleanup = strip\n[gpg]\n program = false\n"
            '[color]\n ui = always\n[branch]\n autoSetupMerge = always\n[filter "mess"]\n clean = sed s/A/B/\n smudge = sed s/B/A/\n'
            "[grep]\n lineNumber = true\n[i18n]\n commitEncoding = latin-1\n"
        )
    files, tree, status = (
        {PATH: NEW, "new/x.json": b"{}\r\n"},
        git(root, "ls-files", "-s"),
        (root / PATH).read_bytes(),
    )
    commit = apply(root, "true", files)
    assert not marker.exists()
    for path, data in files.items():
        shown = subprocess.run(
            ["git", "-C", root, "cat-file", "blob", f"fast:{path}"], capture_output=True, check=True
        )
        assert shown.stdout == data
    assert git(root, "rev-parse", "fast").strip() == commit
    raw = git(root, "diff-tree", "-r", "-z", "HEAD", "fast").split("\0")
    assert [entry.split(" ")[:2] for entry in raw if entry.startswith(":")] == [
        [":000000", "100644"],
        [":100755", "100755"],
    ]
    body = git(root, "cat-file", "commit", "fast")
    assert body.endswith("\n\nRun fast\n\nÜber\n")
    assert "gpgsig" not in body
    assert (git(root, "ls-files", "-s"), (root / PATH).read_bytes()) == (tree, status)
    assert "[branch" not in (root / ".git/config").read_text().replace("[branch]", "")


@pytest.mark.parametrize(
    ("test", "says"),
    [
        ("sed -i s/A/B/ ops/a*", "moves HEAD or changes"),
        ("chmod -x ops/a*", "moves HEAD or changes"),
        ("rm ops/a*", "moves HEAD or changes"),
        ("git commit -q --allow-empty -m other", "moves HEAD or changes"),
        ("rm .git", "git rev-parse fails"),
        ("mkdir -p d/e; touch d/e/f; chmod 0 d/e d; false", "fails before the change"),
    ],
)
def test_command_that_tests_another_tree_leaves_nothing_behind(root: Path, test: str, says: str) -> None:
    with pytest.raises(NotApplicable, match=says):
        apply(root, f"if grep -q 2 ops/a*; then {test}; fi" if "false" not in test else test)
    assert git(root, "branch", "--format=%(refname:short)").split() == ["main"]
    assert count(root, "worktree", "list", "--porcelain") == count(root, "worktree", "list", "--porcelain")
    assert not (root.parent / "place").exists()
    assert git(root, "status", "--porcelain") == ""


def test_command_ends_with_all_that_it_started(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began = time.monotonic()
    worktree.run_program(["/bin/sh", "-c", "(sleep 60; touch late) & echo $! > pid"], root, "fails")
    assert time.monotonic() - began < 30
    stat = Path(f"/proc/{(root / 'pid').read_text().strip()}/stat")
    wait_until(lambda: not stat.exists() or ") Z" in stat.read_text(), "the process ends")
    output = worktree.run_program(
        ["/bin/sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo acc=1"], root, "fails"
    )
    assert (len(output), output.splitlines()[-1]) == (worktree.KEPT_BYTES, "acc=1")
    monkeypatch.setattr(worktree, "LIMIT_S", 0.2)
    with pytest.raises(
        NotApplicable, match=r"fails \(it runs for more than 0 s\); nothing is left behind, it prints: on"
    ):
        worktree.run_program(["/bin/sh", "-c", "echo on; sleep 60"], root, "fails")
