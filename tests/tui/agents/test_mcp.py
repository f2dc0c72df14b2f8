"""Agents over MCP: the SDK's own client against our server; the engines are real, their judge is scripted."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from msgspec.structs import replace

from engine.agents import desk as desks
from engine.agents.answers import verdict_answer
from engine.agents.desk import AgentDesk
from engine.errors import AgentRefused
from engine.judge.evaluating import cancelled_evaluation
from engine.plan.job import session_started
from engine.plan.request import RunPlan
from engine.process import launch
from engine.process.control import Answer, send
from harness import Verdict
from sessions import Home, Recorder, fold
from sessions.engine_info import read_engine_info
from sessions.events import (
    AnyEvent,
    AttemptJudged,
    AttemptStarted,
    CallFinished,
    CallStarted,
    CandidateProposed,
    CandidateSent,
    Command,
    DecisionMade,
    EndReason,
    HintGiven,
    InstanceFinished,
    InstanceStarted,
    Origin,
    Paused,
    ProfileAsked,
    ProfileTaken,
    Role,
    Unpaused,
    WinnerExamined,
    checked,
)
from suites import baseline_source, load_task
from tests.support.command_line import ROOT, START, Shell, one_line, start
from tests.support.engine.engines import plan
from tests.support.engine.live_engines import journal, until_left
from tests.support.judge.evaluations import correct, failed
from tests.support.judge.profiles import softmax_profile
from tests.support.waiting import await_until
from tui.agents.server import make_server, serve_http
from tui.diagnostics import Complaint
from tui.facts.doing import doing

pytestmark = pytest.mark.usefixtures("engines", "scripted_judge")
RIGHT = baseline_source(load_task("vector_add"))
WRONG = RIGHT.replace("x + y", "x - y")
EVAL = {"task": "vector_add", "code": RIGHT}
ON_GPU = session_started(plan(method="agent", devices=("0",)))


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool and return its answer, or the words of a refusal as `refused`."""
    result = await client.call_tool(tool, arguments)
    if result.is_error:
        return {"refused": result.content[0].text}
    assert result.structured_content is None, "an answer is sent once"
    answer: dict[str, Any] = json.loads(result.content[0].text)
    return answer


async def ignore(_: str) -> None: ...


def desk_of(home: Home, **plan: Any) -> AgentDesk:
    home.ensure()
    return AgentDesk(home, RunPlan(**{"method": "agent", "devices": ("cpu",), "iterations": 9, **plan}))


@asynccontextmanager
async def connected(home: Home, **plan: Any) -> AsyncIterator[tuple[Client, AgentDesk]]:
    """A client of a server in this process."""
    desk = desk_of(home, **plan)
    async with Client(make_server(desk)) as client:
        yield client, desk


def session_of(home: Home) -> str:
    [live] = home.session_folders()
    return live.session


def events_of(home: Home, session: str) -> list[AnyEvent]:
    return journal(home, session)  # type: ignore[return-value]


