"""The `Context` of one instance: its access to model, judge and person, recorded in the journal.

A resumed session runs each method again from the start. Finished replies, candidates, verdicts and decisions are
answered from the journal without a new event. The first request without an answer in the journal is executed. So no
finished reply is asked for twice and no verdict is lost, whenever the engine ended.
"""

from __future__ import annotations

import asyncio
import copy
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from weakref import WeakValueDictionary

import msgspec

from engine.errors import JudgeUnable, StopRuleMet
from engine.judge.baseline_timing import known_baseline
from engine.judge.evaluating import cancelled_evaluation, evaluate_attempt, failure_reason
from engine.judge.judging import own_product
from engine.judge.sweeping import estimate_rung, recorded_rung, sweep_attempt
from engine.methods import Review, Start
from engine.methods.orders import last_command, words_for
from engine.methods.proposing import setting_of
from engine.models import CallKey, Reply, Request
from engine.models.clients.recorded import recorded_start
from engine.plan.plan import read_start
from engine.prompting.agent_prompt import agent_prompt, best_of_agent
from engine.prompting.baseline_facts import BaselineFacts
from engine.run.agent_work import AgentWork
from engine.run.calls import call_model, recorded_reply, sampled
from engine.run.person import run_until
from engine.run.shared import Shared, note_once
from engine.run.stop_rules import stop_of
from engine.tuning.rungs import PlannedRung, mark_kept
from harness import Evaluation
from harness.stages.retries import NO_VERDICT
from sessions.events import (
    UNASKED,
    AttemptJudged,
    AttemptStarted,
    AttemptSwept,
    CallFailed,
    CandidateProposed,
    DecisionMade,
    Message,
    Orders,
    Origin,
    Role,
    SweepRung,
    SweptVariant,
    WaitingForPerson,
    orders_until,
)
from sessions.names import attempt_name, call_name, instance_key
from sessions.state.ranking import rank
from sessions.state.state import AttemptState, without_trailing_space
from suites import Task

AGENT_SILENT_S = 7200.0
"""An agent that sends nothing for so long counts as gone: its process may have been killed."""
FAREWELL_S = 60.0
"""For an agent's program to end by itself, and to report what it spent, when it sends no further candidate."""
TURNS_OF_AN_END = 3
"""Turns of the loop in which a lane that has all its replies in the journal ends and the others are cancelled."""


