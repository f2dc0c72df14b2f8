"""How safe a *correct* verdict is: the share of each tolerance that is used, and the result of the exam."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from harness import Evaluation, Margin, Verdict
from sessions.names import stage_word
from sessions.state.findings import finding_words, findings_of
from sessions.state.speed import baseline_names
from sessions.state.state import AttemptState, Confirmation, InstanceState
from tui.facts.tables import Column, Field, Number, Table, table_of
from tui.facts.vocabulary import UNKNOWN, words

MARGINS: tuple[Field[Margin], ...] = (
    Field(Number("used"), lambda margin: used_share(margin.used)),
    Field(Column("case", keep=True), lambda margin: margin.case),
    Field(Column("output", keep=True), lambda margin: margin.output),
    Field(
        Column("measured by"),
        lambda margin: margin.measure + (f" at {list(margin.index)}" if margin.index else ""),
        "dim",
    ),
)


def used_share(used: float) -> str:
    """Return the share of a tolerance that is used, rounded up: `38 %`."""
    return f"{math.ceil(used * 100)} %"


def worst_first(evaluation: Evaluation) -> list[Margin]:
    """Return the margins, closest to its tolerance first."""
    return sorted(evaluation.margins, key=lambda margin: margin.used, reverse=True)


def tolerance_words(evaluation: Evaluation, subject: str = "tolerance ") -> str:
    """Return `tolerance used 80 % (case fp32-outlier)`, of the worst element; empty if no margin is known."""
    margins = worst_first(evaluation)
    if not margins:
        return ""
    if all(margin.measure == "exact" for margin in margins):
        return "all outputs exact"
    return f"{subject}used {used_share(margins[0].used)} (case {margins[0].case})"


def tolerance_table(evaluation: Evaluation | None) -> Table:
    """Return the share of its tolerance that the worst element of each output used; empty if it is not correct."""
    if evaluation is None or evaluation.verdict is not Verdict.CORRECT:
        return Table("")
    title = f"tolerance used{' in the exam' if evaluation.exam else ''}, worst first"
    return table_of(title, MARGINS, worst_first(evaluation))


class ExamWords(NamedTuple):
    """The result of the exam of an attempt, or why there is none."""

    word: str
    """`confirmed`, `failed exam` or `not examined`, for columns."""
    state: str
    """`confirmed by exam`, `not examined yet`."""
    explanation: str
    style: str

    @property
    def sentence(self) -> str:
        """The state and its explanation, if there is one."""
        return ": ".join(filter(None, (self.state, self.explanation)))

    @property
    def brief(self) -> str:
        """The sentence; in a quiet state without its explanation."""
        return self.sentence if self.style in ("bad", "busy", "warn") else self.state


def exam_of(attempt: AttemptState, instance: InstanceState | None) -> ExamWords | None:
    """Return the result or the state of an attempt's exam; `None` if the attempt is not correct."""
    if attempt.verdict is not Verdict.CORRECT:
        return None
    word, exam = str(attempt.confirmation), attempt.exam
    if attempt.examining is not None:
        return ExamWords(word, "exam runs", stage_word(attempt.examining), "busy")
    if exam is not None and attempt.confirmation is Confirmation.CONFIRMED:
        figures = (tolerance_words(exam), speed_words(attempt) if attempt.is_timed_again else "")
        return ExamWords(word, "confirmed by exam", "; ".join(filter(None, figures)), "")
    if exam is not None and attempt.confirmation is Confirmation.NOT_CONFIRMED:
        why = exam.error.first_line if exam.error is not None else "it failed"
        return ExamWords(word, "failed exam", f"{words(exam.verdict)} on the exam cases: {why}", "bad")
    if attempt.decision is not None and not attempt.decision.accepted:
        return ExamWords(word, "not examined", "a person rejected it", "dim")
    if attempt.unexamined_because:
        return ExamWords(word, "not examined", attempt.unexamined_because, "warn")
    if instance is not None and instance.finished is None:
        when = f"the best attempt is examined when {instance.key} ends"
        return ExamWords(word, "not examined yet", when, "dim")
    if instance is None or is_winner(attempt, instance):
        return ExamWords(word, "not examined", "", "dim")
    return ExamWords(word, "not examined", "only the best attempt of an instance is examined", "dim")


def exam_word(attempt: AttemptState | None, instance: InstanceState | None) -> str:
    """Return `confirmed`, `failed exam` or `not examined`; empty if the attempt needs no exam, or none yet."""
    if attempt is None or (attempt.exam is None and not is_winner(attempt, instance)):
        return ""
    return str(attempt.confirmation)


def exam_sentence(attempt: AttemptState, instance: InstanceState | None) -> str:
    """Return the sentence of `exam_of`; empty if the attempt is not correct."""
    exam = exam_of(attempt, instance)
    return "" if exam is None else exam.sentence


def is_winner(attempt: AttemptState, instance: InstanceState | None) -> bool:
    """True if the attempt is correct and the best of its finished instance."""
    return instance is not None and instance.finished is not None and attempt is instance.best_correct


def certainty_words(attempt: AttemptState, instance: InstanceState | None) -> str:
    """Return findings, tolerance and exam of a correct attempt, a line each; empty for any other."""
    if attempt.evaluation is None or attempt.verdict is not Verdict.CORRECT:
        return ""
    facts = (
        finding_words(findings_of(attempt)),
        tolerance_words(attempt.evaluation),
        exam_sentence(attempt, instance),
    )
    return "\n".join(filter(None, facts))


def speed_words(attempt: AttemptState) -> str:
    """Return `1.42x [1.38, 1.45]`, or `found 1.42x, confirmed 1.31x` if the exam timed it again; empty if not timed."""
    speed, before_exam = attempt.speed, attempt.found_speed
    if speed is None:
        return ""
    if not attempt.is_timed_again:
        return speed.words
    if before_exam is None:
        return f"confirmed {speed}"
    return f"found {before_exam.figure}, confirmed {speed}"


def against_words(evaluation: Evaluation, baseline: str = "") -> str:
    """Return ` against triton`: the timing baselines of the ratios. `baseline` is the name if the latencies have none."""
    names = baseline_names(evaluation) or baseline
    return f" against {names}" if names else ""


def confirmed_words(solved: Sequence[str], confirmed: Sequence[str] | None) -> str:
    """Return `1/2` (confirmed of solved tasks), `not examined` if no exam ran, or `-` if no task is solved."""
    if confirmed is None:
        return "not examined" if solved else UNKNOWN
    return f"{len(confirmed)}/{len(solved)}"
