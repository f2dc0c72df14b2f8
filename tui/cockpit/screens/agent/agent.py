"""One instance: the steps of an attempt, its code or diff, the judge's verdict; the strip leads to other attempts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widget import Widget

from sessions.names import split_attempt
from sessions.state.state import AttemptState, InstanceState
from tui.cockpit.data import attempts
from tui.cockpit.data.feed import EVERYTHING
from tui.cockpit.data.steps import steps_of
from tui.cockpit.desk.desk import elsewhere_words
from tui.cockpit.draw.lines import EMPTY, Line, Span, cells, escaped, line, plain
from tui.cockpit.draw.verdict_lines import pinned_lines
from tui.cockpit.screens.acting import DECISIONS, STEERING, action_bindings
from tui.cockpit.screens.agent import agent_head, tabs
from tui.cockpit.screens.agent.assembly_view import AssemblyView
from tui.cockpit.screens.agent.page import NO_VERDICT, PageSubject, PageView
from tui.cockpit.screens.agent.steps_view import StepsView
from tui.cockpit.screens.comparing import COMPARING, HUNKS, AttemptCode, ComparingScreen, set_title
from tui.cockpit.widgets.bar import Bar
from tui.facts.profiling.profile_tables import shown_profiles

ABOVE = ("steps", "code")
"""Panes that are always on screen where there is room."""


class AgentScreen(ComparingScreen):
    """The instance `key`; follows its newest attempt until the person walks to another."""

    NAME = "agent"
    HELP = """\
