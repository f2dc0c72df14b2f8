"""Whole sessions in this process with a scripted model and judge: events, verdicts, budgets and reviews."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.errors import TryAgain, UselessToRetry
from engine.models import Pace, Piece, Reply, Request, ScriptedClient
from engine.models.clients.recorded import RecordedClient
from harness import Device, Evaluation, Verdict
from harness.wire.device import Identity
from harness.wire.errors import NoDeviceLeft
from sessions import Home, Recorder, fold, load_recording, write_recording
from sessions.events import (
    AttemptJudged,
    CallFailed,
    CallRetried,
    CallStarted,
    Event,
    InstanceFinished,
    Notice,
    Origin,
    ReplyPiece,
)
from sessions.journal.journal import read_journal
from sessions.settings import MethodOptions
from tests.support.engine.engines import (
    ScriptedJudge,
    answer_of,
    candidate,
    endings,
    plan,
    play,
    scripted_model,
)
from tests.support.sessions.story import git


def verdicts(events: list[Event]) -> dict[str, Verdict]:
    return {event.attempt: event.evaluation.verdict for event in events if isinstance(event, AttemptJudged)}


async def test_session_records_all_calls_and_verdicts(home: Home) -> None:
    events = await play(
        home, scripted_model("wrong", "correct 1.5", "correct 2.0"), session_plan=plan(instances=2)
    )
    for instance in (1, 2):
        instance_verdicts = {
            name: verdict for name, verdict in verdicts(events).items() if f"#{instance}/" in name
        }
        assert list(instance_verdicts.values()) == [Verdict.WRONG, Verdict.CORRECT, Verdict.CORRECT]
    assert endings(events) == ["iterations", "iterations"]
    state = fold(events)
    best = state.instances["vector_add#2"].best
    assert best == "vector_add#2/3"
    words = [
        event.text
        for event in events
        if isinstance(event, ReplyPiece) and event.call == "vector_add#1/1/generator/1"
    ]
    assert "".join(words) == "Thinking 1.1.1." + answer_of("wrong", "1.1.1")


async def test_a_kernel_is_judged_as_it_is_recorded_without_keys(home: Home) -> None:
    key, judge = "sk-1234abcd5678efgh", ScriptedJudge()
    marks = (f"{key[:9]}\n#{key[9:]}", "softmax_kernel 12345678")

    def answer(request: Request) -> Reply:
        return Reply(text=answer_of("correct", marks[request.key.attempt - 1]), reasoning=f"I have {key}.")

    def hide(recorder: Recorder, _: object) -> None:
        recorder.masks.hide([key, "softmax_kernel", "12345678"])

    client = ScriptedClient(answer=answer)
    events = await play(home, client, session_plan=plan(iterations=2), judge=judge, before=hide)
    assert judge.evaluated == [attempt.source for attempt in fold(events).attempts()]
    assert judge.evaluated == [candidate("correct", "[key]"), candidate("correct", marks[1])]
    assert key.encode() not in home.files(plan().session).journal.read_bytes()
    assert key[9:] not in git(home.store, "log", "--all", "-p")


async def test_failure_of_one_instance_does_not_affect_the_others(home: Home) -> None:
    def answer(request: Request) -> Reply | Exception:
        if request.key.instance == 2:
            return UselessToRetry("bad_key", "the key is not accepted")
        return Reply(text=answer_of("correct", str(request.key)))

    events = await play(home, ScriptedClient(answer=answer), session_plan=plan(instances=3, iterations=2))
    ended = {event.instance: event for event in events if isinstance(event, InstanceFinished)}
    assert [ended[number].reason for number in (1, 2, 3)] == ["iterations", "model_failed", "iterations"]
    assert ended[2].message == "bad_key: the key is not accepted"
    [failed] = [event for event in events if isinstance(event, CallFailed)]
    assert (failed.call, failed.reason) == ("vector_add#2/1/generator/1", "bad_key")


async def test_session_without_a_device_stops_without_ending_instances(home: Home) -> None:
    class Lost(ScriptedJudge):
        async def evaluate(self, *_: object, **__: object) -> None:  # type: ignore[override]
            raise NoDeviceLeft("every GPU of this run failed (GPU 0: no answer)")

    with pytest.raises(ExceptionGroup) as raised:
        await play(home, scripted_model("correct"), session_plan=plan(instances=2), judge=Lost())
    assert raised.group_contains(NoDeviceLeft)
    (live,) = home.session_folders()
    events = read_journal(live.journal).events
    assert not any(isinstance(event, InstanceFinished) for event in events)


async def test_failed_tries_are_recorded_and_their_text_is_dropped(home: Home) -> None:
    class Stumbling:
        model = "scripted:stumbling"
        tries = 0

        async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
            self.tries += 1
            on_piece(Piece("text", "half a wo"))
            if self.tries < 3:
                raise TryAgain("cut", "the stream ended early")
            on_piece(Piece("text", "rd"))
            return Reply(text="half a word")

        async def close(self) -> None: ...

    events = await play(home, Stumbling(), session_plan=plan(iterations=1))
    retried = [event for event in events if isinstance(event, CallRetried)]
    assert [(event.reason, event.retry) for event in retried[:2]] == [("cut", 1), ("cut", 2)]
    call = fold(events).attempt("vector_add#1/1").calls[0]
    assert (call.text, call.retries) == ("half a word", 2)


async def test_judging_is_repeated_once_after_a_judge_failure(home: Home) -> None:
    judge = ScriptedJudge()
    judge.failing = 1
    events = await play(home, scripted_model("correct"), judge=judge, session_plan=plan(iterations=1))
    assert list(verdicts(events).values()) == [Verdict.CORRECT]
    [notice] = [event for event in events if isinstance(event, Notice)]
    assert "judging it once more" in notice.message


async def test_judge_that_judged_twice_by_itself_is_not_asked_again(home: Home) -> None:
    class JudgesTwice(ScriptedJudge):
        async def evaluate(self, *arguments: Any, **named: Any) -> Evaluation:
            evaluation = await super().evaluate(*arguments, **named)
            return msgspec.structs.replace(evaluation, judged_again=True)

    judge = JudgesTwice()
    judge.failing = 1
    events = await play(home, scripted_model("correct"), judge=judge, session_plan=plan(iterations=1))
    assert (endings(events), len(judge.evaluated)) == (["infra_error"], 1)


async def test_second_judge_failure_ends_the_instance_without_a_verdict(home: Home) -> None:
    judge = ScriptedJudge()
    judge.failing = 2
    events = await play(home, scripted_model("correct"), judge=judge)
    assert endings(events) == ["infra_error"]
    assert verdicts(events) == {}


async def test_parallel_model_calls_are_limited(home: Home) -> None:
    class Counting:
        model = "scripted:counting"
        active = 0
        most = 0

        async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
            self.active += 1
            self.most = max(self.most, self.active)
            for _ in range(5):
                await asyncio.sleep(0)
            self.active -= 1
            return Reply(text=answer_of("correct", str(request.key)))

        async def close(self) -> None: ...

    client, slow = Counting(), {"scripted": Pace(concurrency=2)}
    await play(home, client, session_plan=plan(instances=6, iterations=1, providers=slow))
    assert client.most == 2


async def test_recorded_session_plays_to_the_same_verdicts(home: Home) -> None:
    events = await play(home, scripted_model("wrong", "prose", "correct"), session_plan=plan(instances=2))
    write_recording([fold(events)], "again", home.recordings)
    client = RecordedClient(load_recording(home.recordings / "again"), pieces_a_second=None)
    session_plan = plan("20260101-000001-geak-0001", model="recorded:again", instances=2, iterations=4)
    again = await play(home, client, session_plan=session_plan)
    assert verdicts(again) == verdicts(events)
    assert endings(again) == ["recording_exhausted"] * 2


async def test_recording_plays_from_the_kernel_that_its_session_started_from(
    home: Home, tmp_path: Path
) -> None:
    start = tmp_path / "start.py"
    start.write_text(candidate("correct 1.0", "the start"))
    options = MethodOptions(start=str(start))
    events = await play(home, scripted_model("correct 2.0"), session_plan=plan(iterations=1, options=options))
    write_recording([fold(events)], "again", home.recordings)
    client = RecordedClient(load_recording(home.recordings / "again"), pieces_a_second=None)
    session_plan = plan("20260101-000001-geak-0001", model="recorded:again", iterations=1)
    again = await play(home, client, session_plan=session_plan)
    assert verdicts(again) == verdicts(events)
    first, second = fold(again).attempts()
    assert (first.origin, first.source) == (Origin.HUMAN, start.read_text())
    assert second.base == first.attempt


@pytest.mark.parametrize(
    ("second", "product"),
    [(0x2335, "peaks of H200 SXM"), (0x2324, "peaks of H100 SXM5")],
    ids=["equal", "different"],
)
async def test_prompts_name_the_product_if_all_devices_are_equal(
    home: Home, second: int, product: str
) -> None:
    judge = ScriptedJudge()
    judge.devices = [
        Device(
            name=str(number),
            kind="cuda",
            target="sm_90",
            identity=Identity("", vendor_id=0x10DE, device_id=device_id, compute_units=132),
        )
        for number, device_id in enumerate((0x2335, second))
    ]
    events = await play(
        home, scripted_model("correct 1.5"), session_plan=plan(targets=("sm_90",), iterations=1), judge=judge
    )
    (first_call, *_) = [event for event in events if isinstance(event, CallStarted)]
    assert product in first_call.messages[-1].content
