"""A git repository with a kernel, and the task that was made of the kernel's file."""

from __future__ import annotations

from pathlib import Path

from suites import baseline_source, load_task
from tests.support.command_line import Shell
from tests.support.sessions.story import commit_all

PATH = "ops/add.py"
TASK = "mine/vector_add"
_BASELINE = baseline_source(load_task("vector_add"))
ORIGINAL = f"""\
# Copyright of the repository
{_BASELINE.replace("add_kernel", "old_kernel")}

def add_twice(x, y):
    return vector_add(vector_add(x, y), y)
"""
"""The file as the repository has it: the task's kernel, and a function that calls it."""
WINNER = _BASELINE.replace("add_kernel", "fast_kernel").replace(
    "import torch\n", "import math\n\nimport torch\n"
)


def kernel_repository(folder: Path) -> Path:
    """Make a repository with one commit; return its folder."""
    (folder / PATH).parent.mkdir(parents=True)
    (folder / PATH).write_text(ORIGINAL)
    return commit_all(folder)


def add_task(shell: Shell, folder: Path, *, original: str = "") -> None:
    """Add the suite `mine` with a task that has the baseline `ORIGINAL`; `original` is its key in `task.toml`."""
    made = load_task("vector_add").folder
    (folder / "vector_add").mkdir(parents=True)
    for file in ("task.toml", "problem.py", "cost.py"):
        (folder / "vector_add" / file).write_text((made / file).read_text())
    (folder / "vector_add" / "baseline.py").write_text(ORIGINAL)
    if original:
        toml = folder / "vector_add" / "task.toml"
        toml.write_text(f'original = "{original}"\n{toml.read_text()}')
    assert shell("suites", "add", "mine", str(folder)).code == 0
