"""Commands of a person to running instances: prompts follow them, and a resumed session follows them again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import CommandRefused
from engine.models import Piece, Reply, Request, ScriptedClient
from engine.plan.job import session_started
from engine.plan.plan import SessionPlan
from engine.plan.prices import Price
from engine.process.commands import event_of
from engine.process.control import Request as Command
from engine.run.person import Changes, Decisions
from harness import Evaluation, Verdict
from sessions import Home, Recorder, apply, fold, resume
from sessions.events import (
    AttemptStarted,
    CallStarted,
    DecisionMade,
    EngineStarted,
    Event,
    InstanceFinished,
    Origin,
    Paused,
    RetireAsked,
    SessionFinished,
    Unpaused,
    WaitingForPerson,
)
from sessions.journal.journal import read_journal
from sessions.settings import MethodOptions, StopRules
from sessions.state.state import Confirmation
from sessions.store.reconcile import take_up
from tests.conftest import SOAK
from tests.support.engines import ScriptedJudge, candidate, plan, run, scripted_answer, shared, until

PLAN = plan(instances=2, iterations=3)
VERDICTS = ("wrong", "correct 1.5", "correct 2.0")
STRIDE = 1 if SOAK else 13
"""Distance of the tested cuts in lines; each cut runs a session."""


class Person:
    """A client that gives commands: `acts` maps a call, as `1/2/generator` or `1/2`, to what happens while it is answered."""

    def __init__(
        self,
        acts: dict[str, Callable[[], object]],
        hold: dict[str, asyncio.Event],
        kill_at: str,
        *verdicts: str,
    ) -> None:
        self.model = "scripted:test"
        self.acts = acts
        self.hold = hold
        self.kill_at = kill_at
        self.dead = asyncio.Event()
        self.scripted = ScriptedClient(answer=scripted_answer(*verdicts))

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """See `Client`."""
        call = f"{request.key.instance}/{request.key.attempt}/{request.key.role}"
        for key in (call, call.rpartition("/")[0]):
            self.acts.pop(key, bool)()
        if call in self.hold:
            await self.hold[call].wait()
        if call == self.kill_at:
            self.dead.set()
            await asyncio.Event().wait()
        return await self.scripted.reply(request, on_piece)

    async def close(self) -> None:
        """See `Client`."""


class Table:
    """One engine after another on the same session, in this process."""

    def __init__(self, root: Path, session_plan: SessionPlan = PLAN, *verdicts: str) -> None:
        self.home = Home(root)
        self.plan = session_plan
        self.verdicts = verdicts or VERDICTS
        self.judge = ScriptedJudge()
        self.recorder: Recorder | None = None
        self.changes = Changes()
        self.decisions = Decisions()
        self.acts: dict[str, Callable[[], object]] = {}
        self.hold: dict[str, asyncio.Event] = {}
        """Calls that are answered only after an event."""

    def command(self, name: str, **arguments: str) -> Event:
        """Give a command as the engine's socket does."""
        assert self.recorder is not None
        event = self.recorder.record(event_of(Command(command=name, **arguments), self.recorder.state))
        self.changes.announce()
        return event

    def decide(self, attempt: str, *, accepted: bool, why: str) -> None:
        """Decide about an attempt without waiting for git."""
        assert self.recorder is not None
        self.decisions.made(self.recorder.record(DecisionMade(attempt=attempt, accepted=accepted, why=why)))

    def ended(self, instance: str) -> bool:
        """Return whether an instance ended."""
        known = self.recorder.state.instances.get(instance) if self.recorder else None
        return known is not None and known.finished is not None

    def is_judged(self, name: str) -> bool:
        """Return whether an attempt has its verdict and its commit."""
        attempts = self.recorder.state.attempts() if self.recorder else []
        return any(attempt.attempt == name and attempt.verdict and attempt.commit for attempt in attempts)

    def waiting(self) -> list[str]:
        """Return the attempts that wait for a person."""
        attempts = self.recorder.state.attempts() if self.recorder else []
        return [attempt.attempt for attempt in attempts if attempt.waiting]

    async def play(self, *, kill_at: str = "") -> list[Event]:
        """Run the session to its end, or until the call `kill_at` is asked; returns all events."""
        live = self.home.live(self.plan.session)
        begun = live.journal.exists()
        recorder = (
            resume(self.home, self.plan.session)
            if begun
            else Recorder.begin(self.home, session_started(self.plan))
        )
        with recorder:
            self.recorder = recorder
            self.decisions = Decisions(read_journal(live.journal).events)
            recorder.record(EngineStarted(host="here", pid=1, resumed=begun))
            client = Person(self.acts, self.hold, kill_at, *self.verdicts)
            state = shared(recorder, self.plan, client, self.judge, self.decisions)
            state.changes = self.changes
            engine = asyncio.create_task(run(state))
            killed = asyncio.create_task(client.dead.wait())
            await asyncio.wait({engine, killed}, return_when=asyncio.FIRST_COMPLETED)
            killed.cancel()
            if client.dead.is_set():
                engine.cancel()
                await asyncio.wait({engine})
            else:
                engine.result()
                recorder.record(SessionFinished())
            return list(read_journal(live.journal).events)


