"""Limits of a provider: requests at once, requests and tokens per minute."""

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

MINUTE_S = 0.2
REQUEST = Request(CallKey("starter/vector_add", 1, 1, Role.GENERATOR, 1), (Message("user", "hi"),))


async def admitted(gate: Gate, count: int, *, tokens: int = 1) -> list[asyncio.Task[object]]:
    """Ask for `count` places and return the requests that still wait."""
    asked = [asyncio.create_task(gate.enter(tokens)) for _ in range(count)]
    for _ in range(3):
        await asyncio.sleep(0)
    return [task for task in asked if not task.done()]


async def stop(waiting: list[asyncio.Task[object]]) -> None:
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)


async def test_requests_beyond_the_limit_wait_in_order() -> None:
    gate = Gate(Pace(concurrency=2))
    first = await gate.enter(1)
    second, third = [asyncio.create_task(gate.enter(1)) for _ in range(2)]
    await asyncio.sleep(0)
    assert (second.done(), third.done()) == (True, False)
    gate.leave(first, tokens=1)
    await third


async def test_requests_per_minute_are_kept() -> None:
    gate = Gate(Pace(requests_per_minute=3), minute_s=MINUTE_S)
    loop = asyncio.get_running_loop()
    began = loop.time()
    for _ in range(7):
        gate.leave(await gate.enter(1), tokens=1)
    assert loop.time() - began >= 2 * MINUTE_S


async def test_tokens_per_minute_count_what_a_request_used() -> None:
    gate = Gate(Pace(tokens_per_minute=100))
    sent = await gate.enter(90)
    waiting = await admitted(gate, 1, tokens=90)
    assert waiting, "90 of 100 tokens are reserved"
    gate.leave(sent, tokens=10)
    await asyncio.sleep(0)
    assert waiting[0].done(), "the first request used only 10"


async def test_request_larger_than_the_tokens_per_minute_is_sent_alone() -> None:
    gate = Gate(Pace(tokens_per_minute=100), minute_s=MINUTE_S)
    loop = asyncio.get_running_loop()
    began = loop.time()
    for _ in range(2):
        gate.leave(await gate.enter(500), tokens=500)
    assert loop.time() - began >= MINUTE_S


async def test_concurrency_halves_on_refusals_and_grows_back_slowly() -> None:
    gate = Gate(Pace(concurrency=8))
    together = [await gate.enter(1) for _ in range(8)]
    for sent in together:
        gate.leave(sent, too_many=True)
    assert gate.concurrency == 4, "requests that were sent together shrink the limit once"
    gate.leave(await gate.enter(1), too_many=True)
    assert gate.concurrency == 2
    grown = []
    for _ in range(27):
        gate.leave(await gate.enter(1), tokens=1)
        grown.append(gate.concurrency)
    assert (grown[0], grown[1], grown[4], grown[-1]) == (2, 3, 4, 8), "one more after each round of replies"
    gate.leave(await gate.enter(1), tokens=1)
    assert gate.concurrency == 8, "the configured limit is not passed"


async def test_cancelled_request_gives_its_place_back() -> None:
    gate = Gate(Pace(concurrency=1))
    first = await gate.enter(1)
    waiting = await admitted(gate, 2)
    gate.leave(first, tokens=1)  # admits a request that is cancelled before it can run
    await stop(waiting[:1])
    await waiting[1]


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
        client = gates.paced(provider, 100)
        limits = Limits(tries=9, wait_low_s=0.0, wait_high_s=0.0)
        try:
            return await ask(client, REQUEST, on_piece=lambda _: None, on_retry=lambda _: None, limits=limits)
        finally:
            await client.close()

    async with asyncio.TaskGroup() as group:
        replies = [group.create_task(once()) for _ in range(60)]
    assert {reply.result().text for reply in replies} == {"yes"}
    assert provider.refused < 40, "without a smaller limit, most of 60 requests are refused several times"


async def test_reply_with_an_unknown_count_keeps_its_whole_reservation() -> None:
    gates = Gates({"scripted": Pace(tokens_per_minute=100)})
    reply = Reply(text="yes", usage=Usage(input_tokens=None, output_tokens=1))
    await gates.paced(ScriptedClient(reply), 90).reply(REQUEST, lambda _: None)
    waiting = asyncio.create_task(gates.paced(ScriptedClient(reply), 20).enter())
    for _ in range(3):
        await asyncio.sleep(0)
    assert not waiting.done()
    await stop([waiting])


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
