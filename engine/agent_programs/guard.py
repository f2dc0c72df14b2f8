"""Runs an agent's program confined, as its warden: `python -m engine.agent_programs.guard CONFINEMENT PROGRAM ARGUMENTS`.

The guard ends with the program's exit code, 128 and the number for a signal, or `EXCEEDED`. It takes the whole process tree
with it, also at SIGTERM or if the engine dies.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import msgspec

from harness.linux import syscalls
from harness.sandbox import landlock
from harness.worker.server import warden

EXCEEDED = 125
"""Exit code of a program that exceeded a limit."""
NOT_STARTED = 127
MOST_PROCESSES = 512
DEVICES = ("null", "zero", "full", "random", "urandom")
"""Devices that an agent may use; a GPU is the judge's alone."""
TERMINALS = ("ptmx", "pts")
"""Landlock cannot allow a program's own terminals without those of people."""


class Confinement(msgspec.Struct, frozen=True, kw_only=True):
    """The files of an agent, and the files that are hidden from it. All paths are absolute; only `shared` may have links."""

    engine: int
    """Process of the engine."""
    folder: str
    """Its work folder."""
    write: tuple[str, ...]
    """Further files and folders that it may change."""
    hidden: tuple[str, ...]
    """Files and folders that it may not read."""
    shared: str
    """Folder of temporary files: the judge's, and those that appear later, are hidden."""
    terminals: bool = False
    """True: it may open terminals, also those of people."""


def main() -> NoReturn:
    """Run the program to the end of its tree."""
    confinement = msgspec.json.decode(sys.argv[1], type=Confinement)
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGTERM)  # ends the guard until the warden takes over
    if os.getppid() != confinement.engine:
        os._exit(NOT_STARTED)  # the engine died before the guard could notice its death
    version = landlock.version()
    hidden = {Path(name) for name in confinement.hidden}
    shared = Path(confinement.shared).resolve()
    hidden |= {Path("/dev"), *shared.glob("wavedeck-*")}
    readable = list(all_but(hidden, opened={shared})) if version else []

    def run() -> NoReturn:
        try:
            leave_rights(has_landlock=version > 0)
            if version:
                names = (*DEVICES, *(TERMINALS if confinement.terminals else ()))
                devices = [Path("/dev", name) for name in names]
                write = [Path(confinement.folder), *map(Path, confinement.write), *devices]
                landlock.confine(version, run=readable, write=write)
            os.chdir(confinement.folder)
            os.execvp(sys.argv[2], sys.argv[2:])
        except OSError as error:
            os.write(2, f"{sys.argv[2]} cannot be started: {error.strerror}\n".encode())
        os._exit(NOT_STARTED)

    def ended(end: warden.ChildEnd) -> None:
        if end.why:
            os.write(2, f"the agent was ended: {end.why}\n".encode())
            os._exit(EXCEEDED)
        code = os.waitstatus_to_exitcode(end.status)
        os._exit(code if code >= 0 else 128 - code)

    warden.run(run, lambda _: None, ended, Path(confinement.folder), most_processes=MOST_PROCESSES)


def leave_rights(*, has_landlock: bool) -> None:
    """Give up all that lets a process read the memory and the environment of the user's other processes.

    Root's capabilities open them past Landlock. Without Landlock a user namespace closes them, if this machine allows one.
    """
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    if not has_landlock:
        with suppress(OSError):  # some machines forbid it
            enter_user_namespace()
    syscalls.set_capabilities(0)


def enter_user_namespace() -> None:
    """Enter a new user namespace as the same user; `OSError` if this machine forbids it."""
    user, group = os.geteuid(), os.getegid()
    syscalls.unshare(syscalls.CLONE_NEWUSER)
    lines = {"uid_map": f"{user} {user} 1", "setgroups": "deny", "gid_map": f"{group} {group} 1"}
    for name, line in lines.items():
        Path("/proc/self", name).write_text(line, encoding="ascii")


def all_but(hidden: Collection[Path], *, opened: Collection[Path]) -> Iterator[Path]:
    """Yield paths that together have every file of the machine but what is in `hidden`.

    Landlock has no rule that forbids. A folder that is yielded includes files that appear later; a folder in `opened` is never
    yielded as a whole. Links are left out: what they point to is yielded at its own place.
    """
    folders = [Path("/")]
    while folders:
        try:
            entries = [Path(entry.path) for entry in os.scandir(folders.pop()) if not entry.is_symlink()]
        except OSError:
            continue
        for path in entries:
            if path in hidden:
                continue
            if any(inner.is_relative_to(path) for inner in (*hidden, *opened)):
                folders.append(path)
            else:
                yield path


if __name__ == "__main__":
    main()
