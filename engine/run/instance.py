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
from collections.abc import Sequence
from pathlib import Path

import msgspec

from engine.errors import BudgetSpent, ContextTooLong, JudgeUnable, ModelError, StopRuleMet
from engine.judge.baseline_timing import known_baseline
from engine.judge.estimating import estimate_all
from engine.judge.evaluating import NO_VERDICT, cancelled_evaluation, evaluate_attempt, failure_reason
from engine.judge.judging import own_product, own_target
from engine.methods import Review, Start
from engine.methods.orders import Orders, Span, last_command, orders_until, words_for
from engine.models import CallKey, Client, Reply, Request, Retry, ask
from engine.plan.budget import Reservation
from engine.plan.plan import read_start
from engine.prompting.baseline_facts import BaselineFacts
from engine.reply.streaming import PieceBatches
from engine.run.allocating import HOPELESS, best_receiver, is_hopeless
from engine.run.shared import Shared
from engine.run.stop_rules import stop_of
from engine.tuning import RANKED_BY, mark_kept, sweep
from harness import Effort, Evaluation
from harness.stages.timing.baselines import Baseline
from sessions.events import (
    UNASKED,
    AttemptJudged,
    AttemptStarted,
    AttemptSwept,
    CallFailed,
    CallFinished,
    CallRetried,
    CallStarted,
    CandidateProposed,
    EndReason,
    Message,
    Notice,
    Origin,
    Role,
    SessionExtended,
    SweepRung,
    SweepStarted,
    SweptVariant,
    Usage,
    WaitingForPerson,
)
from sessions.names import attempt_name, call_name, instance_key
from sessions.state.ranking import rank
from sessions.state.state import AttemptState, CallState, InstanceState
from suites import Task

