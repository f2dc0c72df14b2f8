"""A program in a pseudo terminal, whose output is drained in a thread: the bytes are those that SSH would carry."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import psutil

TIMEOUT_S = 60.0
SETTLED_S = 0.5
CHUNK_BYTES = 1 << 16
SLOW_CHUNK_BYTES = 512


class Program:
    """A program in a terminal of its own."""

    def __init__(
        self, process: subprocess.Popen[bytes], descriptor: int, *, bytes_per_s: float | None
    ) -> None:
        self._process = psutil.Process(process.pid)
        self._descriptor = descriptor
        self._bytes_per_s = bytes_per_s
        self._output = bytearray()
        self._came = threading.Condition()
        self.last_at = time.monotonic()
        """Monotonic time of the last bytes."""
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    @property
    def received(self) -> int:
        """Bytes received so far."""
        return len(self._output)

    def press(self, keys: str) -> None:
        """Send keys."""
        os.write(self._descriptor, keys.encode())

    def wait_for(self, text: bytes, *, after: int = 0) -> float:
        """Return the monotonic time at which `text` arrived, searched from byte `after` on."""
        return self._wait(lambda: text in self._output[after:], f"{text!r}")

    def wait_for_silence(self, seconds: float = 1.0) -> None:
        """Return when nothing has come for some seconds."""
        count, since = -1, time.monotonic()
        limit = since + TIMEOUT_S
        while time.monotonic() - since < seconds and time.monotonic() < limit:
            if self.received != count:
                count, since = self.received, time.monotonic()
            time.sleep(0.05)

    def seconds_to_settle(self, keys: str) -> float:
        """Press keys and return the seconds until the screen has changed and stays as it is."""
        before, pressed = self.received, time.monotonic()
        self.press(keys)
        self._wait(lambda: self.received > before, f"an answer to {keys!r}")
        self.wait_for_silence(SETTLED_S)
        return self.last_at - pressed

    def cpu_s(self) -> float:
        """Return the CPU seconds that the program has used."""
        times = self._process.cpu_times()
        return times.user + times.system

    def memory_bytes(self) -> int:
        """Return the resident memory of the program."""
        return int(self._process.memory_info().rss)

    def tail(self, count: int = 4000) -> bytes:
        """Return the last bytes received."""
        return bytes(self._output[-count:])

    def _wait(self, condition: Callable[[], bool], awaited: str) -> float:
        limit = time.monotonic() + TIMEOUT_S
        with self._came:
            while not condition():
                if time.monotonic() > limit:
                    raise TimeoutError(f"never came: {awaited}; received {self.tail(600)!r}")
                self._came.wait(0.2)
        return time.monotonic()

    def _drain(self) -> None:
        slow = self._bytes_per_s
        while True:
            try:
                data = os.read(self._descriptor, SLOW_CHUNK_BYTES if slow else CHUNK_BYTES)
            except OSError:
                return
            if not data:
                return
            with self._came:
                self._output += data
                self.last_at = time.monotonic()
                self._came.notify_all()
            if slow:
                time.sleep(len(data) / slow)


@contextmanager
def program(
    command: Sequence[str],
    *,
    size: tuple[int, int],
    environ: Mapping[str, str],
    bytes_per_s: float | None = None,
) -> Iterator[Program]:
    """Run a command in a terminal of (columns, rows); `bytes_per_s` limits how fast its output is read."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=dict(environ), start_new_session=True
    ) as process:
        os.close(theirs)
        try:
            yield Program(process, ours, bytes_per_s=bytes_per_s)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            os.close(ours)
