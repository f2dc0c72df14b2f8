"""Whole sessions in this process: the engine's own parts, a scripted model, a judge that does what it is told."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import GaveUp, RecordingExhausted, TryAgain, UselessToRetry
from engine.models import Piece, Reply, Request, ScriptedClient
from engine.models.recorded import RecordedClient
from engine.reviewing import Decisions
from harness import Device, Verdict
from harness.device import Identity
from harness.errors import NoDeviceLeft
from sessions import Home, Recorder, fold, load_recording, write_recording
from sessions.events import (
    AttemptJudged,
    CallFailed,
    CallFinished,
    CallRetried,
    CallStarted,
    DecisionMade,
    Event,
    InstanceFinished,
    Notice,
    ReplyPiece,
    Usage,
    WaitingForPerson,
)
from sessions.journal import read_journal
from tests.support.engines import PRICE, ToldJudge, answer_of, plan, play, told


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def verdicts(events: list[Event]) -> dict[str, Verdict]:
    return {event.attempt: event.evaluation.verdict for event in events if isinstance(event, AttemptJudged)}


def endings(events: list[Event]) -> list[str]:
    return [event.reason for event in events if isinstance(event, InstanceFinished)]


def shown(home: Home, what: str) -> str:
    """What plain git shows."""
    command = ["git", "-C", str(home.store), "show", what]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def answering(answer: Callable[[Request], Reply | Exception]) -> ScriptedClient:
    return ScriptedClient(answer=answer)  # type: ignore[arg-type]


async def test_a_session_is_recorded_from_first_call_to_last_verdict(home: Home) -> None:
    events = await play(home, told("wrong", "correct 1.5", "correct 2.0"), of=plan(instances=2))
    for instance in (1, 2):
        of_it = {name: verdict for name, verdict in verdicts(events).items() if f"#{instance}/" in name}
        assert list(of_it.values()) == [Verdict.WRONG, Verdict.CORRECT, Verdict.CORRECT]
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


async def test_every_attempt_is_a_commit_with_all_its_calls(home: Home) -> None:
    events = await play(home, told("wrong", "correct"), of=plan(iterations=2))
    attempt = fold(events).attempt("vector_add#1/1")
    assert attempt.commit is not None
    calls = shown(home, f"{attempt.commit}:calls.jsonl")
    assert '"role":"generator"' in calls
    assert '"role":"reflector"' in calls, "the reflection belongs to the attempt it is about"


async def test_one_instances_trouble_stays_its_own(home: Home) -> None:
    def answer(request: Request) -> Reply | Exception:
        if request.key.instance == 2:
            return UselessToRetry("bad_key", "the key is not accepted")
        return Reply(text=answer_of("correct", str(request.key)))

    events = await play(home, answering(answer), of=plan(instances=3, iterations=2))
    ended = {event.instance: event for event in events if isinstance(event, InstanceFinished)}
    assert [ended[number].reason for number in (1, 2, 3)] == ["iterations", "model_failed", "iterations"]
    assert ended[2].message == "bad_key: the key is not accepted"
    [failed] = [event for event in events if isinstance(event, CallFailed)]
    assert (failed.call, failed.reason) == ("vector_add#2/1/generator/1", "bad_key")


async def test_a_session_without_a_device_left_stops_and_no_instance_is_blamed(home: Home) -> None:
    class Lost(ToldJudge):
        async def evaluate(self, *_: object, **__: object) -> None:  # type: ignore[override]
            raise NoDeviceLeft("every GPU of this run failed (GPU 0: no answer)")

    with pytest.raises(ExceptionGroup) as raised:
        await play(home, told("correct"), of=plan(instances=2), judge=Lost())
    assert raised.group_contains(NoDeviceLeft)
    (live,) = home.live_sessions()
    events = read_journal(live.journal).events
    assert not any(isinstance(event, InstanceFinished) for event in events)


async def test_a_recording_that_ends_ends_the_instance(home: Home) -> None:
    def answer(request: Request) -> Reply | Exception:
        if request.key.attempt == 2:
            return RecordingExhausted("no reply")
        return Reply(text=answer_of("correct", "1"))

    events = await play(home, answering(answer))
    assert endings(events) == ["recording_exhausted"]


async def test_tries_that_fail_are_told_and_their_words_are_void(home: Home) -> None:
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

    events = await play(home, Stumbling(), of=plan(iterations=1))
    retried = [event for event in events if isinstance(event, CallRetried)]
    assert [(event.reason, event.retry) for event in retried[:2]] == [("cut", 1), ("cut", 2)]
    call = fold(events).attempt("vector_add#1/1").calls[0]
    assert (call.text, call.retries) == ("half a word", 2)


async def test_a_model_that_gives_up_ends_the_instance(home: Home) -> None:
    events = await play(home, answering(lambda _: GaveUp("no reply after 6 tries")))
    assert endings(events) == ["model_failed"]


async def test_replies_without_code_end_as_no_code(home: Home) -> None:
    events = await play(home, told("prose", "correct"), of=plan(iterations=2))
    assert list(verdicts(events).values()) == [Verdict.NO_CODE, Verdict.CORRECT]


async def test_no_call_is_made_beyond_the_budget(home: Home) -> None:
    client = told("correct", usage=Usage(input_tokens=500, output_tokens=500))
    events = await play(home, client, of=plan(iterations=9, budget_tokens=2500))
    assert len(client.requests) == 3
    assert endings(events) == ["budget"]
    assert len(verdicts(events)) == 3, "what was paid for is judged"


async def test_a_budget_in_usd_goes_by_the_price(home: Home) -> None:
    client = told("correct", usage=Usage(input_tokens=100_000, output_tokens=10_000, cached_tokens=0))
    events = await play(home, client, of=plan(iterations=9, budget_usd=0.5, prices={"scripted:test": PRICE}))
    finished = [event for event in events if isinstance(event, CallFinished)]
    assert [event.cost_usd for event in finished] == [pytest.approx(0.2)] * 3
    assert endings(events) == ["budget"]


async def test_a_judge_that_fails_once_is_asked_again(home: Home) -> None:
    judge = ToldJudge()
    judge.failing = 1
    events = await play(home, told("correct"), judge=judge, of=plan(iterations=1))
    assert list(verdicts(events).values()) == [Verdict.CORRECT]
    [notice] = [event for event in events if isinstance(event, Notice)]
    assert "judging it once more" in notice.message


async def test_a_judge_that_fails_twice_ends_the_instance_without_a_verdict(home: Home) -> None:
    judge = ToldJudge()
    judge.failing = 2
    events = await play(home, told("correct"), judge=judge)
    assert endings(events) == ["infra_error"]
    assert verdicts(events) == {}


async def test_a_fault_of_ours_ends_the_run_and_is_not_hidden(home: Home) -> None:
    class Broken(ToldJudge):
        async def evaluate(self, *_: object, **__: object) -> None:  # type: ignore[override]
            raise ZeroDivisionError("ours")

    with pytest.raises(ExceptionGroup) as caught:
        await play(home, told("correct"), judge=Broken(), of=plan(instances=3))
    assert caught.group_contains(ZeroDivisionError)


async def test_no_more_requests_are_under_way_than_allowed(home: Home) -> None:
    class Counting:
        model = "scripted:counting"
        now = 0
        most = 0

        async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
            self.now += 1
            self.most = max(self.most, self.now)
            for _ in range(5):
                await asyncio.sleep(0)
            self.now -= 1
            return Reply(text=answer_of("correct", str(request.key)))

        async def close(self) -> None: ...

    client = Counting()
    await play(home, client, of=plan(instances=6, iterations=1, model_calls=2))
    assert client.most == 2


async def test_in_manual_review_an_instance_waits_for_a_person(home: Home) -> None:
    decided: list[str] = []

    def person(recorder: Recorder, decisions: Decisions) -> object:
        """Turns the first candidate down and accepts every other, once it is waited for."""

        async def decide() -> None:
            while len(decided) < 3:
                for attempt in recorder.state.attempts():
                    if attempt.waiting and attempt.attempt not in decided:
                        first = not decided
                        decided.append(attempt.attempt)
                        made = DecisionMade(
                            attempt=attempt.attempt,
                            accepted=not first,
                            why="reads past the end" if first else "",
                        )
                        await recorder.decide(made)
                        decisions.made(made)
                await asyncio.sleep(0)

        return asyncio.get_running_loop().create_task(decide(), name="person")

    client = told("correct 1.0", "correct 2.0", "correct 3.0")
    events = await play(home, client, of=plan(review="manual"), before=person)
    assert decided == ["vector_add#1/1", "vector_add#1/2", "vector_add#1/3"]
    assert [event.attempt for event in events if isinstance(event, WaitingForPerson)] == decided
    reflector = client.requests[1].messages[-1].content
    assert "reads past the end" in reflector
    bases = [attempt.base for attempt in fold(events).attempts()]
    assert bases == [None, "vector_add#1/1", "vector_add#1/2"]


async def test_what_is_sent_is_what_is_recorded(home: Home) -> None:
    client = told("wrong", "correct")
    events = await play(home, client, of=plan(iterations=2))
    started = [event.messages for event in events if isinstance(event, CallStarted)]
    assert started == [request.messages for request in client.requests]
    assert {request.temperature for request in client.requests} == {1.0}


async def test_a_recorded_session_plays_again_to_the_same_verdicts(home: Home) -> None:
    events = await play(home, told("wrong", "prose", "correct"), of=plan(instances=2))
    write_recording(fold(events), "again", home.recordings)
    client = RecordedClient(load_recording(home.recordings / "again"), pieces_a_second=None)
    of = plan("20260101-000001-geak-0001", model="recorded:again", instances=2, iterations=4)
    again = await play(home, client, of=of)
    assert verdicts(again) == verdicts(events)
    assert endings(again) == ["recording_exhausted"] * 2


@pytest.mark.parametrize(
    ("second", "named"),
    [(0x2335, "roofline estimate for H200 SXM"), (0x2324, "roofline estimate for H100 SXM5")],
    ids=["two alike", "another beside it"],
)
async def test_prompts_are_about_the_product_that_all_devices_are(
    home: Home, second: int, named: str
) -> None:
    judge = ToldJudge()
    judge.devices = [
        Device(
            name=str(number),
            kind="cuda",
            target="sm_90",
            identity=Identity("", vendor_id=0x10DE, device_id=device_id, compute_units=132),
        )
        for number, device_id in enumerate((0x2335, second))
    ]
    events = await play(home, told("correct 1.5"), of=plan(targets=("sm_90",), iterations=1), judge=judge)
    (asked, *_) = [event for event in events if isinstance(event, CallStarted)]
    assert named in asked.messages[-1].content
