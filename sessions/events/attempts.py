"""Attempts: the origin, the candidate, the stages of its judging, the verdict and the commit."""

from __future__ import annotations

from enum import StrEnum

from harness import Stage
from sessions.names import AttemptKey, CommitId

from .base import DurableEvent, Event, JudgedEvent


class Origin(StrEnum):
    """The origin of an attempt."""

    FRESH = "fresh"
    REPAIR = "repair"
    OPTIMIZE = "optimize"
    TUNE = "tune"
    HUMAN = "human"
    FORK = "fork"
    """The unchanged kernel of an attempt of another instance."""
    AGENT = "agent"
    """An agent that is not Wavedeck's own sent it (`CandidateSent`)."""


GIVEN = frozenset({Origin.HUMAN, Origin.FORK})
"""Origins of attempts whose kernel a person gave; a model's accuracy does not count them."""
UNASKED = GIVEN | {Origin.TUNE}
"""Origins of attempts for which no model is asked."""


class AttemptStarted(Event, frozen=True, kw_only=True, tag="attempt_started"):
    """An attempt began; its candidate is requested next."""

    attempt: AttemptKey
    """`softmax#2/7`: short task id, instance, number within the instance from 1."""
    origin: Origin
    base: AttemptKey | None = None
    """The attempt from which this attempt is derived."""
    heard: int = 0
    """Number of the last command of a person that this attempt follows; later commands wait for the next attempt."""


class CandidateProposed(DurableEvent, frozen=True, kw_only=True, tag="candidate_proposed"):
    """The candidate of an attempt is known."""

    attempt: AttemptKey
    source: str
    strategy: str = ""
    """The model's strategy in one or a few sentences."""
    unusable: str = ""
    """If `source` is empty, the defect of the reply: `empty`, `truncated`, `no_code_block`, `several_modules`,
    `no_eval`."""


class StageStarted(Event, frozen=True, kw_only=True, tag="stage_started"):
    """The judge entered a stage of the cascade."""

    attempt: AttemptKey
    stage: str
    device: str
    exam: bool = False
    """True for the judging on the exam cases, which does not give the verdict."""


class StageFinished(Event, frozen=True, kw_only=True, tag="stage_finished"):
    """The judge left a stage."""

    attempt: AttemptKey
    stage: Stage
    exam: bool = False
    """See `StageStarted`."""


class AttemptJudged(JudgedEvent, frozen=True, kw_only=True, tag="attempt_judged"):
    """The verdict."""

    attempt: AttemptKey
    same_as: str = ""
    """The earlier attempt of the instance with the same source, whose evaluation this is; empty if it was judged."""


class AttemptCommitted(Event, frozen=True, kw_only=True, tag="attempt_committed"):
    """The attempt is in the git store."""

    attempt: AttemptKey
    commit: CommitId
    branch: str
    read_seq: int = 0
    """Number of the last event that the commit has; 0 in the journal of an older version."""