async def test_an_agent_makes_a_whole_session_over_stdio(home: Home) -> None:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-c", START, launch.ENGINE, "mcp", "vector_add", "--devices", "cpu", "--iterations", "3"],
        env=dict(os.environ),
        cwd=ROOT,
    )
    progress: list[str | None] = []

    async def note(_: float, __: float | None, words: str | None) -> None:
        progress.append(words)

    async with Client(stdio_client(server)) as client:
        offered = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert not offered.keys() & {"measure", "profile"}, "they need a GPU"
        for tool in offered.values():
            # Agents without a terminal refuse tools that may be destructive or reach other machines.
            hints = tool.annotations
            assert hints is not None
            assert hints.open_world_hint is False
            assert hints.read_only_hint or hints.destructive_hint is False
            assert tool.output_schema is None
        assert (await call(client, "tasks"))["tasks"] == {"vector_add": load_task("vector_add").title}
        text = (await call(client, "task_show", task="vector_add"))["text"]
        assert "vector_add(x, y)" in text
        assert "How a candidate is judged" in text
        assert "## Strategy" not in text  # the format of replies to prompts
        assert "softmax is not among" in (await call(client, "eval", task="softmax", code="x"))["refused"]
        wrong = await call(client, "eval", task="vector_add", code=WRONG, note="Subtract.")
        assert (wrong["verdict"], wrong["evaluations_left"], wrong.get("best")) == ("wrong", 2, None)
        assert wrong["error"]["message"] == "scripted verdict: wrong"
        result = await client.call_tool("eval", EVAL, progress_callback=note)
        right = json.loads(result.content[0].text)
        assert (right["verdict"], right["best"]) == ("correct", "vector_add#1/2")
        best_words = f"vector_add#1/2: {right['figures']['summary']}"
        assert progress[-1] == "vector_add#1/2 judged: correct"
        rows = (await call(client, "history", task="vector_add"))["attempts"]
        assert [(row["verdict"], row.get("note", "")) for row in rows] == [
            ("wrong", "Subtract."),
            ("correct", ""),
        ]
        assert await call(client, "explain", attempt="vector_add#1/1") == wrong | {
            "best": best_words,
            "evaluations_left": 1,
        }
        refusal = (await call(client, "asm", attempt="vector_add#1/2"))["refused"]
        assert "vector_add#1/2: no kernel of it was compiled" in refusal
        best = await call(client, "best", task="vector_add")
        assert (best["attempt"], best["code"]) == ("vector_add#1/2", RIGHT)
        assert (await call(client, "submit", task="vector_add"))["attempt"] == "vector_add#1/2"
        assert "you submitted" in (await call(client, "eval", **EVAL))["refused"]
    session = wrong["session"]
    until_left(home, session)
    state = fold(events_of(home, session))
    assert state.finished
    assert [attempt.origin for attempt in state.attempts()] == [Origin.AGENT] * 2
    assert state.attempt("vector_add#1/2").exam is not None


async def test_http_serves_who_has_the_token(home: Home, unused_tcp_port: int) -> None:
    address = f"http://127.0.0.1:{unused_tcp_port}/mcp"
    home.ensure()
    (home.root / "mcp-token").write_text("guess")  # of an earlier server
    server = start("mcp", "--devices", "cpu", "--http", str(unused_tcp_port))
    assert server.stderr is not None
    assert address in await asyncio.to_thread(server.stderr.readline)
    async with httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(retries=9), timeout=None) as stranger:
        for headers in ({}, {"Authorization": "Bearer guess"}):
            assert (await stranger.post(address, json={}, headers=headers)).status_code == 401
        # No login is offered, because there is none.
        metadata = address.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")
        assert (await stranger.get(metadata)).status_code == 404
    with pytest.raises(
        Complaint,
        match=f"port {unused_tcp_port} of 127.0.0.1 cannot be used \\(Address already in use\\); choose",
    ):
        await serve_http(desk_of(home), unused_tcp_port, "token", print)
    token = (home.root / "mcp-token").read_text().strip()
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=None) as http,
        Client(streamable_http_client(address, http_client=http)) as client,
    ):
        assert (await call(client, "eval", **EVAL))["verdict"] == "correct"
    session = session_of(home)
    server.terminate()
    await asyncio.to_thread(server.communicate)
    # The server ended the agent's work.
    await asyncio.to_thread(until_left, home, session)
    assert fold(events_of(home, session)).finished


async def test_budget_holds_to_the_evaluation_when_an_agent_sends_many_at_once(
    home: Home, shell: Shell
) -> None:
    async with connected(home, iterations=3) as (client, _):
        async with asyncio.TaskGroup() as group:
            codes = [f"{RIGHT}\n# {number}\n" for number in range(20)]
            calls = [group.create_task(call(client, "eval", task="vector_add", code=code)) for code in codes]
        answers = [sent.result() for sent in calls]
        assert sum("refused" not in answer for answer in answers) == 3
        assert not [answer for answer in answers if "verdict" in answer and answer["verdict"] != "correct"]
        session = next(answer["session"] for answer in answers if "session" in answer)
        until_left(home, session)
        # All are used: the session is finished, and the agent still gets its result.
        submitted = await call(client, "submit", task="vector_add")
        assert submitted["verdict"] == "correct"
        assert len(fold(events_of(home, session)).attempts()) == 3
        # A person gives one more.
        assert (await asyncio.to_thread(shell, "extend", session, "--iterations", "1")).code == 0
        assert (await call(client, "eval", task="vector_add", code=f"{RIGHT}\n# 3\n"))[
            "evaluations_left"
        ] == 0
    assert len(fold(events_of(home, session)).attempts()) == 4


