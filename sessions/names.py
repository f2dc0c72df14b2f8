"""Builds and parses the names of instances, attempts, calls and sessions (docs/data.md, Names)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, NamedTuple

import msgspec

from .errors import AmbiguousSession, NoSuchSession

STARTER = "starter"
_PART = r"[\w+=,@()-][\w+=,@().-]{0,199}"
_TASK = rf"^(?!.*\.\.)(?!.*\.lock\b){_PART}(?:/{_PART}){{0,7}}"
_NUMBER = "[0-9]{1,9}"
TaskName = Annotated[str, msgspec.Meta(pattern=rf"{_TASK}\Z")]
"""The name of a task in an event: paths and branches are made of it, so no part is `..` or hidden."""
InstanceKey = Annotated[str, msgspec.Meta(pattern=rf"{_TASK}#{_NUMBER}\Z")]
InstanceKeyOrNone = Annotated[str, msgspec.Meta(pattern=rf"\A\Z|{_TASK}#{_NUMBER}\Z")]
"""Empty: the whole session."""
AttemptKey = Annotated[str, msgspec.Meta(pattern=rf"{_TASK}#{_NUMBER}/{_NUMBER}\Z")]
CallKey = Annotated[str, msgspec.Meta(pattern=rf"{_TASK}#{_NUMBER}/{_NUMBER}/\w+/{_NUMBER}\Z")]
CommitId = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{40}\Z")]
"""The id of a commit in an event: it is written to a branch."""
SessionKey = Annotated[str, msgspec.Meta(pattern=rf"^{_PART}\Z")]
"""The name of a session in an event."""
SESSION = re.compile(r"\d{8}-\d{6}-[a-z0-9][a-z0-9-]*-[0-9a-f]{4}")
"""Pattern of a session's full name."""
NAMES_KEPT = 4096
"""Names whose parts are remembered: each streamed piece of a reply names its call."""
LONGEST_TITLE = 80


class InstanceName(NamedTuple):
    """The parts of `softmax#2`."""

    task: str
    """Full name, `starter/softmax`."""
    number: int


class AttemptName(NamedTuple):
    """The parts of `softmax#2/7`."""

    instance: str
    """The instance's key, `softmax#2`."""
    number: int


class CallName(NamedTuple):
    """The parts of `softmax#2/7/generator/1`."""

    attempt: str
    role: str
    number: int


def short_task(task: str) -> str:
    """Returns the task name that people type: `softmax` for `starter/softmax`; other suites keep their prefix."""
    suite, _, name = task.rpartition("/")
    return name if suite == STARTER else task


def full_task(task: str) -> str:
    """Returns the full task name; the inverse of `short_task`."""
    return task if "/" in task else f"{STARTER}/{task}"


def instance_key(task: str, instance: int) -> str:
    """Returns `softmax#2`, from a full or short task name."""
    return f"{short_task(task)}#{instance}"


class StudyCell(NamedTuple):
    """Parts of `ablation-3f2a91/4`."""

    study: str
    cell: int
    """1, 2, ... in the study's plan."""


def attempt_name(instance: str, number: int) -> str:
    """Returns `softmax#2/7`, from an instance's key."""
    return f"{instance}/{number}"


def call_name(attempt: str, role: str, number: int) -> str:
    """Returns `softmax#2/7/generator/1`."""
    return f"{attempt}/{role}/{number}"


def split_instance(key: str) -> InstanceName:
    """Returns the parts of `softmax#2`; `ValueError` if it is not an instance."""
    task, mark, number = key.rpartition("#")
    if not mark or not task:
        raise ValueError(f"not an instance: {key!r}")
    return InstanceName(full_task(task), int(number))


@lru_cache(NAMES_KEPT)
def split_attempt(attempt: str) -> AttemptName:
    """Returns the parts of `softmax#2/7`; `ValueError` if it is not an attempt."""
    key, mark, number = attempt.rpartition("/")
    if not mark or "#" not in key:
        raise ValueError(f"not an attempt: {attempt!r}")
    return AttemptName(key, int(number))


@lru_cache(NAMES_KEPT)
def split_call(call: str) -> CallName:
    """Returns the parts of `softmax#2/7/generator/1`; `ValueError` if it is not a call."""
    parts = call.rsplit("/", 2)
    if len(parts) != 3:
        raise ValueError(f"not a call: {call!r}")
    attempt, role, number = parts
    split_attempt(attempt)
    return CallName(attempt, role, int(number))


def series_name(study: str, cell: int) -> str:
    """Returns `ablation-3f2a91/4`: the series of the sessions of a study's fourth cell."""
    return f"{study}/{cell}"


def split_series(series: str) -> StudyCell:
    """Returns study and cell of a series; a series without a cell has cell 0."""
    study, _, cell = series.rpartition("/")
    return StudyCell(study, int(cell)) if study and cell.isdecimal() else StudyCell(series, 0)


def title_problem(title: str) -> str:
    """Returns why the text cannot be the title of a session, with the next step; empty if it can, or if it is empty."""
    if not title.isprintable():
        return "the title has line ends or control characters; write it as one line"
    if len(title) > LONGEST_TITLE:
        return f"the title has {len(title)} characters; shorten it to {LONGEST_TITLE}"
    return ""


def choose_session(wanted: str, names: Sequence[str]) -> str:
    """Returns the session with this name, or the only session with this prefix; `names` are oldest first.

    Raises `NoSuchSession` with similar names, or `AmbiguousSession`.
    """
    newest_first = names[::-1]
    fitting = [name for name in newest_first if wanted and name.startswith(wanted)]
    if wanted in names or len(fitting) == 1:
        return wanted if wanted in names else fitting[0]
    if fitting:
        raise AmbiguousSession(wanted, fitting=fitting)
    raise NoSuchSession(wanted, nearest=difflib.get_close_matches(wanted, newest_first, n=3, cutoff=0.5))


def stage_word(stage: str) -> str:
    """Returns the name of a judge's stage on every screen and page: `timing` for `performance`, else as it is."""
    return "timing" if stage == "performance" else stage
