"""The sections of `wavedeck doctor`, in order. A section that fails becomes a finding, never an error."""

from __future__ import annotations

import asyncio
import fcntl
import locale
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from engine.process.control import socket_place
from engine.process.environment import NETWORK_FILESYSTEMS, detach_risks, home_risk, mount_of
from harness import HarnessReport, probe
from harness.processes.starting.judge_python import JudgePython
from harness.wire.limits import memory_words
from sessions import SessionsError
from sessions.errors import HomeNotPrivate
from sessions.home import Home, home_from
from sessions.home_access import readers_warning, require_private
from tui.config import load
from tui.diagnostics import Complaint, one_line
from tui.print.plain import colours

from . import agent_checks, machine, model_checks
from .doctor_findings import DoctorFinding, DoctorSection, State, note, ok, warning


def examine(environ: Mapping[str, str], python: JudgePython) -> Iterator[DoctorSection]:
    """Examine the sections one by one, in the order of the report. The judge runs in `python`."""

    @cache
    def judge() -> HarnessReport:
        """Start a server and a guest; two sections need the result."""
        return asyncio.run(probe(python))

    checks: dict[str, Callable[[], Iterable[DoctorFinding]]] = {
        "machine": machine.machine,
        "GPUs": lambda: machine.gpus(environ),
        "judge": lambda: machine.judge(judge()),
        "sandbox": lambda: machine.sandbox(judge()),
        "models": lambda: model_checks.models(environ),
        "agents": lambda: agent_checks.agents(environ),
        "configuration": lambda: configuration(environ),
        "store": lambda: store(environ),
        "detached engine": lambda: detached(environ),
        "terminal": lambda: terminal(environ),
    }
    return (section(name, check) for name, check in checks.items())


def section(name: str, check: Callable[[], Iterable[DoctorFinding]]) -> DoctorSection:
    """Return the findings of one section. An error in the section is a finding too: doctor must work on broken machines."""
    findings: list[DoctorFinding] = []
    try:
        findings.extend(check())
    except Exception as error:  # noqa: BLE001  # the command promises an answer on any machine
        why = f"could not be examined: {one_line(f'{type(error).__name__}: {error}')}"
        findings.append(warning(name, why, "the other sections are not affected; please report this"))
    return DoctorSection(name, tuple(findings))


