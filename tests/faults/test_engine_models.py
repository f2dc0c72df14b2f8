"""Protects a session from faults of a model provider: through the real SDKs, each fault becomes a clear event.

`tests/engine/models/test_models_clients.py` sends the faults on each wire to a client alone; here a commit draws one wire.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.models import Limits
from harness import Verdict
from sessions import Home
from sessions.events import AttemptJudged, CallFailed, CallFinished, CallRetried, Event, InstanceFinished
from tests.support.draws import drawn
from tests.support.engine.engines import answer_of, plan, play
from tests.support.engine.model_calls import WIRES, connected
from tests.support.engine.model_server import Answer, Seen, cuts, refuses, says

LIMITS = Limits(
    connect_s=30, first_token_s=30, silence_s=30, reply_s=60, tries=3, wait_low_s=0.0, wait_high_s=0.0
)
"""Limits that a healthy reply keeps even on a busy machine; a reply that breaks one would be a second fault."""
DRAWN_WIRES = drawn(WIRES, 1)
GOOD = answer_of("correct", "good")

UNUSABLE = {
    "empty": says(""),
    "no code": says("I would rather not."),
    "cut off": says("## Strategy\n\nShort.\n\n```python\nimport triton\n", stop="truncated"),
}
"""Complete replies without a candidate."""


async def session(home: Home, wire: str, answer: Callable[[Seen], Answer], **changes: object) -> list[Event]:
    async with connected(wire, answer=answer, limits=LIMITS) as (client, _):
        return await play(home, client, session_plan=plan(limits=LIMITS, **changes))


def first_then(fault: Answer, times: int = 1) -> Callable[[Seen], Answer]:
    """Answers with the fault `times` times, then with good replies."""
    faults = iter([fault] * times)
    return lambda _: next(faults, says(GOOD))


def events_of(kind: type[Event], events: list[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]


@pytest.mark.parametrize("wire", DRAWN_WIRES)
async def test_passing_fault_is_reported_and_retried(tmp_path: Path, wire: str) -> None:
    events = await session(Home(tmp_path), wire, first_then(cuts(GOOD, after=2)), iterations=1)
    [retry] = events_of(CallRetried, events)
    assert (retry.reason, bool(retry.message)) == ("cut", True)
    assert events_of(CallFailed, events) == []
    [judged] = events_of(AttemptJudged, events)
    assert judged.evaluation.verdict is Verdict.CORRECT


@pytest.mark.parametrize("wire", DRAWN_WIRES)
@pytest.mark.parametrize(
    ("answer", "reason"),
    [(refuses(401, kind="authentication_error"), "bad_key"), (refuses(500), "gave_up")],
)
async def test_lasting_fault_ends_its_instance_with_a_reason(
    tmp_path: Path, wire: str, answer: Answer, reason: str
) -> None:
    events = await session(Home(tmp_path), wire, lambda _: answer, iterations=1)
    [failed] = events_of(CallFailed, events)
    assert failed.reason == reason
    [ended] = events_of(InstanceFinished, events)
    assert ended.reason == "model_failed"
    assert ended.message.startswith(reason)
    assert "\n" not in ended.message


@pytest.mark.parametrize("wire", DRAWN_WIRES)
@pytest.mark.parametrize("fault", UNUSABLE)
async def test_unusable_reply_is_retried_once_then_no_code(tmp_path: Path, wire: str, fault: str) -> None:
    once = await session(Home(tmp_path / "once"), wire, first_then(UNUSABLE[fault]), iterations=1)
    assert len(events_of(CallFinished, once)) == 2
    [judged] = events_of(AttemptJudged, once)
    assert judged.evaluation.verdict is Verdict.CORRECT
    twice = await session(Home(tmp_path / "twice"), wire, first_then(UNUSABLE[fault], times=2), iterations=2)
    verdicts = [event.evaluation.verdict for event in twice if isinstance(event, AttemptJudged)]
    assert verdicts == [Verdict.NO_CODE, Verdict.CORRECT]


@pytest.mark.parametrize("wire", DRAWN_WIRES)
async def test_failed_instance_leaves_the_others_running(tmp_path: Path, wire: str) -> None:
    prompts: list[str] = []

    def answer(seen: Seen) -> Answer:
        prompts.append(seen.prompt)
        return refuses(401, kind="authentication_error") if len(prompts) == 2 else says(GOOD)

    events = await session(Home(tmp_path), wire, answer, instances=3, iterations=2)
    reasons = sorted(event.reason for event in events if isinstance(event, InstanceFinished))
    assert reasons == ["iterations", "iterations", "model_failed"]
