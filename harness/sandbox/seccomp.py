"""A filter that refuses system calls without an honest use in foreign code (Linux 3.17). Torch-free.

A refused call returns an error and never kills, so that honest code can go on. The filter's program is assembled here, because
`libseccomp` is on few machines.
Source of the numbers: the kernel's `syscall_64.tbl` and `asm-generic/unistd.h`; of the format: seccomp(2), bpf(4).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterable

from harness.linux import syscalls

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Column of the table below, and the kernel's audit number."""

_BOTH = {
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "process_madvise": (440, 440), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "tkill": (200, 130), "migrate_pages": (256, 238), "move_pages": (279, 239), "perf_event_open": (298, 241),
    # keys, rings and programs in the kernel
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "bpf": (321, 280),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "userfaultfd": (323, 282), "memfd_secret": (447, 447),
    # namespaces, mounts, handles
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "inotify_init1": (294, 26),
    # the machine
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "reboot": (169, 142), "swapon": (167, 224),
    "swapoff": (168, 225), "acct": (163, 89), "syslog": (103, 116), "sethostname": (170, 161),
    "setdomainname": (171, 162), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "clock_adjtime": (305, 266), "adjtimex": (159, 171), "personality": (135, 92), "vhangup": (153, 58),
    # memory and queues that processes could share
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semop": (65, 193),
    "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189),
    "msgrcv": (70, 188), "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
    # sockets: results use a socket that is already open
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201), "accept": (43, 202),
    "accept4": (288, 242),
    # not covered by Landlock: owners, modes, times and attributes of the user's files
    "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "fchown": (93, 55),
    "fchownat": (260, 54), "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "setxattrat": (463, 463), "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "removexattrat": (466, 466), "utimensat": (280, 88),
}  # fmt: skip
_X86_ONLY = {
    "iopl": 172, "ioperm": 173, "modify_ldt": 154, "chmod": 90, "chown": 92, "lchown": 94, "utime": 132,
    "utimes": 235, "futimesat": 261, "inotify_init": 253, "uselib": 134, "_sysctl": 156,
}  # fmt: skip
_NEW_PROCESSES = {"fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281)}
_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    **_BOTH,
    **{name: (number, None) for name, number in _X86_ONLY.items()},
    **_NEW_PROCESSES,
    "clone": (56, 220),
    "clone3": (435, 435),
    "ioctl": (16, 29),
    "ioprio_set": (251, 30),
    "kill": (62, 129),
    "landlock_create_ruleset": (444, 444),
    "memfd_create": (319, 279),
    "prctl": (157, 167),
    "prlimit64": (302, 261),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "seccomp": (317, 277),
    "setresuid": (117, 147),
    "setpriority": (141, 140),
    "socketpair": (53, 199),
    "tgkill": (234, 131),
}
_MISSING = frozenset({"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", "memfd_create"})
"""Refused like unknown calls (ENOSYS), which libraries handle; all others are refused as not permitted (EPERM)."""

_CLONE_THREAD = 0x10000
_CLONE_NEW_NAMESPACES = 0x7E020000
_SOCK_STREAM, _SOCK_DGRAM = 1, 2
_AF_UNIX = 1
_SOCKETS_OF_DRIVERS = ("socket", "bind", "listen")
"""CUDA's driver listens on its own local socket, and does not start if it cannot (driver 580)."""
_PRCTL_REFUSED = (1, 4, 35, 36, 0x59616D61)
"""Parent-death signal, dumpable, mm, subreaper, ptracer: only the harness sets these."""
_IOCTL_REFUSED = (0x5412, 0x541C)
"""Writing input to a terminal (TIOCSTI, TIOCLINUX)."""

_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_SET_MODE_FILTER, _ALL_THREADS = 1, 1
_X32 = 0x40000000

Step = tuple[int, int, int, int]
"""Operation, steps to skip if it is true, steps to skip if it is false, operand."""


def protect(*, run_programs: bool, gpu: bool, own_signals: bool) -> str:
    """Install the guest's filter permanently and return what it refuses; `OSError` if the kernel has no filters.

    `own_signals` refuses signals to all other processes, for kernels whose Landlock does not limit signals.
    """
    install(guest_filter(run_programs=run_programs or gpu, gpu=gpu, own_signals=own_signals))
    count = len(_BOTH) + (len(_X86_ONLY) if platform.machine() == "x86_64" else 0)
    count -= len(_SOCKETS_OF_DRIVERS) if gpu else 0
    processes = "" if run_programs or gpu else "; no program and no process can be started"
    return f"{count} calls refused{processes}"