The strip has a cell for each attempt: its number, the letter of its verdict
(lower case: what it does now), its speedup. `*` is the best; marks behind it:
`!` findings, `+` accepted, `x` rejected, `?` waits for you, `=` confirmed.
Brackets are around the attempt that all panes are about.
"""
    PANES: ClassVar[tuple[tuple[str, str], ...]] = (
        ("steps", "steps"),
        ("code", "code"),
        ("verdict", "verdict"),
        ("speed", "speed"),
        ("resources", "resources"),
        ("profile", "profile"),
        ("stages", "stages"),
        ("prompt", "prompt"),
        ("assembly", "asm"),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        *action_bindings("decide", DECISIONS),
        *COMPARING,
        *HUNKS,
        *STEERING,
        Binding("z", "zoom", "zoom", id="agent.zoom"),
    ]

    def __init__(
        self, key: str, number: int | None = None, *, registry: Path | None = None, words: str = ""
    ) -> None:
        """`registry` is the home's file of added suites, for the baselines of their tasks; `words` are gone to."""
        super().__init__()
        self.key = key
        self.number = number
        """The attempt on screen; `None` follows the newest."""
        self.zoomed = False
        self._words = words
        self._pane = "steps"
        self._tab = "verdict"
        self._shown = ""
        """The attempt of the steps on screen."""
        self._page_key: tuple[object, ...] = ()
        """`_key_of_page` of the page on screen: streamed words do not draw it again."""
        self.head = Bar(id="agent-head")
        self.strip = Bar(id="strip")
        self.verdict = (Bar(classes="pinned"), Bar(classes="pinned"))
        self.steps = StepsView(id="steps")
        self.code = AttemptCode(registry=registry)
        self.body = Horizontal(self.steps, self.code, id="body")
        self.lower_tabs = Bar(id="lower-tabs")
        self.page = PageView(id="page")
        self.assembly = AssemblyView()

    @property
    def instance(self) -> InstanceState | None:
        """The instance; `None` before it started, which happens in a replay."""
        return self.feed.state.instances.get(self.key)

    @property
    def attempt(self) -> AttemptState | None:
        """The attempt on screen."""
        return attempts.find(self.feed.state, self.key, self.number)

    steered_instance, steered_attempt = instance, attempt

    @property
    def has_room(self) -> bool:
        """True if all panes have room at once."""
        return not super().tabbed

    @property
    def tabbed(self) -> bool:
        """True for one pane alone: no room for more, or zoomed."""
        return self.zoomed or not self.has_room

    def middle(self) -> Iterable[Widget]:
        yield self.head
        yield self.strip
        yield from self.verdict
        yield self.tab_bar
        yield self.body
        yield self.lower_tabs
        yield self.page
        yield self.assembly

    def on_mount(self) -> None:
        super().on_mount()
        self._choose("steps")
        if self._words:
            self.call_after_refresh(self._go_to_words)

    def _go_to_words(self) -> None:
        """Go to words in the steps, else in the code, which the steps do not show."""
        if not self.steps.find_words(self._words):
            self._choose("code")
            self.code.find_words(self._words)

    def repaint(self, dirty: frozenset[str]) -> None:
        super().repaint(dirty)
        if self.is_mounted and self.desk.feed is not None:
            self._draw_head()

    def draw(self, dirty: frozenset[str]) -> None:
        """Draw all panes of this instance; each paints its changed lines alone."""
        if EVERYTHING not in dirty and self.key not in dirty:
            return
        instance, attempt = self.instance, self.attempt
        self._place()
        if instance is not None and attempt is not None:
            self.strip.show(
                agent_head.strip_line(instance, attempt, self.size.width, is_over=self.feed.is_over)
            )
        else:
            self.strip.show(EMPTY)
        self._draw_head()
        self._draw_steps(attempt)
        self.code.show_attempt(self.feed.state, instance, attempt)
        self._draw_page(attempt)
        self.refresh_bindings()

    def _draw_head(self) -> None:
        state, instance, attempt = self.feed.state, self.instance, self.attempt
        width = self.size.width
        head = agent_head.head_line(
            state,
            instance,
            self.key,
            attempt,
            wall=self.desk.wall(),
            width=width,
            facts=self.feed.facts,
        )
        strip = self.strip.line
        one_line = cells(head) + cells(strip) + 2 <= width
        gap = Span(" " * (width - cells(head) - cells(strip) - 1))
        self.head.show((*head, gap, *strip) if one_line else head)
        self.strip.display = not one_line

    def screens_tail(self) -> Line:
        """Return what needs a person, where the header has no line."""
        if self.has_room:
            return EMPTY
        return agent_head.head_tail(self.status(), self.concerns, self.size.width // 4)

    def _draw_steps(self, attempt: AttemptState | None) -> None:
        view = self.steps
        name = attempt.attempt if attempt is not None else ""
        is_live = attempt is not None and attempt.word not in ("wait", "exam", "person")
        if name != self._shown:
            self._shown = name
            view.restart(follows=is_live)
        view.show_steps(steps_of(attempt, stopped=self.feed.is_over) if attempt is not None else ())
        hold = ", held: f follows" if is_live and not view.following else ""
        set_title(view, escaped(f"steps {attempts.short_name(name)}{hold}" if name else "steps"))

    def _draw_page(self, attempt: AttemptState | None) -> None:
        for bar, pinned in zip(self.verdict, self._pinned(attempt), strict=True):
            bar.show((Span(" "), *pinned))
        if self._tab == "assembly":
            self._draw_assembly(attempt)
            return
        page = self.page
        width = page.scrollable_content_region.width - 1
        if attempt is None or width <= 0:
            page.show(())
            self._page_key = ()
            return
        subject = self._subject(attempt)
        key = self._key_of_page(subject, width)
        if key == self._page_key:
            return
        self._page_key = key
        lines = tabs.page_of(self._tab, subject, width)
        page.show(lines, copy_text=tabs.copy_text(self._tab, attempt) or "\n".join(map(plain, lines)))

    def _draw_assembly(self, attempt: AttemptState | None) -> None:
        started = self.feed.state.started
        if attempt is not None and attempt.evaluation is not None and started is not None:
            base = attempts.base_of(self.feed.state, attempt)
            self.assembly.show_attempt(self.desk.home, started.session, attempt, base)

    def _pinned(self, attempt: AttemptState | None) -> list[Line]:
        if attempt is None:
            return [EMPTY, EMPTY]
        if (
            self.feed.is_over
            and attempt.evaluation is None
            and not (self.instance is not None and self.instance.finished)
        ):
            return [line(NO_VERDICT, "dim"), EMPTY]
        return pinned_lines(attempt, self.instance, self.size.width - 2)

    def _subject(self, attempt: AttemptState) -> PageSubject:
        state = self.feed.state
        base = attempts.base_of(state, attempt)
        code = self.code
        return PageSubject(
            attempt,
            self.instance,
            base,
            shown_profiles(state, attempt),
            any(request.attempt == attempt.attempt for request in state.profiles_asked),
            self.tabbed,
            self.feed.session,
            self._can_act,
            elsewhere_words(self.feed),
            self.feed.is_over,
            code.chosen_error,
        )

    def _key_of_page(self, subject: PageSubject, width: int) -> tuple[object, ...]:
        """All that the page depends on: each event of an instance, but streamed words, gives new facts of it."""
        state, cache = self.feed.state, self.feed.facts
        names = [attempt.attempt for attempt in (subject.attempt, subject.base) if attempt is not None]
        facts = [cache.of(state, state.instances[split_attempt(name).instance]) for name in names]
        return self._tab, width, facts, subject._replace(profiles={})

    @on(PageView.Resized)
    def _draw_page_anew(self) -> None:
        self._draw_page(self.attempt)

    @on(StepsView.Chosen)
    def _show_pane_of_step(self, message: StepsView.Chosen) -> None:
        self._choose(message.pane)

    def _place(self) -> None:
        tabbed = self.tabbed
        attempt = self.attempt
        if not tabs.is_there(self._tab, attempt):
            self._tab = "verdict"
            self._pane = "verdict" if self._pane not in ABOVE else self._pane
        names = [name for name, _ in self.PANES if tabs.is_there(name, attempt)]
        self.header_bar.display = self.has_room
        for bar in self.verdict:
            bar.display = tabbed
        self.tab_bar.display = tabbed
        self.tab_bar.show(self.tabs(self._pane, names))
        self.lower_tabs.display = not tabbed
        self.lower_tabs.show(self.tabs(self._tab, [name for name in names if name not in ABOVE]))
        self.steps.display = not tabbed or self._pane == "steps"
        self.code.display = not tabbed or self._pane == "code"
        self.body.display = not tabbed or self._pane in ABOVE
        lower = not tabbed or self._pane not in ABOVE
        self.page.display = lower and self._tab != "assembly"
        self.assembly.display = lower and self._tab == "assembly"

    def _choose(self, name: str) -> None:
        self._pane = name
        if name not in ABOVE:
            self._tab = name
        self._place()
        panes: dict[str, Widget] = {"steps": self.steps, "code": self.code, "assembly": self.assembly.code}
        pane = panes.get(name, self.page)
        pane.focus()
        self.redraw()

    def bring_up_code(self) -> None:
        """Choose the code pane where only one pane has room."""
        if self.tabbed and self._pane != "code":
            self._choose("code")

    def deciding(self, attempt: AttemptState) -> None:
        """Stay with the attempt although a newer one begins."""
        self.number = attempt.number

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Digits only for tabs that are there."""
        if self.desk.feed is None:
            return False
        if action == "pane":
            place = parameters[0]
            return (
                isinstance(place, int)
                and place <= len(self.PANES)
                and tabs.is_there(self.PANES[place - 1][0], self.attempt)
            )
        if action == "zoom":
            return self.zoomed or self.has_room
        return super().check_action(action, parameters)

    def action_pane(self, number: int) -> None:
        self._choose(self.PANES[number - 1][0])

    def action_walk(self, steps: int) -> None:
        """Go to another attempt; past the last one, follow the newest again."""
        instance, attempt = self.instance, self.attempt
        if instance is None or attempt is None:
            return
        numbers = [sibling.number for sibling in instance.attempts]
        place = max(numbers.index(attempt.number) + steps, 0)
        self._look_at(numbers[place] if place < len(numbers) else None)

    def jump(self, kind: str, direction: int) -> bool:
        instance, attempt = self.instance, self.attempt
        if instance is None or attempt is None:
            return False
        target = attempts.next_of_kind(instance, attempt.number, kind, direction)
        if target is not None:
            self._look_at(target.number)
        return target is not None

    def _look_at(self, number: int | None) -> None:
        newest = attempts.newest(self.instance) if self.instance is not None else None
        follows = newest is not None and number == newest.number
        self.number = None if follows else number
        self.redraw()

    def show_jumped(self, attempt: str) -> None:
        name = split_attempt(attempt)
        self.key = name.instance
        self._look_at(name.number)

    def action_profile(self) -> None:
        super().action_profile()
        self._choose("profile")

    def action_zoom(self) -> None:
        self.zoomed = not self.zoomed
        self.set_class(self.zoomed, "-zoomed")
        names: dict[Widget | None, str] = {self.steps: "steps", self.code: "code"}
        names |= dict.fromkeys((self.page, self.assembly.source, self.assembly.code), self._tab)
        self._choose(names.get(self.focused, self._pane))

    def action_back(self) -> None:
        """End the zoom, else go back to the Fleet."""
        if self.zoomed:
            self.action_zoom()
        else:
            self.dismiss()
