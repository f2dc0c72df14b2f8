"""The read allow-list by Landlock (Linux 5.13 and later), which also limits root. Torch-free."""

from __future__ import annotations

import ctypes
import functools
import os
import pwd
import shutil
import site
import stat
import struct
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.linux import syscalls
from harness.linux.worker_start import lent_folders
from suites.source.package import PackageView

OUR_PACKAGES = ("tui", "engine", "sessions", "harness", "suites")

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULE_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_READ = _READ_FILE | _READ_DIR
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_ALL_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
"""Rights known to each version of Landlock; versions above 5 added none for files."""
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_BOTH_TCP_RIGHTS = 3
_BOTH_SCOPES = 3
SCOPES_SINCE = 6

_SYSTEM_READ = (
    "/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/share/zoneinfo", "/etc/ld.so.cache",
    "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/proc/cpuinfo", "/proc/meminfo",
    "/sys/devices/system/cpu", "/dev/urandom", "/dev/random", "/dev/zero",
)  # fmt: skip
_LOADER = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
_VENDORS = ("/opt/rocm*", "/opt/amdgpu", "/usr/local/cuda*", "/usr/local/nvidia")
_VENDOR_VARIABLES = ("ROCM_PATH", "ROCM_HOME", "HIP_PATH", "CUDA_HOME", "CUDA_PATH")
_DEVICE_NODES = ("/dev/kfd", "/dev/dri", "/dev/nvidia*")
_DRIVER_READ = (
    "/proc/driver/nvidia", "/proc/devices", "/proc/modules", "/proc/sys/vm/overcommit_memory",
    "/proc/sys/vm/mmap_min_addr", "/sys/bus/pci", "/sys/class/drm", "/sys/class/kfd", "/sys/dev/char",
    "/sys/devices/pci*", "/sys/devices/system/clocksource", "/sys/devices/system/node", "/sys/devices/virtual/kfd",
    "/sys/module/amdgpu", "/sys/module/nvidia*", "/usr/share/libdrm", "/usr/share/nvidia",
)  # fmt: skip
_HOST_COMPILER = (
    "/bin",
    "/usr/bin",
    "/usr/local/bin",
    "/usr/libexec",
    "/sbin/ldconfig",
    "/usr/sbin/ldconfig",
)
"""Triton builds its launcher with the host's C compiler and asks `ldconfig` for the driver's library."""
_SHARED_PREFIXES = (Path("/"), Path("/usr"), Path("/usr/local"))
"""Prefixes of the whole system. A compiler with a prefix of its own may read all of that prefix, but not of these."""
_HOST_HEADERS = ("/usr/include", "/usr/local/include", "/etc/alternatives")


def version() -> int:
    """Return the version of the kernel's Landlock; 0 if there is none, or if a container forbids it."""
    try:
        return syscalls.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(1))
    except OSError:
        return 0


def restrict(
    version: int,
    scratch: Path,
    *,
    run_programs: bool,
    gpu: bool,
    package: PackageView | None = None,
    further: Iterable[Path] = (),
) -> None:
    """Apply the allow-list and `further` readable folders to this process tree permanently; `OSError` if the kernel refuses."""
    handled = rights_of(version)
    rules = [*_rules(scratch, handled, run_programs=run_programs, gpu=gpu)]
    rules += [(path, _READ) for path in further]
    if package is not None:
        rules += [(Path(name), _READ_DIR) for name in package.import_folders]
        rules += [(path, _READ) for path in package.readable()]
    enforce(version, rules, tcp=False)


def confine(version: int, *, run: Iterable[Path], write: Iterable[Path]) -> None:
    """Let this process and its descendants only read and run what is in `run`, and write only to `write`, permanently.

    TCP stays allowed. Signals reach only processes that are confined too (since `SCOPES_SINCE`). `OSError` if the kernel refuses.
    """
    handled = rights_of(version)
    rules = [(path, _READ | _EXECUTE) for path in run] + [(path, handled) for path in write]
    enforce(version, rules, tcp=True)


def rights_of(version: int) -> int:
    """Return the rights on files that this version of Landlock knows."""
    return _ALL_FILE_RIGHTS[min(version, 5)]


def enforce(version: int, rules: Iterable[tuple[Path, int]], *, tcp: bool) -> None:
    """Apply rules, paths with their rights, to this process and its descendants permanently; `OSError` if the kernel refuses."""
    handled = rights_of(version)
    known_fields = 3 if version >= SCOPES_SINCE else 2 if version >= 4 else 1
    attributes = struct.pack("<QQQ", handled, 0 if tcp else _BOTH_TCP_RIGHTS, _BOTH_SCOPES)
    attributes = attributes[: 8 * known_fields]
    ruleset = syscalls.syscall(
        _CREATE_RULESET, ctypes.c_char_p(attributes), ctypes.c_size_t(len(attributes)), ctypes.c_uint(0)
    )
    try:
        for path, rights in rules:
            _allow(ruleset, path, rights & handled)
        syscalls.syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0))
    finally:
        os.close(ruleset)