async def give_turns() -> None:
    """Let the engine begin what it would begin at once if it were not paused."""
    for _ in range(100):
        await asyncio.sleep(0)


def prompts(events: list[Event]) -> dict[str, str]:
    """Return the last prompt of every call."""
    return {event.call: event.messages[-1].content for event in events if isinstance(event, CallStarted)}


def said(events: list[Event]) -> dict[str, list[str]]:
    """Return what a person says in each prompt that has such a part."""
    parts = {
        call: prompt.partition("# What a person says\n")[2].partition("# Request")[0]
        for call, prompt in prompts(events).items()
    }
    return {call: [line for line in part.splitlines() if line] for call, part in parts.items() if part}


async def test_hint_reaches_only_the_next_attempt_of_its_instance(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.acts["1/1/generator"] = lambda: table.command(
        "hint", instance="vector_add#1", text="Use wide\nloads."
    )
    events = await table.play()
    assert said(events) == {"vector_add#1/2/generator/1": ['- a person gives a hint: "Use wide loads."']}


async def test_decisions_reach_all_later_prompts_of_the_same_task(tmp_path: Path) -> None:
    table = Table(tmp_path, plan(instances=2, iterations=4))
    decided = table.hold["2/3/optimizer"] = asyncio.Event()

    def reject() -> None:
        table.decide("vector_add#1/2", accepted=False, why="reads past the row")
        decided.set()

    table.acts["1/3/optimizer"] = reject
    events = await table.play()
    words = ['- a person rejected vector_add#1/2: "reads past the row"']
    assert said(events)["vector_add#1/4/optimizer/1"] == words
    assert said(events)["vector_add#2/4/optimizer/1"] == words


async def test_accept_is_quoted_only_with_a_reason(tmp_path: Path) -> None:
    table = Table(tmp_path, plan(iterations=4))

    def accept() -> None:
        table.decide("vector_add#1/1", accepted=True, why="")
        table.decide("vector_add#1/2", accepted=True, why="plain and fast")

    table.acts["1/3/optimizer"] = accept
    events = await table.play()
    assert said(events) == {
        "vector_add#1/4/optimizer/1": ['- a person accepted vector_add#1/2: "plain and fast"']
    }


@pytest.mark.parametrize("kill_at", ["1/1/reflector", "1/2/generator", "1/3/optimizer"])
async def test_killed_session_gives_the_same_prompts_again(tmp_path: Path, kill_at: str) -> None:
    def acts(table: Table) -> None:
        table.acts["1/1/generator"] = lambda: table.command(
            "hint", instance="vector_add#1", text="Use masks."
        )
        table.acts["1/2/generator"] = lambda: table.decide("vector_add#1/1", accepted=False, why="no mask")

    session_plan = plan(iterations=3)
    whole, killed = Table(tmp_path / "whole", session_plan), Table(tmp_path / "killed", session_plan)
    acts(whole)
    acts(killed)
    uninterrupted = prompts(await whole.play())
    before = await killed.play(kill_at=kill_at)
    events = await killed.play()
    assert prompts(events) == uninterrupted
    assert not any("differs" in message for _, message in fold(events).notices)  # type: ignore[arg-type]
    assert len(before) < len(events)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {"instance": "softmax#1", "text": "x"},
            "no instance 'softmax#1' in this session; nearest: vector_add#1",
        ),
        ({"instance": "vector_add#1", "text": " "}, "the hint is empty"),
        ({"instance": "vector_add#1", "text": "x" * 2001}, "longer than 2000 characters"),
    ],
)
async def test_impossible_hint_is_refused(tmp_path: Path, arguments: dict[str, str], words: str) -> None:
    table = Table(tmp_path)
    refusals: list[str] = []

    def give() -> None:
        with pytest.raises(CommandRefused, match=words) as refused:
            table.command("hint", **arguments)
        refusals.append(str(refused.value))

    table.acts["1/1/generator"] = give
    await table.play()
    assert len(refusals) == 1


