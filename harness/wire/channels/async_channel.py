"""The engine's ends on its event loop: `AsyncChannel` for frames, `Tail` for the text that a process prints."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence

from .channel import HEADER, MAX_FRAME_BYTES, ChannelClosed, descriptor_message, frame_length


class AsyncChannel:
    """One end of a channel, on the event loop. Calls raise `ChannelClosed` when the other side closed it."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._socket = end
        self._loop = asyncio.get_running_loop()

    async def send(self, payload: bytes, descriptors: Sequence[int] = ()) -> None:
        """Send a frame, descriptors beside its header; return when the kernel has all of it."""
        header = HEADER.pack(len(payload))
        try:
            if descriptors:
                header = header[self._socket.sendmsg([header], descriptor_message(descriptors)) :]
            await self._loop.sock_sendall(self._socket, header + payload)
        except OSError as error:
            raise ChannelClosed(f"the other side closed the channel: {error}") from error

    async def receive(self, limit_bytes: int = MAX_FRAME_BYTES) -> bytes:
        """Return the payload of the next frame; `BadFrame` if it is above the limit."""
        return await self._read(frame_length(await self._read(HEADER.size), limit_bytes))

    def close(self) -> None:
        """Close this end."""
        self._socket.close()

    async def _read(self, length: int) -> bytes:
        """Return exactly this many bytes. Raises `ChannelClosed` if the other side ends first, also in the middle."""
        buffer = bytearray()
        while len(buffer) < length:
            try:
                part = await self._loop.sock_recv(self._socket, min(length - len(buffer), 1 << 20))
            except OSError as error:
                raise ChannelClosed(f"the other side closed the channel: {error}") from error
            if not part:
                raise ChannelClosed("the other side closed the channel")
            buffer += part
        return bytes(buffer)


class Tail:
    """The last bytes that a process printed."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._kept = bytearray()
        self._descriptor: int | None = None

    def follow(self, descriptor: int) -> None:
        """Read this pipe as it fills, until `finish`. The tail owns and closes the descriptor."""
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        asyncio.get_running_loop().add_reader(descriptor, self._drain)

    def finish(self) -> None:
        """Read the rest of the pipe and close it."""
        if self._descriptor is not None:
            self._drain()
        if self._descriptor is not None:
            self._close(self._descriptor)

    async def read(self, stream: asyncio.StreamReader) -> None:
        """Read a stream to its end."""
        while part := await stream.read(1 << 16):
            self._add(part)

    def text(self) -> str:
        """Return the tail; bytes that are not UTF-8 are replaced."""
        return self._kept.decode(errors="replace")

    def _drain(self) -> None:
        """Read what the pipe has now, without waiting; close it if its writers are gone."""
        descriptor = self._descriptor
        assert descriptor is not None
        while True:
            try:
                part = os.read(descriptor, 1 << 16)
            except BlockingIOError:
                return
            if not part:
                self._close(descriptor)
                return
            self._add(part)

    def _add(self, part: bytes) -> None:
        self._kept += part
        del self._kept[: -self._limit]

    def _close(self, descriptor: int) -> None:
        asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)
        self._descriptor = None
