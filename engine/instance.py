"""One instance's access to model, judge and person, recorded as it happens and answered from the journal where it happened.

A resumed session runs each method again from the start. What the journal holds - finished replies, candidates, verdicts,
decisions - is given back without a new event; the first thing it does not hold is done for real. So no finished reply is
asked for twice and no verdict is lost, in whatever moment the engine ended.
"""

from __future__ import annotations

import copy
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from engine.errors import ContextTooLong, JudgeUnable, ModelError
from engine.estimating import estimate_all
from engine.evaluating import NO_VERDICT, abandoned, evaluated, why_not
from engine.judging import own_product, own_target
from engine.methods import Review
from engine.models import CallKey, Reply, Request, Retry, ask
from engine.plan import read_start
from engine.shared import Shared
from engine.streaming import PieceBatches
from engine.tuning import RANKED_BY, decided, sweep
from harness import Effort, Evaluation
from harness.stages.timing.baselines import Baseline
from sessions.events import (
    AttemptJudged,
    AttemptStarted,
    AttemptSwept,
    CallFailed,
    CallFinished,
    CallRetried,
    CallStarted,
    CandidateProposed,
    Message,
    Notice,
    Origin,
    Role,
    SweepRung,
    SweepStarted,
    SweptVariant,
    WaitingForPerson,
)
from sessions.names import attempt_name, call_name, instance_key
from sessions.state import AttemptState, CallState
from suites import Task
from suites.loader import baseline_source

TEMPERATURE = 1.0
"""GEAK's: parallel instances must differ."""