async def test_hint_during_the_last_attempt_is_refused(tmp_path: Path) -> None:
    table = Table(tmp_path, plan(iterations=2))
    events = await table.play(kill_at="1/2/generator")
    with pytest.raises(CommandRefused, match="asks for no further attempt"):
        event_of(Command(command="hint", instance="vector_add#1", text="x"), fold(events))


async def test_hint_to_an_ended_instance_is_refused(tmp_path: Path) -> None:
    events = await Table(tmp_path).play()
    hint = Command(command="hint", instance="vector_add#1", text="x")
    with pytest.raises(CommandRefused, match="has ended"):
        event_of(hint, fold(events[:-1]))
    with pytest.raises(CommandRefused, match="the session is finished"):
        event_of(hint, fold(events))


async def test_retired_instance_keeps_its_winner_and_is_examined(tmp_path: Path) -> None:
    table = Table(tmp_path, plan(instances=2, iterations=4), "correct 1.5")
    table.acts["1/2/optimizer"] = lambda: table.command("retire", instance="vector_add#1", by="me")
    events = await table.play()
    state = fold(events)
    stopped = state.instances["vector_add#1"]
    assert (stopped.finished, stopped.message, stopped.best) == ("retired", "by me", "vector_add#1/1")
    assert [attempt.verdict for attempt in stopped.attempts] == [Verdict.CORRECT, Verdict.CANCELLED]
    assert stopped.attempts[0].confirmation is Confirmation.CONFIRMED
    assert len(state.instances["vector_add#2"].attempts) == 4, "the other instance goes on"


async def test_retirement_before_a_crash_holds_after_resume(tmp_path: Path) -> None:
    table = Table(tmp_path, plan(iterations=4), "correct 1.5")

    async def crash() -> list[Event]:
        return await table.play(kill_at="1/2/optimizer")

    await crash()
    with resume(table.home, PLAN.session) as recorder:
        recorder.record(RetireAsked(instance="vector_add#1", by="me"))
    events = await table.play()
    instance = fold(events).instances["vector_add#1"]
    assert instance.finished == "retired"
    assert [attempt.verdict for attempt in instance.attempts] == [Verdict.CORRECT, Verdict.CANCELLED]


