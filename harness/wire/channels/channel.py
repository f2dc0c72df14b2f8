"""Frames over a stream socket: a length, the payload, and descriptors beside it; the msgpack encoding of payloads. Torch-free.

Either end may be hostile. `Channel` serves processes without an event loop; `async_channel.AsyncChannel` sends the same frames
from the engine's loop.
"""

from __future__ import annotations

import array
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

HEADER = struct.Struct("<Q")
MAX_FRAME_BYTES = 1 << 30
_MAX_DESCRIPTORS = 4
_POLL_S = 0.1
Message = TypeVar("Message")


class ChannelClosed(EOFError):
    """The other side closed the channel or ended."""


class BadFrame(Exception):
    """The received bytes are no valid frame or message: longer than allowed, cut short, or not decodable."""


class ChannelTimeout(Exception):
    """No whole frame passed before the deadline."""


class Frame(NamedTuple):
    """A received frame."""

    payload: bytes
    descriptors: tuple[int, ...]
    """Owned by the receiver."""


def frame_length(header: bytes, limit_bytes: int) -> int:
    """Return the length of the payload behind this header; `BadFrame` if it is above the limit."""
    (length,) = HEADER.unpack(header)
    if length > limit_bytes:
        raise BadFrame(f"a frame has {length} bytes; at most {limit_bytes} are allowed")
    return int(length)


def descriptor_message(descriptors: Sequence[int]) -> list[tuple[int, int, array.array[int]]]:
    """Return the ancillary data that sends these descriptors."""
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []


class Channel:
    """One end of a channel. While a call waits, it calls `poll` ten times a second; `poll` may raise."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._socket = end

    def fileno(self) -> int:
        """Return the socket's descriptor."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close this end; the other side gets `ChannelClosed`."""
        self._socket.close()

    def send(
        self,
        payload: bytes,
        descriptors: Sequence[int] = (),
        *,
        deadline: float | None = None,
        poll: Callable[[], None] | None = None,
    ) -> None:
        """Send a frame; return when the kernel has all of it. `deadline` is a time of `time.monotonic`."""
        for part, ancillary in ((HEADER.pack(len(payload)), descriptor_message(descriptors)), (payload, [])):
            unsent = memoryview(part)
            while unsent:
                self._wait(select.POLLOUT, deadline, poll)
                try:
                    unsent = unsent[self._socket.sendmsg([unsent], ancillary) :]
                    ancillary = []
                except BlockingIOError:
                    continue
                except OSError as error:
                    raise ChannelClosed(str(error)) from error

    def receive(
        self,
        *,
        deadline: float | None = None,
        poll: Callable[[], None] | None = None,
        limit_bytes: int = MAX_FRAME_BYTES,
    ) -> Frame:
        """Return the next frame; `ChannelClosed`, `BadFrame` or `ChannelTimeout` if none arrives."""
        descriptors: list[int] = []
        try:
            length = frame_length(self._read(HEADER.size, deadline, poll, descriptors), limit_bytes)
            payload = self._read(length, deadline, poll, descriptors)
        except BaseException:
            for descriptor in descriptors:
                os.close(descriptor)
            raise
        return Frame(payload, tuple(descriptors))

    def _read(
        self, length: int, deadline: float | None, poll: Callable[[], None] | None, descriptors: list[int]
    ) -> bytes:
        """Return exactly `length` bytes, and append received descriptors to `descriptors`, also if this raises.

        Raises `ChannelClosed` if the other side ends before the first byte, `BadFrame` if it ends later, and like `_wait`.
        """
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
                    raise BadFrame("the other side closed the channel in the middle of a frame")
                raise ChannelClosed("the other side closed the channel")
            filled += count
        return bytes(buffer)

    def _wait(self, event: int, deadline: float | None, poll: Callable[[], None] | None) -> None:
        """Wait until the socket is ready for `event`, and call `poll` ten times a second during the wait.

        Raises `ChannelTimeout` once the deadline has passed, even if the socket is ready, and whatever `poll` raises.
        """
        poller = select.poll()
        poller.register(self._socket, event)
        if deadline is not None and time.monotonic() >= deadline:
            raise ChannelTimeout("the deadline passed")  # even if single bytes keep arriving
        while True:
            pause = _POLL_S if deadline is None else max(0.0, min(_POLL_S, deadline - time.monotonic()))
            if poller.poll(pause * 1000 if deadline is not None or poll is not None else None):
                return
            if poll is not None:
                poll()
            if deadline is not None and time.monotonic() >= deadline:
                raise ChannelTimeout("the deadline passed")


def decode_message(decoder: msgspec.msgpack.Decoder[Message], payload: bytes | msgspec.Raw) -> Message:
    """Return the message that foreign code sent; `BadFrame` if the payload is not one.

    msgspec has no error of its own for invalid UTF-8 and for endless nesting.
    """
    try:
        return decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadFrame(str(error)) from error


def text_to_path(kind: type, value: Any) -> Path:
    """Decode a path; the `dec_hook` of decoders for messages that hold a task."""
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError(f"a {kind.__name__} cannot be sent between processes")


def _path_to_text(value: Any) -> str:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"a {type(value).__name__} cannot be sent between processes")


ENCODER = msgspec.msgpack.Encoder(enc_hook=_path_to_text)