class InstanceContext:
    """The `Context` of one instance, or of one of its lanes.

    An attempt is committed when the next attempt begins, or before the instance waits for a person.
    """

    def __init__(self, shared: Shared, task: Task, instance: int) -> None:
        self.task = task
        self.targets = shared.targets
        self.corpus = shared.corpus
        self.device = shared.judge.devices[0].name
        self.product = own_product(shared.judge.devices)
        self.language = shared.judge.language
        self.options = shared.plan.options
        self.words: tuple[str, ...] = ()
        self.key = instance_key(task.id, instance)
        self.candidates = shared.plan.candidates.get(self.key, ())
        self.phases = shared.recorder.state.phases(self.key)
        self.iterations = sum(self.phases)
        self._added_usd = shared.recorder.state.added_usd
        self._shared = shared
        self._recorder = shared.recorder
        self._chain = shared.plan.first_chain + instance - 1
        self._number = 0
        self._heard: int | None = None
        """Number of the last command that the next attempt follows, once that is decided."""
        self._step = 1
        """Distance between the numbers of two attempts of this context: the number of lanes."""
        self._begun = False
        """True while an attempt is in progress."""
        self._lanes: tuple[InstanceContext, ...] = ()
        self._unasked = 0
        """Attempts that asked no model; a recording does not count them."""
        self._asked: Counter[Role] = Counter()
        self._passed: dict[str, Evaluation] = {}
        """Evaluations of the variants that were correct in earlier rungs of the current sweep, by source."""
        self._judging: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By source, held while it is judged; all lanes share it."""
        self._fresh = False
        """True if the attempt has data that its commit may lack."""
        self._agent = AgentWork(shared, self.key)

    @property
    def is_extended(self) -> bool:
        """True if a person gave the instance more iterations after this context was created."""
        return self._recorder.state.phases(self.key) != self.phases

    @property
    def has_more_usd(self) -> bool:
        """True if a person added USD after this context was created."""
        return self._recorder.state.added_usd != self._added_usd

    @property
    def _name(self) -> str:
        return attempt_name(self.key, self._number)

    @property
    def _attempts(self) -> Sequence[AttemptState]:
        """All attempts of the instance that the journal has."""
        instance = self._recorder.state.instances.get(self.key)
        return instance.attempts if instance is not None else ()

    @property
    def _attempt(self) -> AttemptState:
        return self._recorder.state.attempt(self._name)

    async def attempt(self, origin: Origin, base: str | None) -> str:
        """See `Context`."""
        await self._hear()
        number = self._last + self._step
        is_new = self._recorded(number) is None
        if is_new:
            self._check_start()
        before = self._recorded(self._number)
        after = before.heard if before is not None else 0
        # No model is asked, so the attempt leaves the hints to the next one.
        heard = after if origin in UNASKED else self._heard or 0
        self._heard = None
        self._number = number
        self._lanes = ()
        self._begun = True
        self._fresh = False
        self._unasked += origin in UNASKED
        self._asked.clear()
        if is_new:
            self._recorder.record(AttemptStarted(attempt=self._name, origin=origin, base=base, heard=heard))
        self.words = words_for(self._recorder.state, self.key, after=after, until=heard)
        return self._name

    def _check_start(self) -> None:
        """Raise `StopRuleMet` if no other attempt may begin.

        Stop rules end with the first extension: a person asked for more attempts.
        """
        stop = stop_of(self._shared.plan.stop, self._attempts, lanes=self._step)
        if stop is not None and not self._recorder.state.extensions:
            raise StopRuleMet(stop.reason, stop.why)

    async def orders(self) -> Orders:
        """See `Context`."""
        return orders_until(self._recorder.state, self.key, await self._hear())

    async def _hear(self) -> int:
        """Returns the number of the last command that the next attempt follows; waits while a person pauses.

        Lanes that are created after it follow the same commands in their first attempt.
        """
        await self.settle()
        if self._heard is None:
            recorded = self._next_recorded()
            if recorded is None:
                await self._shared.until_released(self.key)
            self._heard = last_command(self._recorder.state) if recorded is None else recorded.heard
        return self._heard

    def _next_recorded(self) -> AttemptState | None:
        """Returns the next attempt of this context, or of lanes that it will create, if the journal has it."""
        if self._step > 1:
            return self._recorded(self._number + self._step)
        return next((attempt for attempt in self._attempts if attempt.number > self._last), None)

    def _recorded(self, number: int) -> AttemptState | None:
        """Returns the attempt of this number; `None` if the journal has none."""
        return next((attempt for attempt in self._attempts if attempt.number == number), None)

    @property
    def _last(self) -> int:
        """The highest number of an attempt that this context or one of its lanes began."""
        return max((self._number, *(lane._last for lane in self._lanes if lane._begun)))

    def lanes(self, count: int) -> tuple[InstanceContext, ...]:
        """See `Context`."""
        last, self._lanes = self._last, ()
        lanes = tuple(copy.copy(self) for _ in range(count))
        for place, lane in enumerate(lanes):
            lane._number = last + place + 1 - count
            lane._step = count
            lane._begun = lane._fresh = False
            lane._asked = Counter()
        self._number, self._lanes, self._heard = last, lanes, None
        return lanes

    async def settle(self) -> None:
        """See `Context`. A judged attempt is committed."""
        # An attempt that was cancelled before it had a candidate is only in the journal.
        if not self._begun or self._attempt.verdict is None or self._attempt.proposed is None:
            return
        if self._fresh or self._attempt.commit is None:
            await self._recorder.commit_attempt(self._name)
            self._fresh = False

    async def close(self) -> None:
        """Settle every attempt that is in progress; the instance is over."""
        for context in (*self._lanes, self):
            await context.settle()

    async def cut(self, why: str) -> None:
        """Abandon every attempt whose calls or judging were cut off; the instance is over."""
        for context in (*self._lanes, self):
            if context._begun and (context._attempt.calls or context._attempt.proposed is not None):
                await context.abandon(why)

    async def abandon(self, why: str) -> None:
        """See `Context`."""
        if self._begun:
            await self._abandon(self._attempt, why)
            await self.settle()

    async def abandon_all(self, why: str) -> None:
        """End every attempt of the instance that is in progress, also attempts that an earlier engine began."""
        for attempt in self._attempts:
            await self._abandon(attempt, why)

    async def _abandon(self, attempt: AttemptState, why: str) -> None:
        for call in attempt.calls:
            if call.live:
                await self._recorder.record_durable(
                    CallFailed(call=call.call, reason="cancelled", message=why, billed=True)
                )
        if attempt.verdict is None:
            evaluation = cancelled_evaluation(self.task.id, self.device, why)
            held_s = self._shared.unrecorded_s.pop(attempt.attempt, 0.0)
            await self._recorder.record_durable(
                AttemptJudged(attempt=attempt.attempt, evaluation=evaluation, device_s=held_s)
            )

    async def baseline(self) -> BaselineFacts:
        """See `Context`."""
        return await known_baseline(self._shared, self.task, show_reference=self.options.show_reference)

    def start(self) -> Start | None:
        """See `Context`. `UsageProblem` if the named file is gone and the journal does not have its source."""
        fork = self._recorder.state.forks.get(self.key)
        if fork is not None:
            origin, words = (Origin.HUMAN, "A person's edit") if fork.source else (Origin.FORK, "The kernel")
            source = fork.source or self._recorder.state.attempt(fork.base).source or ""
            return Start(source, origin, f"{words} of {fork.base}.", fork.base)
        if self.options.start:
            first = self._recorded(1)
            recorded = first.source if first is not None else None
            source = recorded or read_start(Path(self.options.start))
            return Start(source, Origin.HUMAN, "A person's kernel.")
        source = recorded_start(self._shared.clients.values(), self.task.id, self._chain)
        return Start(source, Origin.HUMAN, "The kernel that the recording starts from.") if source else None

    async def sweep(self, attempt: str, *, most: int) -> AttemptSwept:
        """See `Context`. `HarnessError` when the judge cannot compile."""
        recorded = self._recorder.state.attempt(attempt).sweep
        if recorded is not None:
            return recorded
        await self.settle()
        return await sweep_attempt(self._shared, self.task, attempt, self.targets, most=most)

    async def rung(self, attempt: str, variants: Sequence[SweptVariant], rung: PlannedRung) -> SweepRung:
        """See `Context`. `JudgeUnable` if the judge can estimate none of the variants."""
        recorded = recorded_rung(self._recorder.state.attempt(attempt), variants, rung)
        if recorded is not None:
            return msgspec.structs.replace(recorded, entries=mark_kept(recorded.entries, rung.keeps))
        if rung.number == 1:
            self._passed.clear()
        by_case = self.options.by == "case"
        return await estimate_rung(
            self._shared, self.task, attempt, variants, rung, passed=self._passed, by_case=by_case
        )

    def notify(self, words: str) -> None:
        """See `Context`. The same notice is recorded once."""
        note_once(self._recorder, "info", words)

    # The model

    async def ask(self, role: Role, messages: Sequence[Message]) -> Reply:
        """See `Context`. `ModelError` if no reply comes; `BudgetSpent` if the call does not fit the budget."""
        self._asked[role] += 1
        number = self._asked[role]
        call = call_name(self._name, role, number)
        recorded = recorded_reply(self._shared, self._attempt, call, messages)
        if recorded is not None:
            return recorded
        await self._let_finished_lane_end()
        self._fresh = True
        key = CallKey(self.task.id, self._chain, self._number - self._unasked, role, number)
        request = sampled(Request(key=key, messages=tuple(messages)), self._shared.plan.sampling)
        return await call_model(self._shared, self.key, self._name, call, request)

    async def _let_finished_lane_end(self) -> None:
        """Give a lane that succeeded before a resume the turns to end and to have this lane cancelled."""
        if self._step > 1:
            for _ in range(TURNS_OF_AN_END):
                await asyncio.sleep(0)

    # The judge

    async def judge(self, source: str, strategy: str, *, unusable: str = "") -> AttemptState:
        """See `Context`. An identical source is not judged twice: the attempt gets the earlier evaluation.

        If the judge fails, it is asked once more; `JudgeUnable` if it fails again.
        """
        if self._attempt.proposed is None:
            self._fresh = True
            await self._recorder.record_durable(
                CandidateProposed(attempt=self._name, source=source, strategy=strategy, unusable=unusable)
            )
        recorded = self._attempt.verdict
        if recorded is not None and recorded not in NO_VERDICT:
            return self._attempt
        await self._let_finished_lane_end()
        self._fresh = True
        proposed = self._attempt.source or ""
        # Lanes may propose the same source at the same time; the second waits for the evaluation of the first.
        async with self._judging.setdefault(without_trailing_space(proposed), asyncio.Lock()):
            same = self._same_source(proposed)
            if same is not None and same.evaluation is not None:
                judged = AttemptJudged(
                    attempt=self._name, evaluation=same.evaluation, same_as=same.same_as or same.attempt
                )
                await self._recorder.record_durable(judged)
            else:
                await self._judge(proposed)
        return self._attempt

    def _same_source(self, source: str) -> AttemptState | None:
        """The first attempt of the instance with this source and a verdict; trailing whitespace does not count."""
        wanted, wanted_hash = without_trailing_space(source), self._attempt.source_hash
        return next(
            (
                attempt
                for attempt in self._attempts
                if attempt.source_hash == wanted_hash
                and attempt.verdict is not None
                and attempt.verdict not in NO_VERDICT
                and attempt.source
                and without_trailing_space(attempt.source) == wanted
            ),
            None,
        )

    async def _judge(self, source: str) -> None:
        judgement = await evaluate_attempt(self._shared, self.task, self._name, source)
        if judgement.spent is None and judgement.evaluation.verdict in NO_VERDICT:
            self._shared.unrecorded_s[self._name] = judgement.device_s
            why = failure_reason(judgement.evaluation)
            raise JudgeUnable(f"the judge failed twice on {self._name}, the last time with: {why}")
        await self._recorder.record_durable(
            AttemptJudged(attempt=self._name, evaluation=judgement.evaluation, device_s=judgement.device_s)
        )
        if judgement.spent is not None:
            raise judgement.spent

    # The agent

    @asynccontextmanager
    async def agent(self) -> AsyncIterator[None]:
        """See `Context`."""
        try:
            yield
            await self._await_farewell()
        except asyncio.CancelledError:
            if self._begun:
                self._agent.record_spending(self._name)
            raise
        finally:
            await self._agent.close()

    async def judge_sent(self) -> bool:
        """See `Context`. The judging of a candidate that the agent withdraws is cancelled.

        `ModelError` if the agent's program ended with an error.
        """
        await self.settle()
        state, place = self._recorder.state, self._last
        await self._listen(place)
        waiting = state.sent_to(self.key)[place:]
        if not waiting:
            await self._await_farewell()
            if self._last > place == 0:
                await self.abandon("the agent sent no candidate")
            if self.key not in state.left:
                self._agent.check_end()
            return False
        sent = waiting[0]
        recorded = self._recorded(place + 1)
        if recorded is None or recorded.proposed is None:
            await self._shared.until_released(self.key)
        if self._last == place:
            self._heard = sent.heard
            await self.attempt(Origin.AGENT, None)
        attempt = self._name
        judging = self.judge(sent.source, sent.strategy)
        if await run_until(judging, lambda: attempt in state.withdrawn, self._shared.changes) is None:
            await self.abandon("the agent withdrew it")
        return True

    async def _listen(self, place: int) -> None:
        """Wait for the candidate after `place`, or for the end of the agent's work.

        If the engine started the agent, the next attempt begins with the agent's first words after a verdict, and has them as a
        call of a model.
        """
        agent, state, changes = self._agent, self._recorder.state, self._shared.changes

        def is_over() -> bool:
            return len(state.sent_to(self.key)) > place or self.key in state.left

        if agent.program is not None and not (agent.runs or agent.has_ended or is_over()):
            await self._shared.until_released(self.key)
            await self._start_agent()
        with suppress(TimeoutError):
            async with asyncio.timeout(AGENT_SILENT_S):
                await changes.until(lambda: is_over() or agent.has_output or agent.has_ended)
        if agent.has_output and self.key not in state.left:
            await self._shared.until_released(self.key)
            judged_seq = max((attempt.judged_seq for attempt in self._attempts), default=0)
            # The last answer had what a person said until then.
            self._heard = max((word.seq for word in state.commands if word.seq <= judged_seq), default=0)
            await self.attempt(Origin.AGENT, None)
            await agent.report(self._name, is_over, limit_s=AGENT_SILENT_S)

    async def _start_agent(self) -> None:
        """Start the agent's program with what is known: the task, its earlier attempts, the best code."""
        state = self._recorder.state
        best = best_of_agent(state, self.key)
        used = len(state.sent_to(self.key))
        assert self._agent.program is not None
        prompt = agent_prompt(
            await setting_of(self),
            session=self._recorder.files.session,
            best=best,
            used=used,
            remaining=self.iterations - used,
            has_tools=self._agent.program.has_mcp,
        )
        await self._agent.begin(prompt, best)

    async def _await_farewell(self) -> None:
        """Wait a while for the end of the agent's program; its last words become a call of the latest attempt."""
        ends = time.monotonic() + FAREWELL_S
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_S):
                await self._shared.changes.until(lambda: self._agent.has_output or not self._agent.runs)
        if self._begun and (self._agent.has_output or self._agent.has_spending):
            self._fresh = True
            await self._agent.report(self._name, lambda: False, limit_s=max(0.0, ends - time.monotonic()))

    # The person

    async def review(self, best: Evaluation | None = None) -> Review:
        """See `Context`."""
        if not (self._attempt.held or (self._waits_for_person and self._is_better_than(best))):
            return Review(accepted=True)
        if self._decision is None:
            await self.settle()
        # During the commit, a person may have decided, and with the review `first` another attempt may have begun to wait.
        if self._decision is None and not self._attempt.waiting:
            if not (self._attempt.held or self._waits_for_person):
                return Review(accepted=True)
            self._recorder.record(WaitingForPerson(attempt=self._name))
        await self._shared.changes.until(lambda: self._decision is not None)
        assert self._decision is not None
        return Review(self._decision.accepted, self._decision.why)

    @property
    def _waits_for_person(self) -> bool:
        """True if a better attempt waits for a decision: with the review `first`, only one attempt of the session does."""
        review = self._shared.plan.review
        return review == "manual" or (
            review == "first" and not any(attempt.held for attempt in self._recorder.state.attempts())
        )

    @property
    def _decision(self) -> DecisionMade | None:
        """The first decision about the attempt. A later one changes only what is accepted, so a resume makes the same steps."""
        made = (command for command in self._recorder.state.commands if isinstance(command, DecisionMade))
        return next((decision for decision in made if decision.attempt == self._name), None)

    def _is_better_than(self, best: Evaluation | None) -> bool:
        evaluation = self._attempt.evaluation
        return best is None or evaluation is None or rank(evaluation) > rank(best)
