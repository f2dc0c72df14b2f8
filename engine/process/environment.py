"""Checks of this machine: what would end a detached engine, or lose the data that it wrote."""

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
"""Names of a first process that runs for as long as the machine or container."""


class Mount(NamedTuple):
    """The mount that a path lies on."""

    point: Path
    filesystem: str
    """The kernel's name: `ext4`, `overlay`, `nfs4`, ..."""


def detach_risks(
    home: Path | None = None, *, environ: Mapping[str, str] | None = None, root: Path = Path("/")
) -> list[str]:
    """Returns one line for each thing here that would end a detached engine or lose its data.

    `root` is the folder with `proc`, `etc` and `var`. A file that cannot be read counts as harmless.
    """
    environ = os.environ if environ is None else environ
    risks = (
        _logout_risk(root, environ),
        _batch_risk(root, environ),
        _container_risk(root),
        home_risk(home or home_from(environ).root, root=root),
    )
    return [risk for risk in risks if risk]


def home_risk(home: Path, *, root: Path = Path("/")) -> str | None:
    """Returns the risk of the home's file system in one line; `None` for an ordinary disk."""
    mount = mount_of(home, root=root)
    if mount is None:
        return None
    if mount.filesystem in MEMORY_FILESYSTEMS:
        return f"the home {home} is in memory ({mount.filesystem}): a reboot deletes its sessions; set WAVEDECK_HOME"
    if mount.filesystem == "overlay":
        return (
            f"the home {home} is in the container's own layer: its sessions are deleted with the container; "
            "set WAVEDECK_HOME to a mounted volume"
        )
    if mount.filesystem in NETWORK_FILESYSTEMS:
        return (
            f"the home {home} is on {mount.filesystem}: each durable event waits for the network, and locks work "
            "between machines only if the server supports them; a local WAVEDECK_HOME is faster"
        )
    return None


def mount_of(path: Path, *, root: Path = Path("/")) -> Mount | None:
    """Returns the mount of a path, or of its nearest existing parent; `None` if the kernel does not report it."""
    resolved = path.resolve()
    best: Mount | None = None
    for line in _text(root / "proc/self/mountinfo").splitlines():
        before, separator, after = line.partition(" - ")
        fields = before.split()
        if not separator or len(fields) < 5:
            continue
        point = Path(_unescaped(fields[4]))
        # The last mount at a point covers the earlier ones.
        if resolved.is_relative_to(point) and (best is None or len(point.parts) >= len(best.point.parts)):
            best = Mount(point, after.split()[0])
    return best


def _logout_risk(root: Path, environ: Mapping[str, str]) -> str | None:
    """Systemd ends a user's processes at logout if KillUserProcesses is on and the user may not linger."""
    in_session = re.search(r"/session-[^/]+\.scope", _text(root / "proc/self/cgroup"))
    if not in_session and not environ.get("XDG_SESSION_ID"):
        return None
    if not _kills_user_processes(root) or (root / "var/lib/systemd/linger" / _login_name()).exists():
        return None
    return "systemd ends your processes at logout here (KillUserProcesses=yes): allow yours to stay with `loginctl enable-linger`"


def _kills_user_processes(root: Path) -> bool:
    """True if logind's configuration enables KillUserProcesses; the last file wins, systemd's default is no."""
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
            return f"this is {name} job {environ[variable]}: the engine ends with the job; resume it in the next job"
    if re.search(r"/(slurm|job_\d+)", _text(root / "proc/self/cgroup")):
        return "this is a batch job's cgroup: the engine ends with the job; resume it in the next job"
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
    """Decode a path of mountinfo, where space, tab, line end and backslash are octal."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