@pytest.mark.parametrize("instance", ["vector_add#1", ""])
async def test_paused_instance_starts_nothing_until_unpaused(tmp_path: Path, instance: str) -> None:
    table = Table(tmp_path, plan(instances=2, iterations=3), "correct 1.5")

    table.acts["1/2/optimizer"] = lambda: table.command("pause", instance=instance)
    engine = asyncio.create_task(table.play())
    await until(lambda: table.is_judged("vector_add#1/2"))
    await give_turns()
    table.command("unpause", instance=instance)
    events = await engine
    [begin] = [event.seq for event in events if isinstance(event, Paused)]
    [end] = [event.seq for event in events if isinstance(event, Unpaused)]
    begun = [
        event.attempt
        for event in events
        if isinstance(event, AttemptStarted | CallStarted) and begin < event.seq < end
    ]
    assert not [attempt for attempt in begun if attempt.startswith(instance or "vector_add")]
    assert fold(events).attempt("vector_add#1/2").judged_seq < end, "what runs finishes"
    assert {len(each.attempts) for each in fold(events).instances.values()} == {3}


async def test_pause_holds_after_resume(tmp_path: Path) -> None:
    table = Table(tmp_path, plan(iterations=2), "correct 1.5")
    await table.play(kill_at="1/1/generator")
    with resume(table.home, PLAN.session) as recorder:
        recorder.record(Paused(by="me"))
    table.recorder = None
    engine = asyncio.create_task(table.play())
    await until(lambda: table.recorder)
    await give_turns()
    assert not engine.done()
    with pytest.raises(CommandRefused, match="already paused"):
        table.command("pause")
    table.command("unpause")
    events = await engine
    assert fold(events).instances["vector_add#1"].finished == "iterations"


async def test_manual_review_holds_only_at_a_better_attempt(tmp_path: Path) -> None:
    session_plan = plan(iterations=4, review="manual")
    table = Table(tmp_path, session_plan, "correct 2.0", "correct 1.5", "correct 2.0", "correct 3.0")
    engine = asyncio.create_task(table.play())
    for attempt in ("vector_add#1/1", "vector_add#1/4"):
        await until(lambda: table.waiting() == [attempt])  # noqa: B023  # awaited in the same turn
        table.decide(attempt, accepted=True, why="")
    events = await engine
    held = [event.attempt for event in events if isinstance(event, WaitingForPerson)]
    assert held == ["vector_add#1/1", "vector_add#1/4"]
    assert len(fold(events).attempts()) == 4


def attempts_of(events: list[Event]) -> dict[str, int]:
    return {key: len(instance.attempts) for key, instance in fold(events).instances.items()}


@pytest.mark.parametrize("method", ["geak", "geak-evolve", "kernelagent"])
@pytest.mark.parametrize("when", ["while it runs", "after its end"])
async def test_extended_session_makes_the_first_attempts_as_before(
    tmp_path: Path, method: str, when: str
) -> None:
    session_plan = plan(
        method=method, iterations=3, options=MethodOptions(workers=2, descendants=2), instances=2
    )
    table = Table(tmp_path, session_plan, "wrong")
    if when == "while it runs":
        table.acts["1/2/generator"] = lambda: table.command("extend", iterations=2)
        events = await table.play()
    else:
        first = await table.play()
        with take_up(table.home, session_plan.session) as recorder:
            command = Command(command="extend", iterations=2)
            recorder.record(event_of(command, recorder.state))
            assert not recorder.state.finished
        events = await table.play()
        assert prompts(first).items() <= prompts(events).items()
    assert attempts_of(events) == {"vector_add#1": 5, "vector_add#2": 5}
    assert not any("differs" in message for _, message in fold(events).notices)  # type: ignore[arg-type]


async def test_instance_that_ended_goes_on_in_a_running_session(tmp_path: Path) -> None:
    table = Table(tmp_path, plan(instances=2, iterations=1), "correct 1.0", "correct 2.0")

    held = table.hold["2/1/generator"] = asyncio.Event()
    engine = asyncio.create_task(table.play())
    await until(lambda: table.ended("vector_add#1"))
    table.command("extend", iterations=1)
    held.set()
    events = await engine
    assert attempts_of(events) == {"vector_add#1": 2, "vector_add#2": 2}
    assert fold(events).instances["vector_add#1"].best == "vector_add#1/2"
    ended = [event.reason for event in events if isinstance(event, InstanceFinished)]
    assert ended == ["iterations"] * 3


