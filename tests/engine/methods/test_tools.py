"""The method `tools`: the real SDKs against a scripted model server, with a scripted judge."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.errors import ContextTooLong, ModelError, UsageProblem
from engine.methods.tools import conversation
from engine.methods.tools.tool_answers import answer_about, encoded
from engine.models import RecordedClient, Reply, Request, ScriptedClient
from engine.plan.plan import RunPlan, resolve
from engine.process import launch
from engine.prompting.judged import JudgedCandidate
from harness import Device, Evaluation, StageEntered
from harness.profiling.launches import ProfileFailed
from harness.wire.results.kernel_profile import Profile
from sessions import Home, Recorder, fold
from sessions.events import (
    AttemptJudged,
    AttemptStarted,
    CallFinished,
    CallStarted,
    CandidateProposed,
    DecisionMade,
    Event,
    HintGiven,
    Message,
    Origin,
    SessionExtended,
)
from sessions.recording import load_recording, write_recording
from sessions.settings import MethodOptions
from sessions.state.state import SessionState
from sessions.store.reconcile import take_up
from suites import Task, baseline_source, load_task
from tests.support.engine.engines import ScriptedJudge, candidate, cut, endings, plan, play, resume_to_end
from tests.support.engine.live_engines import info_of, journal, plan_for, started, until_left
from tests.support.engine.model_calls import BRISK, WIRES, connected
from tests.support.engine.model_server import Answer, Seen, calls, hangs, model_server, refuses, says
from tests.support.sessions import journals
from tests.support.waiting import wait_until

PLAN = plan(method="tools", session="20260101-000000-tools-0000")
FIRST, SECOND, THIRD = (f"vector_add#1/{number}" for number in (1, 2, 3))
Answers = list[dict[str, Any]]


def module(verdict: str, mark: str = "a", note: str = "") -> tuple[str, dict[str, str]]:
    """A call of `eval` with a module that gets this verdict."""
    return "eval", {"code": candidate(verdict, mark), "note": note}


async def converse(
    home: Home, *script: Answer, wire: str = "openai", iterations: int = 3
) -> tuple[SessionState, Answers]:
    """Run a session; returns its state, and the answers of tools in the last request."""
    async with connected(wire, *script) as (client, server):
        state = fold(await play(home, client, session_plan=plan(method="tools", iterations=iterations)))  # type: ignore[arg-type]
        return state, answers_in(server.requests[-1])


def answers_in(seen: Seen) -> Answers:
    return [json.loads(text) for turn in seen.turns for text in turn.splitlines() if text.startswith("{")]


def verdicts(state: SessionState) -> list[str]:
    return [str(attempt.verdict) for attempt in state.attempts()]


@pytest.mark.parametrize("wire", WIRES)
async def test_a_model_evaluates_asks_and_submits(home: Home, wire: str) -> None:
    script = [
        calls(module("wrong", note="Try."), text="I try.", reasoning="Think."),
        calls(("explain", {"attempt": FIRST}), ("history", {}), ("best", {}), ("asm", {"attempt": FIRST})),
        calls(module("correct 1.5", note="Repair.")),
        calls(("submit", {})),
    ]
    async with connected(wire, *script) as (client, server):
        events = await play(home, client, session_plan=PLAN)
    state = fold(events)  # type: ignore[arg-type]
    assert endings(events) == ["submitted"]
    assert verdicts(state) == ["wrong", "correct"]
    assert [(made.origin, made.base) for made in events if isinstance(made, AttemptStarted)] == [
        (Origin.FRESH, None), (Origin.REPAIR, FIRST), (Origin.OPTIMIZE, SECOND),
    ]  # fmt: skip
    assert [made.strategy for made in events if isinstance(made, CandidateProposed)] == ["Try.", "Repair."]
    assert state.instances["vector_add#1"].best == SECOND
    assert state.output_tokens == 4 * 10
    # The call that submits belongs to the last attempt.
    assert [call.attempt for call in state.attempt(SECOND).calls] == [SECOND, SECOND, THIRD]
    judged, explained, history, best, asm, repaired = answers_in(server.requests[-1])
    assert judged["error"]["message"] == "scripted verdict: wrong"
    assert judged["evaluations_left"] == 2
    assert explained == judged
    assert [row["verdict"] for row in history["attempts"]] == ["wrong"]
    assert best == {"attempt": ""}, "empty fields are left out"
    assert not [field for answer in (judged, history) for field in answer if answer[field] in ([], "", None)]
    assert (best["attempt"], asm["error"]) == ("", f"{FIRST}: no kernel of it was compiled")
    assert (repaired["verdict"], repaired["best"].partition(":")[0]) == ("correct", SECOND)
    # People read what the model said and sent; the cockpit finds the code in it.
    text = state.attempt(FIRST).calls[0].text
    assert text.startswith("I try.\n\n**eval** Try.\n\n```python\n# judge: wrong")


async def test_calls_that_cannot_be_carried_out_cost_no_evaluation(home: Home) -> None:
    state, answers = await converse(
        home,
        calls(("eval", '{"code": "x')),
        calls(("eval", {"note": "no code"}), ("eval", {"code": 7}), ("eval", {"code": "  "})),
        calls(("profile", {}), ("explain", {"attempt": "softmax#1/1"}), ("submit", {})),
        calls(module("correct")),
        says("I am done."),
        calls(("submit", {})),
    )
    assert [answer["error"].partition(";")[0] for answer in answers[:7]] == [
        "the arguments of eval are not a JSON object",
        "eval needs `code`",
        "`code` of eval must be a text",
        "eval needs `code`",
        "there is no tool 'profile'",
        "there is no attempt 'softmax#1/1'",
        "no candidate was judged",
    ]
    assert answers[7]["evaluations_left"] == 2
    assert verdicts(state) == ["correct"]


async def test_a_model_that_calls_no_tool_uses_its_iterations(home: Home) -> None:
    state, _ = await converse(home, *[says("Here is some prose.")] * 4, iterations=2)
    assert verdicts(state) == ["no_code", "no_code"]
    assert state.instances["vector_add#1"].finished == "iterations"


async def test_a_model_that_only_asks_uses_its_iterations(home: Home) -> None:
    state, _ = await converse(home, *[calls(("history", {}))] * conversation.MOST_REPLIES, iterations=1)
    assert verdicts(state) == ["no_code"]


async def test_budget_holds_when_a_thousand_evaluations_come_at_once(home: Home) -> None:
    many = [module(f"correct 1.{number:03}", str(number)) for number in range(1000)]
    state, _ = await converse(home, calls(*many), iterations=3)
    assert verdicts(state) == ["correct"] * 3
    # The model had read no verdict when it wrote them.
    assert {attempt.base for attempt in state.attempts()} == {None}
    assert state.instances["vector_add#1"].finished == "iterations"


async def test_a_person_reaches_the_model_in_its_next_answer(home: Home) -> None:
    loop, seen, recorders = asyncio.get_running_loop(), list[Seen](), list[Recorder]()
    steps = {
        1: HintGiven(instance="vector_add#1", text="Use wide loads."),
        2: DecisionMade(attempt=FIRST, accepted=False, why="too slow"),
    }

    def answer(request: Seen) -> Answer:
        seen.append(request)
        if step := steps.get(len(seen)):
            loop.call_soon_threadsafe(recorders[0].record, step)
        return calls(module("correct", str(len(seen))))

    async with connected("anthropic", answer=answer) as (client, _):
        events = await play(
            home, client, session_plan=PLAN, before=lambda recorder, _: recorders.append(recorder)
        )
    first, second = answers_in(seen[-1])
    assert first["person"] == ['a person gives a hint: "Use wide loads."']
    assert second["person"] == [f'a person rejected {FIRST}: "too slow"']
    assert [attempt.base for attempt in fold(events).attempts()] == [None, FIRST, SECOND]  # type: ignore[arg-type]


def scripted(request: Request) -> Reply:
    """Answers by the attempt alone: first a question, then a module."""
    number = request.key.attempt
    name, arguments = (
        ("history", {}) if request.key.n == 1 else module("wrong" if number < 3 else "correct", str(number))
    )
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return Reply(text=name, turn=({"role": "assistant", "content": None, "tool_calls": [call]},))


def prompts_of(events: list[Event]) -> dict[str, tuple[Message, ...]]:
    calls = [call for attempt in fold(events).attempts() for call in attempt.calls]  # type: ignore[arg-type]
    return {call.call: call.messages for call in calls}


async def test_an_extended_session_goes_on_with_the_same_conversation(home: Home) -> None:
    session_plan = plan(method="tools", session=PLAN.session, iterations=2)
    client = ScriptedClient(answer=scripted)
    first = prompts_of(await play(home, client, session_plan=session_plan))
    with take_up(home, PLAN.session) as recorder:
        recorder.record(SessionExtended(iterations=1))
    client = ScriptedClient(answer=scripted)
    events = await resume_to_end(home, session_plan, client)
    assert verdicts(fold(events)) == ["wrong", "wrong", "correct"]  # type: ignore[arg-type]
    earlier = first[f"{SECOND}/generator/2"]
    assert client.requests[0].messages[: len(earlier)] == earlier
    assert prompts_of(events).items() > first.items()


async def test_a_resumed_session_goes_on_with_the_same_conversation(
    home: Home, tmp_path_factory: Any
) -> None:
    whole = await play(home, ScriptedClient(answer=scripted), session_plan=PLAN)
    prompts = prompts_of(whole)
    # The journal has each message once: the opening, then a reply and its answer for each further call.
    assert [len(event.messages) for event in whole if isinstance(event, CallStarted)] == [2] * 6
    assert [len(messages) for messages in prompts.values()] == [2, 4, 6, 8, 10, 12]
    for lines in range(3, len(whole), 5):
        place = Home(tmp_path_factory.mktemp("home"))
        cut(home, place, PLAN.session, lines)
        client = ScriptedClient(answer=scripted)
        events = await resume_to_end(place, PLAN, client)
        finished = [event.call for event in events if isinstance(event, CallFinished)]
        assert sorted(finished) == sorted(prompts), "each call once"
        assert prompts_of(events) == prompts
        assert verdicts(fold(events)) == ["wrong", "wrong", "correct"]  # type: ignore[arg-type]


async def test_a_long_conversation_is_followed_by_a_new_one(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "LONGEST", 1)
    script = (
        calls(module("correct 1.5", "best")),
        calls(module("wrong", "worse")),
        calls(module("wrong", "last")),
    )
    async with connected("openai", *script) as (client, server):
        await play(home, client, session_plan=PLAN)
    last = server.requests[-1]
    assert [turn["role"] for turn in last.body["messages"]] == ["system", "user"]
    assert "# judge: correct 1.5" in last.prompt
    assert "# judge: wrong" not in last.prompt
    history, _ = answers_in(last)
    assert [row["attempt"] for row in history["attempts"]] == [FIRST, SECOND]


async def test_a_conversation_beyond_the_context_is_followed_by_a_short_new_one(home: Home) -> None:
    def answer(request: Request) -> Reply | ModelError:
        return ContextTooLong("prompt is too long") if len(request.messages) > 2 else scripted(request)

    client = ScriptedClient(answer=answer)
    events = await play(home, client, session_plan=PLAN)
    assert verdicts(fold(events)) == ["wrong", "wrong", "correct"]  # type: ignore[arg-type]
    last = client.requests[-1].messages[-1].content
    assert "The best attempt, or if none is correct the latest" in last


class GpuJudge(ScriptedJudge):
    """A judge with one GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.devices = (Device(name="0", kind="cuda", target="sm_90"),)

    async def evaluate(self, source: str, task: Task, **options: Any) -> Evaluation:
        return msgspec.structs.replace(await super().evaluate(source, task, **options), device="0")