def guest_filter(*, run_programs: bool, gpu: bool, own_signals: bool) -> list[Step]:
    """Return the filter's steps for a process with foreign code; they contain this process's id, so build them in that process.

    `run_programs` allows new processes. `gpu` allows the sockets and threads that drivers need. `own_signals` allows signals to
    this process alone.
    """
    own = (0, os.getpid())
    needed = _SOCKETS_OF_DRIVERS if gpu else ()
    steps = [step for name in (*_BOTH, *_X86_ONLY) if name not in needed for step in refuse(name)]
    if gpu:
        steps += _local_streams_only()
    steps += refuse("clone3")
    if run_programs:
        steps += _on_bits("clone", 0, _CLONE_NEW_NAMESPACES, _REFUSE, _PASS)
    else:
        steps += [step for name in (*_NEW_PROCESSES, "memfd_create") for step in refuse(name)]
        steps += _on_bits("clone", 0, _CLONE_THREAD, _PASS, _REFUSE)
    steps += _on_values("socketpair", 1, (_SOCK_STREAM,), _PASS, _REFUSE, mask=0xF)
    steps += _on_values("prctl", 0, _PRCTL_REFUSED, _REFUSE, _PASS)
    steps += _on_values("ioctl", 1, _IOCTL_REFUSED, _REFUSE, _PASS)
    only_own = {"prlimit64": 0, "setpriority": 1, "ioprio_set": 1}  # the argument that is a process id
    if not gpu:  # drivers place their own threads
        only_own |= dict.fromkeys(
            ("sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"), 0
        )
    if own_signals:
        only_own |= {"kill": 0, "tgkill": 0}
    for name, argument in only_own.items():
        steps += _on_values(name, argument, own, _PASS, _REFUSE)
    return steps


def install(steps: Iterable[Step]) -> None:
    """Apply a filter with these steps to every thread of this process permanently."""
    program = assemble(steps)
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    number = _number("seccomp")
    if number is None:
        raise OSError(errno.ENOSYS, f"no table of system calls for {platform.machine()}")
    try:
        syscalls.syscall(
            number, ctypes.c_uint(_SET_MODE_FILTER), ctypes.c_uint(_ALL_THREADS), ctypes.c_char_p(header)
        )
    except OSError as error:
        raise OSError(
            error.errno, "this kernel, or the container, takes no filter of system calls"
        ) from error


def assemble(steps: Iterable[Step]) -> bytes:
    """Return the kernel's form of a program that allows all calls that no step refuses, on this architecture only."""
    column, audit = _ARCHITECTURES.get(platform.machine(), (0, 0))
    missing = _return(errno.ENOSYS)
    program: list[Step] = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, audit), missing, (_LOAD, 0, 0, 0)]
    if column == 0:
        program += [(_AT_LEAST, 0, 1, _X32), missing]
    program += [*steps, _PASS]
    return b"".join(struct.pack("<HBBI", *step) for step in program)


def refuse(name: str, error: int | None = None) -> list[Step]:
    """Return the steps that refuse a call with `error` (default: ENOSYS for calls in `_MISSING`, else EPERM)."""
    if error is None:
        error = errno.ENOSYS if name in _MISSING else errno.EPERM
    return _when(name, [_return(error)])


def _on_values(
    name: str,
    argument: int,
    values: tuple[int, ...],
    match: Step,
    otherwise: Step,
    *,
    mask: int | None = None,
) -> list[Step]:
    """Return `match` if the argument has one of these values, else `otherwise`."""
    body = [_load_argument(argument)]
    if mask is not None:
        body.append((_AND, 0, 0, mask))
    for left, value in zip(range(len(values), 0, -1), values, strict=True):
        body.append((_EQUAL, left, 0, value & 0xFFFFFFFF))
    return _when(name, [*body, otherwise, match])


def _on_bits(name: str, argument: int, bits: int, match: Step, otherwise: Step) -> list[Step]:
    """Return `match` if the argument has any of these bits, else `otherwise`."""
    return _when(name, [_load_argument(argument), (_ANY_BIT, 1, 0, bits), otherwise, match])


def _local_streams_only() -> list[Step]:
    """Allow local stream sockets. A datagram socket could send to any process without connecting."""
    body = [_load_argument(0), (_EQUAL, 1, 0, _AF_UNIX), _REFUSE, _load_argument(1), (_AND, 0, 0, 0xF)]
    body += [(_EQUAL, 0, 1, _SOCK_DGRAM), _REFUSE, _PASS]
    return _when("socket", body)


def _when(name: str, body: list[Step]) -> list[Step]:
    """`body`, which returns, if the call is `name`; nothing if this architecture has no such call."""
    number = _number(name)
    return [] if number is None else [(_EQUAL, 0, len(body), number), *body]


def _load_argument(index: int) -> Step:
    """Load the lower half of an argument; the kernel reads no more of the arguments that are filtered here."""
    return (_LOAD, 0, 0, 16 + 8 * index)


def _return(error: int) -> Step:
    return (_RETURN, 0, 0, _ERRNO | error)


def _number(name: str) -> int | None:
    architecture = _ARCHITECTURES.get(platform.machine())
    return None if architecture is None else _NUMBERS[name][architecture[0]]


_PASS: Step = (_RETURN, 0, 0, _ALLOW)
_REFUSE: Step = _return(errno.EPERM)
