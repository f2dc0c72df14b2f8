"""An instance's world in a few lines: the method under test is asked nothing it would not ask the real one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.methods import Review
from engine.models import Reply
from engine.retrieval import Corpus
from harness import Evaluation, Target, target
from sessions.events import Message, MethodOptions, Origin, Role
from suites import load_task

from .engines import ToldJudge, answer_of


@dataclass
class Told:
    """One attempt as the method made it."""

    name: str
    origin: Origin
    base: str | None
    calls: list[tuple[Role, tuple[Message, ...]]] = field(default_factory=list)
    evaluation: Evaluation | None = None
    rival: str | None = None
    reviewed: bool = False

    @property
    def prompt(self) -> str:
        """What the first call of the attempt asked."""
        return self.calls[0][1][-1].content


class ScriptedContext:
    """A `Context` whose attempt n ends with verdict n: a verdict of `ToldJudge`, `prose`, or `turned_down` by a person."""

    def __init__(
        self, *verdicts: str, why: str = "too clever", options: MethodOptions | None = None
    ) -> None:
        self.task = load_task("vector_add")
        self.targets: tuple[Target, ...] = (target("gfx942"),)
        self.device = "cpu"
        self.corpus = Corpus(())
        self.iterations = len(verdicts)
        self.options = options or MethodOptions()
        self.attempts: list[Told] = []
        self._verdicts = verdicts
        self._why = why
        self._judge = ToldJudge()

    @property
    def _verdict(self) -> str:
        return self._verdicts[len(self.attempts) - 1]

    async def attempt(self, origin: Origin, base: str | None) -> str:
        """See `Context`."""
        name = f"vector_add#1/{len(self.attempts) + 1}"
        self.attempts.append(Told(name, origin, base))
        return name

    async def ask(self, role: Role, messages: Sequence[Message]) -> Reply:
        """See `Context`."""
        self.attempts[-1].calls.append((role, tuple(messages)))
        mark = f"{len(self.attempts)}.{len(self.attempts[-1].calls)}"
        if role is Role.REFLECTOR:
            return Reply(text=f"Cause {mark}.")
        verdict = "correct" if self._verdict == "turned_down" else self._verdict
        return Reply(text=answer_of(verdict, mark))

    async def judge(self, source: str, strategy: str, *, rival: str | None, unusable: str = "") -> Evaluation:
        """See `Context`."""
        self.attempts[-1].rival = rival
        evaluation = await self._judge.evaluate(source, self.task, rival=rival, on_stage=_ignore)
        self.attempts[-1].evaluation = evaluation
        return evaluation

    async def review(self) -> Review:
        """See `Context`."""
        self.attempts[-1].reviewed = True
        turned_down = self._verdict == "turned_down"
        return Review(accepted=not turned_down, why=self._why if turned_down else "")


def _ignore(_: object) -> None:
    """Nobody watches the stages."""