async def test_a_correct_attempt_is_measured_once_and_its_profile_shown(home: Home) -> None:
    measure = ("measure", {"attempt": FIRST})
    script = (calls(measure, module("correct 1.5")), calls(measure, measure), calls(("submit", {})))
    judge = GpuJudge()
    async with connected("responses", *script) as (client, server):
        profiled = msgspec.structs.replace(PLAN, profile_best=True)
        await play(home, client, session_plan=profiled, judge=judge)
    refusal, judged, first, second = answers_in(server.requests[-1])
    assert judged["figures"]["standouts"][-1].startswith("Counted by ncu")
    assert "there is no attempt" in refusal["error"]
    assert (first["attempt"], first["device"]) == (FIRST, "0")
    assert first["summary"] == second["summary"]
    assert [device for _, device in judge.measured] == ["0"]


async def test_a_correct_attempt_is_profiled_once_for_each_case(home: Home) -> None:
    class Failing(GpuJudge):
        async def profile(self, *arguments: Any, **options: Any) -> Profile:
            options["on_stage"](StageEntered("performance", "0"))
            profile = await super().profile(*arguments, **options)
            if profile.case == "fp32-one":
                raise ProfileFailed("ncu counted nothing; allow counters")
            return profile

    def asks(case: str) -> tuple[str, dict[str, str]]:
        return "profile", {"attempt": FIRST, "case": case}

    script = (
        calls(module("correct 1.5")),
        calls(asks(""), asks("fp32"), asks("fp32-one"), asks("fp32-one"), asks("exam")),
        calls(("submit", {})),
    )
    judge = Failing()
    async with connected("responses", *script) as (client, server):
        events = await play(home, client, session_plan=PLAN, judge=judge)
    _, first, second, failed, again, unknown = answers_in(server.requests[-1])
    assert first == second
    assert (first["case"], first["taken"], first["device"]) == ("fp32", True, "0")
    assert first["text"].startswith("Counted by ncu")
    assert failed == again == {"error": f"{FIRST} has no new profile: ncu counted nothing; allow counters"}
    assert "no open case 'exam'" in unknown["error"]
    assert [case for _, case, _ in judge.profiled] == ["fp32", "fp32-one"]
    assert fold(events).profiles_device_s > 0  # type: ignore[arg-type]


