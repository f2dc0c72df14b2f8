"""Model calls of an instance: each is answered from the journal, or made within budget and pace and recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from engine.errors import BudgetSpent, ContextTooLong, ModelError
from engine.models import Reply, Request, Retry, ask
from engine.models.pacing import PacedClient
from engine.plan.budget import Reservation
from engine.reply.streaming import PieceBatches
from engine.run.shared import Shared
from sessions.events import CallFailed, CallFinished, CallRetried, CallStarted, Message, Notice, Usage
from sessions.settings import ALL_ROLES, Sampling
from sessions.state.state import AttemptState, CallState

PERHAPS_BILLED = ("cut", "silent")
"""Reasons of a failed try after which the provider may have made a part of the reply, even if no piece came."""


def recorded_reply(
    shared: Shared, attempt: AttemptState, call: str, messages: Sequence[Message]
) -> Reply | None:
    """Returns the reply to a call that the journal has, without its reasoning if the recorder dropped it; else `None`.

    Raises `ContextTooLong` if the call failed so before. A notice is recorded if the prompt differs from the recorded
    one.
    """
    tries = [state for state in attempt.calls if state.call == call]
    finished = next((state for state in tries if state.finished), None)
    if finished is None:
        if any(state.too_long for state in tries):
            raise ContextTooLong("the prompt was too long at an earlier try")
        return None
    if finished.messages not in ((), tuple(messages)) and not shared.prompts_changed:
        shared.prompts_changed = True
        words = f"the prompt of {call} differs from the one in the journal; the recorded replies still count"
        shared.recorder.record(Notice(level="warning", message=words))
    return _reply_of(finished)


def sampled(request: Request, sampling: Mapping[str, Sampling]) -> Request:
    """Returns the request with the values of its role; `all` gives the values that the role does not set."""
    parts = (sampling.get(name, Sampling()) for name in (ALL_ROLES, request.key.role))
    pairs = [pair for part in parts for pair in msgspec.structs.asdict(part).items()]
    return msgspec.structs.replace(
        request, **{name: value for name, value in pairs if value not in (None, "")}
    )


async def call_model(shared: Shared, instance: str, attempt: str, call: str, request: Request) -> Reply:
    """Make a call and return its reply. `ModelError` if no reply comes, `BudgetSpent` if it does not fit the budget.

    Waits while a person pauses the instance, for the budget, and for the provider's limits.
    """
    client = shared.clients[request.key.role]
    while True:
        await shared.until_released(instance)
        reservation = await shared.budget.reserve(client.model, request)
        paced = shared.gates.paced(client)
        try:
            await paced.enter()
            if shared.recorder.state.is_on_hold(instance):
                continue  # paused while other calls were in the way
            return await _call(shared, attempt, call, paced, request, reservation)
        finally:
            await paced.close()
            shared.budget.release(reservation)


async def _call(
    shared: Shared, attempt: str, call: str, client: PacedClient, request: Request, reservation: Reservation
) -> Reply:
    recorder, budget, record = shared.recorder, shared.budget, shared.recorder.record
    record(
        CallStarted(
            call=call,
            attempt=attempt,
            role=request.key.role,
            model=client.model,
            messages=request.messages,
            most_tokens=reservation.tokens,
            most_usd=reservation.usd,
        )
    )
    batches = PieceBatches(call, record, shared.streams, recorder.masks)

    def retried(retry: Retry) -> None:
        billed = batches.began or retry.reason in PERHAPS_BILLED
        batches.drop()
        record(
            CallRetried(
                call=call,
                reason=retry.reason,
                message=retry.message,
                wait_s=retry.wait_s,
                retry=retry.n,
                billed=billed,
            )
        )
        if billed:
            budget.lose(reservation)

    try:
        reply = await ask(client, request, on_piece=batches.add, on_retry=retried, limits=shared.plan.limits)
        batches.flush()
    except asyncio.CancelledError:
        if client.is_sent:
            budget.spend(reservation, client.model, Usage())
        else:
            # Nothing is in flight. Without an end in the journal, the call would count in full.
            record(CallFailed(call=call, reason="cancelled", message="it waited for its next try"))
        raise
    except BudgetSpent as spent:
        await recorder.record_durable(CallFailed(call=call, reason="budget", message=str(spent)))
        raise
    except ModelError as error:
        billed = batches.began or error.cause in PERHAPS_BILLED
        if billed:
            budget.spend(reservation, client.model, Usage())
        failure = CallFailed(
            call=call, reason=error.reason, message=error.message, cause=error.cause, billed=billed
        )
        await recorder.record_durable(failure)
        raise
    finally:
        batches.close()
    await recorder.record_durable(
        CallFinished(
            call=call,
            text=reply.text,
            reasoning=reply.reasoning,
            stop_reason=reply.stop_reason,
            usage=reply.usage,
            cost_usd=budget.spend(reservation, client.model, reply.usage),
            seconds=reply.seconds,
            temperature=reply.temperature,
            served=reply.served,
        )
    )
    # As the journal has it: a resume continues with the same reply.
    calls = recorder.state.attempt(attempt).calls
    return _reply_of(next(state for state in calls if state.call == call and state.finished))


def _reply_of(call: CallState) -> Reply:
    return Reply(
        text=call.text,
        reasoning=call.reasoning,
        stop_reason=call.stop_reason,
        usage=call.usage,
        seconds=call.seconds or 0.0,
        temperature=call.temperature,
        served=call.served,
    )
