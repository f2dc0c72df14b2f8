"""Limits of a provider: requests at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from engine.errors import GaveUp, TryAgain
from engine.models import CallKey, Gates, Limits, Pace, Piece, Reply, Request, ScriptedClient, ask
from engine.models.pacing import Gate, provider_of
from sessions import Home
from sessions.events import CallFailed, Message, Role, Usage
from tests.support.engine.engines import play
from tui.print.narrate import Narrator

REQUEST = Request(CallKey("starter/vector_add", 1, 1, Role.GENERATOR, 1), (Message("user", "hi"),))


async def test_concurrency_halves_on_refusals_and_grows_back_slowly() -> None:
    gate = Gate(Pace(concurrency=8))
    together = [await gate.enter() for _ in range(8)]
    for sent in together:
        gate.leave(sent, too_many=True)
    assert gate.concurrency == 4, "requests that were sent together shrink the limit once"
    gate.leave(await gate.enter(), too_many=True)
    assert gate.concurrency == 2
    grown = []
    for _ in range(27):
        gate.leave(await gate.enter(), replied=True)
        grown.append(gate.concurrency)
    assert (grown[0], grown[1], grown[4], grown[-1]) == (2, 3, 4, 8), "one more after each round of replies"
    gate.leave(await gate.enter(), replied=True)
    assert gate.concurrency == 8, "the configured limit is not passed"


async def test_cancelled_request_gives_its_place_back() -> None:
    gate = Gate(Pace(concurrency=1))
    first = await gate.enter()
    second, third = [asyncio.create_task(gate.enter()) for _ in range(2)]
    await asyncio.sleep(0)
    gate.leave(first, replied=True)  # admits a request that is cancelled before it can run
    second.cancel()
    await third


class Refusing:
    """A provider that accepts `capacity` requests at the same time and answers 429 to others."""

    model = "openai:x"

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.active = self.refused = 0

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        if self.active >= self.capacity:
            self.refused += 1
            raise TryAgain("rate_limited", "429: slow down")
        self.active += 1
        for _ in range(5):
            await asyncio.sleep(0)
        self.active -= 1
        return Reply(text="yes", usage=Usage(10, 10))

    async def close(self) -> None: ...


async def test_refused_requests_wait_and_all_are_answered() -> None:
    provider, gates = Refusing(capacity=3), Gates({"openai": Pace(concurrency=12)})

    async def once() -> Reply:
        client = gates.paced(provider)
        limits = Limits(tries=9, wait_low_s=0.0, wait_high_s=0.0)
        try:
            return await ask(client, REQUEST, on_piece=lambda _: None, on_retry=lambda _: None, limits=limits)
        finally:
            await client.close()

    async with asyncio.TaskGroup() as group:
        replies = [group.create_task(once()) for _ in range(60)]
    assert {reply.result().text for reply in replies} == {"yes"}
    assert provider.refused < 40, "without a smaller limit, most of 60 requests are refused several times"


async def test_unreachable_model_keeps_its_cause_in_event_and_line(home: Home) -> None:
    def refuse(_: Request) -> GaveUp:
        return GaveUp("no reply after 6 tries, the last one: Connection refused", cause="connection")

    events = await play(home, ScriptedClient(answer=refuse))
    [failed] = [event for event in events if isinstance(event, CallFailed)]
    assert (failed.reason, failed.cause) == ("gave_up", "connection")
    narrator = Narrator()
    lines = [line for event in events for line in narrator.lines(event)]
    assert any("no reply (gave_up, connection)" in line and "Connection refused" in line for line in lines)


def test_each_server_has_limits_of_its_own() -> None:
    assert provider_of("anthropic:claude") == "anthropic"
    assert provider_of("openai:some@name@http://host:8000/v1") == "openai@http://host:8000/v1"