async def test_the_kernel_of_a_person_is_where_the_work_begins(home: Home, tmp_path: Path) -> None:
    start = tmp_path / "start.py"
    start.write_text(candidate("wrong", "mine"))
    options = MethodOptions(start=str(start))
    async with connected("openai", calls(module("correct")), calls(("submit", {}))) as (client, server):
        events = await play(home, client, session_plan=plan(method="tools", options=options))
    assert "# mine" in server.requests[0].prompt
    begun = [(made.origin, made.base) for made in events if isinstance(made, AttemptStarted)]
    assert begun[:2] == [(Origin.HUMAN, None), (Origin.REPAIR, FIRST)]


def test_a_recording_without_tool_calls_is_refused(home: Home) -> None:
    home.ensure()
    with pytest.raises(UsageProblem, match="recorded:starter cannot call tools"):
        resolve(RunPlan(method="tools", model="recorded:starter", devices=("cpu",)), home=home, environ={})


async def test_a_recorded_conversation_plays_again(home: Home) -> None:
    state = fold(await play(home, ScriptedClient(answer=scripted), session_plan=PLAN))  # type: ignore[arg-type]
    recording = load_recording(write_recording([state], "talk", home.recordings))
    assert recording.calls_tools()
    client = RecordedClient(recording, pieces_a_second=None)
    again = fold(await play(home, client, session_plan=plan(method="tools")))  # type: ignore[arg-type]
    assert verdicts(again) == verdicts(state) == ["wrong", "wrong", "correct"]


