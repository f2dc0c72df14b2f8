"""The interface between a method and the engine: all requests that an instance may make.

A method is plain sequential code that uses a `Context`. It must be deterministic, given the context's answers: a
resumed session runs the method again from the start and answers from the journal.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import msgspec

from engine.corpus.retrieval import Corpus
from engine.models import Reply
from engine.prompting.baseline_facts import BaselineFacts
from engine.tuning.rungs import PlannedRung
from harness import Evaluation, Target
from harness.hardware.product import Product
from harness.wire.messages.server import Language
from sessions.events import AttemptSwept, EndReason, Message, Orders, Origin, Role, SweepRung, SweptVariant
from sessions.settings import MethodOptions
from sessions.state.state import AttemptState
from suites import Task


class Review(msgspec.Struct, frozen=True):
    """A person's decision about a correct candidate."""

    accepted: bool
    why: str = ""


class Start(msgspec.Struct, frozen=True):
    """The kernel that an instance starts from."""

    source: str
    origin: Origin
    strategy: str
    """Where it comes from."""
    base: str | None = None
    """The attempt from which it is derived."""


class ReadyCandidate(msgspec.Struct, frozen=True, omit_defaults=True):
    """A candidate that exists before the session: a prediction, or an attempt of another session."""

    source: str
    origin: Origin = Origin.FRESH
    strategy: str = ""
    attempt: str = ""
    """Its name in the other session; empty for a prediction."""
    base: str | None = None
    """The attempt of the other session from which it was derived."""
    unusable: str = ""
    """Why there is no code; empty if there is."""


class Context(Protocol):
    """One instance's access to model, judge and person. Errors that end an instance pass through the method."""

    task: Task
    targets: tuple[Target, ...]
    """Targets that launches are compiled for; on device `cpu` only the first can fail a candidate."""
    device: str
    """The device on which candidates are judged."""
    product: Product | None
    """The product of all devices; `None` for `cpu`, or if unknown."""
    language: Language | None
    """Names that the installed Triton has and lacks; `None` if unknown."""
    corpus: Corpus
    """Kernels that may be shown as an example."""
    iterations: int
    """All attempts that the instance may make."""
    phases: tuple[int, ...]
    """The same by origin: first those of the plan, then those of each extension by a person."""
    options: MethodOptions
    candidates: tuple[ReadyCandidate, ...]
    """The candidates that the instance judges, if they exist before the session."""
    words: tuple[str, ...]
    """What a person says to the current attempt, one line each; part of its prompts."""

    async def baseline(self) -> BaselineFacts:
        """Returns the kernel that candidates are timed against; on a GPU it is timed first."""

    def start(self) -> Start | None:
        """Returns the kernel that a person gave for the first attempt; `None` if there is none."""

    async def orders(self) -> Orders:
        """Returns a person's orders for the next attempt, or the next round of lanes; call it right before."""

    async def sweep(self, attempt: str, *, most: int) -> AttemptSwept:
        """Sweep the launch parameters of a judged attempt; returns at most `most` variants."""

    async def rung(self, attempt: str, variants: Sequence[SweptVariant], rung: PlannedRung) -> SweepRung:
        """Estimate variants of a swept attempt from few samples."""

    def notify(self, words: str) -> None:
        """Add a notice to the session's events, for the person who watches this instance; models never see it."""

    def lanes(self, count: int) -> tuple[Context, ...]:
        """Returns `count` contexts of the same instance; their attempts may run at the same time.

        Lane k (from 0) of n makes the attempts k+1, n+k+1, 2n+k+1, ... after the last attempt so far. This context
        makes no attempt until the lanes have ended.
        """

    async def settle(self) -> None:
        """Declare the current attempt complete: nothing more is requested for it."""

    async def abandon(self, why: str) -> None:
        """End the current attempt after its task was cancelled.

        Open calls end as `cancelled`; no metric counts the attempt.
        """

    async def attempt(self, origin: Origin, base: str | None) -> str:
        """Begin the next attempt and return its name, for example `softmax#2/7`. Later requests belong to it."""

    async def ask(self, role: Role, messages: Sequence[Message]) -> Reply:
        """Returns the model's reply to exactly these messages."""

    async def judge(self, source: str, strategy: str, *, unusable: str = "") -> AttemptState:
        """Propose the attempt's candidate and return the attempt with its verdict.

        Without a candidate `source` is empty and `unusable` names what was wrong with the reply.
        """

    def agent(self) -> AbstractAsyncContextManager[None]:
        """Within the block, `judge_sent` runs the program of the agent, if the engine starts it; its end is awaited."""

    async def judge_sent(self) -> bool:
        """Make an attempt of the next candidate that an agent sends; waits for it. False: the agent sends no other one."""

    async def review(self, best: Evaluation | None = None) -> Review:
        """Returns a person's decision on the correct attempt, whose method's best so far is `best`.

        Without manual review, and if it is not better than `best`, it is accepted at once.
        """


class Method(Protocol):
    """How attempts are made."""

    name: str
    asks_model: bool
    """If False, a session needs no `--model` and has one instance, because all instances would do the same."""
    takes: frozenset[str]
    """Fields of `MethodOptions` that the method uses."""
    roles: frozenset[Role]
    """Roles in which it asks a model; empty if it asks none."""
    modules: frozenset[str]
    """The `MODULES` that can be switched off in it."""
    iterations: int | None
    """The only allowed number of iterations; `None` if the person chooses it."""

    def run(self, context: Context) -> Coroutine[Any, Any, EndReason]:
        """Make at most `context.iterations` attempts; returns the reason for the end."""
