"""Secret numbers derived from the session's seed, so that the same seed judges in the same way. Torch-free."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

POOL = 4
"""Different inputs per case and session: so few that each oracle runs once, so many that a cached answer is wrong."""
Item = TypeVar("Item")


def derive(session_seed: int, *purpose: str) -> int:
    """Return a seed of 63 bits for one purpose; similar purposes give unrelated seeds."""
    text = "\0".join((str(session_seed), *purpose))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


class Draw:
    """Random choices for one evaluation (`purpose`: open or exam), which only the session's seed can predict."""

    def __init__(self, session_seed: int, task: str, source: str, purpose: str) -> None:
        self._seed = session_seed
        self._task = task
        self._purpose = purpose
        self._source = hashlib.blake2b(source.encode(errors="surrogatepass"), digest_size=16).hexdigest()

    def number(self, below: int, *purpose: str) -> int:
        """Return a number from 0 up to, not including, `below`."""
        return derive(self._seed, self._task, self._source, self._purpose, *purpose) % below

    def one_of(self, items: Sequence[Item], *purpose: str) -> Item:
        """Return one of the items."""
        return items[self.number(len(items), *purpose)]

    def places(self, *purpose: str) -> tuple[int, ...]:
        """Return the places of the pool in random order."""
        return tuple(sorted(range(POOL), key=lambda place: self.number(1 << 62, *purpose, str(place))))
