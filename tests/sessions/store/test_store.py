"""Store: read by this program, by plain git and from a clone; parallel writers; accepted kernels."""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
from pathlib import Path

import msgspec
import pytest

from harness import Verdict
from sessions import Home, Store, fold
from sessions.errors import NoSuchSession, StoreBroken
from sessions.store.sharing import fetch_sessions, push_sessions
from sessions.store.store import AcceptedKernel
from tests.support.sessions import story
from tests.support.sessions.story import SESSION, assert_sound, git

BRANCH = f"{SESSION}/starter/softmax/1"


def test_attempt_is_one_commit_with_trailers(finished_home: Home) -> None:
    store = finished_home.store
    assert_sound(store)
    subjects = git(store, "log", "--format=%s", "--first-parent", BRANCH).splitlines()
    assert subjects == [
        "softmax#1/3 correct 1.42x optimize",
        "softmax#1/2 correct 1.20x repair",
        "softmax#1/1 wrong fresh",
    ]
    trailers = git(store, "log", "-1", "--format=%(trailers:only,unfold)", BRANCH).splitlines()
    assert [line for line in trailers if line] == [
        "Verdict: correct",
        "Speedup: 1.42x [1.38, 1.46]",
        "Device: cpu",
        "Origin: optimize",
        "Base: softmax#1/2",
        "Strategy: tile it",
    ]
    first = git(store, "log", "-1", "--format=%(trailers:only)", f"{BRANCH}~2").splitlines()
    assert [line for line in first if line] == [
        "Verdict: wrong",
        "Device: cpu",
        "Origin: fresh",
        "Strategy: tile it",
        "Error: output 0 is wrong at (0, 3)",
    ]
    assert (
        git(store, "log", "-1", "--format=%an <%ae> %cn", BRANCH).strip()
        == "Wavedeck <wavedeck@localhost> Wavedeck"
    )
    assert git(store, "diff", "--stat", f"{BRANCH}^1", BRANCH, "--", "kernel.py").startswith(
        " kernel.py | 2 +-"
    )


def test_commit_of_an_attempt_contains_its_files(finished_home: Home) -> None:
    names = git(finished_home.store, "ls-tree", "--name-only", f"{BRANCH}~2").split()
    assert names == [
        "attempt.json", "calls.jsonl", "evaluation.json", "kernel.py", "prompt.md", "prompts", "reasoning.jsonl",
        "reflection.md", "reply.md", "trace.txt",
    ]  # fmt: skip

    def show(name: str, at: str = f"{BRANCH}~2") -> str:
        return git(finished_home.store, "show", f"{at}:{name}")

    assert show("kernel.py") == f"{story.KERNEL}# softmax#1/1\n"
    assert show("reply.md") == f"```python\n{show('kernel.py')}```"
    named = re.match(r"## system\n\n(\S+)\n\n## user\n\n", show("prompt.md"))
    assert named
    assert show(named[1]) == "You write kernels."
    assert "You write kernels" not in show("calls.jsonl")
    assert show("reflection.md") == "The mask is wrong.\n"
    assert show("trace.txt") == 'File "kernel.py", line 5\noutput 0 is wrong at (0, 3)\n'
    assert show("trace.txt", BRANCH) == ""
    attempt = json.loads(show("attempt.json"))
    assert attempt["attempt"] == "softmax#1/1"
    assert attempt["usage"] == {
        "input_tokens": 200,
        "output_tokens": 40,
        "cached_tokens": 100,
        "cache_write_tokens": None,
    }
    assert (attempt["verdict"], attempt["origin"], attempt["base"], attempt["cost_usd"]) == (
        "wrong",
        "fresh",
        None,
        0.25,
    )
    assert json.loads(show("evaluation.json"))["verdict"] == "wrong"
    calls = [json.loads(line) for line in show("calls.jsonl").splitlines()]
    assert [(call["call"], call["retries"], call["messages"][0]["role"]) for call in calls] == [
        ("softmax#1/1/generator/1", 1, "system"),
        ("softmax#1/1/reflector/1", 1, "system"),
    ]
    pieces = [json.loads(line) for line in show("reasoning.jsonl").splitlines()]
    assert [piece["text"] for piece in pieces] == ["let me ", "think"] * 2
    assert all(piece["mono"] > 0 for piece in pieces)


