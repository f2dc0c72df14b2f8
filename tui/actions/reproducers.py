"""The shell line that judges one case of a stored attempt again, alone: to reproduce a failure or to profile."""

from __future__ import annotations

import shlex
from pathlib import Path

from sessions.names import short_task, split_attempt
from sessions.state.state import SessionState
from tui.diagnostics import Complaint


def reproducer(store: Path, state: SessionState, attempt: str, case: str = "") -> str:
    """Return one shell line that judges an open case of an attempt with the session's inputs and baseline.

    `store` is the git folder of the store. Without a case the line judges every case again, also hidden ones. For a
    profiler, put it behind the pipe: `... | rocprofv3 --kernel-trace -- wavedeck eval ...`. Raises `Complaint` if the
    attempt is not in the store yet.
    """
    commit = state.attempt(attempt).commit
    if commit is None:
        raise Complaint(f"{attempt} is not in the store yet; wait until its verdict is stored")
    task = state.instances[split_attempt(attempt).instance].task
    show = ["git", f"--git-dir={store}", "show", f"{commit}:kernel.py"]
    judge = ["wavedeck", "eval", "-", "--task", short_task(task)]
    if case:
        judge += ["--case", case]
    started = state.started
    if started is not None:
        judge += ["--seed", str(started.seed)]
        # A kernel file as baseline may be gone, or on another machine.
        if started.against and not started.against_source:
            judge += ["--against", started.against]
        if started.python:
            judge += ["--python", started.python]
    return f"{shlex.join(show)} | {shlex.join(judge)}"
