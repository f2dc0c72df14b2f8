"""The seam between a method and the engine: all that an instance may ask for.

A method is plain sequential code against a `Context`. It must be deterministic given the context's answers: a resumed
session runs it again from the start, and what the journal holds is answered from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from engine.models import Reply
from engine.retrieval import Corpus
from harness import Effort, Evaluation, Target
from harness.hardware.product import Product
from sessions.events import (
    AttemptSwept,
    EndReason,
    Message,
    MethodOptions,
    Origin,
    Role,
    SweepRung,
    SweptVariant,
)
from suites import Task

MODULES = ("knowledge", "one-shot", "optimizer", "reflection")
"""What `--without` can switch off, each in the methods that have it."""


class Review(msgspec.Struct, frozen=True):
    """What a person said about a correct candidate."""

    accepted: bool
    why: str = ""


class Context(Protocol):
    """One instance's access to model, judge and person. Errors that end an instance pass through the method."""

    task: Task
    targets: tuple[Target, ...]
    """What launches are compiled for; the first can fail a candidate on device `cpu`."""
    device: str
    """Where candidates are judged."""
    product: Product | None
    """What all devices are that candidates are judged on; `None` for `cpu`, and where that is not known."""
    corpus: Corpus
    """Kernels that may be shown as an example."""
    iterations: int
    options: MethodOptions

    def start(self) -> str:
        """The kernel that a method begins with which writes none: the one that a person named, else the timing baseline."""
        ...

    async def sweep(self, attempt: str, *, most: int) -> AttemptSwept:
        """What a sweep over the launch parameters of a judged attempt finds, at most `most` variants."""
        ...

    async def rung(
        self, attempt: str, variants: Sequence[SweptVariant], *, number: int, effort: Effort, most: int
    ) -> SweepRung:
        """What few samples say of these variants beside the attempt that a sweep varied, and which go on, at most `most`."""
        ...

    def tell(self, words: str) -> None:
        """Something that people should know of the instance."""
        ...

    def lanes(self, count: int) -> tuple[Context, ...]:
        """So many contexts of the same instance, whose attempts may be under way at once.

        Lane k (from 0) of n makes the attempts k+1, n+k+1, 2n+k+1, ... after those begun so far. This context makes no
        attempt until they have ended.
        """
        ...

    async def settle(self) -> None:
        """Nothing more is asked for the attempt under way."""
        ...

    async def abandon(self, why: str) -> None:
        """End what is under way here, after its task was cancelled: calls as `cancelled`, the attempt as counted nowhere."""
        ...

    async def attempt(self, origin: Origin, base: str | None) -> str:
        """Begin the next attempt and return its name, as `softmax#2/7`; what follows belongs to it."""
        ...

    async def ask(self, role: Role, messages: Sequence[Message]) -> Reply:
        """The model's reply to exactly these messages."""
        ...

    async def judge(self, source: str, strategy: str, *, rival: str | None, unusable: str = "") -> Evaluation:
        """Propose the attempt's candidate and have it judged; `rival` is the source of the best so far.

        Without a candidate `source` is empty and `unusable` says in a word what was wrong with the reply.
        """
        ...

    async def review(self) -> Review:
        """A person's word on the attempt just judged correct; without manual review it is accepted at once."""
        ...


class Method(Protocol):
    """How attempts are made."""

    name: str
    asks_model: bool
    """Without one, a session needs no `--model`, and one instance does what all would."""
    takes: frozenset[str]
    """Fields of `MethodOptions` that mean something to it."""
    roles: frozenset[Role]
    """As whom it asks a model; none where it asks none."""
    modules: frozenset[str]
    """Of `MODULES`, those that it can do without."""
    iterations: int | None
    """The only number of iterations that means something; `None` where it is the person's choice."""

    async def run(self, context: Context) -> EndReason:
        """Make `context.iterations` attempts, or fewer; why there are no more."""
        ...
