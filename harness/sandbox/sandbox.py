"""Applies the layers of a sandbox to this process, one after the other, and reports the state of each. Torch-free."""

from __future__ import annotations

import errno
import os
import platform
import resource
import signal
import stat
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from harness.linux import syscalls
from harness.linux.process_environment import dropped_names, unexpected_names
from harness.wire import limits
from harness.wire.results.evaluation import Layer
from suites.source.package import PackageView

from . import identity, landlock, seccomp
from .identity import Absent

NAMES = (
    "session", "parent-death-signal", "streams", "descriptors", "environment", "scratch", "network", "ipc", "user",
    "limits", "processes", "core-dumps", "capabilities", "no-new-privileges", "read-allow-list", "signal-scope",
    "system-calls", "other-processes",
)  # fmt: skip
"""Every layer, in the order of the report."""

_YIELDING = 10
"""Added to the niceness of a process tree that only the warden counts."""
_NPROC_BY_NAMESPACE = (5, 14)
"""The first Linux that counts a user's processes per user namespace."""


class SandboxFailed(Exception):
    """A layer that should hold on this machine does not; the message says why."""


def apply(
    scratch: Path,
    cpu_limit_s: int,
    address_space_bytes: int,
    *,
    run_programs: bool,
    gpu: bool = False,
    package: PackageView | None = None,
) -> tuple[Layer, ...]:
    """Apply every layer to this process permanently, and report which hold.

    `run_programs` allows triton's own programs (assemblers and linkers). `gpu` allows the drivers' device nodes and the host's
    C compiler, with which triton builds its launchers. The address space is not limited then, because drivers reserve more
    than any limit. The files of `package` can be read and not written. The process must be single-threaded, in its own
    session, and must have imported all modules that the read allow-list forbids.
    """
    layers = _Layers(scratch, run_programs=run_programs, gpu=gpu, package=package)
    layers.hold("session", _session)
    layers.hold("streams", _streams)
    layers.hold("descriptors", _descriptors)
    layers.hold("environment", _environment)
    layers.hold("scratch", lambda: _enter(scratch))
    syscalls.leave_keyring()
    layers.leave_namespaces_and_user()
    layers.hold("parent-death-signal", layers.die_with_the_parent)
    layers.hold("limits", lambda: _limit(cpu_limit_s, None if gpu else address_space_bytes))
    layers.hold("core-dumps", lambda: _keep_no_cores(scratch))
    layers.hold("capabilities", identity.drop_capabilities)
    layers.hold("no-new-privileges", _forbid_privileges)
    layers.restrict_files()
    layers.refuse_calls()
    layers.hold("other-processes", layers.check_other_processes)
    return layers.in_order()


def apply_under_tool(
    scratch: Path, cpu_limit_s: int, folders: Iterable[Path], package: PackageView | None = None
) -> tuple[str, ...]:
    """Apply the layers that a profiler in this process allows, permanently, and return the names of a guest's other layers.

    A warden must be above the profiler. The profiler must have counted a kernel before: it then has its connections and
    libraries open. It may read its `folders` later, and may open no further connection. User, capabilities and open descriptors
    stay, because reading counters needs them.
    """
    layers = _Layers(scratch, run_programs=False, gpu=True, package=package)

    def restrict() -> str:
        if landlock.version() == 0:
            raise Absent("this kernel has no Landlock")
        landlock.restrict(
            landlock.version(), scratch, run_programs=False, gpu=True, package=package, further=folders
        )
        return ""

    # Since the process's start; the warden ends and counts the tree.
    active = {"session", "streams", "environment", "scratch", "parent-death-signal", "processes"}
    applied: dict[str, Callable[[], str | None]] = {
        "core-dumps": lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
        "limits": lambda: _limit(cpu_limit_s, None),
        "no-new-privileges": _forbid_privileges,
        "read-allow-list": restrict,
        "system-calls": lambda: seccomp.protect(run_programs=False, gpu=True, own_signals=True),
    }
    active |= {name for name, apply_layer in applied.items() if layers.hold(name, apply_layer)}
    if "system-calls" in active:  # no connection, no shared memory, and no signal to another process
        active |= {"network", "ipc", "signal-scope"}
    return tuple(name for name in NAMES if name not in active)


