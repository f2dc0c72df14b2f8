"""What keeps a guest from everything but its work: each layer applied in turn, each saying how it went. Torch-free."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import site
import struct
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from harness import limits
from harness.evaluation import Layer

from . import linux

OUR_PACKAGES = ("tui", "engine", "sessions", "harness", "suites")

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULE_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_READ = _READ_FILE | _READ_DIR
_ALL_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
"""Rights known to each version of Landlock; versions above 5 added none for files."""
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | 1 << 14 | 1 << 15
_IOCTL_DEV = 1 << 15
_BOTH_TCP_RIGHTS = 3
_BOTH_SCOPES = 3

_SYSTEM_READ = (
    "/lib",
    "/lib32",
    "/lib64",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/share/zoneinfo",
    "/opt/rocm",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/sys/devices/system/cpu",
    "/dev/urandom",
    "/dev/random",
    "/dev/zero",
)
_LOADER = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")


def apply(
    scratch: Path, cpu_limit_s: int, address_space_bytes: int, *, run_programs: bool
) -> tuple[Layer, ...]:
    """Applies every layer to this process, for good, and says which hold.

    `run_programs` lets the process start what triton ships (assemblers and linkers). The process must be
    single-threaded, in a session of its own, and have everything imported that the read allow-list forbids.
    """
    return (
        Layer("session", "active" if os.getsid(0) == os.getpid() else "failed"),
        _layer("scratch", lambda: _enter(scratch)),
        _layer("limits", lambda: _limit(cpu_limit_s, address_space_bytes)),
        _layer("network", _leave_network),
        _layer("no-new-privileges", lambda: linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)),
        *_landlock(scratch, run_programs=run_programs),
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


def landlock_version() -> int:
    """Version of the kernel's Landlock; 0 when there is none."""
    try:
        return linux.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(1))
    except OSError:
        return 0


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


def _limit(cpu_limit_s: int, address_space_bytes: int) -> str:
    mapped = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    for kind, value in (
        (resource.RLIMIT_CPU, cpu_limit_s),
        (resource.RLIMIT_FSIZE, limits.FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, limits.OPEN_FILES),
        (resource.RLIMIT_AS, mapped + address_space_bytes),
    ):
        _soft, hard = resource.getrlimit(kind)
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (allowed, allowed))
    return f"{cpu_limit_s} s CPU, {address_space_bytes >> 30} GiB more, {limits.FILE_BYTES >> 20} MiB a file"


def _leave_network() -> str:
    try:
        linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNET)
    except OSError:
        linux.unshare(
            linux.CLONE_NEWNET
        )  # root in a container may be allowed this where user namespaces are not
        return "network namespace of its own"
    return "user and network namespace of its own"


def _landlock(scratch: Path, *, run_programs: bool) -> tuple[Layer, ...]:
    """Read allow-list, and signals and sockets scoped to the guest's own processes where the kernel knows how."""
    version = landlock_version()
    if version == 0:
        why = "this kernel has no Landlock: foreign code may read what the user may read"
        return (Layer("read-allow-list", "absent", why), Layer("signal-scope", "absent", why))
    try:
        _restrict(version, scratch, run_programs=run_programs)
    except OSError as error:
        why = f"{error.strerror} (errno {error.errno})"
        return (Layer("read-allow-list", "failed", why), Layer("signal-scope", "failed", why))
    scope = (
        Layer("signal-scope", "active", "signals and abstract sockets end at the guest's own processes")
        if version >= 6
        else Layer("signal-scope", "absent", f"Landlock version {version}, 6 is needed (Linux 6.12)")
    )
    return (Layer("read-allow-list", "active", f"Landlock version {version}"), scope)


def _restrict(version: int, scratch: Path, *, run_programs: bool) -> None:
    handled = _ALL_FILE_RIGHTS[min(version, 5)]
    attributes = struct.pack(
        "<QQQ", handled, _BOTH_TCP_RIGHTS if version >= 4 else 0, _BOTH_SCOPES if version >= 6 else 0
    )
    attributes = attributes[: 24 if version >= 6 else 16 if version >= 4 else 8]
    ruleset = linux.syscall(
        _CREATE_RULESET, ctypes.c_char_p(attributes), ctypes.c_size_t(len(attributes)), ctypes.c_uint(0)
    )
    try:
        _allow(ruleset, scratch, handled & ~_EXECUTE & ~_IOCTL_DEV)
        _allow(ruleset, Path("/dev/null"), _READ_FILE | _WRITE_FILE)
        _allow(ruleset, Path(f"/proc/{os.getpid()}"), _READ)
        for name in _SYSTEM_READ:
            _allow(ruleset, Path(name), _READ)
        for folder in python_folders():
            _allow_children(ruleset, folder)
        if run_programs:
            for name in _LOADER:
                _allow(ruleset, Path(name), _READ | _EXECUTE)
            for folder in _triton_folders():
                _allow(ruleset, folder, _READ | _EXECUTE)
        linux.syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0))
    finally:
        os.close(ruleset)


def python_folders() -> tuple[Path, ...]:
    """Folders of the standard library and of installed packages, as this interpreter sees them."""
    names = {sysconfig.get_path(key) for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    names.update(site.getsitepackages())
    names.update(entry for entry in sys.path if entry.endswith(("-packages", "lib-dynload")))
    return tuple(sorted(Path(name) for name in names if name and Path(name).is_dir()))


def _allow_children(ruleset: int, folder: Path) -> None:
    """Allows reading all in `folder` but our own packages, wherever they were installed."""
    _allow(ruleset, folder, _READ_DIR)
    for entry in os.scandir(folder):
        ours = entry.name in OUR_PACKAGES or entry.name.endswith(("-packages", ".pth"))
        if not ours and "wavedeck" not in entry.name:
            _allow(ruleset, Path(entry.path), _READ)


def _triton_folders() -> Iterable[Path]:
    triton = sys.modules.get("triton")
    file = getattr(triton, "__file__", None)
    return [Path(file).parent] if file else []


def _allow(ruleset: int, path: Path, rights: int) -> None:
    """Adds one rule; a path that is not there needs none."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    try:
        if not path.is_dir():
            rights &= _ON_FILES
        rule = struct.pack("<Qi", rights, descriptor)
        linux.syscall(
            _ADD_RULE,
            ctypes.c_int(ruleset),
            ctypes.c_int(_RULE_PATH_BENEATH),
            ctypes.c_char_p(rule),
            ctypes.c_uint(0),
        )
    finally:
        os.close(descriptor)
