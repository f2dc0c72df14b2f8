"""The objects that all instances of one engine share."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.changes import Changes
from engine.corpus.retrieval import Corpus
from engine.judging import Judge
from engine.models import Client, Gates
from engine.plan.budget import Budget
from engine.plan.plan import SessionPlan
from engine.reviewing import Decisions
from harness import Target
from sessions.events import Role
from sessions.store.recorder import Recorder


@dataclass(slots=True)
class Shared:
    """The objects that all instances of one engine share."""

    plan: SessionPlan
    recorder: Recorder
    clients: Mapping[Role, Client]
    """The model of each role."""
    judge: Judge
    budget: Budget
    targets: tuple[Target, ...]
    corpus: Corpus
    decisions: Decisions
    gates: Gates
    """Limits the requests to each provider; separate from the judge's slots, so that both stay busy."""
    changes: Changes = field(default_factory=Changes)
    """Announces commands of a person."""
    busy: dict[str, list[str]] = field(default_factory=dict)
    """The attempts that are being judged, by device."""
    timing_baselines: dict[str, asyncio.Lock] = field(default_factory=dict)
    """By task: held while its baseline is timed."""
    prompts_changed: bool = False
    """True if a notice about prompts that differ from the journal was recorded."""
