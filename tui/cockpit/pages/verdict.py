"""The verdict tab: what to do about an error, or how fast and how sure a correct attempt is."""

from __future__ import annotations

from harness import ErrorReport, Evaluation, Mismatch, Verdict
from sessions.state.state import AttemptState
from tui import vocabulary
from tui.certainty import measured, used_share, worst_first
from tui.cockpit.attempts import short_name
from tui.cockpit.error_lines import error_lines, frame_line
from tui.cockpit.lines import EMPTY, Line, Span, clean, line, wrap, wrap_words
from tui.cockpit.pages.case_table import case_table
from tui.cockpit.pages.page import Page, PageSubject, paragraph
from tui.cockpit.pages.stages import cascade_lines
from tui.cockpit.verdict_head import head_lines


def verdict_page(subject: PageSubject, width: int) -> Page:
    """Return decision, verdict, and all that the judge knows about it, the most useful first."""
    attempt = subject.attempt
    evaluation = attempt.evaluation
    lines = _decision(attempt, width)
    if not subject.pinned:
        for head in head_lines(attempt, subject.instance):
            lines += wrap_words(head, width) if head else []
    if attempt.same_as:
        lines += paragraph(f"same source as {attempt.same_as}, not judged again", width, "dim")
    links: list[tuple[int, int]] = []
    if evaluation is None:
        lines += [EMPTY, *cascade_lines(attempt, width)] if attempt.stages or attempt.stage else []
        lines += _base_verdict(subject, width)
        return _page([*lines, *_strategy(attempt, width)], links)
    if evaluation.error is None:
        times = case_table(subject, width)
        lines += [EMPTY, *(times or cascade_lines(attempt, width))]
    else:
        lines += _error(subject, evaluation.error, links, len(lines), width)
    lines += _tolerances(evaluation, width)
    if attempt.exam is not None:
        lines += _tolerances(attempt.exam, width)
    lines += _compile_errors(evaluation, width)
    lines += _remarks(attempt, evaluation, width)
    return _page([*lines, *_strategy(attempt, width)], links)


def _page(lines: list[Line], links: list[tuple[int, int]]) -> Page:
    """The page without a gap at its top."""
    if lines and not lines[0]:
        return Page(lines[1:], [(place - 1, number) for place, number in links])
    return Page(lines, links)


def _decision(attempt: AttemptState, width: int) -> list[Line]:
    decision = attempt.decision
    if decision is not None:
        word = "+ accepted" if decision.accepted else "x rejected"
        why = f": {decision.why}" if decision.why else ""
        text = f"{word} by {decision.by or 'a person'} at {vocabulary.moment(decision.wall)} UTC{why}"
        return paragraph(text, width, "" if decision.accepted else "bad")
    return [line("? waits for you: a accepts, r rejects", "warn")] if attempt.waiting else []


def _base_verdict(subject: PageSubject, width: int) -> list[Line]:
    """The verdict of the base, since that is the reason for this attempt."""
    base = subject.base
    if base is None or base.evaluation is None:
        return []
    lines: list[Line] = [EMPTY, line(f"made from {short_name(base.attempt)}, which has this verdict", "head")]
    for head in head_lines(base, None):
        lines += wrap_words(head, width) if head else []
    return lines


def _error(
    subject: PageSubject, error: ErrorReport, links: list[tuple[int, int]], start: int, width: int
) -> list[Line]:
    """Everything that is not in the head; the whole message if the head may be cut. Adds to `links`."""
    lines: list[Line] = [EMPTY]
    numbers = error_lines(subject.attempt)
    if numbers:
        name = f"kernel.py line{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
        lines.append((Span(name, "link"), Span("   e goes there", "dim")))
        links.append((start + len(lines) - 1, numbers[0]))
    lines += paragraph(error.message if subject.pinned else error.message.partition("\n")[2], width)
    if error.mismatch is not None:
        lines += paragraph(error.cases, width) if subject.pinned else []
        lines += [EMPTY, *_mismatch(error.mismatch, width)]
    if error.trace and error.trace.strip() not in error.message:
        lines.append(EMPTY)
        for text in clean(error.trace).rstrip("\n").split("\n"):
            number = frame_line(text)
            if number is not None:
                links.append((start + len(lines), number))
            lines += [_trace_line(row, is_frame=number is not None) for row in wrap(text, width)]
    return lines


