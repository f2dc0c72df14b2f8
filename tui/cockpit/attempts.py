"""One attempt, picked out of the state for its panes: verdict, resources, speed, stages, prompt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness import STAGES, Evaluation, Mismatch, Stage, Verdict
from sessions.state import AttemptState, InstanceState, SessionState
from tui import vocabulary
from tui.certainty import BASES, exam_sentence, facts_of, left, margin_words, measured, worst_first
from tui.cockpit import standing
from tui.cockpit.lines import EMPTY, Line, Span, clean, line, wrap

FRAME = re.compile(r'^\s*File "(?:[^"]*/)?kernel\.py", line (\d+)')


def strip_cells(instance: InstanceState, selected: int | None) -> list[Span]:
    """One cell an attempt: number, verdict letter, a person's mark; the selected one in brackets."""
    found: list[Span] = []
    for attempt in instance.attempts:
        text = f"{attempt.number}{vocabulary.letter(attempt.verdict)}{vocabulary.decision_mark(attempt)}"
        chosen = attempt.number == selected
        best = "*" if attempt.attempt == instance.best and attempt.verdict is Verdict.CORRECT else ""
        style = standing.verdict_style(attempt.verdict)
        found.append(
            Span(f"[{text}{best}]" if chosen else f" {text}{best} ", f"{style} cursor" if chosen else style)
        )
    return found


class Told(NamedTuple):
    """Lines, and which of them lead to which line of the candidate."""

    lines: list[Line]
    links: list[tuple[int, int]]
    """(index of the line, 1-based line of the candidate)."""


def verdict_lines(
    attempt: AttemptState, instance: InstanceState | None, target: str | None, width: int
) -> Told:
    """The verdict, why, by how much, and where in the candidate; how sure a *correct* is."""
    base = find_base(instance, attempt) if instance is not None else None
    lines: list[Line] = []
    links: list[tuple[int, int]] = []
    evaluation = attempt.evaluation
    decision = attempt.decision
    if decision is not None:
        style = "good" if decision.accepted else "bad"
        said = "+ accepted" if decision.accepted else "! rejected"
        why = f": {clean(decision.why)}" if decision.why else ""
        text = f"{said} by {decision.by or 'a person'} at {vocabulary.moment(decision.wall)} UTC{why}"
        lines += [line(each, style) for each in wrap(text, width)]
    elif attempt.waiting:
        lines.append(line("? waits for your decision", "warn"))
    if evaluation is None:
        lines.append(line(f"judging: {attempt.stage}" if attempt.stage else "no verdict yet", "dim"))
        if attempt.stages or attempt.stage:
            lines += [EMPTY, *cascade_lines(attempt, width)]
        if base is not None and base.evaluation is not None:
            lines.append(EMPTY)
            lines.append(
                (
                    Span(f"made from attempt {base.number}  ", "dim"),
                    standing.standing(base.evaluation, target),
                )
            )
            if base.evaluation.error is not None:
                lines += [line(each) for each in wrap(clean(base.evaluation.error.message), width)]
        return Told(lines + _strategy(attempt, width), links)
    head = standing.standing(evaluation, target, attempt.timed_twice, attempt.exam)
    name = (
        Span(f"  {vocabulary.words(evaluation.verdict)}", head.style)
        if evaluation.verdict is Verdict.CORRECT
        else Span("")
    )
    lines.append((Span(head.text, f"{head.style} bold"), name, Span(f"  on {evaluation.device}", "dim")))
    if attempt.same_as:
        lines.append(line(f"same source as {attempt.same_as}, not judged again", "dim"))
    known = margin_words(evaluation)
    if known and evaluation.verdict is Verdict.CORRECT:
        lines.append(line(known))
    said = exam_sentence(attempt, instance)
    style = standing.confirmation_style(attempt.confirmation)
    lines += [line(each, style) for each in wrap(clean(said), width) if said]
    error = evaluation.error
    if error is None:
        lines += [EMPTY, *cascade_lines(attempt, width)]
    else:
        lines.append(EMPTY)
        at = f" at kernel.py line {error.line}" if error.line else ""
        lines.append((Span(error.kind, "bad bold"), Span(at, "bad")))
        if error.line:
            links.append((len(lines) - 1, error.line))
        lines += [line(each) for each in wrap(clean(error.message), width)]
        if error.mismatch is not None:
            lines += [EMPTY, *mismatch_lines(error.mismatch)]
        if error.trace and error.trace.strip() not in error.message:
            lines.append(EMPTY)
            for text in clean(error.trace).rstrip("\n").split("\n"):
                frame = FRAME.match(text)
                if frame:
                    links.append((len(lines), int(frame.group(1))))
                lines += [_trace_line(each, is_frame=bool(frame)) for each in wrap(text, width)]
    lines += margin_lines(evaluation, width)
    if attempt.exam is not None and attempt.exam.margins:
        lines += margin_lines(attempt.exam, width)
    for target_name, message in evaluation.compile_errors.items():
        if error is not None and message.strip() in error.message:
            continue
        lines += [EMPTY, line(f"does not compile for {target_name}", "warn")]
        lines += [line(each) for each in wrap(clean(message), width)]
    examined = attempt.exam.findings if attempt.exam is not None else ()
    for title, texts in (
        ("findings", tuple(finding.text for finding in evaluation.findings)),
        ("findings of the exam", tuple(finding.text for finding in examined)),
        ("notes", evaluation.notes),
        ("printed", (evaluation.printed,)),
    ):
        told = [each for text in texts for each in wrap(clean(text.strip("\n")), width - 2) if text]
        if told:
            lines += [EMPTY, line(title, "head"), *(line(f"  {each}", "dim") for each in told)]
    return Told(lines + _strategy(attempt, width), links)


