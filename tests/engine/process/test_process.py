"""Engine processes with the real SDK: start, contact, commands, stop, resume. With the real judge: also `test_main_job`."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import stat
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from engine.errors import EngineDidNotStart, EngineError, EngineUnreachable, UsageProblem
from engine.methods import Context
from engine.methods.geak import Geak
from engine.plan.job import session_started
from engine.process import launch
from engine.process.control import send
from engine.process.process import MACHINERY_FAILED, Engine
from sessions import Home, Recorder, journal_of
from sessions.errors import NothingToResume, SessionBusy
from sessions.events import (
    AttemptJudged,
    Command,
    DecisionMade,
    EndReason,
    EngineStarted,
    EngineStopped,
    InstanceFinished,
    InstanceStarted,
    Notice,
    Origin,
    Ping,
    SessionExtended,
    SessionFinished,
    Stop,
)
from sessions.home import SessionFiles
from sessions.journal.file import compress_journal, expand_journal
from sessions.listing.info import ListedSession
from sessions.store.reconcile import record_at_rest
from sessions.store.repository import Repository
from tests.support.engine.engines import plan
from tests.support.engine.live_engines import (
    KEY,
    info_of,
    journal,
    plan_for,
    right,
    started,
    until_left,
)
from tests.support.engine.model_server import Answer, Seen, hangs, model_server, refuses, says
from tests.support.engine.quick_engine import NoPool, QuickJudge
from tests.support.waiting import wait_until

pytestmark = pytest.mark.judge


def command(home: Home, session: str, command: Command) -> object:
    return asyncio.run(send(home, session, command))


@pytest.mark.usefixtures("scripted_judge")
def test_engine_answers_commands_stops_and_is_resumed(home: Home) -> None:
    silent = True

    def answer(_: Seen) -> Answer:
        return hangs(right(), after=-1) if silent else says(right())

    with model_server(answer=answer) as server:
        plan = plan_for(server, iterations=1)
        with started(plan, home, WAVEDECK_MODEL_KEY=KEY, ANTHROPIC_API_KEY=KEY) as session:
            info, live = info_of(home, session), home.files(session)
            assert os.getsid(info.pid) == info.pid, "the engine survives its terminal"
            assert stat.S_IMODE(live.token.stat().st_mode) == 0o600
            assert stat.S_IMODE(Path(info.socket).parent.stat().st_mode) == 0o700
            with pytest.raises(SessionBusy, match=f"wavedeck attach {session}"):
                launch.resume(home, session)

            wait_until(lambda: server.requests, "the first request")
            assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
            assert getattr(command(home, session, Ping()), "seq", 0) >= 2
            refused = command(home, session, DecisionMade(attempt="vector_add#1/1", accepted=True))
            assert "not judged yet" in str(refused)

            command(home, session, Stop(reason="lunch"))
            until_left(home, session)
            stopped = journal(home, session)[-1]
            assert isinstance(stopped, EngineStopped)
            assert stopped.reason == "lunch"
            assert not Path(info.socket).exists()
            with pytest.raises(EngineUnreachable, match=f"wavedeck resume {session}"):
                command(home, session, Ping())

            silent = False
            launch.resume(home, session)
            until_left(home, session)
    events = journal(home, session)
    assert [event.resumed for event in events if isinstance(event, EngineStarted)] == [False, True]
    assert isinstance(events[-1], SessionFinished)
    assert KEY not in "".join(map(str, events))


@pytest.mark.soak
def test_terminated_engine_stops_cleanly_while_its_judges_start(home: Home) -> None:
    with model_server() as server, started(plan_for(server), home) as session:
        os.kill(info_of(home, session).pid, signal.SIGTERM)
        until_left(home, session)
        [*_, last] = journal(home, session)
    assert isinstance(last, EngineStopped)
    assert (last.reason, last.failed) == ("signal SIGTERM", False)


def test_resume_stores_a_finished_session(home: Home) -> None:
    session_plan = plan()
    with Recorder.begin(home, session_started(session_plan)) as recorder:
        recorder.record(SessionFinished())
    with pytest.raises(NothingToResume):
        launch.resume(home, session_plan.session)
    files = home.files(session_plan.session)
    assert files.stored
    assert isinstance(journal(home, session_plan.session)[-1], SessionFinished)
    expand_journal(files.journal)
    files.journal.write_bytes(files.journal.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(NothingToResume):  # git has the end that the disk lost
        launch.resume(home, session_plan.session)
    assert files.stored


def test_engine_that_does_not_start_leaves_a_compressed_journal(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_plan = plan()
    Recorder.begin(home, session_started(session_plan)).close()
    compress_journal(home.files(session_plan.session).journal)
    monkeypatch.setattr(launch, "ENGINE", "engine.nowhere")
    with pytest.raises(EngineDidNotStart):
        launch.resume(home, session_plan.session)
    assert len(journal_of(home, session_plan.session).events) == 1


def test_resume_without_a_key_is_a_usage_error(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    session_plan = plan(model="openai:test")
    Recorder.begin(home, session_started(session_plan)).close()
    with pytest.raises(UsageProblem, match="set OPENAI_API_KEY"):
        launch.resume(home, session_plan.session)


def test_failed_start_says_why_leaves_no_files_and_runs_no_module_of_the_working_folder(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "engine.py").write_text("raise SystemExit('not this one')")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EngineDidNotStart, match="no session '20260101-000000-geak-0000'"):
        launch.resume(home, "20260101-000000-geak-0000")
    assert home.session_folders() == []


def let_instances(monkeypatch: pytest.MonkeyPatch, work: Callable[[Context], Awaitable[object]]) -> None:
    """Let each instance of an engine in this process do `work`; no model is asked."""

    async def run(_: Geak, context: Context) -> EndReason:
        await work(context)
        return EndReason.ITERATIONS

    monkeypatch.setattr("engine.plan.job.check_reachable", lambda *_: None)
    monkeypatch.setattr(Geak, "run", run)


def judge_by_script(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an engine in this process judge without a pool."""
    monkeypatch.setattr("engine.process.process.DevicePool", NoPool)
    monkeypatch.setattr("engine.process.process.Judge", QuickJudge)


