"""Leases of GPUs among all engines and users of a node, by `flock` on files in a folder that everybody may write to.

A GPU has two files: the *lock*, held shared by whoever runs on it and exclusively by whoever times on it, and the *gate*,
which an asker of either kind passes holding it alone until the lock is its own. So one who waits to time keeps later ones
out, and a stream of shared holders cannot starve it (the turnstile of Courtois, Heymans and Parnas, CACM 14(10), 1971).
Who holds a lease stands in a file of its own, locked for as long: what a dead process left behind is locked by nobody. The
kernel frees all of them when a process dies. GPUs of one package have one lease.
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
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from harness.wire.device import Device
from harness.wire.errors import LeaseUnavailable

VARIABLE = "WAVEDECK_LEASES"
"""Names the folder; the same one for all who share a node, containers included (as a bind mount)."""
FOLDERS = (Path("/run/lock/wavedeck"), Path("/tmp/wavedeck-leases"))
"""Without it: the first one that is there, else the first one that can be made."""
_FOLDER_MODE = 0o1777
_FILE_MODE = 0o666
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.002, 0.05
_HOLDER = ".holder"
_MOST_BYTES = 4096
_LONGEST_WORD = 64
_TRIES = 20
"""To open a file that others make and remove meanwhile."""


class Holder(msgspec.Struct, frozen=True):
    """Who holds a lease."""

    pid: int
    """In the pid namespace of `host`."""
    user: str
    host: str
    exclusive: bool
    since: float
    """Seconds since the epoch."""
    session: str = ""
    """Empty for what is no session, as `wavedeck eval`."""

    def __str__(self) -> str:
        whom = f"session {_plain(self.session)}" if self.session else "a process"
        what = "times on it" if self.exclusive else "runs on it"
        since = datetime.fromtimestamp(self.since, UTC).astimezone().strftime("%H:%M:%S")
        return f"{whom} of {_plain(self.user)} (pid {self.pid} on {_plain(self.host)}) {what} since {since}"


def _plain(word: str) -> str:
    """What another user wrote, fit for a terminal."""
    return "".join(letter for letter in word[:_LONGEST_WORD] if letter.isprintable())


OnWait = Callable[[tuple[Holder, ...]], None]
_DECODER = msgspec.json.Decoder(Holder)


@dataclass(slots=True)
class Lease:
    """What is held until `release`."""

    exclusive: bool
    _lock: int
    _holder: int
    _file: Path

    @property
    def held(self) -> bool:
        """Whether it was not released yet."""
        return self._lock >= 0

    def release(self) -> None:
        """Gives it back; a second time does nothing."""
        if self._lock < 0:
            return
        lock, holder = self._lock, self._holder
        self._lock = self._holder = -1
        try:
            self._file.unlink(missing_ok=True)
        finally:
            os.close(holder)
            os.close(lock)


@asynccontextmanager
async def lease(
    device: Device, *, exclusive: bool = False, session: str = "", on_wait: OnWait | None = None
) -> AsyncIterator[Lease | None]:
    """The device's lease for as long as the block runs; see `take`."""
    held = await take(device, exclusive=exclusive, session=session, on_wait=on_wait)
    try:
        yield held
    finally:
        if held is not None:
            held.release()


async def take(
    device: Device, *, exclusive: bool = False, session: str = "", on_wait: OnWait | None = None
) -> Lease | None:
    """The device's lease, waited for as long as it takes; `None` for a device that needs none, as `cpu`.

    `on_wait` hears whom it waits for, when the wait begins and whenever that changes. Whoever holds a shared lease and asks
    for the exclusive one must release it first. `LeaseUnavailable` where the folder cannot be used.
    """
    if not device.package:
        return None
    folder = lease_folder()
    name = _file_name(device.package)
    wait = _Wait(device, on_wait)
    gate = await _locked(folder / f"{name}.gate", fcntl.LOCK_EX, wait)
    try:
        lock = await _locked(folder / name, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH, wait)
        try:
            return _signed(folder, name, lock, exclusive=exclusive, session=session)
        except BaseException:
            os.close(lock)
            raise
    finally:
        os.close(gate)


def holders(device: Device) -> tuple[Holder, ...]:
    """Who holds the device's lease now, longest first; nobody where there is no folder yet."""
    if not device.package:
        return ()
    folder = _present_folder(os.environ)
    return tuple(_living(folder, _file_name(device.package))) if folder is not None else ()


def lease_folder(environ: Mapping[str, str] | None = None) -> Path:
    """The folder of the leases, made where it is not there; `LeaseUnavailable` when none can be used."""
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
        # Whoever made it may not have set its mode yet.
        for _ in range(_TRIES):
            problem = _unusable(folder)
            if not problem:
                return folder
            time.sleep(_FIRST_WAIT_S)
    raise LeaseUnavailable(
        f"no folder for the leases of GPUs ({problem}); name one that all who share the node may write to in {VARIABLE}"
    )


