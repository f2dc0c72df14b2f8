"""The cells of Fleet: one instance in words or in letters, and sparklines of utilisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sessions.state.figure_words import narrow_ratio
from tui.cockpit.draw.lines import fit
from tui.facts import vocabulary
from tui.facts.instance import InstanceFacts
from tui.facts.tables import Cell
from tui.facts.vocabulary import speed_style, verdict_style

WORD = 9
"""Cells of a state word: `integrity`."""
AT_REST = "ps"
"""Letters of instances that are paused or stopped: their cells say so even if they are stuck."""
PAUSED = "p"
"""Mark of an instance that is paused once its present work is over."""
FIGURE = 7
"""Cells of a speed: `>=2.03x`."""


class Form(NamedTuple):
    """How much a cell shows."""

    words: bool
    """The state in words; else its letter."""
    speedup: bool
    """The best speedup; else the letter of the newest verdict."""

    def width(self, digits: int) -> int:
        """Return the width of a cell with its mark."""
        if not self.words:
            return 1 + digits + 1 + 1
        return WORD + 1 + digits + (1 + FIGURE if self.speedup else 1) + 1


WIDE, MEDIUM, NARROW = Form(True, True), Form(True, False), Form(False, False)


def instance_cell(facts: InstanceFacts, form: Form, *, digits: int, change: str, named: bool) -> Cell:
    """
    Return the cell of an instance: `generate  6 1.31x`, `generate  6C` or `g6C`.

    `change` is the mark of a cell that changed lately. A stuck instance has a red `!` there, a correct one with findings
    a yellow `!`, one that a person paused a `p`, one with a rejected attempt an `x`. `named` puts the number of the
    instance in front. Beside the best of a finished instance is the number of the best attempt.
    """
    stuck = bool(facts.same_error) and not facts.finished
    says_stuck = stuck and form.words and facts.doing.letter not in AT_REST
    shows_best = form.speedup and facts.speed is not None
    mark, mark_style = "", ""
    if change:
        mark, mark_style = change, "key"
    elif stuck and not says_stuck:
        mark, mark_style = "!", "bad"
    elif facts.best_has_findings if shows_best else facts.has_findings:
        mark, mark_style = vocabulary.FINDING, "warn"
    elif facts.doing.is_held and not form.words:
        mark, mark_style = PAUSED, "warn"
    elif facts.has_rejection:
        mark, mark_style = vocabulary.REJECTED, "bad"
    verdict = _verdict(facts)
    if not form.words:
        text = f"{facts.doing.letter}{facts.attempt or ''}"
        name = [(f"#{facts.number} ", "dim")] if named else []
        end = (fit(mark, digits + 2 - len(text)), mark_style)
        return Cell.of(*name, (text, facts.doing.style), verdict, end, key=facts.key)
    word, style = ("stuck !", "bad") if says_stuck else _short(facts)
    figure = [verdict]
    if form.speedup:
        figure = [(" ", ""), (fit(verdict[0], FIGURE), verdict[1])]
    shown = facts.attempt
    if form.speedup and facts.best is not None and facts.speed is not None:
        shown = facts.best.number if facts.finished else shown
        figure[-1] = (
            fit(narrow_ratio(facts.speed.value, facts.speed.sign, FIGURE), FIGURE),
            speed_style(facts.speed),
        )
    number = (f" {shown or '':>{digits}}", "")
    return Cell.of((fit(word, WORD), style), number, *figure, (fit(mark, 1), mark_style), key=facts.key)


def _short(facts: InstanceFacts) -> tuple[str, str]:
    """The state in at most `WORD` cells, with its style; of the judge the stage alone: `timing`, `REVIEW`, `pausing`."""
    now = facts.doing
    if now.letter == "?":
        return f"REVIEW {PAUSED}" if now.is_held else "REVIEW", now.style
    if now.letter == "s" and now.style == "warn":
        return "undecided", now.style
    return ("pausing", "warn") if now.is_held else (now.stage or now.state, now.style)


def _verdict(facts: InstanceFacts) -> tuple[str, str]:
    """The letter of the newest verdict with its style."""
    if facts.verdict is None:
        return vocabulary.UNKNOWN, "dim"
    letter = vocabulary.letter(facts.verdict)
    if letter == "C":
        return letter, "good" if facts.certain else ""
    return letter, verdict_style(facts.verdict)


BARS = "▁▂▃▄▅▆▇█"
MINUTE_CELLS = 8
"""Cells of a sparkline."""


def last_minute(
    samples: Sequence[tuple[float, float | None]], now_wall: float, cells: int = MINUTE_CELLS
) -> str:
    """Return the utilisation of the last minute, newest at the right; a blank where nothing was sampled."""
    span_s = 60.0 / cells
    sums: list[list[float]] = [[] for _ in range(cells)]
    for wall, utilisation in samples:
        place = cells - 1 - int((now_wall - wall) // span_s)
        if utilisation is not None and 0 <= place < cells:
            sums[place].append(utilisation)
    return "".join(_bar(sum(part) / len(part)) if part else " " for part in sums)


def _bar(share: float) -> str:
    return BARS[min(int(share * len(BARS)), len(BARS) - 1)]
