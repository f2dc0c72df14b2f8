"""The objects that all instances of one engine share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.corpus.retrieval import Corpus
from engine.judge.bench import Bench
from engine.models import Client, Gates
from engine.plan.plan import SessionPlan
from engine.reply.streaming import Streams
from engine.run.person import Changes
from harness import Target
from sessions.events import Notice, Role
from sessions.store.recorder import Recorder


@dataclass(slots=True, kw_only=True)
class Shared(Bench):
    """The objects that all instances of one engine share."""

    plan: SessionPlan
    clients: Mapping[Role, Client]
    """The model of each role."""
    targets: tuple[Target, ...]
    corpus: Corpus
    gates: Gates
    """Limits the requests to each provider; separate from the judge's slots, so that both stay busy."""
    streams: Streams = field(default_factory=Streams)
    changes: Changes = field(default_factory=Changes)
    """Announces commands of a person."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """The engine's environment with keys, from which programs of agents get their own."""
    prompts_changed: bool = False
    """True if a notice about prompts that differ from the journal was recorded."""

    def raise_budget(self) -> None:
        """Raise the budget in USD by what a person added."""
        planned, added = self.plan.budget_usd, self.recorder.state.added_usd
        if planned is not None and self.budget.usd != planned + added:
            self.budget.raise_usd(planned + added)

    async def until_released(self, instance: str) -> None:
        """Wait while a person pauses the instance or the session."""
        await self.changes.until(lambda: not self.recorder.state.is_on_hold(instance))


def note_once(recorder: Recorder, level: str, words: str) -> None:
    """Record a notice, unless the session has the same one."""
    if (level, words) not in recorder.state.notices:
        recorder.record(Notice(level=level, message=words))
