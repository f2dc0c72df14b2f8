"""Secret numbers, each derived from the session's seed, so that the same session seed judges alike. Torch-free."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

POOL = 4
"""Inputs a case and session: few enough that oracles run once, enough that an answer kept from one is wrong for another."""
Item = TypeVar("Item")


def derive(session_seed: int, *purpose: str) -> int:
    """A seed of 63 bits for one purpose; neighbouring purposes give unrelated seeds."""
    text = "\0".join((str(session_seed), *purpose))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


class Draw:
    """Choices for one evaluation: by chance for who does not know the session's seed, the same again for who does.

    They differ from candidate to candidate, also within a session, and for the exam (`purpose`).
    """

    def __init__(self, session_seed: int, task: str, source: str, purpose: str) -> None:
        self._seed = session_seed
        self._task = task
        self._purpose = purpose
        self._source = hashlib.blake2b(source.encode(errors="surrogatepass"), digest_size=16).hexdigest()

    def number(self, below: int, *purpose: str) -> int:
        """From 0 up to, not including, `below`."""
        return derive(self._seed, self._task, self._source, self._purpose, *purpose) % below

    def one_of(self, items: Sequence[Item], *purpose: str) -> Item:
        """One of the items."""
        return items[self.number(len(items), *purpose)]

    def places(self, *purpose: str) -> tuple[int, ...]:
        """The places of the pool in some order."""
        return tuple(sorted(range(POOL), key=lambda place: self.number(1 << 62, *purpose, str(place))))