def test_git_show_prints_no_data_files(finished_home: Home) -> None:
    shown = git(finished_home.store, "show", BRANCH)
    assert "+# softmax#1/3" in shown
    assert '"messages"' not in shown
    assert '"stages"' not in shown
    assert "You write kernels" not in shown


def test_clone_contains_the_same_events(finished_home: Home, tmp_path: Path) -> None:
    with Store.of(finished_home) as store:
        original = story.stored_events(store, SESSION)
        assert list(store.journals()) == [SESSION]
    assert fold(original).finished
    git(tmp_path, "clone", "--quiet", "--bare", str(finished_home.store), "bare")
    with Store.read_only(tmp_path / "bare") as clone:
        assert list(clone.journals()) == [SESSION]
        assert story.stored_events(clone, SESSION) == original
        commit = fold(original).attempt("softmax#2/3").commit or ""
        kernel = clone.repository.read_tree(commit)["kernel.py"]
        assert clone.repository.read_file(kernel).endswith(b"# softmax#2/3\n")


def test_description_of_a_session_is_on_its_journal_branch(finished_home: Home) -> None:
    description = json.loads(git(finished_home.store, "show", f"{SESSION}/_journal:session.json"))
    assert (description["session"], description["started"], description["iterations"]) == (
        SESSION,
        1.7e9 + 1,
        3,
    )
    assert not {"seq", "mono", "type"} & set(description)


