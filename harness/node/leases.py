"""Leases of GPUs among all engines and users of a node, by `flock` on files in a folder that all users may write to.

A GPU package has one lease and three files.

- The *lock* is held shared to run on the GPU, and exclusively to time on it.
- The *gate* is shut, held shared, by all who wait to time or who time. A shared request passes the gate alone, for a moment. So
  later shared requests wait, and timings that wait run one after another, as one batch (the turnstile of Courtois, Heymans and
  Parnas, CACM 14(10), 1971).
- The *turn* ends a batch: a shared request that waited for `BATCH_S` holds it, and no further timing joins until that request has
  its lease.

A file more describes the holder and is locked as long as the lease. The kernel frees all locks when a process dies, so an
unlocked description is stale.
"""

from __future__ import annotations

import asyncio
import fcntl
import getpass
import os
import re
import secrets
import socket
import stat
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from harness.wire.device import Device
from harness.wire.errors import LeaseUnavailable

VARIABLE = "WAVEDECK_LEASES"
"""Names the folder. All users and containers of a node need the same one (as a bind mount)."""
FOLDERS = (Path("/run/lock/wavedeck"), Path("/tmp/wavedeck-leases"))
"""The default: the first that exists, else the first that can be made."""
_FOLDER_MODE = 0o1777
_FILE_MODE = 0o666
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.002, 0.05
_HOLDER = ".holder"
BATCH_S = 30.0
"""A shared request that waited for so long goes before timings that have not asked yet."""
_MOST_BYTES = 4096
_LONGEST_WORD = 64
_TRIES = 20
"""Attempts to open a file that other processes make and remove at the same time."""


class Holder(msgspec.Struct, frozen=True):
    """The process that holds a lease."""

    pid: int
    """In the PID namespace of `host`."""
    user: str
    host: str
    exclusive: bool
    since: float
    """Seconds since the epoch."""
    session: str = ""
    """Empty outside sessions, as in `wavedeck eval`."""

    def __str__(self) -> str:
        holder = f"session {plain_word(self.session)}" if self.session else "a process"
        use = "times on it" if self.exclusive else "runs on it"
        since = datetime.fromtimestamp(self.since, UTC).astimezone().strftime("%H:%M:%S")
        return f"{holder} of {plain_word(self.user)} (pid {self.pid} on {plain_word(self.host)}) {use} since {since}"


def plain_word(word: str) -> str:
    """Return a word that another user wrote, without control characters."""
    return "".join(letter for letter in word[:_LONGEST_WORD] if letter.isprintable())


OnWait = Callable[[tuple[Holder, ...]], None]
_DECODER = msgspec.json.Decoder(Holder)


@dataclass(slots=True)
class Lease:
    """A lease, held until `release`."""

    exclusive: bool
    _lock: int
    _holder: int
    _file: Path
    _gate: int = -1
    """Shut as long as the lease is exclusive."""

    @property
    def held(self) -> bool:
        """Whether the lease is not released yet."""
        return self._lock >= 0

    def release(self) -> None:
        """Give the lease back; a second call does nothing."""
        if self._lock < 0:
            return
        lock, holder = self._lock, self._holder
        self._lock = self._holder = -1
        try:
            self._file.unlink(missing_ok=True)
        finally:
            os.close(holder)
            os.close(lock)
            self._open_gate()

    def share(self) -> None:
        """Make an exclusive lease shared: others may run on the GPU again, but not time on it."""
        if self._lock < 0 or not self.exclusive:
            return
        self.exclusive = False
        try:
            fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:  # the kernel unlocks first: a timing was faster, and this lease is over
            self.release()
            return
        self._open_gate()
        holder = _DECODER.decode(os.pread(self._holder, _MOST_BYTES, 0))
        os.ftruncate(self._holder, 0)
        os.pwrite(self._holder, msgspec.json.encode(msgspec.structs.replace(holder, exclusive=False)), 0)

    def _open_gate(self) -> None:
        gate, self._gate = self._gate, -1
        if gate >= 0:
            os.close(gate)


@asynccontextmanager
async def lease(
    device: Device, *, exclusive: bool = False, session: str = "", on_wait: OnWait | None = None
) -> AsyncIterator[Lease | None]:
    """Hold the device's lease while the block runs; see `take`."""
    held = await take(device, exclusive=exclusive, session=session, on_wait=on_wait)
    try:
        yield held
    finally:
        if held is not None:
            held.release()