async def test_extension_during_the_exam_opens_an_instance_that_met_a_stop_rule(tmp_path: Path) -> None:
    table = Table(tmp_path, plan(iterations=4, stop=StopRules(speedup=1.2)), "correct 1.5")
    pass_exam = table.judge.exam

    def extend(source: str) -> Evaluation:
        table.judge.exam = pass_exam
        table.command("extend", iterations=1)
        return pass_exam(source)

    table.judge.exam = extend
    events = await table.play()
    assert attempts_of(events) == {"vector_add#1": 5}


@pytest.mark.parametrize(
    ("method", "verdict", "iterations", "words"),
    [
        ("direct", "wrong", 1, "takes no further iterations"),
        ("reflexion", "correct", 1, "no instance can use more iterations"),
        ("geak", "wrong", 0, "nothing to extend by"),
        ("geak", "wrong", -1, "--iterations must be from 1"),
    ],
)
async def test_extension_that_no_instance_can_use_is_refused(
    tmp_path: Path, method: str, verdict: str, iterations: int, words: str
) -> None:
    events = await Table(tmp_path, plan(method=method, iterations=1), verdict).play()
    with pytest.raises(CommandRefused, match=words):
        event_of(Command(command="extend", iterations=iterations), fold(events))


async def test_larger_budget_lets_an_instance_go_on(tmp_path: Path) -> None:
    """A call of the scripted model reserves about 0.33 USD at this price and costs 0.0001."""
    session_plan = plan(
        iterations=3, budget_usd=0.01, prices={"scripted:test": Price(input=1.0, output=10.0)}
    )
    table = Table(tmp_path, session_plan, "correct 1.0")
    events = await table.play()
    assert fold(events).instances["vector_add#1"].finished == "budget"
    extend = Command(command="extend", budget_usd=5.0)
    with take_up(table.home, session_plan.session) as recorder:
        recorder.record(event_of(extend, recorder.state))
        assert not recorder.state.finished
    state = fold(await table.play())
    assert (state.instances["vector_add#1"].finished, len(list(state.attempts()))) == ("iterations", 3)
    with pytest.raises(CommandRefused, match="nothing to extend by"):
        event_of(Command(command="extend"), state)
    unlimited = fold(await Table(tmp_path / "other", plan(iterations=1), "correct 1.0").play())
    with pytest.raises(CommandRefused, match="no budget in USD"):
        event_of(extend, unlimited)


async def test_extension_goes_past_a_stop_rule(tmp_path: Path) -> None:
    session_plan = plan(iterations=5, stop=StopRules(without_gain=2))
    table = Table(tmp_path, session_plan, "correct 2.0", "correct 1.0")
    assert fold(await table.play()).instances["vector_add#1"].finished == "no_gain"
    with take_up(table.home, session_plan.session) as recorder:
        recorder.record(event_of(Command(command="extend", iterations=1), recorder.state))
    instance = fold(await table.play()).instances["vector_add#1"]
    assert (instance.finished, len(instance.attempts)) == ("iterations", 6)


async def test_start_of_a_person_is_kept_when_its_file_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(candidate("correct 1.5", "mine"), encoding="utf-8")
    table = Table(tmp_path, plan(iterations=2, options=MethodOptions(start=str(file))), "correct 2.0")
    await table.play(kill_at="1/2/optimizer")
    file.unlink()
    events = await table.play()
    first, *others = fold(events).attempts()
    assert (first.origin, first.source) == (Origin.HUMAN, candidate("correct 1.5", "mine"))
    assert [attempt.origin for attempt in others] == [Origin.OPTIMIZE] * 2
    assert [attempt.base for attempt in others] == ["vector_add#1/1", "vector_add#1/2"]


