"""Waits for conditions: as long as a busy machine may need, and a failure says what was awaited and what was shown."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

LIMIT_S = 120.0
"""Limit of each wait."""
POLL_S = 0.05


def wait_until(
    condition: Callable[[], object], awaited: str, *, shown: Callable[[], str] = str, poll_s: float = POLL_S
) -> None:
    """Return as soon as the condition holds; raise `AssertionError` with the text of `shown` after `LIMIT_S`."""
    limit = time.monotonic() + LIMIT_S
    while not condition():
        check_time(limit, awaited, shown)
        time.sleep(poll_s)


async def await_until(condition: Callable[[], object], awaited: str) -> None:
    """Like `wait_until`, for a test in an event loop: other tasks go on."""
    limit = time.monotonic() + LIMIT_S
    while not condition():
        check_time(limit, awaited)
        await asyncio.sleep(POLL_S)


def check_time(limit: float, awaited: str, shown: Callable[[], str] = str) -> None:
    """Raise `AssertionError` with the text of `shown` if the clock `time.monotonic` is past `limit`."""
    if time.monotonic() > limit:
        raise AssertionError(f"waited {LIMIT_S:.0f} s for {awaited}\n{shown()}")
