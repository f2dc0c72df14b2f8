"""What keeps a guest from everything but its work: each layer applied in turn, each saying how it went. Torch-free."""

from __future__ import annotations

import errno
import os
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path

from harness import limits
from harness.evaluation import Layer

from . import landlock, linux
from .landlock import python_folders as python_folders


def apply(
    scratch: Path, cpu_limit_s: int, address_space_bytes: int, *, run_programs: bool, gpu: bool = False
) -> tuple[Layer, ...]:
    """Applies every layer to this process, for good, and says which hold.

    `run_programs` lets the process start what triton ships (assemblers and linkers). `gpu` opens the drivers' device
    nodes and lets the process run the host's C compiler, with which triton builds its launchers; its address space is
    not bounded then, because drivers reserve more than any bound. The process must be single-threaded, in a session of
    its own, and have everything imported that the read allow-list forbids.
    """
    return (
        Layer("session", "active" if os.getsid(0) == os.getpid() else "failed"),
        _layer("scratch", lambda: _enter(scratch)),
        _layer("limits", lambda: _limit(cpu_limit_s, None if gpu else address_space_bytes)),
        _layer("network", _leave_network),
        _layer("no-new-privileges", lambda: linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)),
        *_landlock(scratch, run_programs=run_programs, gpu=gpu),
    )


def guest_environment(scratch: Path) -> dict[str, str]:
    """The variables that change with the scratch folder; the rest comes from the server's own short list."""
    folder = str(scratch)
    return {
        "HOME": folder,
        "TMPDIR": folder,
        "TRITON_HOME": folder,
        "TRITON_CACHE_DIR": str(scratch / "triton"),
        "XDG_CACHE_HOME": folder,
    }


def _layer(name: str, apply_it: Callable[[], str | None]) -> Layer:
    try:
        why = apply_it()
    except OSError as error:
        absent = error.errno in (errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP, errno.EINVAL)
        return Layer(name, "absent" if absent else "failed", f"{error.strerror} (errno {error.errno})")
    return Layer(name, "active", why or "")


def _enter(scratch: Path) -> None:
    os.chdir(scratch)
    os.umask(0o077)
    os.environ.update(guest_environment(scratch))
    tempfile.tempdir = str(scratch)


def _limit(cpu_limit_s: int, address_space_bytes: int | None) -> str:
    mapped = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    for kind, value in (
        (resource.RLIMIT_CPU, cpu_limit_s),
        (resource.RLIMIT_FSIZE, limits.FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, limits.OPEN_FILES),
        (
            resource.RLIMIT_AS,
            resource.RLIM_INFINITY if address_space_bytes is None else mapped + address_space_bytes,
        ),
    ):
        _soft, hard = resource.getrlimit(kind)
        unbounded = resource.RLIM_INFINITY
        allowed = value if hard == unbounded else hard if value == unbounded else min(value, hard)
        resource.setrlimit(kind, (allowed, allowed))
    memory = "no bound on memory" if address_space_bytes is None else f"{address_space_bytes >> 30} GiB more"
    return f"{cpu_limit_s} s CPU, {memory}, {limits.FILE_BYTES >> 20} MiB a file"


def _leave_network() -> str:
    try:
        linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNET)
    except OSError:
        linux.unshare(
            linux.CLONE_NEWNET
        )  # root in a container may be allowed this where user namespaces are not
        return "network namespace of its own"
    return "user and network namespace of its own"


def _landlock(scratch: Path, *, run_programs: bool, gpu: bool) -> tuple[Layer, ...]:
    """Read allow-list, and signals and sockets scoped to the guest's own processes where the kernel knows how."""
    version = landlock.version()
    if version == 0:
        why = "this kernel has no Landlock: foreign code may read what the user may read"
        return (Layer("read-allow-list", "absent", why), Layer("signal-scope", "absent", why))
    try:
        landlock.restrict(version, scratch, run_programs=run_programs, gpu=gpu)
    except OSError as error:
        why = f"{error.strerror} (errno {error.errno})"
        return (Layer("read-allow-list", "failed", why), Layer("signal-scope", "failed", why))
    scope = (
        Layer("signal-scope", "active", "signals and abstract sockets end at the guest's own processes")
        if version >= 6
        else Layer("signal-scope", "absent", f"Landlock version {version}, 6 is needed (Linux 6.12)")
    )
    return (Layer("read-allow-list", "active", f"Landlock version {version}"), scope)
