"""Scripted `Context` for tests of methods: verdicts come from a list, no engine and no judge run."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from engine.corpus.retrieval import Corpus
from engine.methods import Review, Start
from engine.models import Reply
from engine.models.client import cut_at
from engine.prompting.baseline_facts import BaselineFacts
from engine.tuning.rungs import PlannedRung
from harness import Evaluation, Target, target
from harness.hardware.product import Product
from sessions.events import AttemptSwept, Message, Orders, Origin, Role, SweepRung, SweptVariant
from sessions.settings import MethodOptions
from sessions.state.state import AttemptState
from suites import load_task
from tests.support.judge.judged_attempts import judged_attempt

from .engines import ScriptedJudge, answer_of

FAILING = ("wrong", "call_error", "compile_error", "rejected", "timeout", "crash", "unsupported", "prose")
VERDICTS = st.one_of(
    st.sampled_from((*FAILING, "turned_down", "correct")),
    st.integers(-75, 75).map(lambda step: f"correct {1.03**step:.4f}"),
)
"""Speedups differ by 3 % or not at all: within 1 % attempts tie."""


@dataclass
class ScriptedAttempt:
    """Attempt as the method made it."""

    name: str
    origin: Origin
    base: str | None
    calls: list[tuple[Role, tuple[Message, ...]]] = field(default_factory=list)
    unusable: str = ""
    evaluation: Evaluation | None = None
    reviewed: bool = False
    judged_before: list[frozenset[int]] = field(default_factory=list)
    """For each call: numbers of the attempts that were judged before the call."""

    @property
    def prompt(self) -> str:
        """Prompt of the first call of the attempt."""
        return self.calls[0][1][-1].content

    @property
    def roles(self) -> list[Role]:
        return [role for role, _ in self.calls]


@dataclass
class World:
    """State that the lanes of one instance share."""

    verdicts: tuple[str, ...]
    why: str
    judge: ScriptedJudge = field(default_factory=ScriptedJudge)
    attempts: dict[int, ScriptedAttempt] = field(default_factory=dict)
    """Attempts by number."""
    abandoned: list[str] = field(default_factory=list)
    most_at_once: int = 0
    """Highest number of attempts that ran at the same time."""
    under_way: int = 0


class ScriptedContext:
    """`Context` whose attempt n ends with verdict n.

    A verdict is a verdict of `ScriptedJudge`, `prose`, `endless` (the client cuts the reply), or `turned_down` (rejected by a
    person).
    """

    def __init__(self, *verdicts: str, why: str = "too clever", options: MethodOptions | None = None) -> None:
        self.task = load_task("vector_add")
        self.targets: tuple[Target, ...] = (target("gfx942"),)
        self.device = "cpu"
        self.product: Product | None = None
        self.language = None
        self.corpus = Corpus(())
        self.iterations = len(verdicts)
        self.phases: tuple[int, ...] = (len(verdicts),)
        self.options = options or MethodOptions()
        self.words: tuple[str, ...] = ()
        self.given = Orders()
        """The orders of a person."""
        self.world = World(verdicts, why)
        self._number, self._step = 0, 1

    @property
    def attempts(self) -> list[ScriptedAttempt]:
        """Attempts in the order of their numbers."""
        return [attempt for _, attempt in sorted(self.world.attempts.items())]

    @property
    def _attempt(self) -> ScriptedAttempt:
        return self.world.attempts[self._number]

    @property
    def _verdict(self) -> str:
        return self.world.verdicts[self._number - 1]

    def lanes(self, count: int) -> tuple[ScriptedContext, ...]:
        """See `Context`."""
        last = max(self.world.attempts, default=0)
        lanes = tuple(copy.copy(self) for _ in range(count))
        for index, lane in enumerate(lanes):
            lane._number, lane._step = last + index + 1 - count, count
        return lanes

    async def settle(self) -> None:
        """See `Context`."""

    async def abandon(self, why: str) -> None:
        """See `Context`."""
        self.world.abandoned.append(self._attempt.name)

    async def baseline(self) -> BaselineFacts:
        """See `Context`."""
        return BaselineFacts()

    def start(self) -> Start | None:
        """See `Context`."""
        return None

    async def orders(self) -> Orders:
        """See `Context`."""
        return self.given

    async def sweep(self, attempt: str, *, most: int) -> AttemptSwept:
        """See `Context`."""
        raise NotImplementedError

    async def rung(self, attempt: str, variants: Sequence[SweptVariant], rung: PlannedRung) -> SweepRung:
        """See `Context`."""
        raise NotImplementedError

    def notify(self, words: str) -> None:
        """See `Context`."""
        raise NotImplementedError

    async def attempt(self, origin: Origin, base: str | None) -> str:
        """See `Context`."""
        last = max(self.world.attempts, default=0) if self._step == 1 else self._number
        self._number = last + self._step
        name = f"vector_add#1/{self._number}"
        self.world.attempts[self._number] = ScriptedAttempt(name, origin, base)
        return name

    async def ask(self, role: Role, messages: Sequence[Message]) -> Reply:
        """See `Context`."""
        self._attempt.calls.append((role, tuple(messages)))
        judged = (number for number, attempt in self.world.attempts.items() if attempt.evaluation is not None)
        self._attempt.judged_before.append(frozenset(judged))
        self.world.under_way += 1
        self.world.most_at_once = max(self.world.most_at_once, self.world.under_way)
        await asyncio.sleep(0)
        self.world.under_way -= 1
        mark = f"{self._number}.{len(self._attempt.calls)}"
        if role is Role.REFLECTOR:
            return Reply(text=f"Cause {mark}.")
        verdict = "correct" if self._verdict == "turned_down" else self._verdict
        return Reply(text=answer_of(verdict, mark), stop_reason=cut_at(9) if verdict == "endless" else "end")

    async def judge(self, source: str, strategy: str, *, unusable: str = "") -> AttemptState:
        """See `Context`."""
        self._attempt.unusable = unusable
        evaluation = await self.world.judge.evaluate(source, self.task, on_stage=_ignore)
        self._attempt.evaluation = evaluation
        return judged_attempt(evaluation, self._attempt.name, source, strategy)

    async def review(self, best: Evaluation | None = None) -> Review:
        """See `Context`."""
        self._attempt.reviewed = True
        turned_down = self._verdict == "turned_down"
        return Review(accepted=not turned_down, why=self.world.why if turned_down else "")


def _ignore(_: object) -> None:
    pass
