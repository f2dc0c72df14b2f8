"""One agent: what it says, what it wrote, what the judge made of it, attempt by attempt."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widget import Widget

from harness import Verdict
from sessions.state import AttemptState, InstanceState
from tui.cockpit import attempts, details, views
from tui.cockpit.feed import EVERYTHING
from tui.cockpit.lines import Line, Span, cells
from tui.cockpit.passages import passages, written_code
from tui.cockpit.screens.acting import STEERING, ActingScreen
from tui.cockpit.widgets.bar import Bar
from tui.cockpit.widgets.code import CodePane, Side
from tui.cockpit.widgets.detail import DetailPane
from tui.cockpit.widgets.tail import Tail

ABOVE = ("words", "code")
"""Panes that are always there where there is room."""


class AgentScreen(ActingScreen):
    """The instance `key`; follows its newest attempt until the person walks to another."""

    CSS_PATH = "agent.tcss"
    HELP = """\
The line under the header has a cell an attempt: its number, the letter of its
verdict (as in the table of agents; `.` none yet), then `+` accepted, `!`
rejected by a person, `?` waits for you; `*` is the best so far. Brackets stand
around the one that all panes are about. Behind them: what the agent does now;
`3 generate +1`: three attempts of it are asked for at once, one does something else.
"""
    PERIOD_S = 0.125
    PANES: ClassVar[tuple[tuple[str, str], ...]] = (
        ("words", "words"),
        ("code", "code"),
        ("verdict", "verdict"),
        ("resources", "resources"),
        ("speed", "speed"),
        ("stages", "stages"),
        ("prompt", "prompt"),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "accept", "accept", id="agent.accept"),
        Binding("r", "reject", "reject", id="agent.reject"),
        Binding("u", "undo", "undo", id="agent.undo"),
        Binding("left_square_bracket", "walk(-1)", "attempts", id="agent.previous", key_display="[]"),
        Binding("right_square_bracket", "walk(1)", "next attempt", id="agent.next", show=False),
        Binding("e", "error", "error", id="agent.error"),
        Binding("d", "diff", "diff", id="agent.diff"),
        Binding("left_curly_bracket", "hunk(-1)", "hunks", id="agent.hunk_previous", key_display="{}"),
        Binding("right_curly_bracket", "hunk(1)", "next hunk", id="agent.hunk_next", show=False),
        Binding("less_than_sign", "other(-1)", "compare with", id="agent.other_previous", key_display="<>"),
        Binding("greater_than_sign", "other(1)", "compare with later", id="agent.other_next", show=False),
        Binding("s", "columns", "columns", id="agent.columns"),
        *STEERING,
        Binding("z", "zoom", "zoom", id="agent.zoom"),
    ]

    def __init__(self, key: str, number: int | None = None) -> None:
        super().__init__()
        self.key = key
        self.number = number
        """The attempt looked at; `None` follows the newest."""
        self.compared_with: int | None = None
        """The other side of the diff; `None` is the base, else the attempt before."""
        self.shows_diff = False
        self.zoomed = False
        self._pane = "words"
        self._detail = "verdict"
        self._frame = -1
        """Which of the lines that the error names `e` went to last; -1 before the first."""
        self._framed = ""
        """The attempt of `_frame`."""
        self._told: tuple[object, ...] = ()
        """What the details were drawn from, so that words that stream do not draw them again."""
        self.strip = Bar(id="strip")
        self.words = Tail(id="words")
        self.code = CodePane(id="code")
        self.body = Horizontal(self.words, self.code, id="body")
        self.lower_tabs = Bar(id="lower-tabs")
        self.detail = DetailPane(id="detail")

    @property
    def instance(self) -> InstanceState | None:
        """The instance; `None` before it started, which happens in a replay."""
        return self.feed.state.instances.get(self.key)

    @property
    def attempt(self) -> AttemptState | None:
        """The attempt looked at."""
        return attempts.find(self.feed.state, self.key, self.number)

    steered_instance, steered_attempt = instance, attempt

    @property
    def tabbed(self) -> bool:
        """One pane alone: no room for more, or zoomed."""
        return self.zoomed or super().tabbed

    def middle(self) -> Iterable[Widget]:
        """Strip, words and code, details."""
        yield self.strip
        yield self.tab_bar
        yield self.body
        yield self.lower_tabs
        yield self.detail

    def on_mount(self) -> None:
        """Draw, and put the keys on the words."""
        super().on_mount()
        self._choose("words")

    def draw(self, dirty: frozenset[str]) -> None:
        """All panes of this instance; each paints its changed lines alone."""
        if EVERYTHING not in dirty and self.key not in dirty:
            return
        self._place()
        instance, attempt = self.instance, self.attempt
        if attempt is not None and attempt.attempt != self._framed:
            self._framed, self._frame = attempt.attempt, -1
        self.strip.show(self._strip(instance, attempt))
        self._draw_words(attempt)
        self._draw_code(instance, attempt)
        self._draw_detail(attempt)
        self.refresh_bindings()

    def _strip(self, instance: InstanceState | None, attempt: AttemptState | None) -> Line:
        head = Span(f" {self.key} ", "key")
        if instance is None or attempt is None:
            return head, Span(" not started", "dim")
        doing = views.doing_cell(self.feed.state, instance)
        tail = (Span(f"  {doing.text}", doing.style),)
        room = self.size.width - cells((head, *tail))
        chosen = attempt.number
        found = attempts.strip_cells(instance, chosen)
        place = next(index for index, each in enumerate(instance.attempts) if each.number == chosen)
        first, last = place, place + 1
        # Cells around the chosen one, as many as fit.
        while first > 0 or last < len(found):
            if first > 0 and cells(found[first - 1 : last]) <= room:
                first -= 1
            elif last < len(found) and cells(found[first : last + 1]) <= room:
                last += 1
            else:
                break
        return (head, *found[first:last], *tail)

    def _draw_words(self, attempt: AttemptState | None) -> None:
        words = self.words
        place = ", in pane 2" if self.tabbed else ", on the right"
        words.tell(passages(attempt, place=place) if attempt is not None else ())
        title = f"words of {attempt.attempt}, {attempts.lineage(attempt)}" if attempt is not None else "words"
        hold = "" if words.following else ", held: f follows"
        _title(words, f"{title}{hold}")

    def _draw_code(self, instance: InstanceState | None, attempt: AttemptState | None) -> None:
        code = self.code
        if instance is None or attempt is None:
            code.show_code(None, missing="")
            return
        if not self.shows_diff or attempt.source is None:
            written = written_code(attempt)
            missing = "no code in this attempt" if attempt.evaluation is not None else "no code yet"
            earlier = attempts.find_base(instance, attempt)
            if earlier is not None and written is None:
                missing += f"; it is made from attempt {earlier.number}, which [ and ] lead to"
            code.show_code(
                Side(attempt.attempt, written, attempt.commit) if written else None,
                marked_line=self._marked_line(attempt),
                missing=missing,
                growing=attempt.source is None,
            )
            _title(code, f"code of {attempt.attempt}  {code.summary}".rstrip())
            return
        other = attempts.find_other(instance, attempt, self.compared_with)
        missing = (
            "nothing to compare with: this is the first attempt"
            if other is None
            else f"no code in attempt {other.number}"
        )
        code.show_diff(_side(other) if other is not None else None, _side(attempt), missing=missing)
        before = other.number if other is not None else "-"
        _title(code, f"diff {self.key}/{before} -> /{attempt.number}  {code.summary}")

    def _marked_line(self, attempt: AttemptState) -> int | None:
        """The line that `e` chose, else the line of the error."""
        links = self._links(attempt) if self._frame >= 0 else []
        if 0 <= self._frame < len(links):
            return links[self._frame][1]
        error = attempt.evaluation.error if attempt.evaluation is not None else None
        return error.line if error is not None else None

    def _draw_detail(self, attempt: AttemptState | None) -> None:
        pane = self.detail
        width = pane.scrollable_content_region.width - 1
        if attempt is None or width <= 0:
            pane.show(())
            self._told = ()
            return
        name = self._detail
        asked = [call.messages for call in attempt.calls]
        instance = self.instance
        ended = (instance.finished, instance.best) if instance is not None else None
        words = (attempt.attempt, attempt.strategy, attempt.waiting, attempt.stage, asked)
        judged = (id(attempt.evaluation), id(attempt.exam), attempt.examining, list(attempt.stages))
        seen: tuple[object, ...] = (name, self._frame, width, *words, *judged, ended, attempt.decision)
        if seen == self._told:
            return
        self._told = seen
        told = details.told(name, attempt, instance, views.target(self.feed.state), width)
        lines = list(told.lines)
        if name == "verdict" and 0 <= self._frame < len(told.links):
            at = told.links[self._frame][0]
            first, *others = lines[at]
            lines[at] = (Span("> ", "bad"), first._replace(text=first.text.removeprefix("  ")), *others)
        pane.show(
            lines,
            copy_text=details.copy_text(name, attempt)
            or "\n".join("".join(s.text for s in row) for row in lines),
        )

    @on(DetailPane.Resized)
    def draw_details_anew(self) -> None:
        """Other width, other lines."""
        self._draw_detail(self.attempt)

    def _place(self) -> None:
        tabbed = self.tabbed
        names = [name for name, _ in self.PANES]
        self.tab_bar.display = tabbed
        self.tab_bar.show(self.tabs(self._pane, names))
        lower = self.lower_tabs
        lower.display = not tabbed
        lower.show(self.tabs(self._detail, [name for name in names if name not in ABOVE]))
        self.words.display = not tabbed or self._pane == "words"
        self.code.display = not tabbed or self._pane == "code"
        self.body.display = not tabbed or self._pane in ABOVE
        self.detail.display = not tabbed or self._pane not in ABOVE

    def _choose(self, name: str) -> None:
        self._pane = name
        if name not in ABOVE:
            self._detail = name
        self._place()
        pane = {"words": self.words, "code": self.code}.get(name, self.detail)
        pane.focus()
        self.draw(frozenset((EVERYTHING,)))

    def _look_at(self, number: int | None) -> None:
        self.number = number
        self.draw(frozenset((EVERYTHING,)))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Decisions only where they can be made; only a correct attempt can be accepted."""
        if action in ("accept", "reject", "undo"):
            attempt = self.attempt if self.desk.commander.can_act else None
            if attempt is None or attempt.evaluation is None:
                return False
            if action == "accept":
                return attempt.verdict is Verdict.CORRECT
            return attempt.decision is not None if action == "undo" else True
        if action in ("other", "columns"):
            return self.shows_diff and (not self.tabbed or self._pane == "code")
        if action == "hunk":
            return self.code.has_hunks and (not self.tabbed or self._pane == "code")
        if action == "zoom":
            return self.zoomed or not self.tabbed
        if action == "error":
            return self.attempt is not None and bool(self._links(self.attempt))
        return super().check_action(action, parameters)

    def action_pane(self, number: int) -> None:
        """Go to a pane."""
        self._choose(self.PANES[number - 1][0])

    def action_walk(self, steps: int) -> None:
        """To another attempt; past the last one, follow the newest again."""
        instance, attempt = self.instance, self.attempt
        if instance is None or attempt is None:
            return
        numbers = [each.number for each in instance.attempts]
        place = max(numbers.index(attempt.number) + steps, 0)
        newest = attempts.newest(instance)
        follows = place >= len(numbers) or (newest is not None and numbers[place] == newest.number)
        self._look_at(None if follows else numbers[place])

    def action_other(self, steps: int) -> None:
        """Compare with another attempt."""
        instance, attempt = self.instance, self.attempt
        if instance is None or attempt is None:
            return
        numbers = [each.number for each in instance.attempts if each.number != attempt.number]
        other = attempts.find_other(instance, attempt, self.compared_with)
        if other is None or not numbers:
            return
        place = numbers.index(other.number) + steps
        self.compared_with = numbers[min(max(place, 0), len(numbers) - 1)]
        self.draw(frozenset((EVERYTHING,)))

    def action_diff(self) -> None:
        """Turn between code and diff."""
        self.shows_diff = not self.shows_diff
        if self.tabbed and self._pane != "code":
            self._choose("code")
        self.draw(frozenset((EVERYTHING,)))

    def action_hunk(self, steps: int) -> None:
        """To the hunk before, or to the next one."""
        self.code.go_to_hunk(steps)
        self.draw(frozenset((EVERYTHING,)))

    def action_columns(self) -> None:
        """One column or two."""
        self.code.toggle_columns()

    def action_zoom(self) -> None:
        """One pane alone, and back."""
        self.zoomed = not self.zoomed
        self.set_class(self.zoomed, "-zoomed")
        names: dict[Widget | None, str] = {self.words: "words", self.code: "code", None: self._pane}
        self._choose(names.get(self.focused, self._detail))

    def _links(self, attempt: AttemptState) -> list[tuple[int, int]]:
        return attempts.verdict_lines(attempt, None, None, 80).links

    def action_error(self) -> None:
        """To the next line of the candidate that the error names."""
        attempt = self.attempt
        if attempt is None:
            return
        links = self._links(attempt)
        self._frame = (self._frame + 1) % len(links)
        self.shows_diff = False
        if self.tabbed:
            self._choose("code")
        self.draw(frozenset((EVERYTHING,)))
        self.call_after_refresh(self.code.go_to, links[self._frame][1])

    def action_back(self) -> None:
        """Out of the zoom, else to the fleet."""
        if self.zoomed:
            self.action_zoom()
        else:
            self.dismiss()

    def action_accept(self) -> None:
        """Accept the attempt looked at."""
        self._decide(accepted=True)

    def action_reject(self) -> None:
        """Reject the attempt looked at."""
        self._decide(accepted=False)

    def _decide(self, *, accepted: bool) -> None:
        attempt = self.attempt
        if attempt is not None:
            # The instance goes on after a decision; the person stays with the attempt.
            self.desk.commander.ask_and_decide(
                attempt, accepted=accepted, decided=lambda: self._stay_at(attempt.number)
            )

    def _stay_at(self, number: int) -> None:
        self.number = number

    def action_undo(self) -> None:
        """Take the decision back."""
        if self.attempt is not None:
            self.desk.commander.undo_decision(self.attempt.attempt)


def _side(attempt: AttemptState) -> Side | None:
    return Side(attempt.attempt, attempt.source, attempt.commit) if attempt.source else None


def _title(pane: Widget, title: str) -> None:
    escaped = title.replace("[", "\\[")
    if pane.border_title != escaped:
        pane.border_title = escaped