def certainty_words(attempt: AttemptState, instance: InstanceState | None) -> str:
    """Margins and exam of a correct attempt, a line each."""
    if attempt.evaluation is None or attempt.verdict is not Verdict.CORRECT:
        return ""
    told = (margin_words(attempt.evaluation), exam_sentence(attempt, instance))
    return clean("\n".join(each for each in told if each))


def margin_lines(evaluation: Evaluation, width: int) -> list[Line]:
    """The margin left to the tolerance, case by case and output by output, worst first, under a title."""
    rows = [
        (left(each.used), clean(each.case), clean(each.output), clean(measured(each)))
        for each in worst_first(evaluation)
    ]
    if not rows:
        return []
    cases, outputs = (max(len(row[place]) for row in rows) for place in (1, 2))
    title = f"margins left to the tolerances{' of the exam' if evaluation.exam else ''}, worst first"
    lines: list[Line] = [EMPTY, line(title, "head")]
    for share, case, output, where in rows:
        style = "bad" if share == "none" else "warn" if share == "<1 %" else ""
        shown = wrap(where, max(width - cases - outputs - 13, 12))
        for place, part in enumerate(shown):
            head = f"{share:>6}" if not place else " " * 6
            names = f"  {case:<{cases}}  {output:<{outputs}}  " if not place else " " * (cases + outputs + 6)
            lines.append((Span(f"  {head}", style), Span(names), Span(part, "dim")))
    return lines


def _strategy(attempt: AttemptState, width: int) -> list[Line]:
    """What the model said it would do. Below the judge's words, since it may be long."""
    if not attempt.strategy:
        return []
    wrapped = wrap(clean(attempt.strategy), width - 2)
    return [EMPTY, line("set out to", "head"), *(line(f"  {each}", "dim") for each in wrapped)]


def _trace_line(text: str, *, is_frame: bool) -> Line:
    bare = text.lstrip(" ")
    return Span(text[: len(text) - len(bare)]), Span(bare, "link" if is_frame else "dim")


def mismatch_lines(mismatch: Mismatch) -> list[Line]:
    """The first wrong element and the extent of the error, one fact a line."""
    index = ", ".join(map(str, mismatch.index))
    facts = [
        ("case", mismatch.case),
        ("first wrong", f"{mismatch.output}[{index}]"),
        ("expected", mismatch.expected),
        ("got", mismatch.got),
        ("largest error", f"{_maybe(mismatch.max_abs)} absolute, {_maybe(mismatch.max_rel)} relative"),
        ("wrong elements", f"{mismatch.wrong_share:.3%}"),
        (
            "NaN, Inf",
            f"got {mismatch.nan_got}, {mismatch.inf_got}; expected {mismatch.nan_expected}, {mismatch.inf_expected}",
        ),
        ("shape", _both(str(list(mismatch.shape)), str(list(mismatch.expected_shape)))),
        ("dtype", _both(mismatch.dtype, mismatch.expected_dtype)),
    ]
    facts += [(name, f"{value:.6g}") for name, value in mismatch.metrics.items()]
    width = max(len(name) for name, _ in facts)
    return [
        (Span(f"  {name:<{width}}  ", "dim"), Span(clean(value), "bad" if name == "got" else ""))
        for name, value in facts
    ]


def _maybe(value: float | None) -> str:
    return "no finite pair" if value is None else f"{value:.4g}"


def _both(got: str, expected: str) -> str:
    return got if got == expected else f"{got}, expected {expected}"


