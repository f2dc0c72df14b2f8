"""Secret seeds: each derived from the session's, so that the same session seed judges alike. Torch-free."""

from __future__ import annotations

import hashlib


def derive(session_seed: int, *purpose: str) -> int:
    """A seed of 63 bits for one purpose; neighbouring purposes give unrelated seeds."""
    text = "\0".join((str(session_seed), *purpose))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1
