"""An assembly as lines with folded loops, and a source with the counts of what became of each line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from harness.assembly.listing import Instruction, Kind, Listing, Loop, jump_target
from sessions.state.code_facts import code_words, loop_title
from tui.cockpit.draw.lines import Line, Span, clean

MARKS = {
    Kind.LOAD: ("L", "good"),
    Kind.STORE: ("S", "key"),
    Kind.ATOMIC: ("A", "key bold"),
    Kind.LDS: ("D", "head"),
    Kind.MATRIX: ("M", "busy bold"),
    Kind.WAIT: ("W", "warn"),
    Kind.BARRIER: ("B", "warn bold"),
    Kind.SPILL: ("!", "bad bold"),
    Kind.SCALAR: (" ", "dim"),
    Kind.BRANCH: (" ", "dim"),
    Kind.OTHER: (" ", ""),
}
"""Letter and style of each kind: nothing is shown by colour alone."""
LEGEND = "L load  S store  A atomic  D local memory  M matrix  W wait  B barrier  ! spill"


class CodeRow(NamedTuple):
    """One line of a column."""

    line: Line
    sources: frozenset[int] = frozenset()
    """Lines of the source that it belongs to."""
    loop: int | None = None
    """The loop that `enter` opens or folds here."""


def instruction_rows(listing: Listing) -> list[CodeRow]:
    """Return the row of each instruction; takes a tenth of a second for a long text."""
    return [_instruction_row(instruction) for instruction in listing.instructions]


def assembly_rows(
    listing: Listing, drawn: Sequence[CodeRow], opened: Collection[int], *, amd: bool
) -> list[CodeRow]:
    """Return the rows of a kernel from those of its instructions; a loop that is not `opened` is one row with its facts."""
    whole = f"{code_words(listing.counts_of(), amd=amd)}"
    return [CodeRow((Span(whole, "dim"),)), *_rows(listing, drawn, opened, amd)]


def _rows(
    listing: Listing,
    drawn: Sequence[CodeRow],
    opened: Collection[int],
    amd: bool,  # noqa: FBT001
) -> Iterator[CodeRow]:
    targets = {
        jump_target(instruction.text)
        for instruction in listing.instructions
        if instruction.kind is Kind.BRANCH
    }
    labels: dict[int, list[str]] = {}
    for name in targets & listing.labels.keys():
        labels.setdefault(listing.labels[name], []).append(name)
    loops: dict[int, list[int]] = {}
    for number, loop in enumerate(listing.loops):
        loops.setdefault(loop.first, []).append(number)
    place = 0
    while place < len(listing.instructions):
        yield from (CodeRow((Span(f"     {clean(name)}:", "dim"),)) for name in labels.get(place, ()))
        for number in loops.get(place, ()):
            loop = listing.loops[number]
            is_open = number in opened
            yield _loop_row(listing, loop, number, is_open=is_open, amd=amd)
            if not is_open:
                place = loop.last + 1
                break
        else:
            yield drawn[place]
            place += 1


def _loop_row(listing: Listing, loop: Loop, number: int, *, is_open: bool, amd: bool) -> CodeRow:
    counts = listing.counts_of(loop)
    inside = listing.instructions[loop.first : loop.last + 1]
    sources = frozenset(instruction.line for instruction in inside if instruction.line is not None)
    words = f"{'-' if is_open else '+'} {loop_title(counts)}: {code_words(counts, amd=amd)}"
    return CodeRow((Span(words, "bold"),), frozenset() if is_open else sources, number)


def _instruction_row(instruction: Instruction) -> CodeRow:
    letter, style = MARKS[instruction.kind]
    number = f"{instruction.line:>4}" if instruction.line is not None else "    "
    spans = (Span(f"{number} ", "dim"), Span(f"{letter} {' '.join(clean(instruction.text).split())}", style))
    return CodeRow(spans, frozenset() if instruction.line is None else frozenset((instruction.line,)))


def source_rows(source: Sequence[Line], listing: Listing) -> list[CodeRow]:
    """Return the lines of a source, each with its number and the counts of the instructions that it became."""
    counts: dict[int, Counter[Kind]] = {}
    for instruction in listing.instructions:
        if instruction.line is not None:
            counts.setdefault(instruction.line, Counter())[instruction.kind] += 1
    words = {line: _counted(kinds) for line, kinds in counts.items()}
    width = max(map(len, words.values()), default=0)
    return [
        CodeRow(
            (Span(f"{number:>4} ", "dim"), Span(f"{words.get(number, ''):<{width}} ", "head"), *line),
            frozenset((number,)) if number in counts else frozenset(),
        )
        for number, line in enumerate(source, start=1)
    ]


def _counted(kinds: Counter[Kind]) -> str:
    """`L2 M16 W3`; empty for arithmetic alone."""
    return " ".join(
        f"{letter}{kinds[kind]}" for kind, (letter, _) in MARKS.items() if letter != " " and kinds[kind]
    )