def _present_folder(environ: Mapping[str, str]) -> Path | None:
    named = environ.get(VARIABLE)
    if named:
        folder = Path(named)
        if not folder.is_absolute():
            raise LeaseUnavailable(f"{VARIABLE} is {named!r}, which is no absolute path; give one")
        return folder if not _unusable(folder) else None
    # One that is there goes before one that could be made: else those who may make the first would lease apart from others.
    return next((folder for folder in FOLDERS if not _unusable(folder)), None)


def _unusable(folder: Path) -> str:
    """Why leases cannot be kept there; empty when they can. A link is never followed: who made it chooses where it leads."""
    try:
        found = folder.lstat()
    except OSError as error:
        return f"{folder}: {error.strerror}"
    if not stat.S_ISDIR(found.st_mode):
        return f"{folder} is no folder"
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return f"{folder} is not yours to write to"
    everybodys = stat.S_IMODE(found.st_mode) & _FOLDER_MODE == _FOLDER_MODE
    if not everybodys and found.st_uid != os.geteuid():
        return f"{folder} is another user's and not everybody's (mode 1777)"
    if not everybodys and stat.S_IMODE(found.st_mode) & stat.S_IWOTH:
        return f"{folder} lets everybody remove each other's files (mode 1777 does not)"
    return ""


def _file_name(package: str) -> str:
    return "gpu-" + re.sub(r"[^0-9A-Za-z.-]", "-", package)


class _Wait:
    """Tells whom is waited for, each time that it is somebody else."""

    def __init__(self, device: Device, on_wait: OnWait | None) -> None:
        self._device = device
        self._on_wait = on_wait
        self._told: tuple[Holder, ...] | None = None

    def tell(self) -> None:
        if self._on_wait is None:
            return
        now = holders(self._device)  # none where another waits before us
        if now and now != self._told:
            self._told = now
            self._on_wait(now)


async def _locked(file: Path, how: int, wait: _Wait) -> int:
    """A descriptor that holds the file's lock. The wait is polled: a blocked thread could not be called off."""
    pause = _FIRST_WAIT_S
    while True:
        descriptor = _opened(file)
        try:
            while not _try_lock(descriptor, how):
                wait.tell()
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_WAIT_S)
            if _is_at(descriptor, file):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # it was removed meanwhile, and the others lock the one that stands there now


def _try_lock(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(descriptor: int, file: Path) -> bool:
    try:
        there = file.lstat()
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(descriptor), there)


def _opened(file: Path) -> int:
    """A descriptor of the file, which is made where it is missing.

    Never both in one: in a sticky folder the kernel refuses to open another user's file for who would also make it
    (`fs.protected_regular`, Linux 4.19). Reading is enough for `flock`.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    for _ in range(_TRIES):
        try:
            descriptor = os.open(file, flags)
        except FileNotFoundError:
            with suppress(FileExistsError):
                os.close(_made(file))
            continue
        except OSError as error:
            raise LeaseUnavailable(f"{file} cannot be opened ({error.strerror}); remove it") from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise LeaseUnavailable(f"{file} is no regular file; remove it")
        return descriptor
    raise LeaseUnavailable(f"{file} is removed again and again; see who does that")


def _made(file: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(file, flags, _FILE_MODE)
        os.fchmod(descriptor, _FILE_MODE)  # whatever the umask took away
    except FileExistsError:
        raise
    except OSError as error:
        raise LeaseUnavailable(
            f"{file} cannot be made ({error.strerror}); name a folder in {VARIABLE}"
        ) from error
    return descriptor


def _signed(folder: Path, name: str, lock: int, *, exclusive: bool, session: str) -> Lease:
    """The lease, with a file that says whose it is; locked before anybody can find it."""
    holder = Holder(
        pid=os.getpid(),
        user=_user(),
        host=socket.gethostname(),
        exclusive=exclusive,
        since=time.time(),
        session=session,
    )
    token = secrets.token_hex(8)
    new, file = folder / f"{name}.{token}.new", folder / f"{name}.{token}{_HOLDER}"
    descriptor = _made(new)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(descriptor, msgspec.json.encode(holder))
        new.rename(file)
    except OSError as error:
        new.unlink(missing_ok=True)
        os.close(descriptor)
        raise LeaseUnavailable(f"{new} cannot be written ({error.strerror}); make room there") from error
    return Lease(exclusive, lock, descriptor, file)


def _living(folder: Path, name: str) -> Iterator[Holder]:
    found = []
    for file in folder.glob(f"{name}.*{_HOLDER}"):
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            continue  # released meanwhile, or nobody's holder
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                continue
            if _try_lock(descriptor, fcntl.LOCK_SH):  # its process died
                with suppress(OSError):  # another user's: it stays, and says nothing
                    file.unlink()
                continue
            found.append(_DECODER.decode(os.read(descriptor, _MOST_BYTES)))
        except msgspec.DecodeError:
            continue  # another version's
        finally:
            os.close(descriptor)
    yield from sorted(found, key=lambda holder: holder.since)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return str(os.geteuid())