def _trace_line(text: str, *, is_frame: bool) -> Line:
    bare = text.lstrip(" ")
    return Span(text[: len(text) - len(bare)]), Span(bare, "link" if is_frame else "dim")


def _mismatch(mismatch: Mismatch, width: int) -> list[Line]:
    facts = [
        ("largest error", f"{_number(mismatch.max_abs)} absolute, {_number(mismatch.max_rel)} relative"),
        ("elements wrong", f"{mismatch.wrong_share * 100:.3g} %"),
        ("NaN", f"{mismatch.nan_got:,}, expected {mismatch.nan_expected:,}"),
        ("Inf", f"{mismatch.inf_got:,}, expected {mismatch.inf_expected:,}"),
        ("shape", _pair(str(list(mismatch.shape)), str(list(mismatch.expected_shape)))),
        ("dtype", _pair(mismatch.dtype, mismatch.expected_dtype)),
        *((name, f"{value:.6g}") for name, value in mismatch.metrics.items()),
    ]
    shown = [(name, value) for name, value in facts if value != "0, expected 0"]
    names = max(len(name) for name, _ in shown)
    lines: list[Line] = [(Span(f"  {name:<{names}}  ", "dim"), Span(clean(value))) for name, value in shown]
    return lines + [row for sentence in mismatch.pattern for row in paragraph(sentence, width, indent=2)]


def _number(value: float | None) -> str:
    return "no finite pair" if value is None else f"{value:.4g}"


def _pair(got: str, expected: str) -> str:
    return got if got == expected else f"{got}, expected {expected}"


def _tolerances(evaluation: Evaluation, width: int) -> list[Line]:
    """The share of the tolerance that the worst element of each output used, worst first."""
    rows = [
        (used_share(margin.used), clean(margin.case), clean(margin.output), clean(measured(margin)))
        for margin in worst_first(evaluation)
    ]
    if not rows or evaluation.verdict is not Verdict.CORRECT:
        return []
    cases, outputs = (max(len(row[place]) for row in rows) for place in (1, 2))
    title = f"tolerance used{' in the exam' if evaluation.exam else ''}, worst first"
    lines: list[Line] = [EMPTY, line(title, "head")]
    for share, case, output, where in rows:
        for place, part in enumerate(wrap(where, max(width - cases - outputs - 13, 12))):
            names = f"  {share:>6}  {case:<{cases}}  {output:<{outputs}}  "
            lines.append((Span(names if not place else " " * len(names)), Span(part, "dim")))
    return lines


def _compile_errors(evaluation: Evaluation, width: int) -> list[Line]:
    lines: list[Line] = []
    for target, message in evaluation.compile_errors.items():
        if evaluation.error is None or message.strip() not in evaluation.error.message:
            lines += [EMPTY, line(f"does not compile for {target}", "warn"), *paragraph(message, width)]
    return lines


def _remarks(attempt: AttemptState, evaluation: Evaluation, width: int) -> list[Line]:
    of_exam = attempt.exam.findings if attempt.exam is not None else ()
    lines: list[Line] = []
    for title, texts in (
        ("findings", tuple(finding.text for finding in evaluation.findings)),
        ("findings of the exam", tuple(finding.text for finding in of_exam)),
        ("notes", evaluation.notes),
        ("printed by the candidate", (evaluation.printed,)),
    ):
        rows = [row for text in texts for row in paragraph(text.strip("\n"), width, "dim", indent=2)]
        lines += [EMPTY, line(title, "head"), *rows] if rows else []
    return lines


def _strategy(attempt: AttemptState, width: int) -> list[Line]:
    """The model's plan. It is below the judge's words, since it may be long."""
    rows = paragraph(attempt.strategy, width, "dim", indent=2)
    return [EMPTY, line("plan", "head"), *rows] if rows else []
