"""A first run works: the shipped recording through the real engine, judge and store."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from engine.models import find_recording
from engine.models.clients.recorded import changed_templates
from engine.prompting.prompting import template_hashes
from sessions.events import Role
from sessions.home import home_from
from sessions.recording import Recording, load_recording
from tests.support.command_line import Done, run_script
from tests.support.sessions.story import git

ATTEMPT_FILES = {
    "kernel.py", "attempt.json", "evaluation.json", "trace.txt", "prompt.md", "reply.md", "calls.jsonl", "reasoning.jsonl",
    "prompts",
}  # fmt: skip


@pytest.fixture
def starter(isolated_home: Path) -> Recording:
    return load_recording(find_recording("starter", home_from(os.environ).recordings))


def test_shipped_recording_has_three_tasks_with_two_chains_each(starter: Recording) -> None:
    assert len(starter.tasks()) == 3
    assert {starter.chain_count(task) for task in starter.tasks()} == {2}
    assert starter.longest_chain() == 2
    assert {reply.role for chain in starter.chains.values() for reply in chain} >= {
        Role.GENERATOR,
        Role.OPTIMIZER,
        Role.REFLECTOR,
    }, "a newcomer sees a failure that is explained and repaired"


def test_each_shipped_task_starts_from_a_kernel_and_answers_a_rejection_and_a_fork(
    starter: Recording,
) -> None:
    for task in starter.tasks():
        assert (task, 1) in starter.starts
        calls = {(reply.attempt, reply.role) for reply in starter.chains[task, 1]}
        assert calls >= {(1, Role.OPTIMIZER), (2, Role.OPTIMIZER)}, "a first and a second attempt"
        assert calls >= {(1, Role.REFLECTOR), (2, Role.GENERATOR)}, "the first attempt may be rejected"
        forks = [entry for entry in starter.facts.chains if entry.task == task and entry.fork]
        assert [entry.chain for entry in forks] == [starter.chain_count(task) + 1]
        assert starter.reply(task, forks[0].chain, 1, Role.OPTIMIZER, 1) is not None


def test_shipped_recording_matches_the_current_templates(starter: Recording) -> None:
    assert changed_templates(starter.facts.templates, template_hashes()) == ()


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Path]:
    """Result and store of one run in an empty home."""
    home = tmp_path_factory.mktemp("home")
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "dumb", "LANG": "C.UTF-8"}
    command = ("run", "softmax", "--model", "recorded:starter", "--instances", "1")
    options = ("--iterations", "2", "--headless", "--json")
    return run_script(*command, *options, environ=environ), home / ".local/share/wavedeck/store.git"


@pytest.mark.judge
def test_run_prints_one_event_per_line(first_run: tuple[Done, Path]) -> None:
    done, _ = first_run
    events: list[dict[str, Any]] = [json.loads(line) for line in done.out.splitlines()]
    assert done.code == 0
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[0]["type"] == "session_started"
    assert events[-1]["type"] == "session_finished"
    assert not [event["message"] for event in events if event["type"] == "notice"]
    assert done.err.splitlines()[-1].endswith(f"wavedeck replay {events[0]['session']}")


@pytest.mark.judge
def test_run_stores_a_commit_per_attempt(first_run: tuple[Done, Path]) -> None:
    done, store = first_run
    session = json.loads(done.out.splitlines()[0])["session"]
    judged = [json.loads(line) for line in done.out.splitlines() if '"type":"attempt_judged"' in line]
    branches = [
        name
        for name in git(store, "for-each-ref", "--format=%(refname:short)", "refs/heads").splitlines()
        if not name.endswith("/_journal")
    ]
    assert branches == [f"{session}/starter/softmax/1"]
    assert len(git(store, "rev-list", branches[0]).splitlines()) == len(judged) == 3, (
        "the start and two of the model"
    )
    assert set(git(store, "ls-tree", "--name-only", branches[0]).splitlines()) == ATTEMPT_FILES
    verdicts = git(store, "log", "--format=%(trailers:key=Verdict,valueonly,separator=%x2C)", branches[0])
    assert verdicts.split() == ["correct"] * 3
    assert git(store, "fsck", "--strict") == ""