class InstanceContext:
    """The `Context` of one instance, or of one of its lanes.

    An attempt is committed when the next begins, or a person is waited for.
    """

    def __init__(self, shared: Shared, task: Task, instance: int) -> None:
        self.task = task
        self.targets = shared.targets
        self.corpus = shared.corpus
        self.device = shared.judge.devices[0].name
        self.product = own_product(shared.judge.devices)
        self.iterations = shared.plan.iterations
        self.options = shared.plan.options
        self.key = instance_key(task.id, instance)
        self._shared = shared
        self._recorder = shared.recorder
        self._chain = shared.plan.first_chain + instance - 1
        self._number = 0
        self._step = 1
        """From one attempt here to the next: as many as there are lanes."""
        self._begun = False
        """Whether an attempt is under way."""
        self._lanes: tuple[InstanceContext, ...] = ()
        self._tuned = 0
        """Attempts that asked no model, and so are none to a recording."""
        self._asked: Counter[Role] = Counter()
        self._passed: dict[str, Evaluation] = {}
        """What the rungs of the sweep under way said of variants that were right, by source."""
        self._fresh = False
        """Whether the attempt has something that its commit may lack."""

    @property
    def _name(self) -> str:
        return attempt_name(self.key, self._number)

    @property
    def _attempt(self) -> AttemptState:
        return self._recorder.state.attempt(self._name)

    async def attempt(self, origin: Origin, base: str | None) -> str:
        """See `Context`."""
        await self.settle()
        self._number = self._last + self._step
        self._lanes = ()
        self._begun = True
        self._fresh = False
        self._tuned += origin is Origin.TUNE
        self._asked.clear()
        instance = self._recorder.state.instances.get(self.key)
        if instance is None or all(known.number != self._number for known in instance.attempts):
            self._recorder.record(AttemptStarted(attempt=self._name, origin=origin, base=base))
        return self._name

    @property
    def _last(self) -> int:
        """The highest number of an attempt begun here or in a lane."""
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
        self._number, self._lanes = last, lanes
        return lanes

    async def settle(self) -> None:
        """See `Context`; the attempt is committed once it is judged."""
        # One that was abandoned before it had a candidate is in the journal alone.
        if not self._begun or self._attempt.evaluation is None or self._attempt.source is None:
            return
        if self._fresh or self._attempt.commit is None:
            await self._recorder.commit_attempt(self._name)
            self._fresh = False

    async def close(self) -> None:
        """The instance is over: settle all that is under way in it."""
        for context in (*self._lanes, self):
            await context.settle()

    async def abandon(self, why: str) -> None:
        """See `Context`."""
        if not self._begun:
            return
        for call in self._attempt.calls:
            if not call.finished and not call.failed:
                await self._recorder.record_durable(
                    CallFailed(call=call.call, reason="cancelled", message=why)
                )
        if self._attempt.evaluation is not None:
            return
        await self._recorder.record_durable(
            AttemptJudged(attempt=self._name, evaluation=abandoned(self.task.id, self.device, why))
        )
        await self.settle()

    def start(self) -> str:
        """See `Context`. `UsageProblem` when the file that was named is gone and the journal does not hold it."""
        instance = self._recorder.state.instances.get(self.key)
        first = next((known for known in instance.attempts if known.number == 1), None) if instance else None
        if first is not None and first.source:
            return first.source
        return read_start(Path(self.options.start)) if self.options.start else baseline_source(self.task)

    async def sweep(self, attempt: str, *, most: int) -> AttemptSwept:
        """See `Context`. `HarnessError` when the judge cannot compile."""
        swept = self._recorder.state.attempt(attempt)
        if swept.sweep is not None:
            return swept.sweep
        await self.settle()
        self._recorder.record(SweepStarted(attempt=attempt))
        compiled_for = own_target(self._shared.judge.devices, self.targets)
        began = time.monotonic()
        found = await sweep(
            swept.source or "", self.task.id, compiled_for, self._shared.judge.survey(self.task), most=most
        )
        return await self._recorder.record_durable(
            AttemptSwept(
                attempt=attempt,
                target=compiled_for.name,
                tried=found.tried,
                pruned=found.pruned,
                ranked_by=RANKED_BY,
                variants=found.variants,
                seconds=time.monotonic() - began,
            )
        )

    async def rung(
        self, attempt: str, variants: Sequence[SweptVariant], *, number: int, effort: Effort, most: int
    ) -> SweepRung:
        """See `Context`. `JudgeUnable` when the judge can say nothing of any."""
        swept = self._recorder.state.attempt(attempt)
        # An attempt is swept twice where the first half of the attempts brought nothing better: of other variants then.
        asked = {variant.changes for variant in variants}
        for known in swept.rungs:
            same = {entry.changes for entry in known.entries} == asked
            if same and (known.rung, known.pairs) == (number, effort.pairs):
                return msgspec.structs.replace(known, entries=decided(known.entries, most))
        start = Baseline(attempt, swept.source or "")
        if number == 1:
            self._passed.clear()
        self._recorder.record(SweepStarted(attempt=attempt))
        told = await estimate_all(
            self._shared,
            self.task,
            start,
            variants,
            rung=number,
            effort=effort,
            most=most,
            passed=self._passed,
        )
        return await self._recorder.record_durable(told)

    def tell(self, words: str) -> None:
        """See `Context`; said once."""
        if ("info", words) not in self._recorder.state.notices:
            self._recorder.record(Notice(level="info", message=words))

    # The model

    async def ask(self, role: Role, messages: Sequence[Message]) -> Reply:
        """See `Context`. `ModelError` when no reply will come, `BudgetSpent` when none may be asked for."""
        self._asked[role] += 1
        number = self._asked[role]
        name = call_name(self._name, role, number)
        known = next((call for call in self._attempt.calls if call.call == name and call.finished), None)
        if known is not None:
            self._compare(known, messages)
            return _reply(known)
        if any(call.call == name and call.too_long for call in self._attempt.calls):
            raise ContextTooLong("it was too long before")
        async with self._shared.calls:
            self._shared.budget.check()
            return await self._ask(
                name, CallKey(self.task.id, self._chain, self._number - self._tuned, role, number), messages
            )

    async def _ask(self, name: str, key: CallKey, messages: Sequence[Message]) -> Reply:
        self._fresh = True
        client, record = self._shared.clients[key.role], self._recorder.record
        record(
            CallStarted(
                call=name, attempt=self._name, role=key.role, model=client.model, messages=tuple(messages)
            )
        )
        batches = PieceBatches(name, record)

        def retried(retry: Retry) -> None:
            batches.drop()
            record(
                CallRetried(
                    call=name, reason=retry.reason, message=retry.message, wait_s=retry.wait_s, retry=retry.n
                )
            )

        request = Request(key=key, messages=tuple(messages), temperature=TEMPERATURE)
        try:
            reply = await ask(
                client, request, on_piece=batches.add, on_retry=retried, limits=self._shared.plan.limits
            )
            batches.flush()
        except ModelError as error:
            await self._recorder.record_durable(
                CallFailed(call=name, reason=error.reason, message=error.message)
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
                cost_usd=self._shared.budget.spend(client.model, reply.usage),
                seconds=reply.seconds,
                temperature=reply.temperature,
            )
        )
        # As it can be read back: what is built on it now is built on the same words after a resume.
        return Reply(
            text=finished.text,
            reasoning=finished.reasoning,
            stop_reason=finished.stop_reason,
            usage=finished.usage,
            seconds=finished.seconds,
            temperature=finished.temperature,
        )

    def _compare(self, known: CallState, messages: Sequence[Message]) -> None:
        if known.messages == tuple(messages) or self._shared.prompts_changed:
            return
        self._shared.prompts_changed = True
        words = (
            f"the prompt of {known.call} is built differently now; replies that the journal holds still count"
        )
        self._recorder.record(Notice(level="warning", message=words))

    # The judge

    async def judge(self, source: str, strategy: str, *, rival: str | None, unusable: str = "") -> Evaluation:
        """See `Context`. A judge that fails is tried once more; `JudgeUnable` when it fails again."""
        if self._attempt.source is None:
            self._fresh = True
            await self._recorder.record_durable(
                CandidateProposed(attempt=self._name, source=source, strategy=strategy, unusable=unusable)
            )
        known = self._attempt.evaluation
        if known is not None and known.verdict not in NO_VERDICT:
            return known
        self._fresh = True
        evaluation = await self._judge(self._attempt.source or "", rival)
        judged = await self._recorder.record_durable(AttemptJudged(attempt=self._name, evaluation=evaluation))
        return judged.evaluation

    async def _judge(self, source: str, rival: str | None) -> Evaluation:
        """An evaluation with a verdict on the candidate, not on the judge."""
        evaluation = await evaluated(self._shared, self.task, self._name, source, rival=rival)
        if evaluation.verdict in NO_VERDICT:
            raise JudgeUnable(
                f"the judge failed twice on {self._name}, the last time with: {why_not(evaluation)}"
            )
        return evaluation

    # The person

    async def review(self) -> Review:
        """See `Context`."""
        if self._shared.plan.review == "auto":
            return Review(accepted=True)
        decision = self._shared.decisions.about(self._name)
        if decision is None:
            await self.settle()
            if not self._attempt.waiting:
                self._recorder.record(WaitingForPerson(attempt=self._name))
            decision = await self._shared.decisions.wait(self._name)
        return Review(decision.accepted, decision.why)


def _reply(call: CallState) -> Reply:
    return Reply(
        text=call.text,
        reasoning=call.reasoning,
        stop_reason=call.stop_reason,
        usage=call.usage,
        seconds=call.seconds or 0.0,
        temperature=call.temperature,
    )
