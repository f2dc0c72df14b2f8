"""The verdict tab: decision, verdict, and all that the judge knows about it."""

from __future__ import annotations

from harness import ErrorReport
from sessions.state.cases import attempt_cases, is_apart
from sessions.state.state import AttemptState
from tui.cockpit.data.attempts import short_name
from tui.cockpit.draw.grid import paragraph, spaced, table_lines, tables_lines
from tui.cockpit.draw.lines import Line, Span, cells, clean, line, plain, wrap, wrap_phrases
from tui.cockpit.draw.verdict_lines import DOT, head_lines, spans_of
from tui.cockpit.screens.agent.page import NO_VERDICT, PageSubject
from tui.facts import vocabulary
from tui.facts.attempt import dated_decision
from tui.facts.evaluation.certainty import tolerance_table
from tui.facts.evaluation.provenance import APART
from tui.facts.evaluation.stages import stages_table
from tui.facts.evaluation.times import times_table
from tui.facts.evaluation.verdict import (
    FILE,
    compile_errors,
    error_lines,
    frame_line,
    mismatch_table,
    refusal_words,
    remark_tables,
    trace_text,
    verdict_facts,
)
from tui.facts.tables import Table


def verdict_page(subject: PageSubject, width: int) -> list[Line]:
    """Return decision, verdict, and all that the judge knows about it, the most useful first."""
    attempt, evaluation = subject.attempt, subject.attempt.evaluation
    head = _decision(subject, width)
    if evaluation is not None:
        head += paragraph(refusal_words(evaluation), width, "warn")
    if not subject.pinned:
        head += _head(attempt, subject, width)
    if attempt.same_as:
        head += paragraph(f"same source as {attempt.same_as}, not judged again", width, "dim")
    stages = stages_table(attempt.stages, running=subject.running_stage)
    plan = Table("plan").with_sentences(attempt.strategy, style="dim")
    if evaluation is None:
        tables = [stages, plan] if attempt.stages or subject.running_stage else [plan]
        return spaced([head, _base_verdict(subject, width), tables_lines(tables, width)])
    times = _times(subject)
    tables = [
        *([] if evaluation.error is not None else [times if times.rows else stages]),
        tolerance_table(evaluation),
        tolerance_table(attempt.exam),
        *compile_errors(evaluation),
        *remark_tables(evaluation, attempt.exam),
        plan,
    ]
    error = _error(subject, evaluation.error, width) if evaluation.error is not None else []
    return _marked(spaced([head, *error, tables_lines(tables, width)]), subject)


def _marked(lines: list[Line], subject: PageSubject) -> list[Line]:
    """The lines with a mark before the place of the error to which a person went."""
    numbers = error_lines(subject.attempt)
    for place, row in enumerate(lines if subject.chosen_error is not None else ()):
        text = plain(row)
        number = numbers[0] if numbers and text.startswith(f"{FILE} line") else frame_line(text)
        if number is not None and number == subject.chosen_error:
            first, *spans = row
            return [
                *lines[:place],
                (Span("> ", "bad"), first._replace(text=first.text.removeprefix("  ")), *spans),
                *lines[place + 1 :],
            ]
    return lines


def _head(attempt: AttemptState, subject: PageSubject, width: int) -> list[Line]:
    instance = subject.instance if attempt is subject.attempt else None
    if subject.stopped and attempt.evaluation is None and not (instance is not None and instance.finished):
        return [line(NO_VERDICT, "dim")]
    facts = verdict_facts(attempt, instance)
    return [row for line_facts in facts for row in wrap_phrases(spans_of(line_facts), width, DOT)]


def _decision(subject: PageSubject, width: int) -> list[Line]:
    decision = subject.attempt.decision
    if decision is not None:
        text = f"{vocabulary.decision_mark(subject.attempt)} {dated_decision(decision)}"
        return paragraph(text, width, "" if decision.accepted else "bad")
    words = (
        "? not decided"
        if subject.stopped
        else "? waits for you"
        if subject.can_act
        else "? waits for a person's decision"
    )
    words += ": a accepts, r rejects" if subject.can_act else ""
    return [line(words, "warn")] if subject.attempt.waiting else []


def _base_verdict(subject: PageSubject, width: int) -> list[Line]:
    """The verdict of the base, since that is the reason for this attempt."""
    base = subject.base
    if base is None or base.evaluation is None:
        return []
    title = line(f"made from {short_name(base.attempt)}, which has this verdict", "head")
    return [title, *_head(base, subject, width)]


def _times(subject: PageSubject) -> Table:
    base = subject.base
    base_name = short_name(base.attempt) if base is not None else "base"
    title = "times in the exam" if subject.attempt.is_timed_again else ""
    table = times_table(attempt_cases(subject.attempt, base), title, base_name)
    is_base_apart = base is not None and is_apart(subject.attempt, base)
    return table.with_sentences(APART.format(name=base_name) if is_base_apart else "")


def _error(subject: PageSubject, error: ErrorReport, width: int) -> list[list[Line]]:
    """Everything that is not in the head, in blocks; the whole message if the head is cut."""
    numbers = error_lines(subject.attempt)
    message, mismatch, frames = list[Line](), list[Line](), list[Line]()
    if numbers:
        name = f"{FILE} line{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
        message.append((Span(name, "link"), Span("   e goes there", "dim")))
    is_cut = subject.pinned and any(
        cells(head) > width for head in head_lines(subject.attempt, subject.instance)
    )
    if is_cut or error.mismatch is None:
        further = error.message.partition("\n")[2].replace(error.cases, "").rstrip()
        message += paragraph(error.message if is_cut else further, width)
    if error.mismatch is not None:
        sentences = () if is_cut else (*error.mismatch.pattern[1:], *error.further)
        mismatch = table_lines(mismatch_table(error.mismatch).with_sentences(*sentences), width)
    trace = trace_text(error)
    if trace and trace.strip() not in error.message:
        for text in clean(trace).split("\n"):
            is_frame = frame_line(text) is not None
            frames += [_trace_line(row, is_frame=is_frame) for row in wrap(text, width)]
    return [message, mismatch, frames]


def _trace_line(text: str, *, is_frame: bool) -> Line:
    bare = text.lstrip(" ")
    return Span(text[: len(text) - len(bare)]), Span(bare, "link" if is_frame else "dim")