@pytest.mark.soak
@pytest.mark.judge
def test_a_killed_engine_goes_on_with_the_conversation_and_a_real_judge(home: Home) -> None:
    source, killed = baseline_source(load_task("vector_add")), threading.Event()
    modules = [("wrong", source.replace("x + y", "x - y")), ("right", source)]

    def answer(seen: Seen) -> Answer:
        done = sum("evaluations_left" in text for text in seen.turns)
        if not seen.turns:
            return refuses(400, message="messages: at least one message is required")
        if done == 1 and not killed.is_set():
            return hangs("thinking", after=0)
        note, code = modules[min(done, 1)]
        return calls(("eval", {"code": code, "note": note}), ("asm", {"attempt": f"vector_add#1/{done + 1}"}))

    home.ensure()
    with model_server(answer=answer) as server:
        model = f"anthropic:test@{server.anthropic_url}"
        run_plan = plan_for(server, method="tools", model=model, devices=("cpu",))
        with started(run_plan, home) as session:
            wait_until(lambda: len(server.requests) == 3, "the second call")
            os.kill(info_of(home, session).pid, signal.SIGKILL)
            until_left(home, session)
            killed.set()
            launch.resume(home, session)
            until_left(home, session)
    events = journal(home, session)
    assert verdicts(fold(events)) == ["wrong", "correct"]  # type: ignore[arg-type]
    assert len([event for event in events if isinstance(event, AttemptJudged)]) == 2
    assert "amdgcn for gfx942" in server.requests[-1].prompt


async def test_attempt_of_a_reply_that_the_client_cut_ends_at_once(home: Home) -> None:
    limits = msgspec.structs.replace(BRISK, reply_bytes=2000)
    async with connected("openai", says("wait, " * 1000), limits=limits) as (client, server):
        events = await play(home, client, session_plan=plan(method="tools", iterations=1))
    assert [made.unusable for made in events if isinstance(made, CandidateProposed)] == ["cut at 2,000 bytes"]
    assert (endings(events), len(server.requests)) == (["iterations"], 1)


def test_answer_about_a_correct_attempt_is_short() -> None:
    evaluation = journals.correct(speed=journals.latencies())
    evaluation = msgspec.structs.replace(evaluation, estimate=journals.correct(waste=1.23456789).estimate)
    for shown in (evaluation, journals.correct(waste=1.23456789)):
        judged = JudgedCandidate("softmax#1/1", "", "", shown)
        text = encoded(answer_about(judged, judged, same_as="", next_step="submit", remaining=2))
        assert len(text) < 1500
        assert re.search(r"\d\.\d{5}", text) is None