def guest_environment(scratch: Path) -> dict[str, str]:
    """Return the variables that depend on the scratch folder; all others come from the server."""
    folder = str(scratch)
    return {
        "HOME": folder,
        "TMPDIR": folder,
        "TRITON_HOME": folder,
        "TRITON_CACHE_DIR": str(scratch / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "LOGNAME": "guest",  # torch's compiler needs a user name, and the guest's user id has none
        "XDG_CACHE_HOME": folder,
        "HSA_COREDUMP_PATTERN": str(scratch / "gpucore"),
    }


class _Layers:
    """The layers of one process while they are applied; some depend on the state of earlier ones."""

    def __init__(self, scratch: Path, *, run_programs: bool, gpu: bool, package: PackageView | None) -> None:
        self._scratch, self._run_programs, self._gpu = scratch, run_programs, gpu
        self._package = package
        self._parent = os.getppid()
        self._above = syscalls.ancestors(os.getpid())
        self._layers: dict[str, Layer] = {}
        self._namespaces: list[str] = []
        self._own_count = False
        """Whether the kernel counts this process's tasks separately from the user's other tasks."""

    def hold(self, name: str, apply_layer: Callable[[], str | None]) -> bool:
        """Apply one layer, note its state, and return whether it is active.

        What the machine does not offer is `absent`, what goes wrong is `failed`; neither is raised.
        """
        try:
            self._note(name, "active", apply_layer() or "")
        except Absent as why:
            self._note(name, "absent", str(why))
        except SandboxFailed as why:
            self._note(name, "failed", str(why))
        except OSError as error:
            absent = error.errno in (errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP, errno.EINVAL)
            self._note(name, "absent" if absent else "failed", f"{error.strerror} (errno {error.errno})")
        return self._layers[name].state == "active"

    def in_order(self) -> tuple[Layer, ...]:
        """Return all layers in the order of `NAMES`."""
        return tuple(self._layers[name] for name in NAMES)

    def leave_namespaces_and_user(self) -> None:
        """Leave the network and IPC namespaces and the user.

        Root can leave namespaces first; other users need a user namespace.
        """
        root = os.geteuid() == 0
        shared = syscalls.CLONE_NEWNET | syscalls.CLONE_NEWIPC
        if root:
            self._leave(shared, "network and IPC")
        self._own_count = self.hold(
            "user",
            lambda: identity.leave_user(
                self._scratch, run_programs=self._run_programs, gpu=self._gpu, package=self._package
            ),
        )
        if not self._own_count:
            rest = 0 if self._namespaces else shared
            name = "user, network and IPC" if rest else "user"
            if self._leave(syscalls.CLONE_NEWUSER | rest, name) and not root:
                self._own_count = _linux_version() >= _NPROC_BY_NAMESPACE

    def die_with_the_parent(self) -> str:
        """Set the parent-death signal and undumpable again, because a change of user resets both."""
        syscalls.keep_undumpable()
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != self._parent:
            raise SandboxFailed("the parent process ended while the layers were applied")
        if syscalls.parent_death_signal() != signal.SIGKILL:
            raise SandboxFailed("the kernel did not keep the signal")
        return "and its warden ends and reaps the whole process tree"

    def restrict_files(self) -> None:
        """Apply Landlock: the read allow-list, and if the kernel can, signals and sockets limited to the guest's processes."""
        version = landlock.version()

        def restrict() -> str:
            if version == 0:
                raise Absent(
                    "this kernel has no Landlock: a candidate may read all files that its user may read"
                )
            landlock.restrict(
                version, self._scratch, run_programs=self._run_programs, gpu=self._gpu, package=self._package
            )
            shown = f", the package in {self._package.package.root}" if self._package is not None else ""
            return f"Landlock version {version}: Python, torch, triton and the scratch folder{shown}"

        if not self.hold("read-allow-list", restrict):
            syscalls.set_capabilities(0)

    def refuse_calls(self) -> None:
        """Apply the filter of system calls, then the layers that it replaces: signals, network, IPC, processes."""
        has_landlock = self._layers["read-allow-list"].state == "active"
        scoped = has_landlock and landlock.version() >= landlock.SCOPES_SINCE
        filtered = self.hold(
            "system-calls",
            lambda: seccomp.protect(run_programs=self._run_programs, gpu=self._gpu, own_signals=not scoped),
        )
        self.hold("signal-scope", lambda: _signal_scope(scoped=scoped, filtered=filtered))
        self.hold("network", lambda: self._separate("network", filtered=filtered))
        self.hold("ipc", lambda: self._separate("IPC", filtered=filtered))
        self.hold("processes", lambda: self._processes(filtered=filtered))

    def check_other_processes(self) -> str:
        """Check that no ancestor, from the warden to the login shell, can be read."""
        for pid in self._above:
            for name in ("environ", "mem"):
                try:
                    os.close(os.open(f"/proc/{pid}/{name}", os.O_RDONLY))
                except OSError:
                    continue
                raise SandboxFailed(
                    f"/proc/{pid}/{name} can be read: a key in that process's memory is not safe here"
                )
        if not self._apart_from_its_user:
            raise Absent(
                "engine and judge are protected; your other processes, such as a shell with keys, are not"
            )
        return f"environment and memory of the {len(self._above)} parent processes cannot be opened"

    @property
    def _apart_from_its_user(self) -> bool:
        """Whether a layer separates this process from others of the user who started it."""
        held = any(self._layers[name].state == "active" for name in ("read-allow-list", "user"))
        return held or any("user" in namespaces for namespaces in self._namespaces)

    def _leave(self, flags: int, namespaces: str) -> bool:
        """Leave the host's namespaces of these flags, noted as `namespaces`; return whether the kernel allows it."""
        try:
            syscalls.unshare(flags)
        except OSError:
            return False
        self._namespaces.append(namespaces)
        return True

    def _separate(self, what: str, *, filtered: bool) -> str:
        """Return in words what separates the worker's `network` or `IPC` from the host's; raise `Absent` if nothing does."""
        own = any(what in namespaces for namespaces in self._namespaces)
        if not own and not filtered:
            raise Absent(f"this machine forbids namespaces and filters, so the guest uses the host's {what}")
        sockets = "no socket can be connected" if self._gpu else "sockets refused"
        refused = {"network": sockets, "IPC": "shared memory and queues refused"}[what]
        return "; ".join([f"its own {what} namespace"] * own + [refused] * filtered)

    def _processes(self, *, filtered: bool) -> str:
        """Limit the number of processes, by the kernel where it can count those of this worker; return the limit in words."""
        if filtered and not self._run_programs and not self._gpu:
            return "none can be started"
        counted = f"the warden ends a tree of more than {limits.PROCESSES}"
        if not self._own_count:
            # A process that forks without end must leave its warden the time to end it.
            os.nice(_YIELDING)
            return f"{counted}; the tree has a lower priority than its warden"
        tasks = limits.tasks()
        resource.setrlimit(resource.RLIMIT_NPROC, (tasks, tasks))
        return f"the kernel allows {tasks} with their threads; {counted}"

    def _note(self, name: str, state: str, why: str) -> None:
        self._layers[name] = Layer(name, state, why)


def _session() -> str:
    if os.getsid(0) != os.getpid() or os.getpgrp() != os.getpid():
        raise SandboxFailed("the process shares its session or process group")
    return "its own session and process group"


def _streams() -> str:
    """Check that the three standard streams are the judge's; return the state in words. Raises `Failed`."""
    null = Path(os.devnull).stat()
    if os.fstat(0).st_rdev != null.st_rdev or not all(
        stat.S_ISFIFO(os.fstat(stream).st_mode) for stream in (1, 2)
    ):
        raise SandboxFailed("standard streams are not the judge's")
    return f"no input; the last {limits.memory_words(limits.PRINTED_BYTES)} of the output are kept"


def _descriptors() -> str:
    """Check that besides the three streams only one socket is open, the judge's channel. Raises `Failed`."""
    kinds = {}
    for entry in list(os.scandir("/proc/self/fd")):
        try:
            kinds[int(entry.name)] = os.fstat(int(entry.name)).st_mode
        except OSError:
            continue  # the listing's own descriptor
    opened = {number: kind for number, kind in kinds.items() if number > 2}
    if len(opened) != 1 or not all(stat.S_ISSOCK(kind) for kind in opened.values()):
        raise SandboxFailed(
            f"besides the streams only one channel may be open, not {', '.join(map(str, sorted(opened)))}"
        )
    return "the streams and the judge's channel"


def _environment() -> str:
    """Check that only allowed variables are set; return the state in words. Raises `Failed`."""
    unexpected = unexpected_names(os.environ)
    if unexpected:
        raise SandboxFailed(f"not on the list of allowed names: {', '.join(unexpected)}")
    dropped = dropped_names(os.environ)
    note = f"; dropped, so without effect here: {', '.join(dropped)}" if dropped else ""
    return f"{len(os.environ)} variables, all on the list of allowed names{note}"


def _enter(scratch: Path) -> str:
    """Make the scratch folder the working folder and the place of temporary files; return its limits in words."""
    os.chdir(scratch)
    os.umask(0o077)
    os.environ.update(guest_environment(scratch))
    tempfile.tempdir = str(scratch)
    return (
        f"writes only there; the warden ends a guest that keeps more than {limits.memory_words(limits.SCRATCH_BYTES)} or "
        f"{limits.SCRATCH_FILES} files"
    )


def _limit(cpu_limit_s: int, address_space_bytes: int | None) -> str:
    """Limit CPU time, size of files, open files and address space of this process; return the limits in words.

    A limit that is lower already stays. The address space counts from what is mapped now; `None` leaves it unbounded.
    """
    mapped = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    unbounded = resource.RLIM_INFINITY
    for kind, value in (
        (resource.RLIMIT_CPU, cpu_limit_s),
        (resource.RLIMIT_FSIZE, limits.FILE_BYTES),
        (resource.RLIMIT_NOFILE, limits.OPEN_FILES),
        (resource.RLIMIT_AS, unbounded if address_space_bytes is None else mapped + address_space_bytes),
    ):
        _soft, hard = resource.getrlimit(kind)
        allowed = value if hard == unbounded else hard if value == unbounded else min(value, hard)
        # Where both limits are equal, Linux sends SIGKILL at once, which nobody could explain later.
        last = allowed + 1 if kind == resource.RLIMIT_CPU and hard == unbounded else allowed
        resource.setrlimit(kind, (allowed, last))
    memory = (
        "no bound on" if address_space_bytes is None else f"{limits.memory_words(address_space_bytes)} of"
    )
    return f"{cpu_limit_s} s CPU, {memory} memory, {limits.memory_words(limits.FILE_BYTES)} a file, {limits.OPEN_FILES} open"


def _forbid_privileges() -> str:
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    return "no program changes its user"


def _keep_no_cores(scratch: Path) -> str:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if syscalls.is_dumpable():
        raise SandboxFailed("the process is dumpable")
    return f"none; a GPU's go to {scratch.name}, which is removed"


def _signal_scope(*, scoped: bool, filtered: bool) -> str:
    """Return in words what keeps signals to other processes out; raise `Absent` if nothing does."""
    if scoped:
        return "signals and abstract sockets reach only the guest's own processes"
    if filtered:
        return "signals to any other process are refused"
    needed = f"Landlock {landlock.SCOPES_SINCE} (Linux 6.12) or a filter of system calls is needed"
    raise Absent(f"{needed}; a candidate can send signals to processes of its user")


def _linux_version() -> tuple[int, int]:
    major, minor = platform.release().split(".")[:2]
    digits = "".join(character for character in minor if character.isdigit())
    return int(major), int(digits or 0)
