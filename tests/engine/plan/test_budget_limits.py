"""Property: no limit of a budget is passed, whatever calls use and in whatever order they end."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import BudgetSpent, TryAgain
from engine.models import LONGEST_REPLY, CallKey, Piece, Reply, Request
from engine.plan.budget import Budget, Reservation, longest_prompt
from engine.plan.prices import Price
from sessions import Home, fold
from sessions.events import InstanceFinished, Message, Role, Usage
from tests.conftest import SOAK
from tests.support.engine.engines import answer_of, plan, play

MODEL = "scripted:test"
ROUNDING = 1e-9
SHARE = st.sampled_from((0.0, 0.5, 1.0))
PRICES = st.builds(
    Price,
    input=st.floats(0, 20),
    output=st.floats(0, 100),
    cached_input=st.none() | st.floats(0, 30),
    cache_write=st.none() | st.floats(0, 40),
)


class Use(NamedTuple):
    """Shares of the most that a call can use; `None`: the provider reports no counts."""

    input: float | None
    output: float
    cached: float
    written: float


USES = st.builds(Use, st.sampled_from((1.0, 0.5, None)), SHARE, SHARE, SHARE)


def usage_of(request: Request, use: Use) -> Usage:
    """Return the token counts of a call."""
    if use.input is None:
        return Usage()
    prompt = int(use.input * longest_prompt(request.messages))
    cached = int(use.cached * prompt)
    return Usage(
        input_tokens=prompt,
        output_tokens=int(use.output * request.max_output_tokens),
        cached_tokens=cached,
        cache_write_tokens=int(use.written * (prompt - cached)),
    )


class Step(NamedTuple):
    """One change of the calls in progress; `place` chooses the call."""

    kind: str
    place: int
    prompt: int
    longest: int
    use: Use


STEPS = st.lists(
    st.builds(
        Step, kind=st.sampled_from(("ask", "ask", "ask", "finish", "finish", "break", "give up", "cancel")),
        place=st.integers(0, 9), prompt=st.integers(0, 2000), longest=st.integers(1, 1000), use=USES,
    ),
    min_size=25,
    max_size=60,
)  # fmt: skip


class Calls:
    """The calls of a session without a session: what they reserved, and what they used."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.waiting: list[tuple[Request, asyncio.Future[Reservation]]] = []
        self.running: list[tuple[Request, Reservation]] = []
        self.tokens = 0
        self.usd = 0.0

    async def take(self, step: Step) -> None:
        """Make one step, then let the waiting calls begin."""
        if step.kind == "ask":
            key = CallKey("starter/vector_add", 1, 1, Role.GENERATOR, 1)
            request = Request(key, (Message("user", "x" * step.prompt),), max_output_tokens=step.longest)
            self.waiting.append((request, asyncio.ensure_future(self.budget.reserve(MODEL, request))))
        elif step.kind == "cancel" and self.waiting:
            self.waiting[step.place % len(self.waiting)][1].cancel()
        elif self.running:
            self._end(step, *self.running.pop(step.place % len(self.running)))
        for _ in range(3):
            await asyncio.sleep(0)
        ended = [(request, call) for request, call in self.waiting if call.done()]
        self.waiting = [(request, call) for request, call in self.waiting if not call.done()]
        for request, call in ended:
            if not call.cancelled() and call.exception() is None:
                self.running.append((request, call.result()))

    def _end(self, step: Step, request: Request, reservation: Reservation) -> None:
        if step.kind == "finish":
            usage = usage_of(request, step.use)
            cost = self.budget.spend(reservation, MODEL, usage)
            assert (cost or 0.0) <= reservation.usd + ROUNDING
            known = usage.input_tokens is not None
            self._count(
                (usage.input_tokens or 0) + (usage.output_tokens or 0) if known else reservation.tokens,
                reservation.usd if cost is None else cost,
            )
            return
        if step.kind == "break":
            self._count(reservation.tokens, reservation.usd)
            try:
                self.budget.lose(reservation)
            except BudgetSpent:
                self.budget.release(reservation)
            else:
                self.running.append((request, reservation))
            return
        self.budget.release(reservation)

    def _count(self, tokens: int, usd: float) -> None:
        self.tokens += tokens
        self.usd += usd


@settings(max_examples=2000 if SOAK else 40)
@given(STEPS, PRICES, st.integers(1000, 20_000), st.floats(1, 10))
def test_reservations_and_use_stay_below_both_limits(
    steps: list[Step], price: Price, tokens: int, calls_paid: float
) -> None:
    usd = calls_paid * price.highest_cost(1000, 1000)

    async def make_calls() -> None:
        calls = Calls(Budget(tokens=tokens, usd=usd, prices={MODEL: price}))
        for step in steps:
            await calls.take(step)
            held = [reservation for _, reservation in calls.running]
            assert calls.tokens + sum(call.tokens for call in held) <= tokens
            assert calls.usd + sum(call.usd for call in held) <= usd + ROUNDING
            assert calls.running or not calls.waiting, "a call waits although nothing is reserved"
        for _, call in calls.waiting:
            call.cancel()

    asyncio.run(make_calls())


class Unsteady:
    """A model whose calls use random shares; some tries break off after the reply began."""

    model = MODEL

    def __init__(self, uses: Sequence[tuple[Use, bool]]) -> None:
        self.uses = itertools.cycle(uses)

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        use, breaks = next(self.uses)
        await asyncio.sleep(0)
        if breaks:
            on_piece(Piece("text", "## Strat"))
            raise TryAgain("cut", "the stream broke off")
        return Reply(text=answer_of("correct", str(request.key)), usage=usage_of(request, use))

    async def close(self) -> None: ...


@settings(max_examples=50 if SOAK else 8)
@given(
    st.lists(st.tuples(USES, st.booleans()), min_size=3, max_size=9),
    st.integers(40_000, 300_000),
)
def test_session_stays_below_its_limit(uses: list[tuple[Use, bool]], tokens: int) -> None:
    session_plan = plan(instances=3, iterations=5, budget_tokens=tokens)
    with tempfile.TemporaryDirectory() as folder:
        events = asyncio.run(play(Home(Path(folder)), Unsteady(uses), session_plan=session_plan))
    state = fold(events)  # type: ignore[arg-type]
    unknown = [
        call.messages
        for attempt in state.attempts()
        for call in attempt.calls
        if call.finished and call.usage.input_tokens is None
    ]
    lost = [lost.messages for lost in state.lost_tries]
    in_full = sum(longest_prompt(messages) + LONGEST_REPLY for messages in unknown + lost)
    assert state.input_tokens + state.output_tokens + in_full <= tokens
    ends = {event.reason for event in events if isinstance(event, InstanceFinished)}
    assert ends <= {"budget", "iterations", "model_failed"}
