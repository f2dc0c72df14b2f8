"""Task folders as parcels: they travel once to each node, by the digest of their contents, and are kept there."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

import msgspec

from harness.wire.channels.channel import ENCODER
from harness.wire.errors import HarnessError
from harness.wire.limits import memory_words
from suites.privacy import make_private_folder

MOST_BYTES = 256 << 20
"""A task folder holds texts and small recordings; a larger one is a mistake."""
_LEFT_OUT = frozenset({"__pycache__"})
_FILES: msgspec.msgpack.Decoder[dict[str, bytes]] = msgspec.msgpack.Decoder(dict[str, bytes])


class Parcel(msgspec.Struct, frozen=True):
    """A folder's files, packed."""

    digest: str
    packed: bytes


def pack_folder(folder: Path) -> Parcel:
    """Return the files of a task folder. Raises `HarnessError` for a folder above `MOST_BYTES`. Reads files."""
    files: dict[str, bytes] = {}
    size = 0
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not _LEFT_OUT & set(path.parts):
            size += path.stat().st_size
            if size > MOST_BYTES:
                raise HarnessError(
                    f"{folder} is above {memory_words(MOST_BYTES)}, too large to send to a node"
                )
            files[path.relative_to(folder).as_posix()] = path.read_bytes()
    packed = ENCODER.encode(files)
    return Parcel(hashlib.sha256(packed).hexdigest(), packed)


def node_cache() -> Path:
    """Return the folder in which this node keeps what sessions of a cluster send to it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wavedeck"


def kept_folder(digest: str) -> Path:
    """Return the place of a parcel's files on this node; it may not exist yet."""
    return node_cache() / "parcels" / digest


def keep_parcel(parcel: Parcel) -> Path:
    """Unpack a parcel on this node, unless it is here; returns its folder. Raises `HarnessError` for a damaged parcel."""
    folder = kept_folder(parcel.digest)
    if folder.is_dir():
        return folder
    if hashlib.sha256(parcel.packed).hexdigest() != parcel.digest:
        raise HarnessError("a task folder arrived damaged; its digest is different")
    make_private_folder(folder.parent)
    unpacked = Path(tempfile.mkdtemp(dir=folder.parent))
    for name, content in _FILES.decode(parcel.packed).items():
        file = unpacked / name
        if not file.resolve().is_relative_to(unpacked.resolve()):
            raise HarnessError(f"a task folder has a file outside itself: {name}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    try:
        unpacked.rename(folder)
    except OSError:
        shutil.rmtree(unpacked, ignore_errors=True)  # another judge of this node was first
        if not folder.is_dir():
            raise
    return folder
