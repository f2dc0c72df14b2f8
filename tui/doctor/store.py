"""Doctor's sections about what must last: the store, and an engine that nobody watches."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from engine.control import socket_place
from engine.environment import NETWORK_FILESYSTEMS, detach_risks, home_risk, mount_of
from sessions import SessionsError
from sessions.home import Home, home_from
from tui.plain import size

from .findings import Finding, State

LOW_SPACE_BYTES = 2 << 30


def store(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Where sessions are kept, whether that can be written, and whether it lasts."""
    home = home_from(environ)
    yield from writable(home)
    yield filesystem(home)
    yield space(home)
    yield git()
    yield sessions(home)


def nearest_folder(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    return next((each for each in (path, *path.parents) if each.is_dir()), Path("/"))


def writable(home: Home) -> Iterator[Finding]:
    """Whether the home can be made, written and locked; nothing is left behind where it does not exist yet."""
    folder = nearest_folder(home.root)
    made = "" if folder == home.root else ", made at the first run"
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".wavedeck-doctor-") as file:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        why = error.strerror or str(error)
        yield Finding(
            "home",
            State.WARNING,
            f"{home.root}: cannot be written or locked ({why})",
            "nothing can run; set WAVEDECK_HOME to a folder you may write",
        )
        return
    yield Finding("home", State.OK, f"{home.root}, writable{made}")


def filesystem(home: Home) -> Finding:
    """What kind of file system the home lies on, and whether it outlives this machine's run."""
    mount = mount_of(home.root)
    if mount is None:
        return Finding(
            "file system", State.NOTE, "the kernel does not tell which", "see that it outlives this machine"
        )
    found = f"{mount.filesystem}, mounted on {mount.point}"
    risk = home_risk(home.root)
    if risk is None:
        return Finding("file system", State.OK, found)
    lasts = mount.filesystem in NETWORK_FILESYSTEMS
    return Finding("file system", State.NOTE if lasts else State.WARNING, found, risk)


def space(home: Home) -> Finding:
    """Room that is left."""
    free = shutil.disk_usage(nearest_folder(home.root)).free
    if free < LOW_SPACE_BYTES:
        return Finding(
            "free space",
            State.WARNING,
            size(free),
            "a full disk stops an engine (it can be resumed); make room",
        )
    return Finding("free space", State.OK, size(free))


def git() -> Finding:
    """Whether git is there; the store is written through it."""
    path = shutil.which("git")
    if path is None:
        return Finding("git", State.WARNING, "not found", "no session can be kept; install git")
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False)
    return Finding(
        "git",
        State.OK,
        f"{done.stdout.strip().removeprefix('git version ') or 'of unknown version'} at {path}",
    )


def sessions(home: Home) -> Finding:
    """What the store holds."""
    from sessions.catalog import list_sessions

    try:
        known = list_sessions(home)
    except SessionsError as error:
        return Finding("sessions", State.WARNING, str(error))
    if not known:
        return Finding("sessions", State.OK, "none yet", "begin with: wavedeck run")
    states = [each.state for each in known]
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    return Finding("sessions", State.OK, counts)


def detached(environ: Mapping[str, str]) -> Iterator[Finding]:
    """What would end an engine after its person left."""
    home = home_from(environ).root
    yield sockets(environ)
    # What the home's file system means stands under the store already.
    risks = [risk for risk in detach_risks(home, environ=environ) if risk != home_risk(home)]
    for risk in risks:
        yield Finding("after you leave", State.WARNING, risk)
    if not risks:
        yield Finding("after you leave", State.OK, "nothing known here ends an engine when you log out")


def sockets(environ: Mapping[str, str]) -> Finding:
    """Where engines listen."""
    folder = socket_place(environ)
    if not os.access(nearest_folder(folder), os.W_OK):
        return Finding(
            "sockets",
            State.WARNING,
            f"{folder} cannot be made",
            "engines cannot be commanded; unset XDG_RUNTIME_DIR",
        )
    return Finding("sockets", State.OK, f"{folder}")