def cascade_lines(attempt: AttemptState, width: int) -> list[Line]:
    """The six stages with seconds and detail, as far as they have come."""
    known = {stage.name: stage for stage in attempt.stages}
    return [
        row
        for name in STAGES
        for row in _stage(name, known.get(name), running=attempt.stage == name, width=width)
    ]


def stage_lines(attempt: AttemptState, width: int) -> list[Line]:
    """The six stages, then sandbox layers, proof, evidence, versions."""
    lines = cascade_lines(attempt, width)
    evaluation = attempt.evaluation
    if evaluation is None:
        return lines
    layers = [(each.name, each.state + (f": {each.why}" if each.why else "")) for each in evaluation.sandbox]
    known = [
        (title, [(fact.name, fact.value) for fact in facts_of(evaluation, basis)]) for basis, title in BASES
    ]
    for title, facts in (
        ("sandbox of the guest", layers),
        *known,
        ("versions", list(evaluation.versions.items())),
    ):
        if facts:
            lines += [EMPTY, line(title, "head"), *_facts(facts, width)]
    return lines


def _stage(name: str, stage: Stage | None, *, running: bool, width: int) -> Iterator[Line]:
    if running:
        mark = Span("..  ", "busy")
    elif stage is None or stage.ok is None:
        mark = Span("-   ", "dim")
    else:
        mark = Span("ok  ", "good") if stage.ok else Span("FAIL", "bad")
    took = (
        vocabulary.seconds(stage.seconds)
        if stage is not None and (stage.ok is not None or stage.seconds)
        else ""
    )
    head = (mark, Span(f" {name:<12}"), Span(f"{took:>8}  ", "dim"))
    detail = clean(stage.detail) if stage is not None else "running" if running else ""
    if not detail and (stage is None or stage.ok is None):
        detail = "not reached"
    for place, text in enumerate(wrap(detail, width - 27)):
        yield (*head, Span(text, "dim")) if not place else (Span(" " * 27), Span(text, "dim"))


def _facts(facts: Sequence[tuple[str, str]], width: int) -> Iterator[Line]:
    names = max(len(name) for name, _ in facts)
    for name, value in facts:
        for place, text in enumerate(wrap(clean(value), width - names - 4)):
            yield Span(f"  {name if not place else '':<{names}}  ", "dim"), Span(text)


def prompt_lines(attempt: AttemptState, width: int) -> list[Line]:
    """Exactly what was sent to the model, call by call."""
    lines: list[Line] = []
    for call in attempt.calls:
        for message in call.messages:
            if lines:
                lines.append(EMPTY)
            lines.append(line(f"{call.role.value} {call.call.rpartition('/')[2]} · {message.role}", "rule"))
            lines += [line(each) for each in wrap(clean(message.content), width)]
    return lines or [line("Nothing was asked yet.", "dim")]


def lineage(attempt: AttemptState) -> str:
    """How the attempt came to be: `repair of 3`, `fresh`; `fork of softmax#1/3`, where the base is another instance's."""
    if not attempt.base:
        return attempt.origin.value
    instance, _, number = attempt.base.rpartition("/")
    base = number if attempt.attempt.startswith(f"{instance}/") else attempt.base
    return f"{attempt.origin.value} of {base}"


def find_base(instance: InstanceState, attempt: AttemptState) -> AttemptState | None:
    """The attempt of the same instance that this one was made from."""
    return next((each for each in instance.attempts if each.attempt == attempt.base), None)


def find_other(instance: InstanceState, attempt: AttemptState, chosen: int | None) -> AttemptState | None:
    """What the attempt is compared with: the chosen attempt, else its base, else the attempt before."""
    if chosen is not None and chosen != attempt.number:
        return next((each for each in instance.attempts if each.number == chosen), None)
    base = find_base(instance, attempt)
    if base is not None:
        return base
    earlier = [each for each in instance.attempts if each.number < attempt.number]
    return earlier[-1] if earlier else None


def find(state: SessionState, key: str, number: int | None) -> AttemptState | None:
    """An instance's attempt of this number, or `newest`; `None` when there is none."""
    instance = state.instances.get(key)
    if instance is None or not instance.attempts:
        return None
    if number is None:
        return newest(instance)
    return next((each for each in instance.attempts if each.number == number), instance.attempts[-1])


def newest(instance: InstanceState) -> AttemptState | None:
    """What to watch: the latest attempt that is being made, and where none is the last one; `None` without attempts."""
    made = [each for each in instance.attempts if each.word not in ("wait", "exam")]
    return next(reversed(made or instance.attempts), None)
