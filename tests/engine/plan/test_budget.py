"""Budgets: cost of a call, reservations that never pass a limit, and limits of time and attempts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import BudgetSpent, TryAgain
from engine.models import LONGEST_REPLY, CallKey, Limits, Piece, Reply, Request
from engine.plan.budget import Budget, Reservation, longest_prompt
from engine.plan.job import session_started
from engine.plan.prices import Price
from harness import Evaluation, Verdict
from sessions import Home, Recorder, fold, resume
from sessions.events import (
    AGENT_PROGRAM,
    AttemptJudged,
    AttemptStarted,
    CallFailed,
    CallFinished,
    CallRetried,
    CallStarted,
    EngineStarted,
    Event,
    InstanceFinished,
    Message,
    Origin,
    Role,
    ServedModel,
    Usage,
)
from sessions.state.state import SessionState
from tests.support.engine.engines import (
    ScriptedJudge,
    answer_of,
    cut,
    plan,
    play,
    run,
    scripted_model,
    shared,
    until,
)
from tui.print.narrate import Narrator
from tui.print.summary import summary

PRICE = Price(input=2.0, cached_input=0.5, output=10.0)
MODEL = "anthropic:test"
PRICES = {MODEL: PRICE}


def request(text: str = "", *, longest: int = 100) -> Request:
    key = CallKey("starter/vector_add", 1, 1, Role.GENERATOR, 1)
    return Request(key=key, messages=(Message("user", text),), max_output_tokens=longest)


ONE_CALL = longest_prompt(request().messages) + 100
"""Tokens that `request()` reserves."""


def endings(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.reason, event.message) for event in events if isinstance(event, InstanceFinished)]


# Cost


@pytest.mark.parametrize(
    ("price", "used", "cost"),
    [
        (PRICE, Usage(1_000_000, 100_000, 400_000), 0.6 * 2.0 + 0.4 * 0.5 + 0.1 * 10.0),
        (Price(input=2.0, output=10.0), Usage(1_000_000, 0, 1_000_000), 2.0),
        (PRICE, Usage(1_000_000, 0, 300_000, 200_000), 0.5 * 2.0 + 0.3 * 0.5 + 0.2 * 2.5),
        (
            Price(input=2.0, cached_input=0.5, cache_write=3.0, output=10.0),
            Usage(1_000_000, 0, 300_000, 200_000),
            0.5 * 2.0 + 0.3 * 0.5 + 0.2 * 3.0,
        ),
        (PRICE, Usage(None, 1, 0), None),
    ],
    ids=["cached", "no price for cached", "cache writes cost a quarter more", "own price", "unknown count"],
)
def test_tokens_cost_their_price(price: Price, used: Usage, cost: float | None) -> None:
    assert price.cost(used) == pytest.approx(cost)


# Reservations


async def test_call_that_does_not_fit_waits_until_another_gives_its_rest_back() -> None:
    budget = Budget(tokens=2 * ONE_CALL)
    first, second = await budget.reserve(MODEL, request()), await budget.reserve(MODEL, request())
    third = asyncio.ensure_future(budget.reserve(MODEL, request()))
    await asyncio.sleep(0)
    assert not third.done()
    budget.spend(first, MODEL, Usage(0, ONE_CALL))
    await asyncio.sleep(0)
    assert not third.done(), "the first call used all of its reservation"
    budget.release(second)
    assert isinstance(await third, Reservation)


async def test_call_that_does_not_fit_ends_if_nothing_is_reserved() -> None:
    budget = Budget(tokens=ONE_CALL + 5)
    first = await budget.reserve(MODEL, request())
    waiting = [asyncio.ensure_future(budget.reserve(MODEL, request())) for _ in range(2)]
    await asyncio.sleep(0)
    budget.spend(first, MODEL, Usage(0, 6))
    words = f"the next call may use {ONE_CALL} tokens, and {ONE_CALL - 1} of {ONE_CALL + 5} are left"
    for call in waiting:
        with pytest.raises(BudgetSpent, match=words):
            await call


async def test_cancelled_call_gives_its_place_and_its_reservation_back() -> None:
    budget = Budget(tokens=ONE_CALL)
    first = await budget.reserve(MODEL, request())
    second = asyncio.ensure_future(budget.reserve(MODEL, request()))
    third = asyncio.ensure_future(budget.reserve(MODEL, request()))
    await asyncio.sleep(0)
    budget.release(first)  # grants the second call, which is cancelled before it can run
    second.cancel()
    assert isinstance(await third, Reservation)


async def test_call_without_token_counts_spends_its_whole_reservation() -> None:
    budget = Budget(usd=1.0, prices=PRICES)
    call = request(longest=60_000)
    assert budget.spend(await budget.reserve(MODEL, call), MODEL, Usage()) is None
    with pytest.raises(BudgetSpent, match=r"may cost \$0\.60, and \$0\.40 of \$1\.00 is left"):
        await budget.reserve(MODEL, call)


async def test_call_without_a_price_does_not_fit_a_budget_in_usd() -> None:
    with pytest.raises(BudgetSpent, match="openai:other has no known price"):
        await Budget(usd=1.0, prices=PRICES).reserve("openai:other", request())


async def test_restored_budget_has_spent_what_the_calls_spent(home: Home) -> None:
    state = fold(await play(home, scripted_model("correct", usage=Usage(700, 300))))
    budget = Budget(tokens=3000 + ONE_CALL)
    budget.restore(state)
    await budget.reserve(MODEL, request())
    short = Budget(tokens=2999 + ONE_CALL)
    short.restore(state)
    with pytest.raises(BudgetSpent):
        await short.reserve(MODEL, request())


async def test_budget_counts_the_same_after_a_resume_that_makes_a_commit(tmp_path: Path) -> None:
    whole, home, session_plan = Home(tmp_path / "whole"), Home(tmp_path / "cut"), plan()
    events = await play(whole, scripted_model("wrong", usage=Usage()), session_plan=session_plan)
    last = max(number for number, event in enumerate(events) if isinstance(event, AttemptJudged))
    state = fold(cut(whole, home, session_plan.session, last + 1))
    calls = [call for attempt in state.attempts() for call in attempt.calls]
    spent = sum(longest_prompt(call.messages) + LONGEST_REPLY for call in calls)
    with resume(home, session_plan.session) as recorder:
        budget = Budget(tokens=spent + ONE_CALL - 1)
        budget.restore(recorder.state)
        with pytest.raises(BudgetSpent, match=f"and {ONE_CALL - 1} of"):
            await budget.reserve(MODEL, request())


class Breaking:
    """A model whose first tries break off after the reply began."""

    model = "scripted:test"

    def __init__(self, broken: int) -> None:
        self.left = broken

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        on_piece(Piece("text", "## Strat"))
        if self.left:
            self.left -= 1
            raise TryAgain("cut", "the stream broke off")
        return Reply(text=answer_of("correct", str(request.key)), usage=Usage(1000, 500))

    async def close(self) -> None: ...


async def test_try_that_broke_off_counts_in_full(home: Home) -> None:
    """The budget has room for two and a half calls: after two broken tries there is no third."""
    events = await play(home, Breaking(2), session_plan=plan(budget_tokens=100_000))
    [failed] = [event for event in events if isinstance(event, CallFailed)]
    assert (failed.reason, endings(events)[0][0]) == ("budget", "budget")
    budget = Budget(tokens=100_000)
    budget.restore(fold(events))
    with pytest.raises(BudgetSpent):
        await budget.reserve(MODEL, request(longest=40_000))


async def test_broken_try_is_counted_once(home: Home) -> None:
    events = await play(home, Breaking(1), session_plan=plan(iterations=1, budget_tokens=100_000))
    [retried] = [event for event in events if isinstance(event, CallRetried)]
    assert retried.billed
    assert endings(events)[0][0] == "iterations"
    state = fold(events)
    assert len(state.lost_tries) == 1
    assert state.input_tokens + state.output_tokens == 1500


class Refusing:
    """A model that gets too many requests."""

    model = "scripted:test"

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        raise TryAgain("rate_limited", "too many requests")

    async def close(self) -> None: ...


async def test_call_that_is_cut_between_two_tries_costs_nothing(home: Home) -> None:
    patient = plan(limits=Limits(tries=3, wait_low_s=3600.0, wait_high_s=3600.0))
    with Recorder.begin(home, session_started(patient)) as recorder:
        engine = shared(recorder, patient, Refusing(), ScriptedJudge())
        running = asyncio.create_task(run(engine))
        await until(
            lambda: any(call.retries for attempt in recorder.state.attempts() for call in attempt.calls)
        )
        running.cancel()
        await asyncio.wait({running})
        recorder.record(EngineStarted(host="here", pid=2, resumed=True))
        assert recorder.state.lost_tries == []
        engine.budget.tokens = ONE_CALL
        assert await engine.budget.reserve(MODEL, request())


def test_agents_that_go_on_have_the_rest_of_what_they_state() -> None:
    """An agent asks its models itself: only what it states counts, and a call that a crash broke off states nothing."""
    name, of_agent = "vector_add#1/1", ServedModel(endpoint=AGENT_PROGRAM)
    events = [
        session_started(plan(method="agent")),
        AttemptStarted(attempt=name, origin=Origin.AGENT),
        CallStarted(
            call=f"{name}/generator/1", attempt=name, role=Role.GENERATOR, model="codex", messages=()
        ),
        CallFinished(
            call=f"{name}/generator/1", text="", usage=Usage(700, 200), cost_usd=0.5, served=of_agent
        ),
        CallStarted(
            call=f"{name}/generator/2", attempt=name, role=Role.GENERATOR, model="codex", messages=()
        ),
        EngineStarted(host="here", pid=2, resumed=True),
    ]
    budget = Budget(tokens=1000, usd=2.0)
    budget.restore(fold(events))
    budget.count_stated(Usage(90, None), None)
    assert budget.reached == ""
    budget.count_stated(Usage(5, 5), None)
    assert budget.reached.startswith("the agent stated 1,000 of 1,000 tokens")
    budget.count_stated(Usage(), 1.5)
    assert budget.reached.startswith("the agent stated $2.00 of $2.00")
    budget.raise_usd(3.0)
    assert "tokens" in budget.reached


def test_call_of_a_crashed_engine_counts_in_full() -> None:
    prompt = (Message("user", "hi"),)
    name = "vector_add#1/1"
    state = fold(
        [
            AttemptStarted(attempt=name, origin=Origin.FRESH),
            CallStarted(
                call=f"{name}/generator/1", attempt=name, role=Role.GENERATOR, model=MODEL, messages=prompt
            ),
            EngineStarted(host="here", pid=2, resumed=True),
        ]
    )
    assert [(lost.model, lost.messages) for lost in state.lost_tries] == [(MODEL, prompt)]


# Attempts and time


class SlowJudge(ScriptedJudge):
    """A judge that works for `seconds` after the first stages."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    async def evaluate(self, *args: object, **more: object) -> Evaluation:  # type: ignore[override]
        evaluation = await super().evaluate(*args, **more)  # type: ignore[arg-type]
        await asyncio.sleep(self.seconds)
        return evaluation


