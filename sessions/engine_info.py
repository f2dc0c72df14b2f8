"""The address and the identity of a session's engine, in `engine.json`; the ids of this boot and of this pid namespace."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from sessions.settings import SCHEMA

from .files import write_whole
from .home import SessionFiles

PROTOCOL = 2
"""Version of the commands on the socket."""


class EngineInfo(msgspec.Struct, frozen=True, kw_only=True):
    """`engine.json`: the address of a session's engine, and its identity."""

    schema: int = SCHEMA
    session: str
    protocol: int = PROTOCOL
    pid: int
    process_started: float
    """Seconds since the epoch, UTC."""
    boot_id: str
    pid_namespace: str
    host: str
    socket: str
    token_file: str


ENGINE_INFO: msgspec.json.Decoder[EngineInfo] = msgspec.json.Decoder(EngineInfo)


def write_engine_info(live: SessionFiles, info: EngineInfo) -> None:
    """Write `engine.json` atomically."""
    write_whole(live.engine, msgspec.json.encode(info) + b"\n")


def read_engine_info(live: SessionFiles) -> EngineInfo | None:
    """Returns the content of `engine.json`; `None` if it is missing or cannot be read."""
    try:
        return ENGINE_INFO.decode(live.engine.read_bytes())
    except (OSError, msgspec.DecodeError):
        return None


def boot_id() -> str:
    """Returns the id of this boot of this machine; empty if the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def pid_namespace() -> str:
    """Returns the id of the pid namespace, for example `pid:[4026531836]`; empty if the system has none."""
    try:
        return os.readlink("/proc/self/ns/pid")  # noqa: PTH115  # the target is not a path
    except OSError:
        return ""
