"""A prompt that does not fit the model's context: a shorter one is tried once, told by events, and the rest goes on."""

from __future__ import annotations

from pathlib import Path

from engine.errors import ContextTooLong, ModelError
from engine.models import RecordedClient, Reply, Request
from engine.models.scripted import ScriptedClient
from engine.plan import SessionPlan
from sessions import Home, fold
from sessions.events import CallFailed, CallStarted, InstanceFinished
from sessions.recording import load_recording, record_sessions
from tests.support.engines import plan, play, told

PLAN: SessionPlan = plan(iterations=4)
VERDICTS = ("correct 1.5", "correct 1.2", "correct 1.1", "correct 2.0")


def narrow(limit: int) -> ScriptedClient:
    """A model whose context holds so many characters of a user message."""
    answer = told(*VERDICTS)._answer
    assert answer is not None

    def within(request: Request) -> Reply | ModelError:
        if len(request.messages[-1].content) > limit:
            return ContextTooLong("400: prompt is too long")
        return answer(request)

    return ScriptedClient(answer=within)


async def test_a_shorter_prompt_keeps_the_best_and_the_latest(tmp_path: Path) -> None:
    whole = await play(Home(tmp_path / "whole"), told(*VERDICTS), of=PLAN)
    last = [event for event in whole if isinstance(event, CallStarted)][-1]
    length = len(last.messages[-1].content)
    events = await play(Home(tmp_path / "narrow"), narrow(length - 1), of=PLAN)
    state = fold(events)
    assert [str(attempt.verdict) for attempt in state.attempts()] == ["correct"] * 4
    [failed] = [event for event in events if isinstance(event, CallFailed)]
    assert (failed.call, failed.reason) == (last.call, "context_too_long")
    short = [event for event in events if isinstance(event, CallStarted)][-1].messages[-1].content
    assert len(short) < length
    assert "# judge: correct 1.5" in short, "the best"
    assert "# judge: correct 1.1" in short, "the latest"
    assert "# judge: correct 1.2" not in short


async def test_what_cannot_be_shortened_ends_the_instance_with_a_reason(tmp_path: Path) -> None:
    events = await play(Home(tmp_path), narrow(10), of=PLAN)
    [ended] = [event for event in events if isinstance(event, InstanceFinished)]
    assert ended.reason == "model_failed"
    assert "context_too_long" in ended.message
    assert len([event for event in events if isinstance(event, CallFailed)]) == 1


async def test_a_recording_of_it_plays_the_same(tmp_path: Path) -> None:
    whole = await play(Home(tmp_path / "whole"), told(*VERDICTS), of=PLAN)
    length = max(len(event.messages[-1].content) for event in whole if isinstance(event, CallStarted))
    state = fold(await play(Home(tmp_path / "narrow"), narrow(length - 1), of=PLAN))
    record_sessions([state], "narrow", tmp_path / "recording")
    client = RecordedClient(load_recording(tmp_path / "recording" / "narrow"), pieces_a_second=None)
    again = fold(await play(Home(tmp_path / "again"), client, of=PLAN))
    assert [attempt.source for attempt in again.attempts()] == [
        attempt.source for attempt in state.attempts()
    ]
    assert [call.too_long for attempt in again.attempts() for call in attempt.calls].count(True) == 1
