"""The lines around the table of times: what is compared with what, and what each mark means; or why there is no table."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from msgspec import structs

from harness import Evaluation, Outcome, Verdict
from sessions.names import stage_word
from sessions.state.cases import case_rows, measured_roofs
from sessions.state.speed import missing_speed
from sessions.state.state import AttemptState
from tui.cockpit.draw.grid import paragraph, spaced, tables_lines
from tui.cockpit.draw.lines import Line, Span, clean, wrap_phrases
from tui.facts.attempt import decided_words, strategy_words
from tui.facts.evaluation.certainty import against_words, exam_of
from tui.facts.evaluation.counted import traffic_table
from tui.facts.evaluation.resources import resource_tables
from tui.facts.evaluation.roofs import has_peak_share
from tui.facts.evaluation.times import throttle_words
from tui.facts.evaluation.verdict import failure_words
from tui.facts.vocabulary import percent, speed_style, verdict_style, words

from .time_table import Shown
from .timings import Missing, Timings, gpu_name

GAP = "   "


def title_lines(attempt: AttemptState, width: int) -> list[Line]:
    """Return the attempt with its speedup, baseline and exam, folded between its parts."""
    evaluation = attempt.evaluation
    parts: list[Span] = [Span(attempt.attempt, "bold")]
    decision = attempt.decision
    if decision is not None:
        parts.append(
            Span(
                clean(decided_words(structs.replace(decision, why=""))),
                "good" if decision.accepted else "bad",
            )
        )
    if evaluation is None:
        return in_lines([*parts, Span("no verdict yet", "busy")], width)
    if evaluation.verdict is not Verdict.CORRECT:
        verdict = Span(words(evaluation.verdict), verdict_style(evaluation.verdict))
        return in_lines([*parts, verdict], width)
    speed = attempt.speed
    not_timed = Span(f"correct, not timed: {missing_speed(evaluation)}")
    parts.append(not_timed if speed is None else Span(speed.words, speed_style(speed)))
    against = clean(against_words(evaluation).strip())
    parts += [Span(against)] if against else []
    exam = exam_of(attempt, None)
    parts += [Span(exam.word, exam.style)] if exam is not None else []
    if speed is not None and attempt.found_speed is not None and attempt.found_speed != speed:
        parts.append(Span(f"timed by its exam, {attempt.found_speed.figure} before", "dim"))
    return in_lines(parts, width)


def caption_lines(timings: Timings, shown: Shown, width: int, titles: Collection[str]) -> list[Line]:
    """Return units, cache, the GPU of the speedup and the measured roofs; `titles` are those of the columns on screen."""
    caches = sorted({row.latency.cache for row in timings.by_place.values() if row.latency is not None})
    parts = [f"{shown.value}", f"{' and '.join(caches)} caches", f"speedup: {gpu_name(timings.device)}"]
    names = [gpu_name(device) for device in timings.devices]
    visible = [name for name in names if name in titles]
    if 0 < len(visible) < len(names):
        parts.append(f"{visible[0]} to {visible[-1]} of {len(names)} GPUs (h l: others)")
    parts += roof_words(timings.evaluation)
    if timings.evaluation.why_not_timed:
        parts.append(f"not timed: {clean(timings.evaluation.why_not_timed)}")
    if "range" in titles:
        parts.append("range: (max - min) / median")
    return in_lines([Span(part, "dim") for part in parts], width)


def roof_words(evaluation: Evaluation) -> list[str]:
    """Return the measured copy and matrix product, with the copy's share of the vendor's peak if that is known."""
    roofs, rows = measured_roofs(evaluation), case_rows(evaluation)
    phrases = []
    if roofs.bytes_per_s is not None:
        share = f" = {percent(roofs.share_of_peak)} of the vendor's peak" if roofs.share_of_peak else ""
        phrases.append(f"roof: copy measured here {roofs.bytes_per_s / 1e12:.2f} TB/s{share}")
    if roofs.flops_per_s is not None and any(row.limit == "compute" for row in rows):
        phrases.append(f"matrix product measured here {roofs.flops_per_s / 1e12:.0f} TFLOP/s")
    if has_peak_share(rows):
        phrases.append("compute peak: the vendor's, no product measured")
    return phrases or ["roof: not measured"]


def footnotes(timings: Timings, width: int, shown: Iterable[str], *, can_measure: bool) -> list[Line]:
    """Return one explanation for each mark that is on screen; `shown` are the texts of the drawn cells."""
    texts = set(shown)
    notes = [*_throttle_notes(timings)]
    by_reason: dict[tuple[str, str], list[str]] = {}
    for device, reason in timings.reasons.items():
        by_reason.setdefault((reason.mark, reason.words), []).append(gpu_name(device))
    for (mark, why), devices in by_reason.items():
        style = "bad" if mark.isupper() or mark == "lost" else "dim"
        notes.append(Span(f"{mark} {' '.join(devices)} {clean(why)}", style))
    if Outcome.TOO_SHORT.value in texts:
        notes.append(Span(f"{Outcome.TOO_SHORT.value} on both sides: no ratio", "dim"))
    if any(text.startswith("<") for text in texts):
        notes.append(Span("<: the launch hides the time", "dim"))
    notes += [
        Span(f"suspect {timings.letter(case)}: {clean(case.suspect)}", "bad")
        for case in timings.cases
        if case.suspect
    ]
    has_gap = any(mark == Missing.UNKNOWN for mark, _ in by_reason)
    is_throttled = any(row.window is not None and row.window.throttled for row in timings.by_place.values())
    if can_measure and (has_gap or is_throttled):
        notes.append(Span("t measures ! and - again", "dim"))
    return in_lines(notes, width)


def _throttle_notes(timings: Timings) -> list[Span]:
    notes: dict[str, str] = {}
    for (device, _), row in timings.by_place.items():
        window = row.window
        if window is None or not window.throttled or device in notes:
            continue
        clock = "" if window.clock_mhz is None else f", {window.clock_mhz / 1000:.2f} GHz"
        left_out = ": not in range" if len(timings.devices) > 1 else ""
        notes[device] = (
            f"! {gpu_name(device)} {clean(throttle_words(window)).replace('%', ' %')}{clock}{left_out}"
        )
    return [Span(note, "dim") for note in notes.values()]


def in_lines(parts: Iterable[Span], width: int) -> list[Line]:
    """Return parts in as few lines as hold them."""
    return wrap_phrases(parts, width, Span(GAP))


def absence_lines(attempt: AttemptState | None, name: str, width: int) -> list[Line]:
    """
    Return why there are no times; then for a correct attempt the bytes of each case, its compiled kernels and its strategy.

    `name` is that of the attempt that a person asked for, or of the instance.
    """
    if attempt is None:
        begun = "has not begun" if "/" in name else "has no attempt yet"
        return paragraph(f"{name} {begun}: figures come here after the verdict.", width, "dim")
    evaluation = attempt.evaluation
    if evaluation is None:
        now = f"judge: {stage_word(attempt.stage)}" if attempt.stage else attempt.word
        return paragraph(f"{attempt.attempt} has no verdict yet. Now: {now}.", width, "busy")
    if evaluation.verdict is not Verdict.CORRECT:
        return paragraph(
            f"Only correct attempts are timed. The verdict is {failure_words(evaluation)}", width
        )
    tables = [
        traffic_table(evaluation),
        *(replace(table, sentences=()) for table in resource_tables(evaluation)[:1]),
    ]
    plan = strategy_words(attempt)
    return spaced([tables_lines(tables, width), paragraph(plan and f"Strategy: {plan}", width)])
