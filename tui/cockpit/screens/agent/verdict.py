"""The verdict tab: what to do about an error, or how fast and how sure a correct attempt is."""

from __future__ import annotations

from harness import ErrorReport
from sessions.state.speed import timed_evaluation
from sessions.state.state import AttemptState
from tui.cockpit.data.attempts import short_name
from tui.cockpit.draw.lines import EMPTY, Line, Span, cells, clean, line, wrap, wrap_words
from tui.cockpit.screens.agent.page import Page, PageSubject, paragraph, table_lines, tables_lines
from tui.cockpit.screens.agent.verdict_head import head_lines
from tui.facts import vocabulary
from tui.facts.decisions import dated_decision
from tui.facts.evaluation.certainty import tolerance_table
from tui.facts.evaluation.stages import stages_table
from tui.facts.evaluation.times import times_table
from tui.facts.evaluation.verdict import (
    compile_errors,
    error_lines,
    frame_line,
    mismatch_table,
    remark_tables,
    trace_text,
)
from tui.facts.tables import Table


def verdict_page(subject: PageSubject, width: int) -> Page:
    """Return decision, verdict, and all that the judge knows about it, the most useful first."""
    attempt = subject.attempt
    evaluation = attempt.evaluation
    lines = _decision(subject, width)
    if not subject.pinned:
        lines += _head(attempt, subject, width)
    if attempt.same_as:
        lines += paragraph(f"same source as {attempt.same_as}, not judged again", width, "dim")
    links: list[tuple[int, int]] = []
    stages = stages_table(attempt.stages, running=attempt.stage)
    if evaluation is None:
        tables = [stages] if attempt.stages or attempt.stage else []
    else:
        if evaluation.error is not None:
            lines += _error(subject, evaluation.error, links, len(lines), width)
        times = _times(subject)
        tables = [
            *([] if evaluation.error is not None else [times if times.rows else stages]),
            tolerance_table(evaluation),
            tolerance_table(attempt.exam),
            *compile_errors(evaluation),
            *remark_tables(evaluation, attempt.exam),
        ]
    below = tables_lines([*tables, Table("plan").with_sentences(attempt.strategy, style="dim")], width)
    if evaluation is None:
        below = [*_base_verdict(subject, width), *below]
    lines += [EMPTY, *below] if below else []
    if lines and not lines[0]:
        return Page(lines[1:], [(place - 1, number) for place, number in links])
    return Page(lines, links)


def _head(attempt: AttemptState, subject: PageSubject, width: int) -> list[Line]:
    heads = head_lines(attempt, subject.instance if attempt is subject.attempt else None)
    return [row for head in heads if head for row in wrap_words(head, width)]


def _decision(subject: PageSubject, width: int) -> list[Line]:
    decision = subject.attempt.decision
    if decision is not None:
        text = f"{vocabulary.decision_mark(subject.attempt)} {dated_decision(decision)}"
        return paragraph(text, width, "" if decision.accepted else "bad")
    words = "? waits for you: a accepts, r rejects" if subject.can_act else "? waits for a person's decision"
    return [line(words, "warn")] if subject.attempt.waiting else []


def _base_verdict(subject: PageSubject, width: int) -> list[Line]:
    """The verdict of the base, since that is the reason for this attempt."""
    base = subject.base
    if base is None or base.evaluation is None:
        return []
    title = line(f"made from {short_name(base.attempt)}, which has this verdict", "head")
    return [title, *_head(base, subject, width), EMPTY]


def _times(subject: PageSubject) -> Table:
    evaluation = timed_evaluation(subject.attempt)
    if evaluation is None:
        return Table("")
    base = subject.base
    return times_table(
        evaluation.latency,
        not_timed=evaluation.not_timed,
        shapes=subject.shapes,
        before=timed_evaluation(base) if base is not None else None,
        before_name=short_name(base.attempt) if base is not None else "base",
    )


def _error(
    subject: PageSubject, error: ErrorReport, links: list[tuple[int, int]], start: int, width: int
) -> list[Line]:
    """Everything that is not in the head; the whole message if the head is cut. Adds to `links`."""
    lines: list[Line] = [EMPTY]
    numbers = error_lines(subject.attempt)
    if numbers:
        name = f"kernel.py line{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
        lines.append((Span(name, "link"), Span("   e goes there", "dim")))
        links.append((start + len(lines) - 1, numbers[0]))
    is_cut = subject.pinned and any(
        cells(head) > width for head in head_lines(subject.attempt, subject.instance)
    )
    if is_cut or error.mismatch is None:
        further = error.message.partition("\n")[2].replace(error.cases, "").rstrip()
        lines += paragraph(error.message if is_cut else further, width)
    if error.mismatch is not None:
        patterns = () if is_cut else error.mismatch.pattern[1:]
        table = mismatch_table(error.mismatch).with_sentences(*patterns)
        lines += [EMPTY, *table_lines(table, width)] if len(lines) > 1 else table_lines(table, width)
    trace = trace_text(error)
    if trace and trace.strip() not in error.message:
        lines += [EMPTY] if len(lines) > 1 else []
        for text in clean(trace).split("\n"):
            number = frame_line(text)
            if number is not None:
                links.append((start + len(lines), number))
            lines += [_trace_line(row, is_frame=number is not None) for row in wrap(text, width)]
    return lines if len(lines) > 1 else []


def _trace_line(text: str, *, is_frame: bool) -> Line:
    bare = text.lstrip(" ")
    return Span(text[: len(text) - len(bare)]), Span(bare, "link" if is_frame else "dim")
