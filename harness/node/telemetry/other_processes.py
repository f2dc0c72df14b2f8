"""Counts the processes of others on a device, as far as their process ids are visible.

Judges of other Wavedeck engines are not counted: they hold memory and wait, because leases keep them from computing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from harness.linux import syscalls

from .reading import Occupant

HOST_NAMESPACE = 0xEFFFFFFC
"""Inode of the machine's first PID namespace (source: Linux, `PROC_PID_INIT_INO`)."""
_JUDGE = b"/harness/linux/worker_start.py"
"""In the command line of each process of a judge that may use a GPU: all are started by this script, or forked from one."""
FOREIGN_BYTES = 1 << 30
"""If more than this is in use beyond our own memory, others use it; a driver keeps less for itself."""


def is_judge(pid: int) -> bool:
    """Return whether a process belongs to the judge of an engine, of any user.

    A process that ends has no command line any more while the driver frees its GPU context: then its parent's counts.
    """
    seen = set[int]()
    above: int | None = pid
    while above and above not in seen:
        seen.add(above)
        try:
            words = Path(f"/proc/{above}/cmdline").read_bytes()
        except OSError:
            return False
        if words:
            return _JUDGE in words
        above = syscalls.parent(above)
    return False


def is_hidden(pid: int) -> bool:
    """Return whether a process of another user has this number, also if `/proc` is mounted without processes of others."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


class Family:
    """Our processes: some named ones, and all their descendants."""

    def __init__(
        self,
        roots: Collection[int] = (),
        parent: Callable[[int], int | None] = syscalls.parent,
        is_judge: Callable[[int], bool] = is_judge,
        is_hidden: Callable[[int], bool] = is_hidden,
    ) -> None:
        self._ours = set(roots)
        self._parent = parent
        self.is_judge = is_judge
        self.is_hidden = is_hidden

    @property
    def empty(self) -> bool:
        """Whether no process was named, so that none of ours should be on the device."""
        return not self._ours

    def owns(self, pid: int) -> bool | None:
        """Return whether a process is ours; `None` if no process of this number is visible."""
        if pid in self._ours:
            return True
        line = [pid]
        while (above := self._parent(line[-1])) is not None and above > 0 and above not in line:
            if above in self._ours:
                self._ours.update(line)  # a process that has ended may still be listed
                return True
            line.append(above)
        return None if above is None and len(line) == 1 else False


def count_others(
    occupants: Sequence[Occupant] | None, family: Family, used_bytes: int | None, *, host: bool
) -> int | None:
    """Return how many processes of others, judges aside, have memory on the device; `None` if that is unknown.

    A process that `/proc` hides counts, because it may be no judge.

    In a PID namespace of our own (`host` false) foreign processes may have no number here, or a wrong one. Then the result is
    positive only if one of ours is listed beside strangers, or if more memory is used than can be ours and the judges'. It is
    never 0.
    """
    if occupants is None:
        return None
    owned = [family.owns(occupant.pid) for occupant in occupants]
    judges = [
        ours is False and family.is_judge(occupant.pid)
        for occupant, ours in zip(occupants, owned, strict=True)
    ]
    strangers = owned.count(False) - sum(judges)
    if host:
        return strangers + sum(
            ours is None and family.is_hidden(occupant.pid)
            for occupant, ours in zip(occupants, owned, strict=True)
        )
    if True in owned and strangers:
        return strangers
    known_bytes = [
        occupant.memory_bytes
        for occupant, ours, judge in zip(occupants, owned, judges, strict=True)
        if ours or judge
    ]
    if used_bytes is None or None in known_bytes:
        return None
    foreign_bytes = used_bytes - sum(size or 0 for size in known_bytes)
    # Our processes may be on the device under numbers that this namespace does not have.
    is_complete = True in owned or family.empty
    return 1 if is_complete and foreign_bytes > FOREIGN_BYTES else None


def in_host_namespace() -> bool:
    """Return whether this process sees the machine's own process numbers."""
    try:
        return Path("/proc/self/ns/pid").stat().st_ino == HOST_NAMESPACE
    except OSError:
        return False
