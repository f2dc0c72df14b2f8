"""Facts of instances and tasks that screens and commands show, kept until an event changes them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from harness import Verdict
from sessions.state.findings import findings_of
from sessions.state.ranking import Rank
from sessions.state.speed import Speed
from sessions.state.state import AttemptState, Confirmation, InstanceState, SessionState
from sessions.state.tally import tally
from sessions.state.winners import place
from tui.facts.doing import Doing, busy_attempts, doing
from tui.facts.spending import spending_of
from tui.facts.vocabulary import REJECTED, decision_mark

STUCK_AFTER = 3
"""So many attempts in a row with the same error mean that an instance is stuck."""
_FIGURES = re.compile(r"[\d.]+")


@dataclass(frozen=True, slots=True, eq=False)
class InstanceFacts:
    """What is known of one instance between two of its events. A change gives a new object."""

    key: str
    task: str
    number: int
    doing: Doing
    attempt: int
    """Number of the attempt in progress, else of the newest; 0 if there is none."""
    verdict: Verdict | None
    """The newest verdict."""
    has_findings: bool
    """True if the newest verdict is correct with findings."""
    certain: bool
    """True if the newest judged attempt has a speedup above 1 with its whole interval."""
    first: AttemptState | None
    """The first correct attempt."""
    best: AttemptState | None
    """The best correct attempt."""
    best_has_findings: bool
    has_rejection: bool
    """True if a person rejected one of its attempts."""
    speed: Speed | None
    """The measured speed of `best`."""
    rank: tuple[int, Rank] | None
    """Sort key of `best`."""
    failed: AttemptState | None
    """The newest failure before the newest verdict, if that is none."""
    waiting: tuple[AttemptState, ...]
    """Attempts that wait for a person."""
    same_error: str
    """First line of the error of the latest attempts, if they failed `STUCK_AFTER` times with the same one."""
    errors: int
    """How many attempts in a row failed with it."""
    judged: int
    """Attempts with a verdict that counts."""
    correct: int
    cost_usd: float | None
    read_tokens: int
    """Tokens of prompts."""
    written_tokens: int
    """Tokens of replies."""
    device_s: float
    history: tuple[tuple[int, float | None], ...]
    """(order of the verdict, measured speedup) of the judged attempts; `None` if it is not correct or not timed."""

    @property
    def tokens(self) -> int:
        """Tokens of prompts and replies."""
        return self.read_tokens + self.written_tokens

    @property
    def finished(self) -> bool:
        """True if the instance ended."""
        return self.doing.letter in ".x"

    @property
    def is_failure(self) -> bool:
        """True if the newest verdict is a failure, or the instance failed."""
        return (self.verdict is not None and self.verdict.is_failure) or self.doing.letter == "x"

    @property
    def needs_person(self) -> bool:
        """True if it waits for a person or repeats an error."""
        return bool(self.waiting or self.same_error) and not (self.finished and not self.waiting)


class FactsCache:
    """Keeps the facts of each instance until `forget` names it."""

    def __init__(self, *, is_abandoned: bool = False) -> None:
        """`is_abandoned`: the engine was killed, so no instance works."""
        self._facts: dict[str, InstanceFacts] = {}
        self.is_abandoned = is_abandoned

    def of(self, state: SessionState, instance: InstanceState) -> InstanceFacts:
        """Return the facts of an instance: the same object while nothing changed."""
        facts = self._facts.get(instance.key)
        if facts is None:
            facts = instance_facts(state, instance, is_abandoned=self.is_abandoned)
            self._facts[instance.key] = facts
        return facts

    def all(self, state: SessionState) -> list[InstanceFacts]:
        """Return the facts of all instances, in order of appearance."""
        return [self.of(state, instance) for instance in state.instances.values()]

    def forget(self, keys: Iterable[str]) -> None:
        """Drop the facts of instances that an event changed."""
        for key in keys:
            self._facts.pop(key, None)

    def hear(self, key: str) -> None:
        """Note a piece of a reply: it changes the facts only of an instance whose model was silent."""
        facts = self._facts.get(key)
        if facts is not None and facts.doing.letter == "m":
            del self._facts[key]


def instance_facts(
    state: SessionState, instance: InstanceState, *, is_abandoned: bool = False
) -> InstanceFacts:
    """Return the facts of an instance."""
    judged = sorted(
        (attempt for attempt in instance.attempts if attempt.verdict is not None),
        key=attrgetter("judged_seq"),
    )
    failures = [attempt for attempt in judged if attempt.verdict is not None and attempt.verdict.is_failure]
    busy = busy_attempts(instance)
    best = instance.best_correct
    same_error, errors = _repeated_error(judged)
    speeds = [attempt.speed for attempt in judged]
    shown = busy[-1] if busy else instance.attempts[-1] if instance.attempts else None
    counts = tally(judged)
    spent = spending_of(instance.attempts)
    return InstanceFacts(
        key=instance.key,
        task=instance.task,
        number=instance.instance,
        doing=doing(state, instance, is_abandoned=is_abandoned),
        attempt=shown.number if shown is not None else 0,
        verdict=judged[-1].verdict if judged else None,
        has_findings=bool(judged) and bool(findings_of(judged[-1])),
        certain=bool(speeds) and speeds[-1] is not None and speeds[-1].is_gain,
        first=next((attempt for attempt in judged if attempt.verdict is Verdict.CORRECT), None),
        best=best,
        best_has_findings=best is not None and bool(findings_of(best)),
        has_rejection=any(decision_mark(attempt) == REJECTED for attempt in instance.attempts),
        speed=best.speed if best is not None else None,
        rank=place(best) if best is not None else None,
        failed=next((attempt for attempt in reversed(failures) if failures[-1] is not judged[-1]), None),
        waiting=tuple(attempt for attempt in instance.attempts if attempt.waiting),
        same_error=same_error,
        errors=errors,
        judged=counts.judged,
        correct=counts.correct,
        cost_usd=spent.cost_usd,
        read_tokens=spent.input_tokens or 0,
        written_tokens=spent.output_tokens or 0,
        device_s=spent.device_s,
        history=tuple(
            (attempt.judged_seq, speed.value if speed is not None else None)
            for attempt, speed in zip(judged, speeds, strict=True)
        ),
    )


def mark_of_best(attempt: AttemptState) -> str:
    """Return the marks behind a best: `?` waits; else `+` accepted, `=` confirmed by the exam, or both; empty for neither."""
    if attempt.waiting:
        return "?"
    accepted = "+" if attempt.decision is not None and attempt.decision.accepted else ""
    return accepted + ("=" if attempt.confirmation is Confirmation.CONFIRMED else "")


def _repeated_error(judged: list[AttemptState]) -> tuple[str, int]:
    """The first line and the number of the latest failures that are the same, numbers aside."""
    newest = _error_kind(judged[-1]) if judged else None
    count = 0
    for attempt in reversed(judged):
        if newest is None or _error_kind(attempt) != newest:
            break
        count += 1
    if count < STUCK_AFTER:
        return "", 0
    latest = judged[-1].judged
    assert latest is not None
    return latest.error if latest.error is not None else latest.verdict.value.replace("_", " "), count


def _error_kind(attempt: AttemptState) -> tuple[str, str, str] | None:
    judged = attempt.judged
    if judged is None or judged.verdict is Verdict.CORRECT or not judged.verdict.counted:
        return None
    return str(judged.verdict), judged.error_kind, _FIGURES.sub("#", judged.error or "")
