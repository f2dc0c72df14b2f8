"""What the instances of one engine have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.budget import Budget
from engine.judging import Judge
from engine.models import Client
from engine.plan import SessionPlan
from engine.retrieval import Corpus
from engine.reviewing import Decisions
from harness import Target
from sessions.events import Role
from sessions.recorder import Recorder


@dataclass(slots=True)
class Shared:
    """What the instances of one engine have in common."""

    plan: SessionPlan
    recorder: Recorder
    clients: Mapping[Role, Client]
    """Who answers each role."""
    judge: Judge
    budget: Budget
    targets: tuple[Target, ...]
    corpus: Corpus
    decisions: Decisions
    calls: asyncio.Semaphore
    """A place for each request that may be under way; apart from the judge's slots, so that both are kept busy."""
    busy: dict[str, list[str]] = field(default_factory=dict)
    """By device, the attempts that are judged on it."""
    prompts_changed: bool = False
    """Whether it was said that prompts differ from the journal's."""
