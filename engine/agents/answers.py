"""The answers to an agent's calls: the facts that prompts have, and nothing of the exam, of seeds or of other instances.

Plain dataclasses, so that any protocol can encode them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from engine.methods.orders import last_command, words_for
from engine.prompting.agent_prompt import best_of, best_of_agent, judged_of
from engine.prompting.comparison import better_elsewhere
from engine.prompting.facts import ErrorFacts, error_facts, failure_line
from engine.prompting.figures import Measurements, TimedRow, achieved, measurements, timed_rows
from engine.prompting.judged import JudgedCandidate
from harness import Evaluation, Verdict
from harness.assembly.code_texts import code_texts
from harness.profiling.bottleneck import profile_words
from harness.wire.results.kernel_counts import Profile
from sessions.state.state import AttemptState, SessionState

NO_CODE = re.compile(r"\s*(;|//|\.Ltmp|\.(?!loc\b)[\w.]+(\s|$))")
MOST_ASSEMBLY = 20_000
"""Characters of assembly in one answer, over all kernels."""
ALWAYS = ("attempt", "attempts")
"""Fields that answers have even if they are empty."""
EMPTY: tuple[object, ...] = ("", None, [], {})
LEFT_OUT = ("ranked_us", "resource_legend")
"""Facts of prompts that answers leave out: the first is another fact of its row, the second explains plain words."""
BRIEF_STANDOUTS = 2
"""Sentences on figures in a brief answer."""
DIGITS = 4
"""Significant digits of a number in an answer, as in prompts. Values of tensors are texts."""


@dataclass(frozen=True)
class VerdictAnswer:
    """The facts about a candidate that was sent."""

    attempt: str
    """Its name, for `wait` and `explain`."""
    judged: bool
    """False: call `wait` with the attempt, if `next` says so."""
    verdict: str
    """`correct`, `wrong`, `compile_error`, ...; empty if there is none."""
    next: str
    """The next step, or the present state of the judging."""
    same_as: str
    """The earlier attempt with the same code, which gave the verdict; empty if it was judged."""
    error: ErrorFacts | None
    """Why a candidate failed; `None` for a correct one."""
    figures: Measurements | None
    """Speed and resources of a correct candidate."""
    best: str
    """The best correct attempt so far, with its speed if the answer is about another attempt; empty if there is none."""
    evaluations_left: int
    person: tuple[str, ...]
    """A person's hints, and decisions about attempts, one line each."""
    session: str


@dataclass(frozen=True)
class HistoryRow:
    """An earlier attempt."""

    attempt: str
    verdict: str
    summary: str
    note: str


@dataclass(frozen=True)
class HistoryAnswer:
    """The attempts of a session, oldest first."""

    attempts: tuple[HistoryRow, ...]
    evaluations_left: int
    person: tuple[str, ...]


@dataclass(frozen=True)
class BestAnswer:
    """The best correct attempt; all fields are empty if there is none."""

    attempt: str
    code: str
    figures: Measurements | None
    faster_elsewhere: Mapping[str, str] = field(default_factory=dict)
    """The cases in which another attempt is clearly faster, as `1.35x in softmax#1/1`: combine them."""


@dataclass(frozen=True)
class AsmAnswer:
    """The assembly of an attempt's kernels."""

    attempt: str
    kernels: tuple[str, ...]
    """One text for each kernel, without directives; its first line names kernel, target, case and configuration."""


@dataclass(frozen=True)
class MeasureAnswer:
    """Times of an attempt that were measured again."""

    attempt: str
    device: str
    summary: str
    timed: Sequence[TimedRow]


@dataclass(frozen=True)
class ProfileAnswer:
    """The counts of a profiler in one call of an attempt."""

    attempt: str
    case: str
    taken: bool
    """False: the profile is being taken; call `profile` again."""
    device: str
    text: str
    """The counts of each kernel, and what limits it."""


class Listener:
    """Says each hint of a person once, and decisions while they hold, to the agent of one instance."""

    def __init__(self, instance: str) -> None:
        self._instance = instance
        self.heard = 0
        """Number of the last command that the agent knows."""

    def news(self, state: SessionState) -> tuple[str, ...]:
        """Returns a person's words for the next answer, one line each."""
        after, self.heard = self.heard, last_command(state)
        return words_for(state, self._instance, after=after, until=self.heard)


def verdict_answer(
    state: SessionState,
    instance: str,
    attempt: str,
    *,
    next_step: str,
    person: tuple[str, ...],
    is_brief: bool = False,
) -> VerdictAnswer:
    """Returns the facts about an attempt, which may not have begun. A brief answer has no figures of single binaries."""
    session = state.started.session if state.started is not None else ""
    remaining = evaluations_left(state, instance)
    words = best_words(best_of_agent(state, instance), attempt)
    judged = next((entry for entry in judged_of(state, instance) if entry.attempt == attempt), None)
    if judged is None:
        return VerdictAnswer(attempt, False, "", next_step, "", None, None, words, remaining, person, session)
    evaluation = judged.evaluation
    return VerdictAnswer(
        attempt=attempt,
        judged=True,
        verdict=str(evaluation.verdict),
        next=next_step,
        same_as=state.attempt(attempt).same_as,
        error=error_facts(judged) if evaluation.error else None,
        figures=_figures(evaluation, is_brief=is_brief),
        best=words,
        evaluations_left=remaining,
        person=person,
        session=session,
    )


