"""The report of a session: its winners, and the tasks without one. The sections say all of it and the counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from harness import Evaluation, Verdict
from harness.wire.device import is_cpu
from sessions.events import GIVEN
from sessions.names import split_attempt
from sessions.state.cases import CaseRow, attempt_cases
from sessions.state.speed import Speed, fastest_first
from sessions.state.state import AttemptState, InstanceState, SessionState
from sessions.state.tally import Tally, tally
from sessions.state.winners import accepted_attempt, bests_by_task
from tui.facts.endings import ending_words
from tui.facts.evaluation.provenance import distinct_provenances, provenance_words
from tui.facts.evaluation.verdict import failure_words


@dataclass(frozen=True, slots=True)
class Winner:
    """The best correct attempt of a task."""

    task: str
    best: AttemptState
    evaluation: Evaluation
    """The evaluation with the times that count: the exam's if it timed the attempt again."""
    cases: tuple[CaseRow, ...]
    speed: Speed | None
    first: AttemptState
    """The first correct attempt of the task."""
    chosen: AttemptState | None
    """The attempt on the branch `accepted`; it may be another attempt of the task."""
    branch: str

    @property
    def attempt(self) -> str:
        """The name of the attempt."""
        return self.best.attempt

    @property
    def is_chosen(self) -> bool:
        """True if the kernel on the branch `accepted` is this one."""
        return self.chosen is self.best


@dataclass(frozen=True, slots=True)
class Unsolved:
    """A task without a winner."""

    task: str
    closest: str
    """The attempt that came furthest; empty if none was judged."""
    why: str
    """The verdict and the error of that attempt, and why the instances of the task ended."""


@dataclass(frozen=True, slots=True)
class SessionReport:
    """The facts of a report that several of its sections need, and the state of the session for the others."""

    state: SessionState
    winners: tuple[Winner, ...]
    """Fastest first; winners without times come last, in the session's order."""
    unsolved: tuple[Unsolved, ...]
    tally: Tally

    @property
    def session(self) -> str:
        """Name of the session; empty before its first event."""
        return self.state.started.session if self.state.started else ""

    @property
    def solved(self) -> set[str]:
        """Tasks with a correct attempt that no person gave, and whose instance no person added."""
        return {
            instance.task
            for key, instance in self.state.instances.items()
            for attempt in instance.attempts
            if attempt.verdict is Verdict.CORRECT
            and key not in self.state.forks
            and attempt.origin not in GIVEN
        }

    @property
    def against(self) -> str:
        """Names of the timing baselines; empty if nothing was timed."""
        judged = (attempt.judged for attempt in self.state.attempts())
        return ", ".join(
            dict.fromkeys(name for facts in judged if facts is not None for name in facts.against)
        )

    @property
    def is_measured(self) -> bool:
        """True if a case of an attempt was timed."""
        return any(
            attempt.judged is not None and attempt.judged.is_timed for attempt in self.state.attempts()
        )

    @property
    def hardware(self) -> tuple[str, ...]:
        """Hardware and software of the winners' times, in words; more than one if they are not compared with each other."""
        timed = (winner.evaluation for winner in self.winners if winner.speed is not None)
        return tuple(provenance_words(provenance, brief=True) for provenance in distinct_provenances(timed))

    @property
    def has_gpu(self) -> bool:
        """True if the session judges on a GPU, or a time was measured in it."""
        planned = self.state.started.devices if self.state.started else ()
        return any(not is_cpu(device) for device in planned) or self.is_measured

    def attempts_to_visit(self, kind: str) -> list[str]:
        """Return the attempts of one kind: `waiting` (winners that wait for a person), `best` of an instance, `failure`."""
        if kind == "waiting":
            return [winner.attempt for winner in self.winners if winner.best.waiting]
        return [
            attempt.attempt
            for instance in self.state.instances.values()
            for attempt in instance.attempts
            if (
                attempt is instance.best_correct
                if kind == "best"
                else attempt.verdict is not None and attempt.verdict.is_failure
            )
        ]


def report_of(state: SessionState) -> SessionReport:
    """Return the report of a session. Pure: the same state gives the same report, live and in replay."""
    bests = bests_by_task(state)
    return SessionReport(
        state,
        winners=tuple(_winners(state, bests)),
        unsolved=tuple(_unsolved(state, bests)),
        tally=tally(state.attempts()),
    )


def _winners(state: SessionState, bests: dict[str, AttemptState]) -> list[Winner]:
    session = state.started.session if state.started else ""
    winners = []
    for task, best in bests.items():
        evaluation = best.timed_evaluation
        if best.verdict is Verdict.CORRECT and evaluation is not None:
            branch = f"{session}/{task}/{state.instances[split_attempt(best.attempt).instance].instance}"
            chosen = accepted_attempt(state, task)
            cases = tuple(attempt_cases(best))
            correct = (
                attempt
                for instance in state.instances.values()
                for attempt in instance.attempts
                if instance.task == task and attempt.verdict is Verdict.CORRECT
            )
            first = min(correct, key=attrgetter("judged_seq"), default=best)
            winners.append(Winner(task, best, evaluation, cases, best.speed, first, chosen, branch))
    return fastest_first(winners, lambda winner: winner.speed)


def _unsolved(state: SessionState, bests: dict[str, AttemptState]) -> Iterator[Unsolved]:
    for task in state.tasks():
        best = bests.get(task)
        if best is None or best.verdict is not Verdict.CORRECT:
            instances = [instance for instance in state.instances.values() if instance.task == task]
            why = "; ended: ".join(filter(None, (_why_not(instances, best), _ended(instances))))
            yield Unsolved(task, best.attempt if best is not None else "", why)


def _why_not(instances: Sequence[InstanceState], best: AttemptState | None) -> str:
    if any(instance.solved for instance in instances):
        return "a person rejected every correct attempt"
    if best is None or best.evaluation is None:
        return "no attempt was judged yet"
    return failure_words(best.evaluation)


def _ended(instances: Sequence[InstanceState]) -> str:
    """Return why the instances ended; empty while one runs."""
    reasons = [instance.finished for instance in instances]
    if None in reasons:
        return ""
    return "; ".join(dict.fromkeys(ending_words(reason) for reason in reasons if reason is not None))
