"""The budget of a session: hard limits in USD, tokens, device time and wall time, and what was spent so far.

No limit is passed. A model call is reserved in full before it is made: its prompt, estimated high, and its longest
reply. After the call the unused rest is free again; a try that broke off counts in full, because the provider may bill
it. Device time and wall time are cut off when they are spent.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from engine.errors import BudgetSpent
from engine.models import LONGEST_REPLY, Request
from engine.models.bookkeeping import used_tokens
from sessions.events import Message, Usage
from sessions.settings import AGENT
from sessions.state.state import SessionState

from .plan import SessionPlan
from .prices import Price

BYTES_A_TOKEN = 2
"""Fewest bytes of UTF-8 text for each token of a prompt. English and code have 3 to 4."""
TOKENS_A_MESSAGE = 16
"""Tokens of a message besides its text, estimated high."""


@dataclass(frozen=True, slots=True, eq=False)
class Reservation:
    """The most that a call can spend."""

    tokens: int
    usd: float


class DeviceUse:
    """The time in which the judge holds a device for one candidate."""

    def __init__(self, began: Callable[[], None]) -> None:
        """`began` is called once, when the time begins."""
        self.seconds = 0.0
        """Set when the use has ended."""
        self._began = began
        self._since: float | None = None

    def begin(self) -> None:
        """Count from now on; later calls change nothing."""
        if self._since is None:
            self._since = time.monotonic()
            self._began()

    @property
    def running(self) -> bool:
        """True since it began."""
        return self._since is not None

    @property
    def so_far(self) -> float:
        """Seconds since it began; 0 before."""
        return 0.0 if self._since is None else time.monotonic() - self._since


@dataclass(slots=True)
class Budget:
    """Reserves model calls and measures time against the limits of a session; `None` is no limit."""

    usd: float | None = None
    tokens: int | None = None
    device_s: float | None = None
    wall_s: float | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)
    """By model, as people name it."""
    _spent_usd: float = 0.0
    _spent_tokens: int = 0
    _spent_device_s: float = 0.0
    _is_stated: bool = False
    """True if programs of agents state what they spend: they ask their models themselves, so nothing is reserved."""
    _ends_at: float | None = None
    """When the wall time is spent, on the monotonic clock."""
    _held: set[Reservation] = field(default_factory=set)
    _queue: deque[tuple[Reservation, asyncio.Future[None]]] = field(default_factory=deque)
    """Calls that wait for a reservation, oldest first."""
    _uses: dict[DeviceUse, asyncio.Timeout] = field(default_factory=dict)

    def raise_usd(self, limit: float) -> None:
        """Set a higher limit in USD, and let calls start that fit now."""
        self.usd = limit
        self._serve()

    def restore(self, state: SessionState) -> None:
        """Count what the session spent before it was resumed, and start the wall time."""
        calls = [call for attempt in state.attempts() for call in attempt.calls if call.finished]
        for call in calls:
            if call.is_of_agent:
                self.count_stated(call.usage, call.cost_usd)
            else:
                self._count(
                    self._longest(call.model, call.messages, LONGEST_REPLY), call.usage, call.cost_usd
                )
        if state.started is None or state.started.method != AGENT:
            for lost in state.lost_tries:
                self._count(self._longest(lost.model, lost.messages, LONGEST_REPLY), Usage(), None)
        self._spent_device_s = state.device_s
        if self.usd is not None:
            self.usd += state.added_usd
        if self.wall_s is not None:
            self._ends_at = time.monotonic() + self.wall_s - state.worked_s

    # Calls

    async def reserve(self, model: str, request: Request) -> Reservation:
        """Returns a reservation for the call, after a wait if others hold what it needs.

        Calls are served in the order of their requests. Raises `BudgetSpent` if the call does not fit although no
        other call holds a reservation.
        """
        wish = self._longest(model, request.messages, request.max_output_tokens)
        if self.usd is not None and model not in self.prices:
            raise BudgetSpent(
                f"{model} has no known price, so --budget-usd cannot be kept; use --budget-tokens"
            )
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((wish, granted))
        self._serve()
        try:
            await granted
        except asyncio.CancelledError:
            self._held.discard(wish)
            self._serve()
            raise
        return wish

    def spend(self, reservation: Reservation, model: str, usage: Usage) -> float | None:
        """Count a finished call and free the rest of its reservation.

        Returns its cost in USD; `None` if the price or a token count is unknown. If the count of tokens in or out is
        unknown, the whole reservation counts.
        """
        price = self.prices.get(model)
        cost = None if price is None else price.cost(usage)
        self._count(reservation, usage, cost)
        self.release(reservation)
        return cost

    def lose(self, reservation: Reservation) -> None:
        """Count a try that the provider may bill although it brought no reply, in full; the reservation stays.

        Raises `BudgetSpent` if another try does not fit.
        """
        self._count(reservation, Usage(), None)
        self._held.discard(reservation)
        refusal = self._refusal(reservation)
        if refusal:
            raise BudgetSpent(refusal)
        self._held.add(reservation)

    def release(self, reservation: Reservation) -> None:
        """Free the reservation of a call that brought no reply; a second call changes nothing."""
        self._held.discard(reservation)
        self._serve()

    def _longest(self, model: str, messages: Sequence[Message], output_tokens: int) -> Reservation:
        prompt = longest_prompt(messages)
        price = self.prices.get(model)
        usd = 0.0 if price is None else price.highest_cost(prompt, output_tokens)
        return Reservation(prompt + output_tokens, usd)

    def _count(self, reservation: Reservation, usage: Usage, cost_usd: float | None) -> None:
        used = used_tokens(usage)
        self._spent_tokens += reservation.tokens if used is None else used
        self._spent_usd += reservation.usd if cost_usd is None else cost_usd

    def _serve(self) -> None:
        """Grant the oldest waiting calls that fit; refuse a call that does not fit if nothing is reserved."""
        while self._queue:
            wish, granted = self._queue[0]
            if not granted.done():
                refusal = self._refusal(wish)
                if refusal and self._held:
                    return
                if refusal:
                    granted.set_exception(BudgetSpent(refusal))
                else:
                    self._held.add(wish)
                    granted.set_result(None)
            self._queue.popleft()

    def _refusal(self, wish: Reservation) -> str:
        """Returns why the call does not fit; empty if it fits."""
        if self.usd is not None:
            left = self.usd - self._spent_usd - sum(held.usd for held in self._held)
            if wish.usd > left:
                return (
                    f"the next call may cost ${wish.usd:.2f}, and ${max(left, 0.0):.2f} of ${self.usd:.2f} is left; "
                    "a new run takes another --budget-usd"
                )
        if self.tokens is not None:
            left_tokens = self.tokens - self._spent_tokens - sum(held.tokens for held in self._held)
            if wish.tokens > left_tokens:
                return (
                    f"the next call may use {wish.tokens:,} tokens, and {max(left_tokens, 0):,} of {self.tokens:,} are left; "
                    "a new run takes another --budget-tokens"
                )
        return ""

    # Programs of agents

    def count_stated(self, usage: Usage, cost_usd: float | None) -> None:
        """Count what an agent's program states; an unknown count adds nothing."""
        self._is_stated = True
        self._spent_tokens += (usage.input_tokens or 0) + (usage.output_tokens or 0)
        self._spent_usd += cost_usd or 0.0

    @property
    def reached(self) -> str:
        """The limit that programs of agents reached, in one line; empty if there is none."""
        if not self._is_stated:
            return ""
        if self.usd is not None and self._spent_usd >= self.usd:
            return f"the agent stated ${self._spent_usd:.2f} of ${self.usd:.2f}; a new run takes another --budget-usd"
        if self.tokens is not None and self._spent_tokens >= self.tokens:
            return f"the agent stated {self._spent_tokens:,} of {self.tokens:,} tokens; a new run takes another --budget-tokens"
        return ""

    # Time

    @asynccontextmanager
    async def wall_time(self) -> AsyncIterator[None]:
        """Cancel the block when the session's wall time is spent, and raise `BudgetSpent`."""
        left = None if self._ends_at is None else self._ends_at - time.monotonic()
        spent = BudgetSpent(f"the session ran for {self.wall_s} s; a new run takes another --budget-wall-s")
        if left is not None and left <= 0:
            raise spent
        timeout = asyncio.timeout(left)
        try:
            async with timeout:
                yield
        except TimeoutError:
            if not timeout.expired():
                raise
            raise spent from None

    @asynccontextmanager
    async def device_time(self) -> AsyncIterator[DeviceUse]:
        """Measure the block's use of a device; cancel it when the device time is spent, and raise `BudgetSpent`."""
        if self.device_s is not None and self._spent_device_s >= self.device_s:
            raise BudgetSpent(self._device_time_spent)
        use, timeout = DeviceUse(self._divide_device_time), asyncio.timeout(None)
        try:
            async with timeout:
                self._uses[use] = timeout
                yield use
        except TimeoutError:
            if not timeout.expired():
                raise
            raise BudgetSpent(self._device_time_spent) from None
        finally:
            use.seconds = use.so_far
            self._spent_device_s += use.seconds
            del self._uses[use]
            self._divide_device_time()

    @property
    def _device_time_spent(self) -> str:
        return f"{self.device_s:g} s of device time are spent; a new run takes another --budget-device-s"

    def _divide_device_time(self) -> None:
        """Set the time limit of all running uses, which share what is left in equal parts."""
        running = [use for use in self._uses if use.running]
        if self.device_s is None or not running:
            return
        left = self.device_s - self._spent_device_s - sum(use.so_far for use in running)
        ends_at = asyncio.get_running_loop().time() + left / len(running)
        for use in running:
            if not self._uses[use].expired():
                self._uses[use].reschedule(ends_at)


def longest_prompt(messages: Sequence[Message]) -> int:
    """Returns the tokens of a prompt, estimated high from its text."""
    return sum(len(message.content.encode()) // BYTES_A_TOKEN + TOKENS_A_MESSAGE for message in messages)


def budget_of(plan: SessionPlan) -> Budget:
    """Returns the budget of a plan, with nothing spent."""
    return Budget(
        usd=plan.budget_usd,
        tokens=plan.budget_tokens,
        device_s=plan.budget_device_s,
        wall_s=plan.budget_wall_s,
        prices=plan.prices,
    )
