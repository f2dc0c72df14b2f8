"""The few Linux calls that Python 3.11 does not offer, through ctypes. Torch-free."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
PR_GET_PDEATHSIG = 2
PR_GET_DUMPABLE = 3
PR_SET_DUMPABLE = 4
PR_SET_KEEPCAPS = 8
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
CAP_DAC_READ_SEARCH = 2

_CAPABILITY_VERSION_3 = 0x20080522
_AMBIENT_RAISE = 2
_JOIN_SESSION_KEYRING = 1

_LIBC = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> None:
    """Sets one process attribute; `OSError` when the kernel refuses."""
    if _LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise _last_error(f"prctl({option})")


def keep_undumpable() -> None:
    """From now on other processes of the same user cannot read this one's memory and environment, and no core is kept."""
    prctl(PR_SET_DUMPABLE, 0)


def is_dumpable() -> bool:
    """Whether other processes of the same user may look into this one."""
    return int(_LIBC.prctl(PR_GET_DUMPABLE, 0, 0, 0, 0)) != 0


def parent_death_signal() -> int:
    """The signal that the parent's end sends to this process; 0 for none."""
    number = ctypes.c_int(0)
    if _LIBC.prctl(PR_GET_PDEATHSIG, ctypes.byref(number), 0, 0, 0) != 0:
        raise _last_error("prctl(PR_GET_PDEATHSIG)")
    return int(number.value)


def leave_keyring() -> None:
    """Lets go of the session's keys, where the kernel has any and lets us."""
    number = {"x86_64": 250, "aarch64": 219}.get(platform.machine())
    if number is not None:
        _LIBC.syscall(ctypes.c_long(number), ctypes.c_int(_JOIN_SESSION_KEYRING), None)


def set_capabilities(kept: int, *, ambient: bool = False) -> None:
    """Gives up every capability but those of the bit mask `kept`; `ambient` passes them on to programs."""
    header = struct.pack("<Ii", _CAPABILITY_VERSION_3, 0)
    low, high = kept & 0xFFFFFFFF, kept >> 32
    data = struct.pack("<6I", low, low, low, high, high, high)
    if _LIBC.capset(header, data) != 0:
        raise _last_error("capset")
    for number in range(64):
        if ambient and kept >> number & 1:
            arguments = (ctypes.c_ulong(_AMBIENT_RAISE), ctypes.c_ulong(number), 0, 0)
            if _LIBC.prctl(PR_CAP_AMBIENT, *arguments) != 0:
                raise _last_error("prctl(PR_CAP_AMBIENT)")


def capabilities() -> int:
    """Bit mask of the capabilities that this process may use."""
    header = struct.pack("<Ii", _CAPABILITY_VERSION_3, 0)
    data = ctypes.create_string_buffer(24)
    if _LIBC.capget(header, data) != 0:
        raise _last_error("capget")
    fields = struct.unpack("<6I", data.raw)
    return int(fields[0] | fields[1] | (fields[3] | fields[4]) << 32)


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
    """Process ids of the direct children of `pid`, zombies included, as the kernel tells now; none when it is gone."""
    try:
        lists = [
            Path(entry.path, "children").read_text(encoding="ascii")
            for entry in os.scandir(f"/proc/{pid}/task")
        ]
    except (FileNotFoundError, ProcessLookupError):
        if Path(f"/proc/{pid}").exists():  # a kernel without these lists (CONFIG_PROC_CHILDREN)
            numbers = (int(entry.name) for entry in os.scandir("/proc") if entry.name.isdecimal())
            return tuple(number for number in numbers if parent(number) == pid)
        return ()
    return tuple(int(number) for listed in lists for number in listed.split())


def descendants(pid: int) -> tuple[int, ...]:
    """Process ids of all below `pid`, nearest first; what is forked meanwhile may be missing."""
    found: list[int] = []
    below = [pid]
    while below:
        below = [number for one in below for number in children(one)]
        found += below
    return tuple(found)


def ancestors(pid: int) -> tuple[int, ...]:
    """Process ids above `pid`, nearest first, as far as they can be seen."""
    found: list[int] = []
    above = parent(pid)
    while above:
        found.append(above)
        above = parent(above)
    return tuple(found)


def thread_count() -> int:
    """Threads of this process, those that Python does not know included."""
    return sum(1 for _ in os.scandir("/proc/self/task"))


def cpu_seconds(pid: int) -> float | None:
    """User and system time of `pid` and of the children it waited for; `None` when it is gone."""
    fields = _stat(pid)
    if fields is None:
        return None
    return sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """All that lies below `folder`, folders included and links not followed; what vanishes meanwhile may be missing."""
    below = [str(folder)]
    while below:
        try:
            with os.scandir(below.pop()) as found:
                for entry in found:
                    if entry.is_dir(follow_symlinks=False):
                        below.append(entry.path)
                    yield entry
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue


def close_all_but(keep: set[int]) -> None:
    """Closes every descriptor that is not in `keep`; the descriptors 0 to 2 are always kept."""
    for descriptor in [int(entry.name) for entry in os.scandir("/proc/self/fd")]:
        if descriptor > 2 and descriptor not in keep:
            try:
                os.close(descriptor)
            except OSError:
                continue  # the listing's own descriptor is gone by now


def parent(pid: int) -> int | None:
    """The parent's process id; `None` when `pid` is gone or hidden, 0 for the first of a namespace."""
    fields = _stat(pid)
    return None if fields is None else int(fields[1])


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/<pid>/stat from the third on; the command before them may hold anything."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    return text[text.rindex(")") + 2 :].split()


def _last_error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")
