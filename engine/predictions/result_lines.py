"""A file of results, one JSON object a line, that survives an interrupted write."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from suites.private_folder import make_private_folder

Kept = TypeVar("Kept", bound=msgspec.Struct)


class ResultLines(Generic[Kept]):
    """Results by key. The last line of a key counts; a line that was cut off is skipped."""

    def __init__(self, path: Path, kind: type[Kept], key: Callable[[Kept], Hashable]) -> None:
        """`kind` is the type of the results, `key` returns a result's key."""
        self.path = path
        self._key = key
        self._results: dict[Hashable, Kept] = {}
        self._is_torn = False
        if path.is_file():
            data = path.read_bytes()
            self._is_torn = bool(data) and not data.endswith(b"\n")
            decoder = msgspec.json.Decoder(kind)
            for line in data.splitlines():
                try:
                    result = decoder.decode(line)
                except msgspec.DecodeError:
                    continue
                self._results[key(result)] = result

    def find(self, key: Hashable) -> Kept | None:
        """Return the result of a key; `None` if there is none."""
        return self._results.get(key)

    def add(self, result: Kept) -> None:
        """Keep a result."""
        self._results[self._key(result)] = result
        make_private_folder(self.path.parent)
        with self.path.open("ab") as file:
            file.write((b"\n" if self._is_torn else b"") + msgspec.json.encode(result) + b"\n")
        self._is_torn = False