async def take(
    device: Device, *, exclusive: bool = False, session: str = "", on_wait: OnWait | None = None
) -> Lease | None:
    """Wait for the device's lease and return it; `None` for a device that needs none, such as `cpu`.

    `on_wait` gets the current holders when the wait begins and whenever they change. Release a shared lease before you take the
    exclusive one. `LeaseUnavailable` if the folder cannot be used.
    """
    if not device.package:
        return None
    folder = lease_folder()
    name = _file_name(device.package)
    wait = _Wait(device, on_wait)
    take_lock = _lock_alone if exclusive else _lock_shared
    lock, gate = await take_lock(folder, name, wait)
    try:
        return _sign(folder, name, lock, gate, session=session)
    except BaseException:
        os.close(lock)
        if gate >= 0:
            os.close(gate)
        raise


async def _lock_alone(folder: Path, name: str, wait: _Wait) -> tuple[int, int]:
    """Lock a GPU's file for one holder alone; return the descriptors of the lock and of the gate, which stays shut.

    A request of a shared lease that has waited for long holds `turn`, and is let in first; see the module. If a wait is
    cancelled, everything is unlocked again.
    """
    turn = await _lock(folder / f"{name}.turn", fcntl.LOCK_EX, wait)
    try:
        gate = await _lock(folder / f"{name}.gate", fcntl.LOCK_SH, wait)
    finally:
        os.close(turn)
    try:
        return await _lock(folder / name, fcntl.LOCK_EX, wait), gate
    except BaseException:
        os.close(gate)
        raise


async def _lock_shared(folder: Path, name: str, wait: _Wait) -> tuple[int, int]:
    """Lock a GPU's file beside other shared holders; return the descriptor of the lock, and -1 for the open gate.

    Waits while someone times, or waits to time. After `BATCH_S` no further timing goes first. If a wait is cancelled,
    everything is unlocked again.
    """
    turn = -1
    try:
        try:
            async with asyncio.timeout(BATCH_S):
                gate = await _lock(folder / f"{name}.gate", fcntl.LOCK_EX, wait)
        except TimeoutError:
            turn = await _lock(folder / f"{name}.turn", fcntl.LOCK_SH, wait)
            gate = await _lock(folder / f"{name}.gate", fcntl.LOCK_EX, wait)
        try:
            return await _lock(folder / name, fcntl.LOCK_SH, wait), -1
        finally:
            os.close(gate)
    finally:
        if turn >= 0:
            os.close(turn)


def is_awaited_alone(device: Device) -> bool:
    """Return whether a process waits to hold the device's lease alone, or does so."""
    folder = _present_folder(os.environ) if device.package else None
    if folder is None:
        return False
    gate = _open(folder / f"{_file_name(device.package)}.gate")
    try:
        return not _try_lock(gate, fcntl.LOCK_EX)
    finally:
        os.close(gate)


def holders(device: Device) -> tuple[Holder, ...]:
    """Return the holders of the device's lease, longest first; none if there is no folder yet."""
    if not device.package:
        return ()
    folder = _present_folder(os.environ)
    return _read_holders(folder, _file_name(device.package)) if folder is not None else ()


def lease_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of the leases and make it if needed; `LeaseUnavailable` if no folder can be used."""
    environ = os.environ if environ is None else environ
    present = _present_folder(environ)
    if present is not None:
        return present
    named = environ.get(VARIABLE)
    problem = ""
    for folder in (Path(named),) if named else FOLDERS:
        try:
            folder.mkdir(parents=bool(named))
            folder.chmod(_FOLDER_MODE)  # mkdir's mode goes through the umask
        except FileExistsError:
            pass  # another process was first
        except OSError as error:
            problem = problem or f"{folder}: {error.strerror}"
            continue
        # Another process may have made it and not have set its mode yet.
        for _ in range(_TRIES):
            problem = _unusable(folder)
            if not problem:
                return folder
            time.sleep(_FIRST_WAIT_S)
    raise LeaseUnavailable(
        f"no folder for the leases of GPUs ({problem}); name one that all users of the node may write to in {VARIABLE}"
    )


def _present_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the existing folder for leases: the one that the variable names, else a usual one; `None` without one.

    Raises `LeaseUnavailable` if the variable names no absolute path.
    """
    named = environ.get(VARIABLE)
    if named:
        folder = Path(named)
        if not folder.is_absolute():
            raise LeaseUnavailable(f"{VARIABLE} is {named!r}, which is no absolute path; give one")
        return folder if not _unusable(folder) else None
    # An existing folder first: else a user who can make the first folder would not share leases with users of the second.
    return next((folder for folder in FOLDERS if not _unusable(folder)), None)