@functools.cache
def python_folders() -> tuple[Path, ...]:
    """Return the folders of the standard library and of installed packages of this interpreter, lent packages too."""
    names = {sysconfig.get_path(key) for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    names.update(site.getsitepackages())
    names.update(lent_folders())
    names.update(entry for entry in sys.path if entry.endswith(("-packages", "lib-dynload")))
    return tuple(sorted(Path(name) for name in names if name and Path(name).is_dir()))


def device_nodes() -> tuple[Path, ...]:
    """Return every device node of a GPU driver on this machine."""
    return tuple(
        node
        for path in _existing(_DEVICE_NODES)
        for node in (sorted(path.rglob("*")) if path.is_dir() else [path])
        if node.is_char_device()
    )


def _rules(scratch: Path, handled: int, *, run_programs: bool, gpu: bool) -> Iterator[tuple[Path, int]]:
    """Allowed paths with their rights. Rights that a path's kind or the kernel does not know are masked later."""
    yield scratch, handled & ~_EXECUTE & ~_IOCTL_DEV
    yield Path(f"/proc/{os.getpid()}"), _READ
    yield from common_rules(run_programs=run_programs, gpu=gpu)
    if gpu:
        # CUDA's driver names its threads in `comm` there, and does not start if it cannot.
        yield Path(f"/proc/{os.getpid()}/task"), _READ | _WRITE_FILE | _TRUNCATE


@functools.cache
def common_rules(*, run_programs: bool, gpu: bool) -> tuple[tuple[Path, int], ...]:
    """Return the rules that all processes of a server share; a server calls this once before it forks."""
    return tuple(_list_common_rules(run_programs=run_programs, gpu=gpu))


def _list_common_rules(*, run_programs: bool, gpu: bool) -> Iterator[tuple[Path, int]]:
    """Yield the paths that every sandboxed process needs, each with the access that it gets.

    `run_programs` and `gpu` add the dynamic loader and Triton's folders to execute. `gpu` adds devices, drivers and compilers.
    """
    yield Path("/dev/null"), _READ_FILE | _WRITE_FILE
    for path in _existing((*_SYSTEM_READ, *_VENDORS)):
        yield path, _READ
    for name in _VENDOR_VARIABLES:
        if os.environ.get(name, "/") != "/":
            yield Path(os.environ[name]), _READ
    for folder in python_folders():
        yield folder, _READ_DIR
        yield from ((entry, _READ) for entry in _foreign_packages(folder))
    if run_programs or gpu:
        for path in [*_existing(_LOADER), *_triton_folders()]:
            yield path, _READ | _EXECUTE
    if gpu:
        for path in _existing(_DEVICE_NODES):
            yield path, _READ | _WRITE_FILE | _IOCTL_DEV
        for path in [*_existing((*_DRIVER_READ, *_HOST_HEADERS)), Path(sysconfig.get_path("include"))]:
            yield path, _READ
        # CUDA builds of torch have a `ptxas`: once `torch.compile` ran, Triton runs this assembler.
        assemblers = [path for folder in python_folders() for path in folder.glob("torch/bin/ptxas")]
        for path in [*_existing((*_HOST_COMPILER, *_VENDORS)), *_compiler_folders(), *assemblers]:
            yield path, _READ | _EXECUTE


def _existing(names: Iterable[str]) -> list[Path]:
    root = Path("/")
    return [path for name in names for path in root.glob(name.removeprefix("/"))]


def _compiler_folders() -> Iterator[Path]:
    """Folders of C compilers that are not the system's."""
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        program = shutil.which(name) if name else None
        if program is None:
            continue
        for path in (Path(program), Path(program).resolve()):
            prefix = path.parent.parent
            if path.parent.name == "bin" and prefix not in (*_SHARED_PREFIXES, *_homes()):
                yield prefix


def _homes() -> tuple[Path, ...]:
    """Return the user's home, and its folder for programs; nothing for a user that the system does not know."""
    try:
        home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return ()
    return home, home / ".local"


def _foreign_packages(folder: Path) -> Iterator[Path]:
    """All entries of `folder` except this project's packages."""
    for entry in os.scandir(folder):
        ours = entry.name in OUR_PACKAGES or entry.name.endswith(("-packages", ".pth"))
        if not ours and "wavedeck" not in entry.name:
            yield Path(entry.path)


def _triton_folders() -> list[Path]:
    triton = sys.modules.get("triton")
    file = getattr(triton, "__file__", None)
    return [Path(file).parent] if file else []


def _allow(ruleset: int, path: Path, rights: int) -> None:
    """Allow a path, and all below a folder, with these rights. A path that is missing or not readable needs no rule.

    Rights that only folders have are dropped for files. Raises `OSError` if the kernel refuses the rule.
    """
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _ON_FILES
        if rights:
            syscalls.syscall(
                _ADD_RULE,
                ctypes.c_int(ruleset),
                ctypes.c_int(_RULE_PATH_BENEATH),
                ctypes.c_char_p(struct.pack("<Qi", rights, descriptor)),
                ctypes.c_uint(0),
            )
    finally:
        os.close(descriptor)