def test_the_repository_of_a_caller_is_ignored(
    finished_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hooks, rebases and scripts set such variables for the programs that they call."""
    git(tmp_path, "init", "--quiet", "other")
    git_dir = tmp_path / "other" / ".git"
    for name in (
        "DIR",
        "COMMON_DIR",
        "WORK_TREE",
        "INDEX_FILE",
        "OBJECT_DIRECTORY",
        "SHALLOW_FILE",
        "GRAFT_FILE",
    ):
        monkeypatch.setenv(f"GIT_{name}", str(git_dir / name.lower()))
    for name in ("NAMESPACE", "REPLACE_REF_BASE", "PREFIX", "DEFAULT_HASH", "LITERAL_PATHSPECS", "TRACE"):
        monkeypatch.setenv(f"GIT_{name}", "2")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.worktree")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(git_dir))
    with Store.of(finished_home) as store:
        assert list(store.journals()) == [SESSION]
        assert story.stored_events(store, SESSION)
        assert store.session_is_complete(SESSION)
        story.commit(store, "further", {"file": b"x"})
        store.repository.pack()
        remote = tmp_path / "remote.git"
        git(tmp_path, "init", "--quiet", "--bare", str(remote))
        push_sessions(finished_home, str(remote), on_progress=print)
    assert f"{SESSION}/_journal" in git(remote, "branch", "--list")
    assert not list(git_dir.glob("object_directory"))


def test_no_hook_and_no_setting_of_the_person_acts_in_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch = f"{SESSION}/_journal"
    remote, template, ran, config = (tmp_path / name for name in ("remote.git", "template", "ran", "config"))
    git(tmp_path, "init", "-q", "--bare", str(remote))
    # The hooks of the other repository are its owner's.
    git(remote, "config", "core.hooksPath", os.devnull)
    hooks = template / "hooks"
    hooks.mkdir(parents=True)
    for name in ("reference-transaction", "pre-push", "fsmonitor"):
        (hooks / name).write_text(f"#!/bin/sh\necho {name} >> {ran}\n")
        (hooks / name).chmod(0o755)
    config.write_text(
        f"[core]\nhooksPath={hooks}\nfsmonitor={hooks}/fsmonitor\n"
        f"[init]\ntemplateDir={template}\n[commit]\ngpgSign=true\n[push]\ngpgSign=true\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    home = Home(tmp_path / "home")
    home.ensure()
    with Store.of(home) as store:
        assert not (home.store / "hooks").exists()
        shutil.copytree(hooks, home.store / "hooks")
        story.commit(store, branch, {"file": b"x"})
        store.repository.pack()
        push_sessions(home, str(remote), on_progress=print)
        store.delete_session(SESSION)
        fetch_sessions(home, str(remote), on_progress=print)
    git(home.store, "update-ref", "refs/heads/of-a-person", git(remote, "rev-parse", branch).strip())
    assert not ran.exists()


def test_home_is_not_expanded(tmp_path: Path) -> None:
    home = Home(tmp_path / "$HOME" / "~" / "%HOME%")
    home.ensure()
    with Store.of(home) as store:
        commit = story.commit(store, "one/_journal", {"file": b"x"})
    with Store.read_only(home.store) as store:
        file = store.repository.read_tree(commit)["file"]
        assert store.repository.read_file(file) == b"x"


def test_missing_session_or_object_is_named(finished_home: Home, tmp_path: Path) -> None:
    with Store.read_only(finished_home.store) as store:
        with pytest.raises(NoSuchSession, match="nothing"):
            list(store.session_lines("nothing"))
        with pytest.raises(StoreBroken, match="has no object"):
            store.repository.read_file("0" * 40)
        with pytest.raises(StoreBroken, match="reading only"):
            story.commit(store, "x/y", {})
    (tmp_path / "plain").mkdir()
    with pytest.raises(StoreBroken, match="is not a git repository"):
        Store.read_only(tmp_path / "plain")


def test_equal_commits_are_one_commit(home: Home) -> None:
    home.ensure()
    with Store.of(home) as store:
        ids = {story.commit(store, "b/1", {"a/b": b"x", "a.c": b"y"}) for _ in range(2)}
        assert len(ids) == 1
        assert store.heads() == {"b/1": ids.pop()}
    assert git(home.store, "ls-tree", "-r", "--name-only", "b/1").split() == ["a.c", "a/b"]
    assert_sound(home.store)


def test_parallel_writers_and_packing_lose_no_commit(home: Home) -> None:
    home.ensure()

    def write(name: str) -> None:
        with Store.of(home) as store:
            parents: list[str] = []
            for number in range(12):
                files = {"kernel.py": f"{name} {number}".encode()}
                parents = [story.commit(store, f"{name}/1", files, *parents, wall=number)]
                if number % 4 == 3:
                    store.repository.pack()

    threads = [threading.Thread(target=write, args=(name,)) for name in ("one", "two", "three")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_sound(home.store)
    for name in ("one", "two", "three"):
        assert git(home.store, "rev-list", "--count", f"{name}/1").strip() == "12"


def test_stale_lock_of_a_killed_git_is_removed(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sessions.store.repository.STALE_S", 0.05)
    home.ensure()
    with Store.of(home) as store:
        first = story.commit(store, "b/1", {"f": b"1"})
        (home.store / "refs/heads/b/1.lock").write_text("half a")
        second = story.commit(store, "b/1", {"f": b"2"}, first)
        assert store.heads() == {"b/1": second}
    assert_sound(home.store)


def kernel(attempt: str, wall: float, session: str = SESSION) -> AcceptedKernel:
    return AcceptedKernel(
        session=session, attempt=attempt, commit="0" * 40, why="fast", by="ada", wall=wall,
        verdict=Verdict.CORRECT,
    )  # fmt: skip


def test_withdrawal_restores_the_previous_accepted_kernel(home: Home) -> None:
    home.ensure()
    task = "starter/softmax"
    with Store.of(home) as store:

        def accepted_source() -> str:
            return git(home.store, "show", f"accepted:{task}/kernel.py")

        store.accept(task, b"one", kernel("softmax#1/1", 1.0))
        store.accept("starter/flip", b"flip", kernel("flip#1/1", 2.0))
        store.accept(task, b"two", kernel("softmax#1/2", 3.0))
        assert accepted_source() == "two"
        store.accept(task, b"one", kernel("softmax#1/1", 1.0))
        assert accepted_source() == "two", "a repeated decision must not become the newest"
        store.withdraw(task, kernel("softmax#2/9", 4.0))
        store.withdraw(task, kernel("softmax#1/2", 5.0))
        assert accepted_source() == "one"
        assert store.accepted()[task] == kernel("softmax#1/1", 1.0)
        store.withdraw(task, kernel("softmax#1/1", 6.0))
        assert set(store.accepted()) == {"starter/flip"}
        store.accept(task, b"two", kernel("softmax#1/2", 7.0))
        assert msgspec.json.decode(git(home.store, "show", f"accepted:{task}/decision.json"))["wall"] == 7.0
    assert_sound(home.store)
    git(home.root, "clone", "--quiet", str(home.store), "clone")
    assert (home.root / "clone" / task / "kernel.py").read_text() == "two"
