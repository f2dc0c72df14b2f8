"""Linux calls that Python 3.11 does not offer, through ctypes, and facts from `/proc`. Torch-free."""

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
    """Set one process attribute; `OSError` if the kernel refuses."""
    _check(_LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl({option})")


def keep_undumpable() -> None:
    """Hide this process's memory and environment from other processes of the same user, and write no core files."""
    prctl(PR_SET_DUMPABLE, 0)


def is_dumpable() -> bool:
    """Return whether other processes of the same user may read this one's memory."""
    return int(_LIBC.prctl(PR_GET_DUMPABLE, 0, 0, 0, 0)) != 0


def parent_death_signal() -> int:
    """Return the signal that this process gets when its parent ends; 0 for none."""
    number = ctypes.c_int(0)
    _check(_LIBC.prctl(PR_GET_PDEATHSIG, ctypes.byref(number), 0, 0, 0), "prctl(PR_GET_PDEATHSIG)")
    return int(number.value)


def leave_keyring() -> None:
    """Leave the session's keyring, if the kernel has keyrings and allows it."""
    number = {"x86_64": 250, "aarch64": 219}.get(platform.machine())
    if number is not None:
        _LIBC.syscall(ctypes.c_long(number), ctypes.c_int(_JOIN_SESSION_KEYRING), None)


def set_capabilities(kept: int, *, ambient: bool = False) -> None:
    """Drop every capability that is not in the bit mask `kept`; `ambient` passes the kept ones on to programs."""
    header = struct.pack("<Ii", _CAPABILITY_VERSION_3, 0)
    low, high = kept & 0xFFFFFFFF, kept >> 32
    data = struct.pack("<6I", low, low, low, high, high, high)
    _check(_LIBC.capset(header, data), "capset")
    for number in range(64):
        if ambient and kept >> number & 1:
            arguments = (ctypes.c_ulong(_AMBIENT_RAISE), ctypes.c_ulong(number), 0, 0)
            _check(_LIBC.prctl(PR_CAP_AMBIENT, *arguments), "prctl(PR_CAP_AMBIENT)")


def capabilities() -> int:
    """Return the bit mask of the capabilities that this process may use."""
    header = struct.pack("<Ii", _CAPABILITY_VERSION_3, 0)
    data = ctypes.create_string_buffer(24)
    _check(_LIBC.capget(header, data), "capget")
    fields = struct.unpack("<6I", data.raw)
    return int(fields[0] | fields[1] | (fields[3] | fields[4]) << 32)


def unshare(flags: int) -> None:
    """Leave the namespaces in `flags`, only while single-threaded; `OSError` if the kernel refuses."""
    _check(_LIBC.unshare(flags), "unshare")


def syscall(number: int, *arguments: ctypes._SimpleCData[Any] | None) -> int:
    """Return the call's result; `OSError` if it is negative."""
    return _check(int(_LIBC.syscall(ctypes.c_long(number), *arguments)), f"syscall {number}")


def children(pid: int) -> tuple[int, ...]:
    """Return the direct children of `pid`, zombies included; none if `pid` has ended."""
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
    """Return all descendants of `pid`, nearest first; a process forked at the same time may be missing."""
    all_below: list[int] = []
    generation = [pid]
    while generation:
        generation = [child for member in generation for child in children(member)]
        all_below += generation
    return tuple(all_below)


def ancestors(pid: int) -> tuple[int, ...]:
    """Return the visible ancestors of `pid`, nearest first."""
    line: list[int] = []
    above = parent(pid)
    while above:
        line.append(above)
        above = parent(above)
    return tuple(line)


def thread_count() -> int:
    """Return the number of threads of this process, including those that Python does not know."""
    return sum(1 for _ in os.scandir("/proc/self/task"))


def cpu_seconds(pid: int) -> float | None:
    """Return user and system time of `pid` and of the children that it waited for; `None` if it has ended."""
    fields = _stat(pid)
    if fields is None:
        return None
    return sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield everything below `folder`, folders included, without following links; ignores entries that vanish."""
    below = [str(folder)]
    while below:
        try:
            with os.scandir(below.pop()) as listing:
                for entry in listing:
                    if entry.is_dir(follow_symlinks=False):
                        below.append(entry.path)
                    yield entry
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue


def close_all_but(keep: set[int]) -> None:
    """Close every descriptor that is not in `keep`; descriptors 0 to 2 stay open."""
    for descriptor in [int(entry.name) for entry in os.scandir("/proc/self/fd")]:
        if descriptor > 2 and descriptor not in keep:
            try:
                os.close(descriptor)
            except OSError:
                continue  # the listing's own descriptor is closed by now


def parent(pid: int) -> int | None:
    """Return the parent of `pid`; `None` if `pid` has ended or is hidden, 0 for the first process of a namespace."""
    fields = _stat(pid)
    return None if fields is None else int(fields[1])


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/<pid>/stat from the third on; the command before them may contain any character."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    return text[text.rindex(")") + 2 :].split()


def _check(result: int, call: str) -> int:
    """The result; `OSError` with the C library's error if it is negative."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
    return result
