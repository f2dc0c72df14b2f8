"""Who the guest is to the kernel: a user of its own where root starts it, and no capabilities. Torch-free."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from harness.linux import syscalls

from . import landlock

FIRST_UID, UIDS = 61184, 4336
"""Users that no person and no service has: systemd sets them aside for the life of a process
(source: systemd.io/UIDS-GIDS, "Dynamic Service Users"), and they exist in a container's 65536 too."""
_OTHERS_MAY_READ, _OTHERS_MAY_PASS, _OTHERS_MAY_USE = 0o004, 0o001, 0o006
_GROUP_MAY_USE = 0o060


class Absent(Exception):
    """A layer does not apply here; the message says why."""


def leave_user(scratch: Path, *, run_programs: bool, gpu: bool) -> str:
    """Becomes a user that owns `scratch` and nothing else; says which. `Absent` when this user may not.

    The groups of GPUs' device nodes that are not open to everybody are kept. Where Python lies in folders closed to
    others, as pyenv in root's home does, one capability is kept, reading past permissions, and only below a read
    allow-list that does not ask who reads.
    """
    if os.geteuid() != 0:
        raise Absent("only root can change it; what you may write, foreign code may where Landlock is absent")
    reader = unreadable([*landlock.python_folders(), scratch.parent])
    if reader is not None and not landlock.version():
        raise Absent(
            f"other users cannot read {reader}, where Python lies, and there is no Landlock to hold root"
        )
    user = FIRST_UID + os.getpid() % UIDS
    groups = _device_groups() if gpu else []
    before = os.getgroups()
    syscalls.prctl(syscalls.PR_SET_KEEPCAPS, 1)
    try:
        os.chown(scratch, user, user)
        os.setgroups(groups)
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    except OSError as error:
        _come_back(scratch, before)
        raise Absent(f"root may not become another user here: {error.strerror}") from error
    kept = 1 << syscalls.CAP_DAC_READ_SEARCH if reader is not None else 0
    syscalls.set_capabilities(kept, ambient=run_programs)
    said = f"user {user}" + (f", groups {', '.join(map(str, groups))} of the GPUs" if groups else "")
    return said + (f"; may still read {reader}, as far as the read allow-list goes" if reader else "")


def _device_groups() -> list[int]:
    """Groups that one must be in to open GPUs, as render and video for AMD's; NVIDIA's are open to everybody."""
    states = [node.stat() for node in landlock.device_nodes()]
    by_group = [state for state in states if state.st_mode & _GROUP_MAY_USE == _GROUP_MAY_USE]
    return sorted({state.st_gid for state in by_group if state.st_mode & _OTHERS_MAY_USE != _OTHERS_MAY_USE})


def _come_back(scratch: Path, groups: list[int]) -> None:
    """Undoes a change that was refused half-way, or root could not write where it shall."""
    if os.getgid() != 0:
        os.setresgid(0, 0, 0)
    if os.getgroups() != groups:
        os.setgroups(groups)
    if scratch.stat().st_uid != 0:
        os.chown(scratch, 0, 0)


def give_up_capabilities() -> str:
    """Gives up what the user change and the namespaces left, but for reading past permissions where that is needed."""
    kept = syscalls.capabilities()
    if kept not in (0, 1 << syscalls.CAP_DAC_READ_SEARCH):
        syscalls.set_capabilities(0)
        kept = syscalls.capabilities()
    return "none" if kept == 0 else "reading past permissions alone, for Python's folder"


def unreadable(folders: Iterable[Path]) -> Path | None:
    """The first folder on the way to one of `folders` that other users cannot pass or read; `None` when they can."""
    for folder in folders:
        for place in (folder.resolve(), *folder.resolve().parents):
            needed = _OTHERS_MAY_PASS | (_OTHERS_MAY_READ if place == folder.resolve() else 0)
            if place.stat().st_mode & needed != needed:
                return place
    return None
