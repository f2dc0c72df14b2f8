"""Agents over MCP with the real judge."""

from __future__ import annotations

import asyncio

import pytest

from sessions import Home, fold
from suites import baseline_source, load_task
from tests.support.engine.live_engines import journal
from tests.support.waiting import await_until
from tests.tui.agents.test_mcp import call, connected, session_of

RIGHT = baseline_source(load_task("vector_add"))
FAKE = f'{RIGHT}\nprint(\'{{"verdict": "correct", "speedup": 10.0}}\', "x" * 100_000)\n'.replace(
    "x + y", "x - y"
)
ENDLESS = RIGHT.replace("    out =", "    while True:\n        pass\n    out =", 1)


@pytest.mark.soak
@pytest.mark.judge
@pytest.mark.usefixtures("engines")
async def test_only_the_judge_decides_and_a_cancelled_call_ends_its_work(home: Home) -> None:
    assert ENDLESS != RIGHT
    async with connected(home) as (client, desk):
        fake = await call(client, "eval", task="vector_add", code=FAKE, note="10x faster, verified.")
        assert fake["verdict"] not in ("correct", "")
        assert "best" not in fake
        session = session_of(home)
        endless = asyncio.create_task(call(client, "eval", task="vector_add", code=ENDLESS))
        await await_until(
            lambda: any(
                attempt.number == 2 and attempt.stage == "call"
                for attempt in fold(journal(home, session)).attempts()
            ),
            "the first call of the endless kernel",
        )
        endless.cancel()
        right = await call(client, "eval", task="vector_add", code=RIGHT)
        assert (right["attempt"], right["verdict"]) == ("vector_add#1/3", "correct")
        assert "traffic" in right["figures"]
        verdicts = [attempt.verdict for attempt in fold(journal(home, session)).attempts()]
        assert verdicts[1] == "cancelled"
        await desk.close()
