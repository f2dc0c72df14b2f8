"""What on this machine would end a detached engine, or lose what it wrote."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Mapping
from configparser import ConfigParser
from configparser import Error as ConfigError
from pathlib import Path
from typing import NamedTuple

from sessions.home import home_from

BATCH_JOBS = {"SLURM_JOB_ID": "Slurm", "PBS_JOBID": "PBS", "LSB_JOBID": "LSF", "FLUX_JOB_ID": "Flux"}
MEMORY_FILESYSTEMS = frozenset({"tmpfs", "ramfs"})
NETWORK_FILESYSTEMS = frozenset(
    {"nfs", "nfs4", "lustre", "beegfs", "gpfs", "cifs", "smb3", "fuse.sshfs", "afs"}
)
INITS = frozenset({"systemd", "init", "tini", "dumb-init", "catatonit", "s6-svscan", "docker-init", "runit"})
"""First processes that stay for as long as the machine or container does."""


class Mount(NamedTuple):
    """Where a path lies."""

    point: Path
    filesystem: str
    """The kernel's word: `ext4`, `overlay`, `nfs4`, ..."""


def detach_risks(
    home: Path | None = None, *, environ: Mapping[str, str] | None = None, root: Path = Path("/")
) -> list[str]:
    """One line for each thing that would end a detached engine here or lose its work; empty when nothing is known to.

    `root` is where `proc`, `etc` and `var` are looked for. What cannot be read counts as harmless.
    """
    environ = os.environ if environ is None else environ
    found = (
        _logout_risk(root, environ),
        _batch_risk(root, environ),
        _container_risk(root),
        home_risk(home or home_from(environ).root, root=root),
    )
    return [risk for risk in found if risk]


def home_risk(home: Path, *, root: Path = Path("/")) -> str | None:
    """What the file system under the home means for what is kept there; `None` when it is an ordinary disk."""
    mount = mount_of(home, root=root)
    if mount is None:
        return None
    if mount.filesystem in MEMORY_FILESYSTEMS:
        return f"the home {home} lies in memory ({mount.filesystem}): sessions are gone at a reboot; set WAVEDECK_HOME"
    if mount.filesystem == "overlay":
        return (
            f"the home {home} lies in the container's own layer: sessions are gone with the container; "
            "set WAVEDECK_HOME to a mounted volume"
        )
    if mount.filesystem in NETWORK_FILESYSTEMS:
        return (
            f"the home {home} lies on {mount.filesystem}: each durable event waits for the network, and locks hold "
            "between machines only where the server supports them; a local WAVEDECK_HOME is faster"
        )
    return None


def mount_of(path: Path, *, root: Path = Path("/")) -> Mount | None:
    """The mount that a path lies on (the nearest folder that exists counts); `None` where the kernel does not tell."""
    resolved = path.resolve()
    best: Mount | None = None
    for line in _text(root / "proc/self/mountinfo").splitlines():
        before, separator, after = line.partition(" - ")
        fields = before.split()
        if not separator or len(fields) < 5:
            continue
        point = Path(_unescaped(fields[4]))
        # The last line for a point is the mount that covers the others.
        if resolved.is_relative_to(point) and (best is None or len(point.parts) >= len(best.point.parts)):
            best = Mount(point, after.split()[0])
    return best


def _logout_risk(root: Path, environ: Mapping[str, str]) -> str | None:
    """What a user left running at logout is ended by systemd, where it is told to and the user may not linger."""
    in_session = re.search(r"/session-[^/]+\.scope", _text(root / "proc/self/cgroup"))
    if not in_session and not environ.get("XDG_SESSION_ID"):
        return None
    if not _kills_user_processes(root) or (root / "var/lib/systemd/linger" / _login_name()).exists():
        return None
    return "systemd ends your processes at logout here (KillUserProcesses=yes): allow yours to stay with `loginctl enable-linger`"


def _kills_user_processes(root: Path) -> bool:
    """The last word of logind's configuration files; systemd's own default is no."""
    files = [root / "usr/lib/systemd/logind.conf", root / "etc/systemd/logind.conf"]
    for folder in ("usr/lib/systemd/logind.conf.d", "run/systemd/logind.conf.d", "etc/systemd/logind.conf.d"):
        files += sorted((root / folder).glob("*.conf"))
    kills = False
    for file in files:
        parser = ConfigParser(strict=False, interpolation=None)
        try:
            parser.read_string(_text(file))
            kills = parser.getboolean("Login", "KillUserProcesses", fallback=kills)
        except (ConfigError, ValueError):
            continue
    return kills


def _batch_risk(root: Path, environ: Mapping[str, str]) -> str | None:
    for variable, name in BATCH_JOBS.items():
        if environ.get(variable):
            return f"this is {name} job {environ[variable]}: the engine ends with the job; resume it in the next one"
    if re.search(r"/(slurm|job_\d+)", _text(root / "proc/self/cgroup")):
        return "this is a batch job's cgroup: the engine ends with the job; resume it in the next one"
    return None


def _container_risk(root: Path) -> str | None:
    in_container = (root / ".dockerenv").exists() or (root / "run/.containerenv").exists()
    first = _text(root / "proc/1/comm").strip()
    if not in_container or not first or first in INITS:
        return None
    return f"the container's first process is {first}: when it ends, the engine ends with it"


def _login_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _unescaped(field: str) -> str:
    """A path as mountinfo writes it: space, tab, line end and backslash in octal."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