def _unusable(folder: Path) -> str:
    """Why leases cannot be kept there; empty if they can. A link is never followed, because its maker chooses the target."""
    try:
        state = folder.lstat()
    except OSError as error:
        return f"{folder}: {error.strerror}"
    if not stat.S_ISDIR(state.st_mode):
        return f"{folder} is no folder"
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return f"you may not write to {folder}"
    mode = stat.S_IMODE(state.st_mode)
    if mode & _FOLDER_MODE != _FOLDER_MODE and state.st_uid != os.geteuid():
        return f"{folder} belongs to another user and is not open to all (mode 1777)"
    if mode & _FOLDER_MODE != _FOLDER_MODE and mode & stat.S_IWOTH:
        return f"{folder} lets users remove each other's files (mode 1777 does not)"
    return ""


def _file_name(package: str) -> str:
    return "gpu-" + re.sub(r"[^0-9A-Za-z.-]", "-", package)


class _Wait:
    """Reports the holders that a caller waits for, each time that they change."""

    def __init__(self, device: Device, on_wait: OnWait | None) -> None:
        self._device = device
        self._on_wait = on_wait
        self._reported: tuple[Holder, ...] = ()

    def report(self) -> None:
        """Report the current holders if they are others than reported last. Reports nothing while there are none."""
        if self._on_wait is None:
            return
        current = holders(self._device)  # empty while another process holds only the gate
        if current and current != self._reported:
            self._reported = current
            self._on_wait(current)


async def _lock(file: Path, how: int, wait: _Wait) -> int:
    """A descriptor that holds the file's lock. It polls, because a thread blocked in `flock` could not be cancelled."""
    pause = _FIRST_WAIT_S
    while True:
        descriptor = _open(file)
        try:
            while not _try_lock(descriptor, how):
                wait.report()
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_WAIT_S)
            if _is_at(descriptor, file):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # the file was replaced, and other processes lock the new one


def _try_lock(descriptor: int, how: int) -> bool:
    """Lock a file without waiting; return whether it is locked now. `how` is `LOCK_SH` or `LOCK_EX`."""
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(descriptor: int, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), file.lstat())
    except FileNotFoundError:
        return False


def _open(file: Path) -> int:
    """A descriptor of the file, which is made if it is missing.

    Opening and making are two calls: in a sticky folder the kernel refuses `O_CREAT` on another user's file
    (`fs.protected_regular`, Linux 4.19). Reading is enough for `flock`.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    for _ in range(_TRIES):
        try:
            descriptor = os.open(file, flags)
        except FileNotFoundError:
            with suppress(FileExistsError):
                os.close(_make(file))
            continue
        except OSError as error:
            raise LeaseUnavailable(f"{file} cannot be opened ({error.strerror}); remove it") from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise LeaseUnavailable(f"{file} is no regular file; remove it")
        return descriptor
    raise LeaseUnavailable(f"{file} is removed again and again; find out which process does that")


def _make(file: Path) -> int:
    """Create a file that every user may lock; return its descriptor.

    Raises `FileExistsError`, and `LeaseUnavailable` for other errors.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(file, flags, _FILE_MODE)
        os.fchmod(descriptor, _FILE_MODE)  # independent of the umask
    except FileExistsError:
        raise
    except OSError as error:
        raise LeaseUnavailable(
            f"{file} cannot be made ({error.strerror}); name a folder in {VARIABLE}"
        ) from error
    return descriptor


def _sign(folder: Path, name: str, lock: int, gate: int, *, session: str) -> Lease:
    """The lease, with a file that describes its holder; the file is locked before any process can find it."""
    exclusive = gate >= 0
    holder = Holder(os.getpid(), _user(), socket.gethostname(), exclusive, time.time(), session)
    token = secrets.token_hex(8)
    new, file = folder / f"{name}.{token}.new", folder / f"{name}.{token}{_HOLDER}"
    descriptor = _make(new)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(descriptor, msgspec.json.encode(holder))
        new.rename(file)
    except OSError as error:
        new.unlink(missing_ok=True)
        os.close(descriptor)
        raise LeaseUnavailable(f"{new} cannot be written ({error.strerror}); make room there") from error
    return Lease(exclusive, lock, descriptor, file, gate)


def _read_holders(folder: Path, name: str) -> tuple[Holder, ...]:
    """Return the living holders of a GPU's lease, the oldest first.

    A holder locks its file. A file without a lock belongs to a dead process and is deleted, if this user may do so.
    """
    living = []
    for file in folder.glob(f"{name}.*{_HOLDER}"):
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            continue  # released just now, or not a holder's file
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                continue
            if _try_lock(descriptor, fcntl.LOCK_SH):  # its process died
                with suppress(OSError):  # another user's file stays; it does not count
                    file.unlink()
                continue
            living.append(_DECODER.decode(os.read(descriptor, _MOST_BYTES)))
        except msgspec.DecodeError:
            continue  # written by another version
        finally:
            os.close(descriptor)
    return tuple(sorted(living, key=lambda holder: holder.since))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return str(os.geteuid())