def configuration(environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Yield whether the settings can be read, and the source of each setting."""
    try:
        configured = load({}, environ=environ, folder=Path.cwd())
    except Complaint as error:
        yield warning("settings", str(error), "commands that read settings fail with this message")
        return
    yield from (warning("environment", remark) for remark in configured.remarks)
    if not configured.origins:
        yield ok("settings", "none set: all defaults")
    yield from (ok(key, f"from {origin.name}") for key, origin in configured.origins.items())


SMALLEST = (80, 24)
"""Columns and lines below which parts of the screens are cut."""


def terminal(environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Yield whether the cockpit can be opened here, and how to improve it."""
    kind = environ.get("TERM", "")
    both = sys.stdin is not None and sys.stdin.isatty() and sys.stdout is not None and sys.stdout.isatty()
    if not both or kind in ("", "dumb"):
        why = "standard input or output is not a terminal" if not both else f"TERM is {kind or 'not set'}"
        yield note("cockpit", why, "runs are headless, replay and attach print plain text")
    else:
        yield from _screen(kind, environ)
    encoding = locale.getpreferredencoding(False)
    if encoding.lower().replace("-", "") != "utf8":
        yield warning("encoding", encoding, "lines and symbols will look wrong; set LANG to a UTF-8 locale")
    if environ.get("TMUX"):
        yield note(
            "tmux",
            "inside tmux",
            "copying needs `set -g set-clipboard on`; `set -s escape-time 10` makes escape quick",
        )
    elif environ.get("STY"):
        yield note("screen", "inside GNU screen", "colours are few there; tmux shows more")
    if environ.get("SSH_CONNECTION"):
        yield note("ssh", "logged in over SSH", "on a slow line `ssh -C` makes the screens 10 times smaller")


def _screen(kind: str, environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    size = shutil.get_terminal_size()
    small = size.columns < SMALLEST[0] or size.lines < SMALLEST[1]
    yield DoctorFinding(
        "cockpit",
        State.WARNING if small else State.OK,
        f"TERM {kind}, {size.columns} columns by {size.lines} lines",
        f"below {SMALLEST[0]} by {SMALLEST[1]} parts of the screens are cut" if small else "",
    )
    if environ.get("NO_COLOR"):
        yield note("colours", "NO_COLOR is set", "the cockpit draws without colours")
    elif (number := colours(environ)) > 256:
        yield ok("colours", "16 million")
    elif number == 256:
        yield ok("colours", "256", "COLORTERM=truecolor gives more, where the terminal can")
    else:
        yield note("colours", "16", "TERM=xterm-256color or tmux-256color gives more")


LOW_SPACE_BYTES = 2 << 30


def store(environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Yield the place of the sessions, whether it is writable, and whether it is permanent."""
    home = home_from(environ)
    yield from writable(home)
    yield from private(home)
    yield filesystem(home)
    yield space(home)
    yield git()
    yield sessions(home)


def nearest_folder(path: Path) -> Path:
    """Return the path, or the nearest existing folder above it."""
    return next((folder for folder in (path, *path.parents) if folder.is_dir()), Path("/"))


def writable(home: Home) -> Iterator[DoctorFinding]:
    """Yield whether the home can be made, written and locked. Leaves no file or folder behind."""
    if home.root.exists() and not home.root.is_dir():
        yield warning(
            "home",
            f"{home.root}: is a file, not a folder",
            "nothing can run; set WAVEDECK_HOME to a folder you may write",
        )
        return
    folder = nearest_folder(home.root)
    note = "" if folder == home.root else ", made at the first run"
    try:
        str(home.root).encode()
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".wavedeck-doctor-") as file:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (OSError, UnicodeEncodeError) as error:
        why = "the path is not UTF-8" if isinstance(error, UnicodeError) else error.strerror or str(error)
        yield warning(
            "home",
            f"{home.root}: cannot be written or locked ({why})",
            "nothing can run; set WAVEDECK_HOME to a folder you may write",
        )
        return
    yield ok("home", f"{home.root}, writable{note}")


def private(home: Home) -> Iterator[DoctorFinding]:
    """Yield whether other users can write into the home or read it; nothing if there is no home yet."""
    if not home.root.is_dir():
        return
    try:
        require_private(home)
    except HomeNotPrivate as error:
        yield warning("privacy", str(error), "run and resume refuse this home")
        return
    readers = readers_warning(home)
    yield warning("privacy", readers) if readers else ok("privacy", "no other user can open the home")


def filesystem(home: Home) -> DoctorFinding:
    """Return the file system of the home, and whether it survives the end of this machine."""
    mount = mount_of(home.root)
    if mount is None:
        return note(
            "file system", "unknown: the kernel does not report it", "make sure that it outlives this machine"
        )
    place = f"{mount.filesystem}, mounted on {mount.point}"
    risk = home_risk(home.root)
    if risk is None:
        return ok("file system", place)
    is_permanent = mount.filesystem in NETWORK_FILESYSTEMS
    return DoctorFinding("file system", State.NOTE if is_permanent else State.WARNING, place, risk)


def space(home: Home) -> DoctorFinding:
    """Return the free space."""
    free = shutil.disk_usage(nearest_folder(home.root)).free
    if free < LOW_SPACE_BYTES:
        return warning(
            "free space",
            memory_words(free),
            "a full disk stops an engine (the session can be resumed); free some space",
        )
    return ok("free space", memory_words(free))


def git() -> DoctorFinding:
    """Return the version of git; the store needs git."""
    path = shutil.which("git")
    if path is None:
        return warning("git", "not found", "no session can be stored; install git")
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False)
    return ok("git", f"{done.stdout.strip().removeprefix('git version ') or 'unknown version'} at {path}")


def sessions(home: Home) -> DoctorFinding:
    """Return the number of sessions by state."""
    from sessions.catalog import list_sessions
    from sessions.store.store import Store

    try:
        infos = list_sessions(home)
        damaged = [f"{info.name} is damaged" for info in infos if info.problem]
        if home.store.exists():
            with Store.read_only(home.store) as store:
                damaged += [f"{ref} is damaged" for ref in sorted(store.repository.branches().damaged)]
    except SessionsError as error:
        return warning("sessions", str(error))
    if damaged:
        words = ", ".join(damaged[:4]) + (", ..." if len(damaged) > 4 else "")
        return warning("sessions", words, "repair the store with: wavedeck doctor --repair")
    if not infos:
        return ok("sessions", "none yet", "begin with: wavedeck run")
    states = [info.state for info in infos]
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    return ok("sessions", counts)


def detached(environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Yield what may end an engine after its user logs out."""
    home = home_from(environ).root
    yield sockets(environ)
    # The section about the store already reports the risk of the home's file system.
    risks = [risk for risk in detach_risks(home, environ=environ) if risk != home_risk(home)]
    for risk in risks:
        yield warning("after you leave", risk)
    if not risks:
        yield ok("after you leave", "no known risk: engines keep running when you log out")


def sockets(environ: Mapping[str, str]) -> DoctorFinding:
    """Return the folder of the engines' sockets."""
    folder = socket_place(environ)
    if not os.access(nearest_folder(folder), os.W_OK):
        return warning(
            "sockets", f"{folder} cannot be made", "engines cannot receive commands; unset XDG_RUNTIME_DIR"
        )
    return ok("sockets", f"{folder}")
