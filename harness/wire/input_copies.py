"""How many copies of a case's inputs a timer makes; the clock requests a copy by its number. Torch-free."""

from __future__ import annotations

MOST_COPIES = 16


def copies_of(sets: int, arena_bytes: int, rotate_bytes: int) -> int:
    """Return the number of copies: a multiple of `sets`, `rotate_bytes` together if possible. Copy `n` has the values of set `n % sets`."""
    copies = min(max(sets, -(-rotate_bytes // arena_bytes)), MOST_COPIES)
    return copies + -copies % sets
