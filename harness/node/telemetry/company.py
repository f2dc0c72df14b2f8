"""Who else is on a device: told apart by process ids, as far as those are visible."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from .reading import Occupant

HOST_NAMESPACE = 0xEFFFFFFC
"""Inode of the machine's first PID namespace (source: Linux, `PROC_PID_INIT_INO`)."""
FOREIGN_BYTES = 1 << 30
"""More memory in use than ours accounts for by this much is somebody's: what a driver keeps for itself is less."""


class Family:
    """Processes that are ours: some that were named, and all that descend from them."""

    def __init__(
        self, roots: Collection[int] = (), parent: Callable[[int], int | None] | None = None
    ) -> None:
        self._ours = set(roots)
        self._parent = parent_of if parent is None else parent

    @property
    def empty(self) -> bool:
        """Whether none was named: none of ours should be on the device."""
        return not self._ours

    def owns(self, pid: int) -> bool | None:
        """Whether a process is ours; `None` where there is none of that number to be seen."""
        if pid in self._ours:
            return True
        line = [pid]
        while (above := self._parent(line[-1])) is not None and above > 0 and above not in line:
            if above in self._ours:
                # Remembered: a process that has ended may still be listed.
                self._ours.update(line)
                return True
            line.append(above)
        return None if above is None and len(line) == 1 else False


def others(
    occupants: Sequence[Occupant] | None,
    family: Family,
    used_bytes: int | None,
    *,
    host: bool,
) -> int | None:
    """
    How many processes of others have memory on the device; `None` where nobody can tell.

    In a PID namespace of our own (`host` false) those of others may have no number here, or another one. Some is then told
    where a process of ours is listed beside strangers, or more memory is used than can be ours; none never is.
    """
    if occupants is None:
        return None
    owned = [family.owns(each.pid) for each in occupants]
    strangers = owned.count(False)
    if host:
        return strangers
    if True in owned and strangers:
        return strangers
    accounted = [each.memory_bytes for each, ours in zip(occupants, owned, strict=True) if ours]
    if used_bytes is None or any(each is None for each in accounted):
        return None
    foreign = used_bytes - sum(each or 0 for each in accounted)
    # Ours may be on the device under numbers that this namespace does not have.
    told = bool(accounted) or family.empty
    return 1 if told and foreign > FOREIGN_BYTES else None


def in_host_namespace(namespace: Path = Path("/proc/self/ns/pid")) -> bool:
    """Whether this process sees the machine's own process numbers."""
    try:
        return namespace.stat().st_ino == HOST_NAMESPACE
    except OSError:
        return False


def parent_of(pid: int) -> int | None:
    """By `/proc`; `None` where there is no such process to be seen."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name before it may hold spaces and brackets.
    return int(text.rpartition(")")[2].split()[1])