async def profiles_are_refused(desk: AgentDesk, home: Home, shell: Shell) -> None:
    """Assert that a profile without a GPU is refused as the command refuses it."""
    with pytest.raises(AgentRefused, match="has no GPU") as refused:
        await desk.profile("vector_add#1/1", case="")
    done = await asyncio.to_thread(shell, "profile", session_of(home), "vector_add#1/1")
    assert one_line(done).endswith(str(refused.value))
    for attempt, case, words in (("vector_add#1/1", "x", "no open case"), ("vector_add#2/1", "", "of yours")):
        with pytest.raises(AgentRefused, match=words):
            await desk.profile(attempt, case=case)


def judged_without_engine(recorder: Recorder, name: str) -> Callable[..., Coroutine[Any, Any, Answer]]:
    """Record a correct attempt on a GPU; returns what takes the place of `send`: it records the event of a command."""
    recorder.record(InstanceStarted(task="starter/vector_add", instance=1))
    recorder.record(CandidateSent(instance="vector_add#1", source=RIGHT))
    recorder.record(AttemptStarted(attempt=name, origin=Origin.AGENT))
    recorder.record(AttemptJudged(attempt=name, evaluation=replace(correct(), device="0")))

    async def follow(_: Home, __: str, command: Command) -> Answer:
        return Answer(ok=True, seq=recorder.record(checked(command, recorder.state)).seq)

    return follow


