"""A prompt longer than the model's context: the engine tries a shorter prompt once and continues."""

from __future__ import annotations

from pathlib import Path

from engine.errors import ContextTooLong, ModelError
from engine.models import Reply, Request
from engine.models.clients.recorded import ScriptedClient
from engine.plan.plan import SessionPlan
from sessions import Home, fold
from sessions.events import CallFailed, CallStarted, InstanceFinished
from tests.support.engine.engines import plan, play, scripted_model

PLAN: SessionPlan = plan(iterations=4)
VERDICTS = ("correct 1.5", "correct 1.2", "correct 1.1", "correct 2.0")


def narrow(limit: int) -> ScriptedClient:
    """Model whose context holds `limit` characters of a user message."""
    answer = scripted_model(*VERDICTS)._answer

    def within(request: Request) -> Reply | ModelError:
        if len(request.messages[-1].content) > limit:
            return ContextTooLong("400: prompt is too long")
        return answer(request)

    return ScriptedClient(answer=within)


async def test_shorter_prompt_keeps_the_best_and_the_latest_source(tmp_path: Path) -> None:
    whole = await play(Home(tmp_path / "whole"), scripted_model(*VERDICTS), session_plan=PLAN)
    last = [event for event in whole if isinstance(event, CallStarted)][-1]
    length = len(last.messages[-1].content)
    events = await play(Home(tmp_path / "narrow"), narrow(length - 1), session_plan=PLAN)
    state = fold(events)
    assert [str(attempt.verdict) for attempt in state.attempts()] == ["correct"] * 4
    [failed] = [event for event in events if isinstance(event, CallFailed)]
    assert (failed.call, failed.reason) == (last.call, "context_too_long")
    short = [event for event in events if isinstance(event, CallStarted)][-1].messages[-1].content
    assert len(short) < length
    assert "# judge: correct 1.5" in short, "the best"
    assert "# judge: correct 1.1" in short, "the latest"
    assert "# judge: correct 1.2" not in short


async def test_prompt_that_stays_too_long_ends_the_instance(tmp_path: Path) -> None:
    events = await play(Home(tmp_path), narrow(10), session_plan=PLAN)
    [ended] = [event for event in events if isinstance(event, InstanceFinished)]
    assert ended.reason == "model_failed"
    assert "context_too_long" in ended.message
    assert len([event for event in events if isinstance(event, CallFailed)]) == 1
