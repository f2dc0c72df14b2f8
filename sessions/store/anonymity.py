"""Removes names of people and hosts, and folders, from journals; kernels, prompts and replies keep all other text.

A folder is replaced if it begins as on most machines or on this one. Other texts that look like a folder stay: code may divide.
"""

from __future__ import annotations

import getpass
import re
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from harness.wire.device import nodes_of
from sessions.events import AnyEvent, CallStarted, EngineStarted, PersonEvent, SessionStarted

FOLDERS = re.compile(r"(?<![\w./:~-])/(?!/)(?:[\w.+@~-]+/)*(?=[\w.+@~-]+)")
"""The folder of an absolute path with a name behind it."""
PERSONAL = re.compile(r"(?<![\w./:~-])/(?:home|Users)/[\w.+@-]+")
FOLDER = "/anonymous/"
TOP_FOLDERS = frozenset({"root", "mnt", "tmp", "var", "opt", "srv", "usr", "data", "scratch", "nfs"})
"""Names of folders at the top of most machines."""
COMMON = frozenset({"root", "user", "admin", "ubuntu", "localhost"})
"""Names that say nothing; as words of code they stay."""


class Anonymity:
    """Replaces the names in journals, the same name by the same word."""

    def __init__(self, events: Iterable[AnyEvent]) -> None:
        """Collects the names of people, hosts and model servers from all events, and those of this machine."""
        people, hosts, servers = {_login()}, {socket.gethostname()}, set[str]()
        for event in events:
            match event:
                case PersonEvent():
                    people.add(event.by)
                case EngineStarted():
                    hosts.add(event.host)
                case SessionStarted():
                    servers |= {*_servers(event.settings.model), event.settings.cluster}
                    hosts |= {*nodes_of(event.settings.devices)}
                case CallStarted():
                    servers |= _servers(event.model)
                case _:
                    pass
        self._words = {
            name: f"{kind}-{number}"
            for kind, names in (("person", people), ("host", hosts), ("server", servers))
            for number, name in enumerate(sorted(names - {""} - COMMON), start=1)
        }
        tops = TOP_FOLDERS | {folder.name for folder in Path("/").iterdir() if folder.is_dir()}
        self._roots = (FOLDER, *(f"/{name}/" for name in sorted(tops)))
        longest_first = sorted(self._words, key=len, reverse=True)
        self._names = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, longest_first))})(?![\w-])")

    def text(self, text: str) -> str:
        """Returns the text without the names and folders."""
        text = PERSONAL.sub(FOLDER.rstrip("/"), text)
        text = FOLDERS.sub(lambda match: FOLDER if match[0].startswith(self._roots) else match[0], text)
        return self._names.sub(lambda match: self._words[match[0]], text) if self._words else text

    def journal(self, lines: bytes) -> bytes:
        """Returns a journal without the names; a line that cannot be read is left out."""
        kept = []
        for line in lines.splitlines():
            try:
                fields = msgspec.json.decode(line)
            except msgspec.DecodeError:
                continue
            kept.append(msgspec.json.encode(self._value(fields)) + b"\n")
        return b"".join(kept)

    def _value(self, value: Any, key: str = "") -> Any:
        if isinstance(value, str):
            # A method or a verdict may be called like a person.
            return (
                value if value in self._words and key not in ("by", "host", "cluster") else self.text(value)
            )
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if isinstance(value, dict):
            return {name: self._value(item, name) for name, item in value.items()}
        return value


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _servers(models: str) -> set[str]:
    """Returns the servers (`host:port`) in the names of models."""
    return {urlsplit(url).netloc for url in re.findall(r"https?://[^\s,]+", models)}
