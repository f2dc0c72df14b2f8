"""Length-prefixed frames over a stream socket, descriptors beside them. Torch-free; both ends may be hostile."""

from __future__ import annotations

import array
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import msgspec

Message = TypeVar("Message")
HEADER = struct.Struct("<Q")
MAX_FRAME_BYTES = 1 << 30
_MAX_DESCRIPTORS = 4
_POLL_S = 0.1


class ChannelClosed(Exception):
    """The other side is gone."""


class BadFrame(Exception):
    """What arrived is no frame of ours: longer than allowed, or cut; or holds no message."""


class ChannelTimeout(Exception):
    """No whole frame passed before the deadline."""


class Frame(NamedTuple):
    """One message as it came."""

    payload: bytes
    descriptors: tuple[int, ...]
    """Owned by the receiver."""


def decoded(decoder: msgspec.msgpack.Decoder[Message], payload: bytes | msgspec.Raw) -> Message:
    """What foreign code sent; `BadFrame` where that is no message, and where it is text that is none or nested without end, for which
    msgspec has no errors of its own.
    """
    try:
        return decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadFrame(str(error)) from error


class Channel:
    """One end, for processes without an event loop. Waiting calls `poll` ten times a second; it may raise."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._socket = end

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self._socket.fileno()

    def close(self) -> None:
        """Closes this end; the other side sees `ChannelClosed`."""
        self._socket.close()

    def send(
        self,
        payload: bytes,
        descriptors: Sequence[int] = (),
        *,
        deadline: float | None = None,
        poll: Callable[[], None] | None = None,
    ) -> None:
        """Returns when all is in the kernel's hands. `deadline` is an instant of `time.monotonic`."""
        left = memoryview(HEADER.pack(len(payload)))
        ancillary = (
            [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        )
        while left:
            self._wait(select.POLLOUT, deadline, poll)
            try:
                left = left[self._socket.sendmsg([left], ancillary) :]
                ancillary = []
            except BlockingIOError:
                continue
            except OSError as error:
                raise ChannelClosed(str(error)) from error
            if not left and payload:
                left, payload = memoryview(payload), b""

    def receive(
        self,
        *,
        deadline: float | None = None,
        poll: Callable[[], None] | None = None,
        limit_bytes: int = MAX_FRAME_BYTES,
    ) -> Frame:
        """The next frame; `ChannelClosed`, `BadFrame` or `ChannelTimeout` when there is none."""
        descriptors: list[int] = []
        try:
            header = self._read(HEADER.size, deadline, poll, descriptors)
            (length,) = HEADER.unpack(header)
            if length > limit_bytes:
                raise BadFrame(f"a frame of {length} bytes where {limit_bytes} are allowed")
            payload = self._read(length, deadline, poll, descriptors)
        except BaseException:
            for descriptor in descriptors:
                os.close(descriptor)
            raise
        return Frame(payload, tuple(descriptors))

    def _read(
        self, length: int, deadline: float | None, poll: Callable[[], None] | None, descriptors: list[int]
    ) -> bytes:
        buffer = bytearray(length)
        view = memoryview(buffer)
        space = socket.CMSG_SPACE(_MAX_DESCRIPTORS * 4)
        filled = 0
        while filled < length:
            self._wait(select.POLLIN, deadline, poll)
            try:
                count, ancillary, _flags, _address = self._socket.recvmsg_into(
                    [view[filled:]], space, socket.MSG_CMSG_CLOEXEC
                )
            except BlockingIOError:
                continue
            except OSError as error:
                raise ChannelClosed(str(error)) from error
            for level, kind, data in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    descriptors.extend(array.array("i", data[: len(data) - len(data) % 4]))
            if count == 0:
                if filled:
                    raise BadFrame("the other side left in the middle of a frame")
                raise ChannelClosed("the other side is gone")
            filled += count
        return bytes(buffer)

    def _wait(self, event: int, deadline: float | None, poll: Callable[[], None] | None) -> None:
        poller = select.poll()
        poller.register(self._socket, event)
        if deadline is not None and time.monotonic() >= deadline:
            raise ChannelTimeout("the deadline passed")  # also where bytes trickle in
        while True:
            pause = _POLL_S if deadline is None else max(0.0, min(_POLL_S, deadline - time.monotonic()))
            if poller.poll(pause * 1000 if deadline is not None or poll is not None else None):
                return
            if poll is not None:
                poll()
            if deadline is not None and time.monotonic() >= deadline:
                raise ChannelTimeout("the deadline passed")
