"""The facts of a verdict that lists, ranks and stop rules read, computed once: the evaluation itself is large."""

from __future__ import annotations

import functools
import math
import sys

import msgspec

from harness import Evaluation, Finding, Verdict
from harness.wire.results.provenance import Provenance
from harness.wire.results.ratios import TIE
from harness.wire.results.roofs import room
from sessions.events import AttemptJudged, WinnerExamined
from sessions.journal.reader import JournalReader, KeptEvent, keep

from .ranking import Rank, rank_at_speed
from .speed import Speed, baselines_of, speed_of


class JudgedFacts(msgspec.Struct, frozen=True, gc=False):
    """A verdict on an attempt, on its open cases or on the exam cases."""

    kept: KeptEvent[AttemptJudged | WinnerExamined]
    """The event that brought it."""
    verdict: Verdict
    is_exam: bool
    speed: Speed | None
    """`speed_of` the evaluation."""
    rank: Rank
    is_timed: bool
    """True if a case was timed, with a ratio or without."""
    at_roof: bool
    """See `is_at_roof`."""
    product: str
    """Product of the timed device; its name in the session if the product is not known."""
    against: tuple[str, ...]
    """Names of the timing baselines."""
    provenance: Provenance | None
    """`None` if it is not known."""
    findings: tuple[Finding, ...]
    error: str | None
    """The first line of the error; `None` if there is none."""
    error_kind: str

    @property
    def evaluation(self) -> Evaluation:
        """The evaluation, read from the journal."""
        return self.kept.event.evaluation


def judged_facts(event: AttemptJudged | WinnerExamined, journal: JournalReader | None) -> JudgedFacts:
    """Returns the facts of a verdict, which reads its event again from the journal."""
    evaluation = event.evaluation
    speed, error = speed_of(evaluation), evaluation.error
    return JudgedFacts(
        keep(event, journal),
        evaluation.verdict,
        evaluation.exam,
        speed,
        rank_at_speed(evaluation, speed),
        bool(evaluation.latency),
        is_at_roof(evaluation),
        sys.intern(product_of(evaluation)),
        baselines_of(evaluation),
        _shared_provenance(evaluation.provenance),
        evaluation.findings,
        sys.intern(error.first_line) if error is not None else None,
        sys.intern(error.kind) if error is not None else "",
    )


@functools.lru_cache(maxsize=256)
def _shared_provenance(provenance: Provenance | None) -> Provenance | None:
    """Returns the first of equal provenances, so that a session keeps each once."""
    return provenance


def product_of(evaluation: Evaluation) -> str:
    """Returns the product of the timed device; its name in the session if the product is not known."""
    products = [latency.efficiency.product for latency in evaluation.latency if latency.efficiency]
    product = evaluation.provenance.product if evaluation.provenance else ""
    return product or next(iter(products), "") or evaluation.device


def is_at_roof(evaluation: Evaluation) -> bool:
    """True if nothing is left to gain: with every case at its limit, the speed would grow by less than what ties.

    False if a case was not timed, or if its limit is not known.
    """
    timed = evaluation.latency
    rooms = [factor for latency in timed if (factor := room(latency)) is not None]
    if not timed or evaluation.not_timed or len(rooms) < len(timed):
        return False
    if not evaluation.case_weights:
        return math.fsum(map(math.log, rooms)) / len(rooms) < math.log1p(TIE)
    times = [evaluation.case_weights[latency.case] / (latency.speedup or 1.0) for latency in timed]
    at_limit = math.fsum(time / factor for time, factor in zip(times, rooms, strict=True))
    return math.fsum(times) < at_limit * (1 + TIE)
