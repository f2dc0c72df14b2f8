"""The tab with a kernel's source and its assembly side by side, tied by line."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, NamedTuple

from textual import on, work
from textual.binding import Binding, BindingType
from textual.containers import Horizontal

from harness.assembly.code_texts import CodeText, NoText, Reader, all_assembly, code_texts
from harness.assembly.listing import Listing, parse
from sessions.home import Home
from sessions.state.state import AttemptState
from tui.cockpit.data.attempts import short_name
from tui.cockpit.draw.assembly import LEGEND, CodeRow, assembly_rows, instruction_rows, source_rows
from tui.cockpit.draw.grid import paragraph
from tui.cockpit.draw.highlighting import highlighted
from tui.cockpit.draw.lines import escaped, line
from tui.cockpit.widgets.code_column import CodeColumn
from tui.facts.evaluation.assembly_diff import SAME_CODE, assembly_diff
from tui.facts.text_diff import diff_words

HELP = f"""\
The source of the attempt, and the assembly that the compiler made of it for
the first target. The cursor in one column marks its lines in the other, `tab`
goes to the other column. A loop is folded to one line with its facts; `enter`
opens it. `K` shows the next kernel, `z` gives the pane the whole screen, `y`
copies the text. `d` shows how the assembly differs from that of the attempt
from which this one is made, without the numbers of registers and labels, and
back. Letters before an instruction, and before their number behind
a line of the source:
{LEGEND}
"""
CHANGES = {"+": "add good", "-": "del bad", "@": "hunk"}
"""Styles of the lines of a difference, by their first character."""
HEAD_LINES = 2
"""Lines with the names of both sides at the start of a difference."""


class _Read(NamedTuple):
    """One kernel's text as the thread prepared it."""

    text: CodeText
    listing: Listing
    drawn: list[CodeRow]
    source: list[CodeRow]


def _readers_of(attempt: AttemptState) -> list[Reader]:
    return all_assembly(attempt.evaluation) if attempt.evaluation is not None else []