async def test_a_long_profile_is_answered_before_it_is_taken(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal of a session on a GPU, without its engine: the commands come to the test."""
    name = "vector_add#1/1"
    with Recorder.begin(home, ON_GPU) as recorder:
        monkeypatch.setattr(desks, "send", judged_without_engine(recorder, name))
        monkeypatch.setattr(desks, "ANSWER_S", 0.1)
        desk = desk_of(home)
        desk.join(ON_GPU.session, "vector_add")
        async with Client(make_server(desk)) as client:
            ticket = await call(client, "profile", attempt=name)
            assert (ticket["taken"], ticket.get("text")) == (False, None)
            assert not (await call(client, "profile", attempt=name))["taken"], "asked once"
            [request] = recorder.state.profiles_asked
            case = load_task("vector_add").open_cases[0].name
            taken = ProfileTaken(
                attempt=name, asked=request.seq, profile=softmax_profile(case=case), case=case
            )
            recorder.record(taken)
            answer = await call(client, "profile", attempt=name)
            assert (answer["taken"], answer["case"], answer["device"]) == (True, case, "0")
            assert answer["text"].startswith("Counted by ncu")
            assert not (await call(client, "profile", attempt=name, case="fp32-one"))["taken"]
            [request] = recorder.state.profiles_asked
            failed = ProfileTaken(
                attempt=name, asked=request.seq, problem="ncu is not installed", case="fp32-one"
            )
            recorder.record(failed)
            for _ in range(2):
                refused = (await call(client, "profile", attempt=name, case="fp32-one"))["refused"]
                assert refused.endswith(f"{name} has no new profile: ncu is not installed")
            assert not recorder.state.profiles_asked


async def test_an_agent_gets_its_case_while_a_person_profiles_another(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The profiler answers each request of the session after the agent asked."""
    name = "vector_add#1/1"
    with Recorder.begin(home, ON_GPU) as recorder:
        follow = judged_without_engine(recorder, name)

        async def take(case: str) -> None:
            await await_until(lambda: recorder.state.profiles_asked, f"the request for {case}")
            [request] = recorder.state.profiles_asked
            profile = softmax_profile(case=case)
            recorder.record(ProfileTaken(attempt=name, asked=request.seq, profile=profile, case=case))

        await follow(home, ON_GPU.session, ProfileAsked(attempt=name, by="kim"))
        monkeypatch.setattr(desks, "send", follow)
        desk = desk_of(home)
        desk.join(ON_GPU.session, "vector_add")
        answer = asyncio.create_task(desk.profile(name, case="fp32-one"))
        await asyncio.sleep(0)
        await take(load_task("vector_add").open_cases[0].name)
        await take("fp32-one")
        assert (await answer).taken


async def test_a_person_steers_an_agent(home: Home, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected(home) as (client, desk):
        assert (await call(client, "eval", **EVAL)).get("person") is None
        session = session_of(home)
        await profiles_are_refused(desk, home, shell)
        await send(home, session, HintGiven(instance="vector_add#1", text="Use wide loads.", by="kim"))
        await send(
            home, session, DecisionMade(attempt="vector_add#1/1", accepted=False, why="too slow", by="kim")
        )
        await send(home, session, Paused(by="kim"))
        monkeypatch.setattr(desks, "ANSWER_S", 0.2)
        ticket = await call(client, "eval", task="vector_add", code=WRONG)
        assert (ticket["judged"], ticket.get("best")) == (False, None)
        assert ticket["next"] == "waiting: a person paused the session; call wait with vector_add#1/2"
        assert ticket["person"] == [
            'a person gives a hint: "Use wide loads."',
            'a person rejected vector_add#1/1: "too slow"',
        ]
        # A call that is cancelled ends its judging, here before it begins.
        monkeypatch.setattr(desks, "ANSWER_S", 60.0)
        begun = asyncio.Event()

        async def note(*_: object) -> None:
            begun.set()

        arguments = {"attempt": "vector_add#1/2"}
        waiting = asyncio.create_task(client.call_tool("wait", arguments, progress_callback=note))
        await begun.wait()
        waiting.cancel()
        await await_until(
            lambda: fold(events_of(home, session)).withdrawn == {"vector_add#1/2"}, "the withdrawal"
        )
        await send(home, session, Unpaused(by="kim"))
        third = await call(client, "eval", task="vector_add", code=f"{RIGHT}\n# wide\n")
        assert (third["verdict"], third["best"].partition(":")[0]) == ("correct", "vector_add#1/3")
        # A hint is said once, a decision as long as it holds.
        assert third["person"] == ['a person rejected vector_add#1/1: "too slow"']
        verdicts = [attempt.verdict for attempt in fold(events_of(home, session)).attempts()]
        assert verdicts == ["correct", "cancelled", "correct"]
        heard = [attempt.heard for attempt in fold(events_of(home, session)).attempts()]
        assert heard[0] == heard[1] == 0 < heard[2]
        # A call that is cancelled while it sends its candidate withdraws it.
        late = desk.evaluate("vector_add", f"{RIGHT}\n# late\n", "", agent="", on_progress=ignore)
        sending = asyncio.create_task(late)
        for _ in range(3):
            await asyncio.sleep(0)
        sending.cancel()
        await await_until(
            lambda: "vector_add#1/4" in fold(events_of(home, session)).withdrawn, "the withdrawal"
        )


@pytest.mark.soak
async def test_a_killed_engine_loses_no_candidate_and_judges_none_twice(home: Home) -> None:
    async with connected(home) as (client, desk):
        await call(client, "eval", **EVAL)
        session = session_of(home)
        await send(home, session, Paused(by="kim"))
        acknowledged = asyncio.Event()

        async def note(*_: object) -> None:
            acknowledged.set()

        arguments = {"task": "vector_add", "code": WRONG}
        sent = asyncio.create_task(client.call_tool("eval", arguments, progress_callback=note))
        await acknowledged.wait()
        os.kill(read_engine_info(home.files(session)).pid, signal.SIGKILL)
        refusal = await sent
        assert refusal.is_error
        assert f"wavedeck resume {session}" in refusal.content[0].text
        await asyncio.to_thread(launch.resume, home, session)
        await send(home, session, Unpaused(by="kim"))
        assert (await call(client, "wait", attempt="vector_add#1/2"))["verdict"] == "wrong"
        judged = [event.attempt for event in events_of(home, session) if isinstance(event, AttemptJudged)]
        assert judged == ["vector_add#1/1", "vector_add#1/2"]
        # The agent is gone: the session ends by itself.
        await desk.close()
        until_left(home, session)
        assert fold(events_of(home, session)).finished


def test_an_agent_learns_nothing_of_the_exam() -> None:
    def judge(number: int, speedup: float) -> list[AnyEvent]:
        name = f"softmax#1/{number}"
        return [
            AttemptStarted(attempt=name, origin=Origin.AGENT),
            CandidateProposed(attempt=name, source=RIGHT),
            AttemptJudged(attempt=name, evaluation=correct(speedup=speedup)),
        ]

    before = [*judge(1, 1.2), *judge(2, 1.5)]
    failed_exam = failed(Verdict.WRONG, "only in the exam")
    after = [*before, WinnerExamined(attempt="softmax#1/2", evaluation=replace(failed_exam, exam=True))]
    assert fold(after).instances["softmax#1"].best == "softmax#1/1"
    answers = [
        verdict_answer(fold(events), "softmax#1", "softmax#1/2", next_step="", person=())
        for events in (before, after)
    ]
    assert answers[0] == answers[1]
    assert answers[1].best.startswith("softmax#1/2")


def test_an_instance_without_a_candidate_waits_for_its_agent() -> None:
    key, name = "vector_add#1", "vector_add#1/1"
    begun = [
        session_started(plan(method="agent", iterations=1)),
        InstanceStarted(task="starter/vector_add", instance=1),
    ]
    sent = [
        *begun,
        CandidateSent(instance=key, source=RIGHT),
        AttemptStarted(attempt=name, origin=Origin.AGENT),
    ]
    judged = [*sent, AttemptJudged(attempt=name, evaluation=correct())]
    letters = [doing(state, state.instances[key]).letter for state in (fold(begun), fold(sent), fold(judged))]
    assert letters == ["a", "q", "q"]


def test_last_words_are_no_attempt_but_a_withdrawn_candidate_is() -> None:
    key = "vector_add#1"
    first, second, third = (f"{key}/{number}" for number in (1, 2, 3))
    cancelled = cancelled_evaluation("starter/vector_add", "cpu", "the agent withdrew it")
    events: list[AnyEvent] = [
        CandidateSent(instance=key, source=RIGHT),
        AttemptStarted(attempt=first, origin=Origin.AGENT),
        CandidateProposed(attempt=first, source=RIGHT),
        AttemptJudged(attempt=first, evaluation=correct()),
        CandidateSent(instance=key, source=WRONG),
        AttemptStarted(attempt=second, origin=Origin.AGENT),
        AttemptJudged(attempt=second, evaluation=cancelled),
        AttemptStarted(attempt=third, origin=Origin.AGENT),
        CallStarted(call=f"{third}/generator/1", attempt=third, role=Role.GENERATOR, model="m", messages=()),
        CallFinished(call=f"{third}/generator/1", text="", reasoning="I am done.", stop_reason="end"),
        InstanceFinished(task="starter/vector_add", instance=1, reason=EndReason.SUBMITTED),
    ]
    attempts = fold(events).instances[key].attempts
    assert [attempt.verdict for attempt in attempts] == ["correct", "cancelled"]
    assert [call.reasoning for call in attempts[1].calls] == ["I am done."]


def test_an_agent_without_mcp_proposes_by_command(home: Home, shell: Shell) -> None:
    done = shell(
        "run", "vector_add", "--method", "agent", "--devices", "cpu", "--iterations", "2", "--detach"
    )
    session = done.out.strip()
    kernel = Path("kernel.py")
    kernel.write_text(WRONG)
    wrong = shell("mcp", "call", "eval", session, str(kernel), "--note", "Subtract.")
    assert (wrong.code, json.loads(wrong.out)["verdict"]) == (1, "wrong")
    shell("steer", "hint", session, "vector_add#1", "Add instead.")
    kernel.write_text(RIGHT)
    right = shell("mcp", "call", "eval", session, str(kernel))
    answer = json.loads(right.out)
    assert (right.code, answer["verdict"], answer["evaluations_left"]) == (0, "correct", 0)
    assert answer["person"] == ['a person gives a hint: "Add instead."']
    until_left(home, session)
    assert shell("mcp", "call", "eval", session, str(kernel)).code == 2
    assert [attempt.origin for attempt in fold(events_of(home, session)).attempts()] == [Origin.AGENT] * 2