def _figures(evaluation: Evaluation, *, is_brief: bool) -> Measurements | None:
    if evaluation.verdict is not Verdict.CORRECT:
        return None
    figures = measurements(evaluation)
    return (
        replace(figures, resources=(), standouts=figures.standouts[:BRIEF_STANDOUTS]) if is_brief else figures
    )


def best_words(best: JudgedCandidate | None, attempt: str) -> str:
    """Returns the name of the best attempt, with its figures unless the answer is about this attempt."""
    if best is None or best.attempt == attempt:
        return "" if best is None else best.attempt
    return f"{best.attempt}: {achieved(best.evaluation)}"


def history_answer(state: SessionState, instance: str, *, person: tuple[str, ...]) -> HistoryAnswer:
    """Returns the judged attempts of an instance in short."""
    rows = tuple(
        HistoryRow(
            candidate.attempt,
            str(candidate.evaluation.verdict),
            achieved(candidate.evaluation) if candidate.passed else failure_line(candidate),
            candidate.strategy,
        )
        for candidate in judged_of(state, instance)
    )
    return HistoryAnswer(rows, evaluations_left(state, instance), person)


def best_answer(state: SessionState, instance: str) -> BestAnswer:
    """Returns the best correct attempt of an instance with its code, and the cases in which another attempt is faster."""
    judged = list(judged_of(state, instance))
    best = best_of(judged)
    if best is None:
        return BestAnswer("", "", None)
    behind = [
        (candidate.attempt, candidate.evaluation)
        for candidate in judged
        if candidate.passed and candidate.attempt != best.attempt
    ]
    elsewhere = {case: better.words for case, better in better_elsewhere(best.evaluation, behind).items()}
    return BestAnswer(best.attempt, best.source, measurements(best.evaluation), elsewhere)


def asm_answer(
    judged: JudgedCandidate, read: Callable[[str], str | None], *, kernel: str, case: str
) -> AsmAnswer:
    """Returns the assembly of an attempt; a long text is cut. `NoText` if there is none."""
    texts = code_texts(judged.evaluation, read, kernel=kernel, case=case)
    most = MOST_ASSEMBLY // len(texts)
    return AsmAnswer(
        judged.attempt, tuple(f"; {text.title}\n{cut(code_of(text.content), most)}" for text in texts)
    )


def code_of(assembly: str) -> str:
    """Returns an assembly without directives and whole-line comments, but with the source lines (`.loc`)."""
    return "\n".join(line for line in assembly.splitlines() if line.strip() and not NO_CODE.match(line))


def cut(text: str, most: int) -> str:
    """Returns the first lines of a text, and how many characters are left out."""
    if len(text) <= most:
        return text
    kept = text[:most].rpartition("\n")[0]
    return f"{kept}\n; {len(text) - len(kept)} characters are left out"


def measure_answer(attempt: AttemptState, device: str) -> MeasureAnswer | None:
    """Returns the latest measurement of an attempt on a GPU; `None` if there is none."""
    measured = next((measured for measured in attempt.spread if measured.device == device), None)
    if measured is None:
        return None
    evaluation = measured.evaluation
    why = evaluation.error.first_line if evaluation.error is not None else str(evaluation.verdict)
    words = achieved(evaluation) if evaluation.verdict is Verdict.CORRECT else why
    return MeasureAnswer(attempt.attempt, device, words, timed_rows(evaluation))


def profile_answer(attempt: str, case: str, profile: Profile | None) -> ProfileAnswer:
    """Returns the counts of a profile; `None` is a profile that is being taken."""
    if profile is None:
        return ProfileAnswer(attempt, case, False, "", "")
    return ProfileAnswer(attempt, case, True, profile.device, profile_words(profile))


def evaluations_left(state: SessionState, instance: str) -> int:
    """Returns how many candidates the agent may still send."""
    return max(0, sum(state.phases(instance)) - len(state.sent_to(instance)))


def encoded(answer: object) -> str:
    """Returns an answer as JSON, without fields that are empty and with short numbers. The fields of `ALWAYS` stay."""
    return msgspec.json.encode(_shortened(msgspec.to_builtins(answer))).decode()


def _shortened(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_shortened(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if not isinstance(value, dict):
        return value
    fields = {name: _shortened(content) for name, content in value.items()}
    return {
        name: content
        for name, content in fields.items()
        if name in ALWAYS or (content not in EMPTY and name not in LEFT_OUT)
    }