class AssemblyView(Horizontal):
    """Shows one kernel of an attempt at a time."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "fold", "loop", id="assembly.fold"),
        Binding("K", "kernel", "next kernel", id="assembly.kernel"),
        Binding("d", "diff", "assembly diff", id="assembly.diff"),
    ]

    def __init__(self) -> None:
        super().__init__(id="assembly")
        self.source = CodeColumn(help=HELP, id="assembly-source")
        self.code = CodeColumn(help=HELP, id="assembly-code")
        self._subject: tuple[str, str, str] = ("", "", "")
        self._home: Home | None = None
        self._number = 0
        self._readers: list[Reader] = []
        self._sides: tuple[AttemptState, ...] = ()
        """The attempt from which the shown one is made, and the shown one; empty if the former has no assembly."""
        self._compares = False
        """True if the difference of the sides is shown."""
        self._opened: set[int] = set()
        self._read_text: _Read | None = None

    def compose(self) -> list[CodeColumn]:
        return [self.source, self.code]

    def show_attempt(
        self, home: Home, session: str, attempt: AttemptState, base: AttemptState | None
    ) -> None:
        """Show the first kernel of an attempt, or the difference to its base; does nothing if it is on screen."""
        subject = (session, attempt.attempt, attempt.source or "")
        if subject == self._subject:
            return
        self._subject, self._home, self._number = subject, home, 0
        self._readers = _readers_of(attempt)
        self._sides = (base, attempt) if base is not None and _readers_of(base) else ()
        self._start()

    def _start(self) -> None:
        self._opened, self._read_text = set(), None
        self.code.cursor = self.source.cursor = 0
        self.source.show_rows(())
        self.code.show_rows([CodeRow(line("reading ...", "dim"))])
        compares = self._compares and bool(self._sides)
        self.source.display = not compares
        if self._home is None:
            return
        if compares:
            self._compare(self._home, self._subject, self._sides)
        elif self._readers:
            self._read(self._home, self._subject, self._number, self._readers[self._number])

    @work(thread=True, group="assembly", exclusive=True, exit_on_error=False, name="comparing assembly")
    def _compare(self, home: Home, subject: tuple[str, str, str], sides: tuple[AttemptState, ...]) -> None:
        from sessions.store.compiler_texts import read_text  # loads git

        read = partial(read_text, home, subject[0])
        old, new = sides
        try:
            before, after = code_texts(old.evaluation, read), code_texts(new.evaluation, read)
        except (NoText, OSError) as why:
            self.app.call_from_thread(self._refuse, subject, str(why))
            return
        changes = assembly_diff(before, after, old.attempt, new.attempt)
        self.app.call_from_thread(self._show_changes, subject, changes)

    def _show_changes(self, subject: tuple[str, str, str], changes: list[str]) -> None:
        if subject != self._subject or not self._compares or not self.is_attached:
            return
        rows = [CodeRow(line(text, CHANGES.get(text[:1], ""))) for text in changes[HEAD_LINES:]]
        self.code.show_rows(rows or [CodeRow(line(SAME_CODE, "dim"))], copy_text="\n".join(changes))
        signs = [text[:1] for text in changes[HEAD_LINES:]]
        size = diff_words(signs.count("+"), signs.count("-")) if changes else ""
        names = " -> ".join(short_name(side.attempt) for side in self._sides)
        self.code.border_title = escaped(f"assembly diff base {names}   {size}".rstrip())

    @work(thread=True, group="assembly", exclusive=True, exit_on_error=False, name="reading assembly")
    def _read(self, home: Home, subject: tuple[str, str, str], number: int, reader: Reader) -> None:
        from sessions.store.compiler_texts import (
            read_text,  # git is loaded when something is read from the store
        )

        try:
            text = reader(partial(read_text, home, subject[0]))
        except (NoText, OSError) as why:
            self.app.call_from_thread(self._refuse, subject, str(why))
            return
        listing = parse(text.content)
        source = source_rows(highlighted(subject[2]), listing)
        read = _Read(text, listing, instruction_rows(listing), source)
        self.app.call_from_thread(self._take, subject, number, read)

    def _refuse(self, subject: tuple[str, str, str], why: str) -> None:
        if subject != self._subject or not self.is_attached:
            return
        self.source.display = False
        if not self._compares:
            self._sides = ()
        self.code.show_rows([CodeRow(row) for row in paragraph(why, max(self.size.width - 4, 20), "warn")])
        self.screen.refresh_bindings()

    def _take(self, subject: tuple[str, str, str], number: int, read: _Read) -> None:
        if (subject, number) != (self._subject, self._number) or not self.is_attached:
            return
        self._read_text = read
        self.screen.refresh_bindings()
        self.source.show_rows(read.source, copy_text=subject[2])
        self._draw_code()
        self.call_after_refresh(self._go_to_first)

    def _go_to_first(self) -> None:
        for column in (self.source, self.code):
            column.go_to_first()
        self._tie(self.source if self.source.has_focus else self.code)

    def _draw_code(self) -> None:
        read = self._read_text
        if read is None:
            return
        rows = assembly_rows(read.listing, read.drawn, self._opened, amd=read.text.name == "amdgcn")
        self.code.show_rows(rows, copy_text=read.text.content)
        count = len(self._readers)
        which = f"{self._number + 1} of {count}, K: next   " if count > 1 else ""
        self.code.border_title = escaped(f"{which}{read.text.title}")
        self.source.border_title = "source"

    @on(CodeColumn.Moved)
    def _follow(self, message: CodeColumn.Moved) -> None:
        message.stop()
        self._tie(message.column)

    def _tie(self, moved: CodeColumn) -> None:
        (self.code if moved is self.source else self.source).tie(moved.row.sources)

    def action_fold(self) -> None:
        loop = self.code.row.loop
        if loop is not None:
            self._opened ^= {loop}
            self._draw_code()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The difference only where the base has assembly; loops and kernels only outside of it."""
        if action == "diff":
            return bool(self._sides)
        is_read = self._read_text is not None and not (self._compares and self._sides)
        return is_read or action not in ("fold", "kernel")

    def action_diff(self) -> None:
        self._compares = not self._compares
        self._start()
        self.code.focus()
        self.screen.refresh_bindings()

    def action_kernel(self) -> None:
        if len(self._readers) > 1:
            self._number = (self._number + 1) % len(self._readers)
            self._start()