def planned(home: Home, model: str = "openai:test@http://127.0.0.1:9/v1") -> SessionFiles:
    """Write the plan of a session; without `model`, no server takes its connections."""
    home.ensure()
    session_plan = plan(model=model)
    live = home.files(session_plan.session)
    live.folder.mkdir()
    launch.write_plan(live, session_plan)
    return live


async def test_model_that_takes_no_connection_ends_the_engine_before_anything_is_judged(home: Home) -> None:
    live = planned(home)
    with pytest.raises(EngineDidNotStart, match=r"127\.0\.0\.1:9 takes no connection: .*; start its server"):
        await Engine(live, {}).run()
    assert not live.journal.exists()


@pytest.mark.parametrize("reason", [EndReason.ITERATIONS, EndReason.MODEL_FAILED])
async def test_model_without_a_connection_matters_only_to_open_instances(
    reason: EndReason, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_by_script(monkeypatch)
    live = planned(home)
    session_plan = plan(model="openai:test@http://127.0.0.1:9/v1")
    with Recorder.begin(home, session_started(session_plan)) as recorder:
        recorder.record(InstanceStarted(task="starter/vector_add", instance=1))
        recorder.record(InstanceFinished(task="starter/vector_add", instance=1, reason=reason))
    if reason is EndReason.MODEL_FAILED:
        with pytest.raises(EngineDidNotStart, match="takes no connection"):
            await Engine(live, {}).run()
    else:
        assert await Engine(live, {}).run() == 0
        assert isinstance(journal(home, session_plan.session)[-1], SessionFinished)


async def test_refused_key_ends_the_engine_before_anything_is_judged(home: Home) -> None:
    refusal = refuses(401, message="invalid key")
    with model_server(refusal, about_model=refusal) as server:
        live = planned(home, f"openai:test@{server.openai_url}")
        with pytest.raises(EngineDidNotStart, match="check the key in WAVEDECK_MODEL_KEY"):
            await Engine(live, {}).run()
    assert not live.journal.exists()
    assert not any("messages" in call.body for call in server.requests), "no call was made"


async def test_error_of_a_follower_ends_the_session_and_is_reported(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise ZeroDivisionError("ours")

    let_instances(monkeypatch, lambda _: asyncio.Event().wait())
    judge_by_script(monkeypatch)
    monkeypatch.setattr("engine.process.process.follow_person", fail)
    live = planned(home)
    async with asyncio.timeout(60):
        assert await Engine(live, {}).run() == MACHINERY_FAILED
    *_, stopped = journal(home, live.session)
    assert isinstance(stopped, EngineStopped)
    assert stopped.reason == "bug in the engine: ZeroDivisionError: ours"


@pytest.mark.soak
async def test_engine_answers_while_it_puts_the_session_away(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    packing, go_on, pack = threading.Event(), threading.Event(), Repository.pack

    def pack_slowly(repository: Repository) -> None:
        packing.set()
        assert go_on.wait(60)
        pack(repository)

    monkeypatch.setattr(Repository, "pack", pack_slowly)
    let_instances(monkeypatch, lambda _: asyncio.sleep(0))
    live = planned(home)
    engine = asyncio.create_task(Engine(live, {}).run())
    assert await asyncio.to_thread(packing.wait, 60)
    assert (await send(home, live.session, Ping())).ok
    refused = await send(home, live.session, SessionExtended(iterations=1))
    assert re.match(
        r"the engine is putting the session away, for \d+ s so far; give the command again", refused.error
    )
    assert ListedSession(live).info().putting_away_since is not None
    go_on.set()
    assert await engine == 0
    assert live.stored


async def test_unexpected_exception_is_reported_and_the_session_stays_resumable(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(context: Context) -> None:
        await context.attempt(Origin.FRESH, None)
        raise ZeroDivisionError("ours")

    let_instances(monkeypatch, fail)
    judge_by_script(monkeypatch)
    live = planned(home)
    assert await Engine(live, {}).run() == MACHINERY_FAILED
    *_, notice, stopped = journal(home, live.session)
    assert isinstance(notice, Notice)
    assert notice.message.startswith("bug in the engine (ZeroDivisionError: ours)")
    assert isinstance(stopped, EngineStopped)
    assert not live.running


@pytest.mark.soak
async def test_engine_without_a_socket_reports_it_and_continues(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = planned(home)
    folders = iter([home.root])

    def next_folder(_: object) -> Path:
        for folder in folders:
            return folder
        raise EngineError("/tmp/wavedeck-1000 must be a folder of yours alone")

    async def lose_the_socket(_: Context) -> None:
        for path in home.root.glob("*.sock"):
            path.unlink()
        while b'"notice"' not in live.journal.read_bytes():  # noqa: ASYNC110  # the engine's own tasks must continue
            await asyncio.sleep(0.01)

    let_instances(monkeypatch, lose_the_socket)
    monkeypatch.setattr("engine.process.process.TICK_S", 0.01)
    monkeypatch.setattr("engine.process.control.socket_folder", next_folder)
    assert await Engine(live, {}).run() == 0
    notices = [event.message for event in journal(home, live.session) if isinstance(event, Notice)]
    assert notices == [
        "the engine cannot receive commands: /tmp/wavedeck-1000 must be a folder of yours alone"
    ]


@pytest.mark.usefixtures("scripted_judge")
@pytest.mark.soak
def test_finished_session_is_extended_and_finishes_again(home: Home) -> None:
    with (
        model_server(answer=lambda _: says(right())) as server,
        started(plan_for(server, iterations=1), home, WAVEDECK_MODEL_KEY=KEY) as session,
    ):
        until_left(home, session)
        record_at_rest(home, session, SessionExtended(iterations=1))
        launch.resume(home, session, environ=os.environ | {"WAVEDECK_MODEL_KEY": KEY})
        until_left(home, session)
    events = journal(home, session)
    assert [type(event) for event in events].count(SessionFinished) == 2
    assert len([event for event in events if isinstance(event, AttemptJudged)]) == 2
    assert home.files(session).stored
