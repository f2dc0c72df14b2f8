"""A journal on disk: `journal.jsonl` while its session goes on, `journal.jsonl.gz` once it is finished.

Both have the same lines, and an offset counts bytes of the plain form in both. The compressed form is a row of gzip members of
whole lines, so `zcat` reads it; the header of each member says how long it is, so any line is found without the others.
"""

from __future__ import annotations

import os
import struct
import threading
import weakref
import zlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from sessions.errors import StoredJournalDamaged
from sessions.files import open_regular, write_whole

CHUNK_BYTES = 1 << 20
BLOCK_BYTES = 256 << 10
"""Plain bytes of a gzip member, at least: reading one line decompresses so much, in about 1 ms."""
LEVEL = 3
"""Level of zlib; the slowest level saves a tenth and takes five times as long."""
BLOCKS_KEPT = 8
_HEAD = struct.Struct("<4BLBBH2sHLL")
"""Header of a member: magic, method, flags, time, level, system, then one extra field with its length, compressed and plain."""
_FIXED = (0x1F, 0x8B, 8, 4, 0, 0, 255, 12, b"WD", 8)
_TAIL = struct.Struct("<LL")
"""End of a member: checksum and number of the plain bytes."""


def compressed_path(journal: Path) -> Path:
    """Returns the path of a journal's compressed form."""
    return journal.with_name(f"{journal.name}.gz")


def compress_journal(journal: Path) -> None:
    """Replace a journal by its compressed form; at any moment one of the two is there and whole."""
    write_whole(compressed_path(journal), b"".join(map(_member, _blocks(journal))))
    journal.unlink()


def _blocks(journal: Path) -> Iterator[bytes]:
    """Yield whole lines of a plain journal, as many as a member has."""
    lines: list[bytes] = []
    size = 0
    with journal.open("rb") as file:
        for line in file:
            lines.append(line)
            size += len(line)
            if size >= BLOCK_BYTES:
                yield b"".join(lines)
                lines, size = [], 0
    if lines:
        yield b"".join(lines)


def _member(plain: bytes) -> bytes:
    packer = zlib.compressobj(LEVEL, wbits=-zlib.MAX_WBITS)
    body = packer.compress(plain) + packer.flush()
    tail = _TAIL.pack(zlib.crc32(plain), len(plain))
    return _HEAD.pack(*_FIXED, _HEAD.size + len(body) + len(tail), len(plain)) + body + tail


def expand_journal(journal: Path) -> None:
    """Replace a compressed journal by its plain form, to which events can be added. Without effect if that exists."""
    packed = compressed_path(journal)
    if not journal.exists():
        with JournalFile(journal) as file:
            write_whole(journal, file.read(0, file.size))
    packed.unlink(missing_ok=True)


class _Block(NamedTuple):
    place: int
    """Offset of its member in the file."""
    stored: int
    """Bytes of the member."""
    plain: int


class JournalFile:
    """A journal that is open for reading, in either form; threads may share it.

    It reads the file that it opened, also if that is replaced by the other form or deleted. The file is closed
    with the last reference to this object, if not before.
    """

    def __init__(self, path: Path) -> None:
        """Open the journal with its plain form at `path`. Raises `OSError`: `FileNotFoundError` if there is neither."""
        self.path = path
        try:
            self._descriptor, is_plain = open_regular(path), True
        except FileNotFoundError:
            try:
                self._descriptor, is_plain = open_regular(compressed_path(path)), False
            except FileNotFoundError:
                # It was expanded between the two.
                self._descriptor, is_plain = open_regular(path), True
        self._closing = weakref.finalize(self, os.close, self._descriptor)
        self._blocks = None if is_plain else list(self._members())
        self._starts = [0, *accumulate(block.plain for block in self._blocks or ())]
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        self._keeping = threading.Lock()

    @property
    def size(self) -> int:
        """Plain bytes so far."""
        return os.fstat(self._descriptor).st_size if self._blocks is None else self._starts[-1]

    @property
    def is_current(self) -> bool:
        """True if the path has still this file, in the same form."""
        path = self.path if self._blocks is None else compressed_path(self.path)
        try:
            return os.path.samestat(path.stat(), self.status) and (
                self._blocks is None or not self.path.exists()
            )
        except OSError:
            return False

    @property
    def status(self) -> os.stat_result:
        """The status of the open file."""
        return os.fstat(self._descriptor)

    def read(self, offset: int, length: int) -> bytes:
        """Returns up to so many plain bytes from an offset on; fewer at the end. Raises `StoredJournalDamaged`."""
        if self._blocks is None:
            return b"".join(self._pread(offset, length))
        parts = []
        number = bisect_right(self._starts, offset) - 1
        while length > 0 and number < len(self._blocks):
            skipped = offset - self._starts[number]
            parts.append(self._plain(number)[skipped : skipped + length])
            offset, length, number = offset + len(parts[-1]), length - len(parts[-1]), number + 1
        return b"".join(parts)

    def lines(self, start: int = 0) -> Iterator[bytes]:
        """Yield the complete lines from an offset on, with their ends; `start` is the beginning of a line."""
        line: list[bytes] = []
        while chunk := self.read(start, CHUNK_BYTES):
            start += len(chunk)
            first, *rest = chunk.split(b"\n")
            line.append(first)
            for following in rest:
                yield b"".join((*line, b"\n"))
                line = [following]

    def close(self) -> None:
        """Close the file."""
        self._descriptor = -1
        self._closing()

    def __enter__(self) -> JournalFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _pread(self, offset: int, length: int) -> Iterator[bytes]:
        while length > 0 and (data := os.pread(self._descriptor, length, offset)):
            yield data
            offset, length = offset + len(data), length - len(data)

    def _members(self) -> Iterator[_Block]:
        place = 0
        if not self.status.st_size:
            raise self._damaged()
        while head := os.pread(self._descriptor, _HEAD.size, place):
            if len(head) < _HEAD.size or (fields := _HEAD.unpack(head))[:-2] != _FIXED:
                raise self._damaged()
            if fields[-2] < _HEAD.size + _TAIL.size:
                raise self._damaged()
            yield _Block(place, *fields[-2:])
            place += fields[-2]

    def _plain(self, number: int) -> bytes:
        """The lines of a member; the last ones that were read are kept."""
        with self._keeping:
            data = self._kept.pop(number, None)
            if data is None:
                assert self._blocks is not None
                data = self._expanded(self._blocks[number])
            self._kept[number] = data
            if len(self._kept) > BLOCKS_KEPT:
                self._kept.popitem(last=False)
        return data

    def _expanded(self, block: _Block) -> bytes:
        member = b"".join(self._pread(block.place, block.stored))
        try:
            data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(
                member[_HEAD.size : -_TAIL.size], block.plain + 1
            )
        except zlib.error as error:
            raise self._damaged() from error
        if _TAIL.pack(zlib.crc32(data), len(data)) != member[-_TAIL.size :]:
            raise self._damaged()
        return data

    def _damaged(self) -> StoredJournalDamaged:
        return StoredJournalDamaged(compressed_path(self.path))