@pytest.mark.parametrize("method", ["geak", "geak-evolve", "kernelagent"])
async def test_fork_goes_on_from_the_attempt_with_its_hint(tmp_path: Path, method: str) -> None:
    session_plan = plan(method=method, iterations=2, options=MethodOptions(workers=1, descendants=1))
    table = Table(tmp_path, session_plan, "wrong")
    table.acts["1/2/generator"] = lambda: table.command("fork", attempt="vector_add#1/1", text="Use masks.")
    before = await table.play(kill_at="2/1/generator")
    assert attempts_of(before)["vector_add#2"] == 2
    events = await table.play()
    first, second, third = fold(events).instances["vector_add#2"].attempts
    origins = [(first.origin, first.base), (second.origin, second.base), (third.origin, third.base)]
    assert origins == [
        (Origin.FORK, "vector_add#1/1"),
        (Origin.REPAIR, first.attempt),
        (Origin.REPAIR, second.attempt),
    ]
    assert first.source == fold(events).attempt("vector_add#1/1").source
    assert said(events) == {"vector_add#2/2/generator/1": ['- a person gives a hint: "Use masks."']}
    assert not any("differs" in message for _, message in fold(events).notices)  # type: ignore[arg-type]


async def test_finished_session_takes_a_fork_and_an_edit(tmp_path: Path) -> None:
    table = Table(tmp_path, plan(iterations=1), "correct 1.5")
    await table.play()
    mine = candidate("correct 3.0", "mine")
    for request in (
        Command(command="fork", attempt="vector_add#1/1"),
        Command(command="edit", attempt="vector_add#1/1", source=mine),
    ):
        with take_up(table.home, PLAN.session) as recorder:
            recorder.record(event_of(request, recorder.state))
    events = await table.play()
    state = fold(events)
    assert attempts_of(events) == {"vector_add#1": 1, "vector_add#2": 2, "vector_add#3": 1}
    edit = state.attempt("vector_add#3/1")
    assert (edit.origin, edit.base, edit.source) == (Origin.HUMAN, "vector_add#1/1", mine)
    assert edit.confirmation is Confirmation.CONFIRMED
    assert state.instances["vector_add#3"].finished == "edited"
    assert not edit.calls


async def test_attempt_without_a_kernel_cannot_be_forked(tmp_path: Path) -> None:
    events = await Table(tmp_path, plan(iterations=1), "prose").play()
    with pytest.raises(CommandRefused, match="has no kernel"):
        event_of(Command(command="fork", attempt="vector_add#1/1"), fold(events))


@pytest.mark.parametrize("method", ["geak", "geak-evolve"])
async def test_pinned_attempt_is_the_base_again_after_a_crash(tmp_path: Path, method: str) -> None:
    session_plan = plan(method=method, iterations=5, options=MethodOptions(descendants=1))
    verdicts = ("correct 2.0", "correct 3.0", "correct 1.5", "correct 1.6", "correct 1.7")
    table = Table(tmp_path, session_plan, *verdicts)
    table.acts["1/3/optimizer"] = lambda: table.command("pin", attempt="vector_add#1/1")
    before = await table.play(kill_at="1/4/optimizer")
    events = await table.play()
    bases = [attempt.base and attempt.base.partition("/")[2] for attempt in fold(events).attempts()]
    assert bases == [None, "1", "2", "1", "1"]
    prompt = prompts(events)["vector_add#1/4/optimizer/1"]
    assert prompt == prompts(before)["vector_add#1/4/optimizer/1"]
    assert "faster** than vector_add#1/1" in prompt
    assert "# 1.1.1" in prompt
    assert "# 1.2.1" not in prompt, "the code of a better kernel"
    assert "a person chose vector_add#1/1" in prompt


