"""The tab with a kernel's source and its assembly side by side, tied by line."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, NamedTuple

from textual import on, work
from textual.binding import Binding, BindingType
from textual.containers import Horizontal

from harness import Evaluation
from harness.assembly.code_texts import CodeText, NoText, Reader, all_assembly
from harness.assembly.listing import Listing, parse
from sessions.home import Home
from tui.cockpit.draw.assembly import LEGEND, CodeRow, assembly_rows, instruction_rows, source_rows
from tui.cockpit.draw.highlighting import highlighted
from tui.cockpit.draw.lines import escaped, line
from tui.cockpit.widgets.code_column import CodeColumn

HELP = f"""\
The source of the attempt, and the assembly that the compiler made of it for
the first target. The cursor in one column marks its lines in the other, `tab`
goes to the other column. A loop is folded to one line with its facts; `enter`
opens it. `K` shows the next kernel, `z` gives the pane the whole screen, `y`
copies the text. Letters before an instruction, and before their number behind
a line of the source:
{LEGEND}
"""


class _Read(NamedTuple):
    """One kernel's text as the thread prepared it."""

    text: CodeText
    listing: Listing
    drawn: list[CodeRow]
    source: list[CodeRow]


class AssemblyView(Horizontal):
    """Shows one kernel of an attempt at a time."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "fold", "loop", id="assembly.fold"),
        Binding("K", "kernel", "next kernel", id="assembly.kernel"),
    ]

    def __init__(self) -> None:
        super().__init__(id="assembly")
        self.source = CodeColumn(help=HELP, id="assembly-source")
        self.code = CodeColumn(help=HELP, id="assembly-code")
        self._subject: tuple[str, str, str] = ("", "", "")
        self._home: Home | None = None
        self._number = 0
        self._readers: list[Reader] = []
        self._opened: set[int] = set()
        self._read_text: _Read | None = None

    def compose(self) -> list[CodeColumn]:
        return [self.source, self.code]

    def show_attempt(
        self, home: Home, session: str, attempt: str, source: str, evaluation: Evaluation
    ) -> None:
        """Show the first kernel of an attempt; does nothing if it is on screen."""
        subject = (session, attempt, source)
        if subject == self._subject:
            return
        self._subject, self._home, self._number = subject, home, 0
        self._readers = all_assembly(evaluation)
        self._start()

    def _start(self) -> None:
        self._opened, self._read_text = set(), None
        self.code.cursor = self.source.cursor = 0
        self.source.show_rows(())
        self.code.show_rows([CodeRow(line("reading ...", "dim"))])
        if self._home is not None and self._readers:
            self._read(self._home, self._subject, self._number, self._readers[self._number])

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
        if subject == self._subject and self.is_attached:
            self.code.show_rows([CodeRow(line(why, "warn"))])

    def _take(self, subject: tuple[str, str, str], number: int, read: _Read) -> None:
        if (subject, number) != (self._subject, self._number) or not self.is_attached:
            return
        self._read_text = read
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

    def action_kernel(self) -> None:
        if len(self._readers) > 1:
            self._number = (self._number + 1) % len(self._readers)
            self._start()
