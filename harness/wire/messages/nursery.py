"""Messages from the engine to the nursery, the process that starts fork servers. Torch-free."""

from __future__ import annotations

import msgspec


class Bear(msgspec.Struct, frozen=True, tag="bear"):
    """Start one fork server. Descriptors: its control socket, then the pipe for its standard error."""

    number: int
    """Chosen by the engine, never used twice on one nursery."""
    interpret: bool
    forks: bool
    """Whether the server forks its workers. If not, server and workers are fresh interpreters."""


class Kill(msgspec.Struct, frozen=True, tag="kill"):
    """End a server that does not end by itself."""

    number: int


NURSERY_REQUESTS: msgspec.msgpack.Decoder[Bear | Kill] = msgspec.msgpack.Decoder(Bear | Kill)
