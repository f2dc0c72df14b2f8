"""The engine's side of channels and pipes, on the event loop."""

from __future__ import annotations

import array
import asyncio
import os
import socket
from collections.abc import Sequence

from .channel import HEADER, MAX_FRAME_BYTES, BadFrame


class AsyncChannel:
    """One end of a stream of length-prefixed frames. `EOFError` when the other side is gone."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._socket = end
        self._loop = asyncio.get_running_loop()

    async def send(self, payload: bytes, descriptors: Sequence[int] = ()) -> None:
        """Returns when all is in the kernel's hands; descriptors travel with the header."""
        header = HEADER.pack(len(payload))
        try:
            if descriptors:
                ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
                sent = self._socket.sendmsg([header], ancillary)
                header = header[sent:]
            await self._loop.sock_sendall(self._socket, header + payload)
        except (OSError, BlockingIOError) as error:
            raise EOFError(f"the other side is gone: {error}") from error

    async def receive(self, limit_bytes: int = MAX_FRAME_BYTES) -> bytes:
        """The next frame's payload."""
        (length,) = HEADER.unpack(await self._read(HEADER.size))
        if length > limit_bytes:
            raise BadFrame(f"a frame of {length} bytes where {limit_bytes} are allowed")
        return await self._read(length)

    def close(self) -> None:
        """Closes this end."""
        self._socket.close()

    async def _read(self, length: int) -> bytes:
        buffer = bytearray()
        while len(buffer) < length:
            try:
                part = await self._loop.sock_recv(self._socket, min(length - len(buffer), 1 << 20))
            except OSError as error:
                raise EOFError(f"the other side is gone: {error}") from error
            if not part:
                raise EOFError("the other side is gone")
            buffer += part
        return bytes(buffer)


class Tail:
    """The last bytes of what a process printed."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._kept = bytearray()
        self._descriptor: int | None = None

    def follow(self, descriptor: int) -> None:
        """Reads a pipe as it fills, until `finish`; the descriptor is owned from now on."""
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        asyncio.get_running_loop().add_reader(descriptor, self._drain)

    def finish(self) -> None:
        """Takes what is left in the pipe and closes it."""
        if self._descriptor is not None:
            self._drain()
        if self._descriptor is not None:
            self._close(self._descriptor)

    async def read(self, stream: asyncio.StreamReader) -> None:
        """Takes a stream to its end."""
        while part := await stream.read(1 << 16):
            self._add(part)

    def text(self) -> str:
        """The tail, bytes that are no UTF-8 replaced."""
        return self._kept.decode(errors="replace")

    def _drain(self) -> None:
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