@pytest.mark.parametrize("method", ["geak", "geak-evolve"])
async def test_banned_attempt_is_no_base_and_in_no_later_prompt(tmp_path: Path, method: str) -> None:
    session_plan = plan(method=method, iterations=4, options=MethodOptions(descendants=1))
    table = Table(tmp_path, session_plan, "correct 1.5", "correct 3.0", "correct 1.2")
    table.acts["1/3/optimizer"] = lambda: table.command("ban", attempt="vector_add#1/2")
    events = await table.play()
    assert fold(events).attempt("vector_add#1/4").base == "vector_add#1/1"
    assert "vector_add#1/2" not in prompts(events)["vector_add#1/4/optimizer/1"]
    assert fold(events).instances["vector_add#1"].best == "vector_add#1/2", "a ban is no rejection"


async def test_banned_candidate_is_not_repaired(tmp_path: Path) -> None:
    table = Table(tmp_path, plan(iterations=2), "wrong")
    table.acts["1/1/reflector"] = lambda: table.command("ban", attempt="vector_add#1/1")
    events = await table.play()
    assert [attempt.base for attempt in fold(events).attempts()] == [None, None]


@pytest.mark.parametrize(
    ("method", "verdict", "words"),
    [("geak", "wrong", "is not correct"), ("reflexion", "wrong", "no base to choose")],
)
async def test_impossible_pin_is_refused(tmp_path: Path, method: str, verdict: str, words: str) -> None:
    events = await Table(tmp_path, plan(method=method, iterations=2), verdict).play(kill_at="1/2/generator")
    with pytest.raises(CommandRefused, match=words):
        event_of(Command(command="pin", attempt="vector_add#1/1"), fold(events))


@pytest.mark.parametrize("method", ["geak", "geak-evolve"])
async def test_session_cut_after_any_line_repeats_its_prompts(tmp_path: Path, method: str) -> None:
    session_plan = plan(method=method, iterations=7, options=MethodOptions(descendants=2))
    whole = Table(tmp_path / "whole", session_plan, "correct 1.0", "wrong", "correct 2.0", "correct 3.0")
    whole.acts = {
        "1/1/generator": lambda: whole.command("hint", instance="vector_add#1", text="Use masks."),
        "1/3": lambda: whole.decide("vector_add#1/1", accepted=False, why="unreadable"),
        "1/5": lambda: whole.command("ban", attempt="vector_add#1/1"),
        "1/6": lambda: whole.command("pin", attempt="vector_add#1/3"),
    }
    events = await whole.play()
    assert not whole.acts, "every command was given"
    lines = whole.home.live(session_plan.session).journal.read_bytes().splitlines(keepends=True)
    for count in range(2, len(lines) - 1, STRIDE):
        cut = Table(tmp_path / f"cut-{count}", session_plan, *whole.verdicts)
        live = cut.home.live(session_plan.session)
        live.folder.mkdir(parents=True)
        live.journal.write_bytes(b"".join(lines[:count]))
        notices = fold(await cut.play()).notices  # type: ignore[arg-type]
        assert not any("differs" in message for _, message in notices), (
            f"after {count} of {len(events)} lines"
        )


async def test_gpu_is_lent_and_taken_back_but_never_the_last_one(tmp_path: Path) -> None:
    events = await Table(tmp_path, plan(devices=("0", "1"))).play(kill_at="1/1/generator")
    state = fold(events)

    def give(text: str, gpu: str) -> None:
        apply(state, event_of(Command(command="gpu", text=text, devices=(gpu,)), state))  # type: ignore[arg-type]

    give("lend", "1")
    assert state.lent == {"1"}
    for text, gpu, words in [
        ("lend", "1", "already lent"),
        ("lend", "0", "the last one in service"),
        ("lend", "7", "has no GPU 7; it has 0, 1"),
        ("return", "0", "is not lent"),
    ]:
        with pytest.raises(CommandRefused, match=words):
            give(text, gpu)
    give("return", "1")
    assert not state.lent
