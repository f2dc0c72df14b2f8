"""Reads the compiler's texts of an attempt: assembly and intermediate code, from the session's folder or the store."""

from __future__ import annotations

import hashlib
import zlib

from sessions import recorded_example as example
from sessions.home import Home
from sessions.store.store import Store

MOST_CHARACTERS = 16 << 20
"""A longer text is cut: a candidate writes them, and 300 KB can hold a gigabyte of zeros."""
GZIP = 31
"""`wbits` of zlib for gzip."""


def read_text(home: Home, session: str, digest: str) -> str | None:
    """Returns a text by the SHA-256 that `KernelResources.texts` has; `None` if the session lacks it or it is damaged."""
    packed = home.files(session).text(digest) or _stored(home, session, digest)
    if packed is None or hashlib.sha256(packed).hexdigest() != digest:
        return None
    try:
        return zlib.decompressobj(GZIP).decompress(packed, MOST_CHARACTERS).decode(errors="replace")
    except zlib.error:
        return None


def _stored(home: Home, session: str, digest: str) -> bytes | None:
    if not home.store.exists() or session == example.NAME:
        return None
    with Store.read_only(home.store) as store:
        return store.read_text(session, digest)
