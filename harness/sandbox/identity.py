"""The guest's identity for the kernel: its own user if root starts it, and no capabilities. Torch-free."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from harness.linux import syscalls
from suites.source.package import PackageView

from . import landlock

FIRST_UID, UIDS = 61184, 4336
"""User ids without an owner: systemd reserves them for single processes (source: systemd.io/UIDS-GIDS, "Dynamic Service
Users"). They also exist among a container's 65536 ids."""
_OTHERS_MAY_READ, _OTHERS_MAY_PASS, _OTHERS_MAY_USE = 0o004, 0o001, 0o006
_GROUP_MAY_USE = 0o060


class Absent(Exception):
    """A layer does not apply here; the message says why."""


def leave_user(scratch: Path, *, run_programs: bool, gpu: bool, package: PackageView | None = None) -> str:
    """Become a user that owns only `scratch`, and return which; `Absent` if this user may not.

    The groups of GPU device nodes are kept, unless all users may open the nodes. If Python's folders or those of the package
    are closed to other users (pyenv in root's home, for example), one capability is kept: to read past permissions, limited by
    the read allow-list.
    """
    if os.geteuid() != 0:
        raise Absent("only root can change it; without Landlock a candidate may write wherever you may")
    shown = [] if package is None else [*map(Path, package.import_folders), package.package.file.parent]
    reader = unreadable(
        [*landlock.python_folders(), scratch.parent, *(folder for folder in shown if folder.is_dir())]
    )
    if reader is not None and not landlock.version():
        raise Absent(
            f"other users cannot read {reader}, which a candidate needs, and there is no Landlock to limit root"
        )
    user = FIRST_UID + os.getpid() % UIDS
    groups = _device_groups() if gpu else []
    groups_before = os.getgroups()
    syscalls.prctl(syscalls.PR_SET_KEEPCAPS, 1)
    try:
        os.chown(scratch, user, user)
        os.setgroups(groups)
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    except OSError as error:
        _undo_change(scratch, groups_before)
        raise Absent(f"root may not become another user here: {error.strerror}") from error
    kept = 1 << syscalls.CAP_DAC_READ_SEARCH if reader is not None else 0
    syscalls.set_capabilities(kept, ambient=run_programs)
    group_note = f", groups {', '.join(map(str, groups))} of the GPUs" if groups else ""
    return f"user {user}{group_note}" + (
        f"; may still read {reader}, within the read allow-list" if reader else ""
    )


def _device_groups() -> list[int]:
    """Groups that may open GPUs, such as render and video for AMD; all users may open NVIDIA's."""
    states = [node.stat() for node in landlock.device_nodes()]
    by_group = [state for state in states if state.st_mode & _GROUP_MAY_USE == _GROUP_MAY_USE]
    return sorted({state.st_gid for state in by_group if state.st_mode & _OTHERS_MAY_USE != _OTHERS_MAY_USE})


def _undo_change(scratch: Path, groups: list[int]) -> None:
    """Undo a half-finished change, so that root can write to the folder again."""
    if os.getgid() != 0:
        os.setresgid(0, 0, 0)
    if os.getgroups() != groups:
        os.setgroups(groups)
    if scratch.stat().st_uid != 0:
        os.chown(scratch, 0, 0)


def drop_capabilities() -> str:
    """Drop the capabilities that user change and namespaces left, except reading past permissions if Python needs it."""
    kept = syscalls.capabilities()
    if kept not in (0, 1 << syscalls.CAP_DAC_READ_SEARCH):
        syscalls.set_capabilities(0)
        kept = syscalls.capabilities()
    return "none" if kept == 0 else "reading past permissions alone, for folders on the allow-list"


def unreadable(folders: Iterable[Path]) -> Path | None:
    """Return the first folder on the paths to `folders` that other users cannot enter or read; `None` if they can."""
    for folder in folders:
        for place in (folder.resolve(), *folder.resolve().parents):
            needed = _OTHERS_MAY_PASS | (_OTHERS_MAY_READ if place == folder.resolve() else 0)
            if place.stat().st_mode & needed != needed:
                return place
    return None