async def test_device_time_cuts_off_the_evaluation_that_would_pass_it(home: Home) -> None:
    class EndlessFromTheThird(ScriptedJudge):
        async def evaluate(self, *args: object, **more: object) -> Evaluation:  # type: ignore[override]
            evaluation = await super().evaluate(*args, **more)  # type: ignore[arg-type]
            if len(self.evaluated) > 2:
                await asyncio.Event().wait()
            return evaluation

    events = await play(
        home,
        scripted_model("correct"),
        judge=EndlessFromTheThird(),
        session_plan=plan(instances=2, iterations=9, budget_device_s=1.0),
    )
    state = fold(events)
    assert state.device_s > 0.99
    assert [reason for reason, _ in endings(events)] == ["budget", "budget"]
    cancelled = [attempt for attempt in state.attempts() if attempt.verdict is Verdict.CANCELLED]
    assert cancelled
    assert "1 s of device time are spent" in str(cancelled[0].evaluation and cancelled[0].evaluation.error)
    winners = [instance.best for instance in state.instances.values() if instance.best]
    assert "device time" in state.attempt(winners[0]).unexamined_because


async def test_spending_is_printed_by_instance_and_session(home: Home) -> None:
    prices = {"scripted:test": Price(input=1.0, output=10.0)}
    client = scripted_model("correct", usage=Usage(10_000, 4_000))
    events = await play(
        home, client, judge=SlowJudge(0.05), session_plan=plan(instances=2, iterations=1, prices=prices)
    )
    narrator = Narrator()
    lines = [line for event in events for line in narrator.lines(event)]
    ended = [line for line in lines if "ends: " in line]
    assert len(ended) == 2
    words = re.compile(r"spent 10,000 tokens in, 4,000 out, \$0\.0500, \d\.\d s on devices")
    assert all(words.search(line) for line in ended)
    assert re.search(
        r"20,000 tokens in, 8,000 out; cost \$0\.10; \d\.\d s on devices", summary(narrator.state)
    )


async def test_wall_time_ends_every_instance(home: Home) -> None:
    events = await play(
        home,
        scripted_model("correct"),
        judge=SlowJudge(0.1),
        session_plan=plan(instances=2, iterations=99, budget_wall_s=0.35),
    )
    assert {reason for reason, _ in endings(events)} == {"budget"}
    state = fold(events)
    assert {attempt.verdict for attempt in state.attempts() if attempt.calls} <= {
        Verdict.CORRECT,
        Verdict.CANCELLED,
    }


async def test_resumed_session_has_only_the_rest_of_its_wall_time() -> None:
    state = SessionState(worked_s=10.0)
    budget = Budget(wall_s=9.0)
    budget.restore(state)
    with pytest.raises(BudgetSpent, match=r"ran for 9\.0 s; a new run takes another --budget-wall-s"):
        async with budget.wall_time():
            pass