TEMPERATURE = 1.0
"""GEAK's value: parallel instances must differ."""
PERHAPS_BILLED = ("cut", "silent")
"""Reasons of a failed try after which the provider may have made a part of the reply, even if no piece came."""


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
        self.options = shared.plan.options
        self.words: tuple[str, ...] = ()
        self.key = instance_key(task.id, instance)
        self.phases = shared.recorder.state.phases(self.key)
        self.iterations = sum(self.phases)
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
        self._judging: dict[str, asyncio.Lock] = {}
        """By source, held while it is judged; all lanes share it."""
        self._fresh = False
        """True if the attempt has data that its commit may lack."""

    @property
    def is_extended(self) -> bool:
        """True if a person gave the instance more iterations after this context was created."""
        return self._recorder.state.phases(self.key) != self.phases

    @property
    def _name(self) -> str:
        return attempt_name(self.key, self._number)

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
        span = Span(self.key, after=after, until=heard)
        self.words = words_for(self._recorder.state, span)
        return self._name

    def _check_start(self) -> None:
        """Raise `StopRuleMet` or `BudgetSpent` if no other attempt may begin.

        Stop rules end with the first extension: a person asked for more attempts.
        """
        instance = self._recorder.state.instances.get(self.key)
        stop = stop_of(self._shared.plan.stop, instance.attempts if instance else (), lanes=self._step)
        if stop is not None and not self._is_extended_by_a_person:
            raise StopRuleMet(stop.reason, stop.why)
        self._check_hope(instance)
        instances = self._recorder.state.instances.values()
        self._shared.budget.check_attempt(sum(len(instance.attempts) for instance in instances))

    def _check_hope(self, instance: InstanceState | None) -> None:
        """Raise `StopRuleMet` if the session gives the iterations of this hopeless task to another task."""
        state = self._recorder.state
        if self._shared.plan.allocate != "best" or instance is None or not is_hopeless(state, self.task.id):
            return
        if best_receiver(state, instance) is not None:
            raise StopRuleMet(
                EndReason.HOPELESS, f"{HOPELESS} attempts of {self.task.short_id}, none correct"
            )

    @property
    def _is_extended_by_a_person(self) -> bool:
        return any(isinstance(more, SessionExtended) for more in self._recorder.state.extensions)

    async def _until_released(self) -> None:
        """Wait while a person pauses the instance or the session."""
        await self._shared.changes.until(lambda: not self._recorder.state.is_on_hold(self.key))

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
                await self._until_released()
            self._heard = last_command(self._recorder.state) if recorded is None else recorded.heard
        return self._heard

    def _next_recorded(self) -> AttemptState | None:
        """Returns the next attempt of this context, or of lanes that it will create, if the journal has it."""
        instance = self._recorder.state.instances.get(self.key)
        attempts = instance.attempts if instance is not None else []
        if self._step > 1:
            return self._recorded(self._number + self._step)
        return next((attempt for attempt in attempts if attempt.number > self._last), None)

    def _recorded(self, number: int) -> AttemptState | None:
        """Returns the attempt of this number; `None` if the journal has none."""
        instance = self._recorder.state.instances.get(self.key)
        attempts = instance.attempts if instance is not None else ()
        return next((attempt for attempt in attempts if attempt.number == number), None)

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
        if not self._begun or self._attempt.evaluation is None or self._attempt.source is None:
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
            if context._begun and (context._attempt.calls or context._attempt.source is not None):
                await context.abandon(why)

    async def abandon(self, why: str) -> None:
        """See `Context`."""
        if self._begun:
            await self._abandon(self._attempt, why)
            await self.settle()

    async def abandon_all(self, why: str) -> None:
        """End every attempt of the instance that is in progress, also attempts that an earlier engine began."""
        instance = self._recorder.state.instances.get(self.key)
        for attempt in instance.attempts if instance is not None else ():
            await self._abandon(attempt, why)

    async def _abandon(self, attempt: AttemptState, why: str) -> None:
        for call in attempt.calls:
            if call.live:
                await self._recorder.record_durable(
                    CallFailed(call=call.call, reason="cancelled", message=why, billed=True)
                )
        if attempt.evaluation is None:
            evaluation = cancelled_evaluation(self.task.id, self.device, why)
            await self._recorder.record_durable(AttemptJudged(attempt=attempt.attempt, evaluation=evaluation))

    async def baseline(self) -> BaselineFacts:
        """See `Context`."""
        return await known_baseline(self._shared, self.task)

    def start(self) -> Start | None:
        """See `Context`. `UsageProblem` if the named file is gone and the journal does not have its source."""
        fork = self._recorder.state.forks.get(self.key)
        if fork is not None:
            origin, words = (Origin.HUMAN, "A person's edit") if fork.source else (Origin.FORK, "The kernel")
            source = fork.source or self._recorder.state.attempt(fork.base).source or ""
            return Start(source, origin, f"{words} of {fork.base}.", fork.base)
        if not self.options.start:
            return None
        first = self._recorded(1)
        recorded = first.source if first is not None else None
        source = recorded or read_start(Path(self.options.start))
        return Start(source, Origin.HUMAN, "A person's kernel.")

    async def sweep(self, attempt: str, *, most: int) -> AttemptSwept:
        """See `Context`. `HarnessError` when the judge cannot compile."""
        parent = self._recorder.state.attempt(attempt)
        if parent.sweep is not None:
            return parent.sweep
        await self.settle()
        self._recorder.record(SweepStarted(attempt=attempt))
        compiled_for = own_target(self._shared.judge.devices, self.targets)
        began = time.monotonic()
        findings = await sweep(
            parent.source or "", self.task.id, compiled_for, self._shared.judge.survey(self.task), most=most
        )
        return await self._recorder.record_durable(
            AttemptSwept(
                attempt=attempt,
                target=compiled_for.name,
                tried=findings.tried,
                pruned=findings.pruned,
                ranked_by=RANKED_BY,
                variants=findings.variants,
                seconds=time.monotonic() - began,
            )
        )

    async def rung(
        self, attempt: str, variants: Sequence[SweptVariant], *, number: int, effort: Effort, most: int
    ) -> SweepRung:
        """See `Context`. `JudgeUnable` if the judge can estimate none of the variants."""
        parent = self._recorder.state.attempt(attempt)
        # An attempt is swept twice, with other variants, if the first half of the attempts brought no better attempt.
        wanted = {variant.changes for variant in variants}
        for rung in parent.rungs:
            same = {entry.changes for entry in rung.entries} == wanted
            if same and (rung.rung, rung.pairs) == (number, effort.pairs):
                return msgspec.structs.replace(rung, entries=mark_kept(rung.entries, most))
        start = Baseline(attempt, parent.source or "")
        if number == 1:
            self._passed.clear()
        self._recorder.record(SweepStarted(attempt=attempt))
        report = await estimate_all(
            self._shared,
            self.task,
            start,
            variants,
            rung=number,
            effort=effort,
            most=most,
            passed=self._passed,
        )
        return await self._recorder.record_durable(report)

    def notify(self, words: str) -> None:
        """See `Context`. The same notice is recorded once."""
        if ("info", words) not in self._recorder.state.notices:
            self._recorder.record(Notice(level="info", message=words))

    # The model

    async def ask(self, role: Role, messages: Sequence[Message]) -> Reply:
        """See `Context`. `ModelError` if no reply comes; `BudgetSpent` if the call does not fit the budget."""
        self._asked[role] += 1
        number = self._asked[role]
        name = call_name(self._name, role, number)
        recorded = next((call for call in self._attempt.calls if call.call == name and call.finished), None)
        if recorded is not None:
            self._compare(recorded, messages)
            return _reply(recorded)
        if any(call.call == name and call.too_long for call in self._attempt.calls):
            raise ContextTooLong("the prompt was too long at an earlier try")
        key = CallKey(self.task.id, self._chain, self._number - self._unasked, role, number)
        request = Request(key=key, messages=tuple(messages), temperature=TEMPERATURE)
        client = self._shared.clients[role]
        while True:
            await self._until_released()
            reservation = await self._shared.budget.reserve(client.model, request)
            paced = self._shared.gates.paced(client, reservation.tokens)
            try:
                await paced.enter()
                if self._recorder.state.is_on_hold(self.key):
                    continue  # paused while other calls were in the way
                return await self._ask(name, paced, request, reservation)
            finally:
                await paced.close()
                self._shared.budget.release(reservation)

    async def _ask(self, name: str, client: Client, request: Request, reservation: Reservation) -> Reply:
        self._fresh = True
        role, record = request.key.role, self._recorder.record
        record(
            CallStarted(
                call=name, attempt=self._name, role=role, model=client.model, messages=request.messages
            )
        )
        batches, budget = PieceBatches(name, record), self._shared.budget

        def retried(retry: Retry) -> None:
            billed = batches.began or retry.reason in PERHAPS_BILLED
            batches.drop()
            record(
                CallRetried(
                    call=name,
                    reason=retry.reason,
                    message=retry.message,
                    wait_s=retry.wait_s,
                    retry=retry.n,
                    billed=billed,
                )
            )
            if billed:
                budget.lose(reservation)

        try:
            reply = await ask(
                client, request, on_piece=batches.add, on_retry=retried, limits=self._shared.plan.limits
            )
            batches.flush()
        except asyncio.CancelledError:
            budget.spend(reservation, client.model, Usage())
            raise
        except BudgetSpent as spent:
            await self._recorder.record_durable(CallFailed(call=name, reason="budget", message=str(spent)))
            raise
        except ModelError as error:
            billed = batches.began or error.cause in PERHAPS_BILLED
            if billed:
                budget.spend(reservation, client.model, Usage())
            await self._recorder.record_durable(
                CallFailed(
                    call=name, reason=error.reason, message=error.message, cause=error.cause, billed=billed
                )
            )
            raise
        finally:
            batches.drop()
        finished = await self._recorder.record_durable(
            CallFinished(
                call=name,
                text=reply.text,
                reasoning=reply.reasoning,
                stop_reason=reply.stop_reason,
                usage=reply.usage,
                cost_usd=budget.spend(reservation, client.model, reply.usage),
                seconds=reply.seconds,
                temperature=reply.temperature,
            )
        )
        # The event's fields, as the journal can give them back: a resume continues with the same reply.
        return Reply(
            text=finished.text,
            reasoning=finished.reasoning,
            stop_reason=finished.stop_reason,
            usage=finished.usage,
            seconds=finished.seconds,
            temperature=finished.temperature,
        )

    def _compare(self, call: CallState, messages: Sequence[Message]) -> None:
        if call.messages == tuple(messages) or self._shared.prompts_changed:
            return
        self._shared.prompts_changed = True
        words = (
            f"the prompt of {call.call} differs from the one in the journal; the recorded replies still count"
        )
        self._recorder.record(Notice(level="warning", message=words))

    # The judge

    async def judge(self, source: str, strategy: str, *, unusable: str = "") -> Evaluation:
        """See `Context`. An identical source is not judged twice: the attempt gets the earlier evaluation.

        If the judge fails, it is asked once more; `JudgeUnable` if it fails again.
        """
        if self._attempt.source is None:
            self._fresh = True
            await self._recorder.record_durable(
                CandidateProposed(attempt=self._name, source=source, strategy=strategy, unusable=unusable)
            )
        recorded = self._attempt.evaluation
        if recorded is not None and recorded.verdict not in NO_VERDICT:
            return recorded
        self._fresh = True
        proposed = self._attempt.source or ""
        # Lanes may propose the same source at the same time; the second waits for the evaluation of the first.
        async with self._judging.setdefault(_without_trailing_space(proposed), asyncio.Lock()):
            same = self._same_source(proposed)
            if same is not None and same.evaluation is not None:
                judged = AttemptJudged(
                    attempt=self._name, evaluation=same.evaluation, same_as=same.same_as or same.attempt
                )
                return (await self._recorder.record_durable(judged)).evaluation
            return await self._judge(proposed)

    def _same_source(self, source: str) -> AttemptState | None:
        """The first attempt of the instance with this source and a verdict; trailing whitespace does not count."""
        wanted = _without_trailing_space(source)
        return next(
            (
                attempt
                for attempt in self._recorder.state.instances[self.key].attempts
                if attempt.source
                and attempt.evaluation is not None
                and attempt.evaluation.verdict not in NO_VERDICT
                and _without_trailing_space(attempt.source) == wanted
            ),
            None,
        )

    async def _judge(self, source: str) -> Evaluation:
        judgement = await evaluate_attempt(self._shared, self.task, self._name, source)
        if judgement.spent is None and judgement.evaluation.verdict in NO_VERDICT:
            why = failure_reason(judgement.evaluation)
            raise JudgeUnable(f"the judge failed twice on {self._name}, the last time with: {why}")
        judged = await self._recorder.record_durable(
            AttemptJudged(attempt=self._name, evaluation=judgement.evaluation, device_s=judgement.device_s)
        )
        if judgement.spent is not None:
            raise judgement.spent
        return judged.evaluation

    # The person

    async def review(self, best: Evaluation | None = None) -> Review:
        """See `Context`."""
        if self._shared.plan.review == "auto" or not (self._attempt.held or self._is_better_than(best)):
            return Review(accepted=True)
        decision = self._shared.decisions.about(self._name)
        if decision is None:
            await self.settle()
            if not self._attempt.waiting:
                self._recorder.record(WaitingForPerson(attempt=self._name))
            decision = await self._shared.decisions.wait(self._name)
        return Review(decision.accepted, decision.why)

    def _is_better_than(self, best: Evaluation | None) -> bool:
        evaluation = self._attempt.evaluation
        return best is None or evaluation is None or rank(evaluation) > rank(best)


def _without_trailing_space(source: str) -> str:
    return "\n".join(line.rstrip() for line in source.split("\n")).rstrip()


def _reply(call: CallState) -> Reply:
    return Reply(
        text=call.text,
        reasoning=call.reasoning,
        stop_reason=call.stop_reason,
        usage=call.usage,
        seconds=call.seconds or 0.0,
        temperature=call.temperature,
    )
