"""Reads the compiler's texts of an attempt: assembly and intermediate code, from the session's folder."""

from __future__ import annotations

import zlib

from sessions.home import Home

MOST_CHARACTERS = 16 << 20
"""A longer text is cut: a candidate writes them, and 300 KB can hold a gigabyte of zeros."""
GZIP = 31
"""`wbits` of zlib for gzip."""


def read_text(home: Home, session: str, digest: str) -> str | None:
    """Returns a text by the SHA-256 that `KernelResources.texts` has; `None` if the session lacks it or it is damaged."""
    packed = home.files(session).text(digest)
    if packed is None:
        return None
    try:
        return zlib.decompressobj(GZIP).decompress(packed, MOST_CHARACTERS).decode(errors="replace")
    except zlib.error:
        return None
