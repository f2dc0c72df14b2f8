"""The desk at which an agent works: its sessions, one for each task, started with its first candidate.

The engines are the usual processes. The desk sends them commands and reads their journals, so a session goes on if the desk
is lost, and a person watches and steers it like any other.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from engine.agents.answers import (
    AsmAnswer,
    BestAnswer,
    HistoryAnswer,
    Listener,
    MeasureAnswer,
    ProfileAnswer,
    VerdictAnswer,
    asm_answer,
    best_answer,
    evaluations_left,
    history_answer,
    measure_answer,
    profile_answer,
    verdict_answer,
)
from engine.errors import AgentRefused, EngineError
from engine.judge.baseline_timing import untimed_baseline
from engine.judge.judging import own_product
from engine.judge.profiling import case_to_profile
from engine.plan.request import RunPlan
from engine.process import launch
from engine.process.control import send
from engine.prompting.agent_prompt import best_of_agent, judged_of, task_facts
from engine.prompting.prompting import Setting
from harness import target
from harness.assembly.code_texts import NoText
from harness.node.selection import select_devices, targets_for
from harness.stages.timing.baselines import timing_baseline
from harness.wire.device import is_cpu
from harness.wire.errors import NoIdleDevice
from sessions import JournalTail, SessionState
from sessions.events import (
    AgentLeft,
    CandidateSent,
    CandidateWithdrawn,
    Command,
    MeasureAsked,
    ProfileAsked,
)
from sessions.home import Home
from sessions.names import attempt_name, full_task, instance_key, split_attempt
from sessions.state.folding import apply
from sessions.state.state import AttemptState
from sessions.store.compiler_texts import read_text
from suites import Task, load_suite, load_task, suite_names

ANSWER_S = 200.0
"""A call is answered before: Codex and Claude Code give up calls after 300 s."""
POLL_S = 0.1
"""Seconds between two reads of a journal; a read costs one system call if nothing is new."""

NUMBER = re.compile(r"[1-9][0-9]{0,8}")
"""Number of an attempt, in the only way to write it."""

OnProgress = Callable[[str], Awaitable[None]]
"""Gets the state of an attempt in words when it changes."""


def answer_by() -> float:
    """Returns the time at which a call that begins now has to be answered, on the clock of the event loop."""
    return asyncio.get_running_loop().time() + ANSWER_S


class AgentSession:
    """The running session of one task."""

    def __init__(self, home: Home, session: str, task: Task, instance: int = 1) -> None:
        self.name = session
        self.key = instance_key(task.id, instance)
        self.task = task
        self.state = SessionState()
        self.listener = Listener(self.key)
        self._home = home
        self._live = home.files(session)
        self._tail = JournalTail(self._live.journal)

    def read(self) -> bool:
        """Read what is new; returns True if an engine runs the session."""
        running = self._live.running  # before reading: so no event of an engine that ended is lost
        self._tail.follow()
        new_events = self._tail.read_new()
        self.state.journal = self._tail.reader
        for event in new_events:
            apply(self.state, event)
        return running

    async def command(self, command: Command) -> int:
        """Send a command to the engine and return the number of its event; `AgentRefused` if it is refused."""
        if not self.read():
            raise AgentRefused(self.ended)
        if self.key in self.state.left and not isinstance(command, CandidateWithdrawn):
            raise AgentRefused("you submitted: your work on this task has ended")
        answer = await send(self._home, self.name, command)
        if not answer.ok or answer.seq is None:
            raise AgentRefused(answer.error or "the engine refused the command")
        await self.until(lambda: self.state.last_seq >= (answer.seq or 0))
        return answer.seq

    def attempt_of(self, seq: int) -> str:
        """Returns the attempt that judges the candidate of this event."""
        return attempt_name(self.key, [sent.seq for sent in self.state.sent_to(self.key)].index(seq) + 1)

    async def withdraw_sent(self, sending: asyncio.Task[int]) -> int:
        """Withdraw a candidate that is being sent; returns the number of the event."""
        return await self.command(CandidateWithdrawn(attempt=self.attempt_of(await sending)))

    async def until(
        self,
        condition: Callable[[], bool],
        on_turn: Callable[[], Awaitable[None]] | None = None,
        *,
        ends: float | None = None,
    ) -> None:
        """Return when the condition holds, when no engine runs the session, or at the time `ends` (`answer_by`)."""
        ends = answer_by() if ends is None else ends
        while True:
            running = self.read()
            if on_turn is not None:
                await on_turn()
            if condition() or not running or asyncio.get_running_loop().time() >= ends:
                return
            await asyncio.sleep(POLL_S)

    @property
    def ended(self) -> str:
        """Why no engine runs the session, and what to do."""
        if self.state.finished:
            instance = self.state.instances.get(self.key)
            reason = instance.finished if instance is not None else ""
            message = f", {instance.message}" if instance is not None and instance.message else ""
            return f"session {self.name} is finished ({reason}{message}); nothing more is judged in it"
        why = self.state.stopped or "its engine is gone"
        return f"session {self.name} is stopped ({why}); a person can go on with: wavedeck resume {self.name}"

    def find(self, attempt: str) -> AttemptState | None:
        """Returns an attempt; `None` if it has not begun."""
        instance = self.state.instances.get(self.key)
        return (
            next((entry for entry in instance.attempts if entry.attempt == attempt), None)
            if instance
            else None
        )

    def doing(self, attempt: str) -> str:
        """Returns what happens to an attempt, in words."""
        begun = self.find(attempt)
        if begun is not None and begun.evaluation is not None:
            return f"judged: {begun.evaluation.verdict}"
        if begun is not None and begun.stage is not None:
            return f"judging: {begun.stage}"
        if self.key not in self.state.instances:
            return "the judge starts"
        if self.state.is_on_hold(self.key):
            return "waiting: a person paused the session"
        return "waiting for the judge"


class AgentDesk:
    """The sessions of one agent, and what it may ask of them."""

    def __init__(self, home: Home, plan: RunPlan, tasks: tuple[str, ...] = ()) -> None:
        """`plan` has devices, iterations and budgets of each session. `tasks` are full names; empty: every task."""
        self._home = home
        self._plan = plan
        self._tasks = tasks
        self._sessions: dict[str, AgentSession] = {}
        """Sessions by task."""
        self._starts: dict[str, asyncio.Task[AgentSession]] = {}
        """Starts by task. A start goes on if the call that needs it is cancelled, so no engine is lost from sight."""
        self._sending: set[asyncio.Task[Any]] = set()
        """Commands that are sent although the call that caused them was cancelled."""

    def join(self, session: str, name: str, instance: int = 1) -> None:
        """Work in a session that runs, in one of its instances; without an earlier answer of this desk."""
        task = self._load(name)
        joined = self._sessions[task.id] = AgentSession(self._home, session, task, instance)
        joined.read()
        chain = joined.state.instances.get(joined.key)
        # Each earlier answer came with a verdict, and had what a person said until then.
        answered = max((attempt.judged_seq for attempt in chain.attempts), default=0) if chain else 0
        joined.listener.heard = max(
            (command.seq for command in joined.state.commands if command.seq <= answered), default=0
        )

    @property
    def has_gpu(self) -> bool:
        """True if the desk's sessions run on a GPU, so that they can measure and profile."""
        joined = next((session.state.started for session in self._sessions.values()), None)
        if joined is not None:
            return not all(map(is_cpu, joined.devices))
        try:
            return any(device.kind != "cpu" for device in select_devices(self._plan.devices))
        except NoIdleDevice:
            return True

    def tasks(self) -> dict[str, dict[str, str]]:
        """Returns the tasks that the agent may work on, with titles; of public benchmarks only those that the person named."""
        registry = self._home.suites
        every = [
            task for name in suite_names(registry=registry) for task in load_suite(name, registry=registry)
        ]
        named = [load_task(name, registry=registry) for name in self._tasks]
        return {"tasks": {task.short_id: task.title for task in named or every}}

    def task(self, name: str) -> dict[str, str]:
        """Returns the facts of a task in Markdown: those of a first prompt, with the judge's rules and the hardware."""
        task = self._load(name)
        devices = select_devices(self._plan.devices)
        product = own_product(devices)
        setting = Setting(
            task,
            tuple(target(shown.name) for shown in targets_for(devices, self._plan.targets)),
            devices[0].name if product is None else product.name,
            product=product,
            baseline=untimed_baseline(task, timing_baseline(task), show_reference=False),
        )
        return {"task": task.id, "text": task_facts(setting)}

    async def evaluate(
        self, name: str, code: str, note: str, *, agent: str, on_progress: OnProgress
    ) -> VerdictAnswer:
        """Send a candidate and wait for its verdict, at most `ANSWER_S`. Cancelling the call cancels the judging."""
        ends = answer_by()
        session = await self._session(name, agent)
        heard = session.listener.heard
        sent = CandidateSent(instance=session.key, source=code, strategy=note, heard=heard)
        sending = asyncio.create_task(session.command(sent))
        try:
            # If the call is cancelled now, the engine may or may not have the candidate.
            seq = await asyncio.shield(sending)
        except asyncio.CancelledError:
            self._send_later(session.withdraw_sent(sending))
            raise
        return await self._wait(session, session.attempt_of(seq), on_progress, ends)

    async def wait(self, attempt: str, *, on_progress: OnProgress) -> VerdictAnswer:
        """Wait for the verdict on a candidate that was sent, as `evaluate`."""
        session = self._session_of(attempt)
        if split_attempt(attempt).number > len(session.state.sent_to(session.key)):
            raise AgentRefused(f"no candidate was sent as {attempt}")
        return await self._wait(session, attempt, on_progress, answer_by())

    async def _wait(
        self, session: AgentSession, attempt: str, on_progress: OnProgress, ends: float
    ) -> VerdictAnswer:
        last = ""

        async def report() -> None:
            nonlocal last
            if session.doing(attempt) != last:
                last = session.doing(attempt)
                await on_progress(f"{attempt} {last}")

        def is_judged() -> bool:
            begun = session.find(attempt)
            return begun is not None and begun.evaluation is not None

        try:
            await session.until(is_judged, report, ends=ends)
        except asyncio.CancelledError:
            self._send_later(session.command(CandidateWithdrawn(attempt=attempt)))
            raise
        if not is_judged() and not session.read():
            raise AgentRefused(session.ended)  # an error, so that no agent calls `wait` for ever
        return self._answer(session, attempt)

    async def explain(self, attempt: str) -> VerdictAnswer:
        """Returns the facts about an attempt, without waiting."""
        session = self._session_of(attempt)
        if session.find(attempt) is None:
            raise AgentRefused(f"there is no attempt {attempt}")
        return self._answer(session, attempt, is_brief=False)

    def _answer(self, session: AgentSession, attempt: str, *, is_brief: bool = True) -> VerdictAnswer:
        running = session.read()
        person = session.listener.news(session.state)
        begun = session.find(attempt)
        if not running:
            step = session.ended
        elif begun is not None and begun.evaluation is not None:
            remaining = evaluations_left(session.state, session.key)
            step = "send the next candidate, or submit" if remaining else "no evaluation is left; submit"
        else:
            step = f"{session.doing(attempt)}; call wait with {attempt}"
        return verdict_answer(
            session.state, session.key, attempt, next_step=step, person=person, is_brief=is_brief
        )

    async def asm(self, attempt: str, *, kernel: str, case: str) -> AsmAnswer:
        """Returns the assembly of an attempt's kernels, as far as the session keeps it."""
        session = self._session_of(attempt)
        judged = next(
            (entry for entry in judged_of(session.state, session.key) if entry.attempt == attempt), None
        )
        if judged is None:
            raise AgentRefused(f"{attempt} is not judged; there is no assembly of it")
        try:
            return asm_answer(judged, partial(read_text, self._home, session.name), kernel=kernel, case=case)
        except NoText as why:
            raise AgentRefused(f"{attempt}: {why}") from None

    async def measure(self, attempt: str) -> MeasureAnswer:
        """Time a correct attempt of the agent again, on the GPU that judged it."""
        session = self._session_of(attempt)
        await session.command(MeasureAsked(attempt=attempt))
        [device] = next(order.devices for order in session.state.measures if order.attempt == attempt)

        def is_measured() -> bool:
            return all(order.attempt != attempt for order in session.state.measures)

        await session.until(is_measured)
        answer = measure_answer(session.state.attempt(attempt), device) if is_measured() else None
        if answer is None:
            raise AgentRefused(f"{attempt} is not measured yet; the session has the result later")
        return answer

    async def profile(self, attempt: str, *, case: str) -> ProfileAnswer:
        """Returns the profile of a correct attempt of the agent; takes it, and waits for it at most `ANSWER_S`.

        A profile that the session has is not taken again, and one that failed is not tried again.
        """
        ends, session = answer_by(), self._session_of(attempt)
        begun = session.find(attempt)
        judged = begun.evaluation if begun is not None else None
        named, case = case, case_to_profile(session.task, judged, case)

        def is_known() -> bool:
            begun = session.find(attempt)
            return begun is not None and (case in begun.profiles or case in begun.profile_failures)

        def is_asked() -> bool:
            return ProfileAsked(attempt=attempt).is_pending(session.state)

        def is_free() -> bool:
            return is_known() or not is_asked()

        await session.until(is_free, ends=ends)  # the engine takes no other case of the attempt before
        if not is_known() and not is_asked():
            await session.command(ProfileAsked(attempt=attempt, case=named))
            await session.until(is_free, ends=ends)
        begun = session.find(attempt)
        if begun is None or (not is_known() and not session.read()):
            raise AgentRefused(session.ended)
        if case in begun.profile_failures and case not in begun.profiles:
            raise AgentRefused(begun.profile_failures[case])
        return profile_answer(attempt, case, begun.profiles.get(case))

    async def history(self, name: str) -> HistoryAnswer:
        """Returns the agent's attempts on a task."""
        session = self._sessions.get(self._load(name).id)
        if session is None:
            return HistoryAnswer((), self._plan.iterations or 0, ())
        session.read()
        return history_answer(session.state, session.key, person=session.listener.news(session.state))

    async def best(self, name: str) -> BestAnswer:
        """Returns the agent's best correct attempt on a task, with its code."""
        session = self._sessions.get(self._load(name).id)
        if session is None:
            return BestAnswer("", "", None)
        session.read()
        return best_answer(session.state, session.key)

    async def submit(self, name: str) -> VerdictAnswer:
        """End the agent's work on a task; returns its best attempt, which the engine then examines for people."""
        session = self._sessions.get(self._load(name).id)
        if session is None:
            raise AgentRefused("no candidate was sent for this task; call eval first")
        if session.read() and evaluations_left(session.state, session.key):
            await session.command(AgentLeft(instance=session.key))
        best = best_of_agent(session.state, session.key)
        answer = self._answer(session, best.attempt if best is not None else attempt_name(session.key, 1))
        started = session.state.started
        by_person = started is not None and started.review == "manual"
        follows = (
            "a person decides about the best attempt" if by_person else "the best attempt is your result"
        )
        return replace(answer, next=f"submitted: {follows}")

    async def close(self) -> None:
        """End the work in each session that this desk started: the agent is gone. What was sent is still judged."""
        if self._starts:
            await asyncio.wait(self._starts.values())
        for session in [self._sessions[task] for task in self._starts if task in self._sessions]:
            if session.read() and session.key not in session.state.left:
                self._send_later(session.command(AgentLeft(instance=session.key)))
        await self.settle()

    async def settle(self) -> None:
        """Wait until what cancelled calls have to say is sent."""
        if self._sending:
            await asyncio.wait(self._sending)

    def _send_later(self, sending: Coroutine[Any, Any, int]) -> None:
        async def send_it() -> None:
            try:
                await sending
            except EngineError:
                return  # the session has ended, so there is nothing left to do

        task = asyncio.create_task(send_it())
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    def _load(self, name: str) -> Task:
        allowed = self._tasks
        if allowed and full_task(name) not in allowed:
            raise AgentRefused(f"{name} is not among the tasks of this server: {', '.join(allowed)}")
        return load_task(name, registry=self._home.suites)

    async def _session(self, name: str, agent: str) -> AgentSession:
        """Returns the session of a task; starts it if there is none."""
        task = self._load(name)
        if task.id in self._sessions:
            return self._sessions[task.id]
        start = self._starts.get(task.id)
        if start is None or (start.done() and start.exception() is not None):
            start = self._starts[task.id] = asyncio.create_task(self._start(task, agent))
        return await asyncio.shield(start)

    async def _start(self, task: Task, agent: str) -> AgentSession:
        plan = msgspec.structs.replace(self._plan, tasks=(task.id,), model=agent)
        name = await asyncio.to_thread(launch.start, plan, self._home)
        session = self._sessions[task.id] = AgentSession(self._home, name, task)
        session.read()
        return session

    def _session_of(self, attempt: str) -> AgentSession:
        """Returns the session of an attempt; `AgentRefused` if it is not one of this agent."""
        for session in self._sessions.values():
            if attempt.startswith(f"{session.key}/") and NUMBER.fullmatch(attempt, len(session.key) + 1):
                session.read()
                return session
        raise AgentRefused(f"there is no attempt {attempt!r} of yours; `history` lists them")
