"""Asks a model with retries: which errors are retried, how often, and after which wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_random_exponential

from engine.errors import GaveUp, TryAgain

from .client import Client, Limits, Piece, Reply, Request


class Retry(msgspec.Struct, frozen=True):
    """A failed try that is repeated after `wait_s`; the pieces of the failed try are void."""

    reason: str
    message: str
    wait_s: float
    n: int
    """1 for the first retry."""


async def ask(
    client: Client,
    request: Request,
    *,
    on_piece: Callable[[Piece], None],
    on_retry: Callable[[Retry], None],
    limits: Limits,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Reply:
    """Returns the model's reply after at most `limits.tries` tries.

    The wait between tries is exponential with full jitter, or the server's retry-after if that is longer. A
    retry-after beyond `limits.reply_s` (a used-up daily quota) is not waited for.

    Raises `GaveUp` with the last error's message if all tries fail; other `ModelError`s pass through at once.
    """
    random_wait = wait_random_exponential(
        multiplier=2 * limits.wait_low_s, min=limits.wait_low_s, max=limits.wait_high_s
    )

    def wait(state: RetryCallState) -> float:
        error = _failure(state)
        return max(random_wait(state), error.retry_after_s or 0.0)

    def report(state: RetryCallState) -> None:
        error = _failure(state)
        wait_s = state.upcoming_sleep
        if error.retry_after_s is not None and error.retry_after_s > limits.reply_s:
            raise GaveUp(
                f"{error.message}; the server asks to wait {error.retry_after_s:.0f} s: resume the session later",
                cause=error.reason,
            ) from error
        on_retry(Retry(reason=error.reason, message=error.message, wait_s=wait_s, n=state.attempt_number))

    retrying = AsyncRetrying(
        stop=stop_after_attempt(limits.tries),
        wait=wait,
        retry=retry_if_exception_type(TryAgain),
        before_sleep=report,
        sleep=sleep,
        reraise=True,
    )
    try:
        return await retrying(client.reply, request, on_piece)
    except TryAgain as last:
        raise GaveUp(
            f"no reply after {limits.tries} tries, the last one ended with: {last.message}; "
            "resume the session when the model answers again",
            cause=last.reason,
        ) from last
    finally:
        retrying.iter_state.reset()  # its actions refer to `retrying`: a cycle would outlive the call


def _failure(state: RetryCallState) -> TryAgain:
    error = state.outcome.exception() if state.outcome else None
    if not isinstance(error, TryAgain):
        raise TypeError(f"only a TryAgain is retried, not {error!r}")
    return error
