"""How many copies of a case's inputs a timer makes: the clock asks for one of them by number. Torch-free."""

from __future__ import annotations

MOST_COPIES = 16


def copies_of(sets: int, arena_bytes: int, rotate_bytes: int) -> int:
    """As many of each set of values, `rotate_bytes` together where that is not too many; copy `n` holds the values of set `n % sets`."""
    copies = min(max(sets, -(-rotate_bytes // arena_bytes)), MOST_COPIES)
    return copies + -copies % sets
