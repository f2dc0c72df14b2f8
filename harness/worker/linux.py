"""The few Linux calls that Python 3.11 does not offer, through ctypes. Torch-free."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000

_LIBC = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> None:
    """Sets one process attribute; `OSError` when the kernel refuses."""
    if _LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise _last_error(f"prctl({option})")


def unshare(flags: int) -> None:
    """Leaves the namespaces named by `flags`; only while single-threaded. `OSError` when refused."""
    if _LIBC.unshare(flags) != 0:
        raise _last_error("unshare")


def syscall(number: int, *arguments: ctypes._SimpleCData[Any] | None) -> int:
    """The call's result; `OSError` when it is negative."""
    result = int(_LIBC.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        raise _last_error(f"syscall {number}")
    return result


def children(pid: int) -> tuple[int, ...]:
    """Process ids of the direct children of `pid`, zombies included, as /proc tells now."""
    numbers = (int(entry.name) for entry in os.scandir("/proc") if entry.name.isdecimal())
    return tuple(number for number in numbers if _parent(number) == pid)


def thread_count() -> int:
    """Threads of this process, those that Python does not know included."""
    return sum(1 for _ in os.scandir("/proc/self/task"))


def cpu_seconds(pid: int) -> float | None:
    """User and system time of `pid` and of the children it waited for; `None` when it is gone."""
    fields = _stat(pid)
    if fields is None:
        return None
    return sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def close_all_but(keep: set[int]) -> None:
    """Closes every descriptor that is not in `keep`; the descriptors 0 to 2 are always kept."""
    for descriptor in [int(entry.name) for entry in os.scandir("/proc/self/fd")]:
        if descriptor > 2 and descriptor not in keep:
            try:
                os.close(descriptor)
            except OSError:
                continue  # the listing's own descriptor is gone by now


def _parent(pid: int) -> int | None:
    fields = _stat(pid)
    return None if fields is None else int(fields[1])


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/<pid>/stat from the third on; the command before them may hold anything."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text[text.rindex(")") + 2 :].split()


def _last_error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")
