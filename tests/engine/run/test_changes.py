"""Waiting for commands of a person."""

from __future__ import annotations

import asyncio

import pytest

from engine.run.person import Changes, run_until


async def test_error_of_the_condition_is_raised_and_ends_the_work() -> None:
    asked = 0

    def condition() -> bool:
        nonlocal asked
        asked += 1
        if asked > 1:
            raise ZeroDivisionError
        return False

    working = asyncio.Event()
    with pytest.raises(ZeroDivisionError):
        await run_until(working.wait(), condition, Changes())
