"""What the screens of a session share: header, banner, time line, keys of a replay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, cast

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget

from sessions.names import short_task, split_attempt
from tui.actions.line import LineSubject
from tui.cockpit.data.feed import EVERYTHING, Feed
from tui.cockpit.data.replays import Replay
from tui.cockpit.data.timeline import TIMELINE, timeline_lines
from tui.cockpit.desk.desk import Desk
from tui.cockpit.desk.messages import OpenFleet, OpenInstance, OpenReport, OpenReview
from tui.cockpit.dialogs.layers import ClosesOnce, LayeredScreen
from tui.cockpit.dialogs.line_prompt import LinePrompt, ask_to_find
from tui.cockpit.draw.lines import EMPTY, Line, Span, cells, line
from tui.cockpit.screens import header
from tui.cockpit.widgets.bar import Bar
from tui.cockpit.widgets.key_bar import KeyBar
from tui.cockpit.widgets.line_view import LineView
from tui.cockpit.widgets.screens_bar import PLACES, ScreensBar
from tui.cockpit.widgets.table import LineTable
from tui.facts.attention import Concern, ConcernKind, attention

PLAYING: list[BindingType] = [
    Binding("p", "replay('play', 1)", "play", id="replay.play"),
    Binding("p", "replay('play', -1)", "pause", id="replay.play"),
]
"""A screen with another meaning of this key names these bindings beside it."""
REPLAYING: list[BindingType] = [
    Binding("right_parenthesis", "replay('attempt', 1)", "attempts", id="replay.attempt", key_display="()"),
    Binding(
        "left_parenthesis", "replay('attempt', -1)", "attempt before", id="replay.attempt_back", show=False
    ),
    Binding("number_sign", "replay('number', 1)", "attempt N", id="replay.number", key_display="#"),
    Binding("full_stop", "replay('event', 1)", "events", id="replay.event", key_display=",."),
    Binding("comma", "replay('event', -1)", "event before", id="replay.event_back", show=False),
    Binding("plus,equals_sign", "replay('speed', 1)", "speed", id="replay.faster", key_display="+-"),
    Binding("minus", "replay('speed', -1)", "slower", id="replay.slower", show=False),
    *PLAYING,
    Binding("0", "replay('edge', -1)", "start", id="replay.start", show=False),
    Binding("dollar_sign", "replay('edge', 1)", "end", id="replay.end", show=False),
]
"""Keys of a replay, and of a finished session."""
JUMPS = {"waiting": "attempt that waits", "best": "best", "failure": "failure"}
REPLAY_JUMPS = {"waiting": "decision", "best": "best", "failure": "failure"}
JUMP_KEYS = {
    "attempt that waits": ("jump.waiting", "wW"),
    "decision": ("jump.waiting", "wW"),
    "best": ("jump.best", "bB"),
    "failure": ("jump.failure", "xX"),
    "attempt": ("replay.attempt", ")("),
}
"""Name of the keys that go to a place, and the keys forward and back, by what is there."""
WIDE = 110
TALL = 32


class SessionScreen(ClosesOnce, LayeredScreen[None]):
    """Draws from the app's feed. A subclass says what is in the middle and how to repaint it."""

    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012  # Textual types it as an instance's
        (0, "-narrow"),
        (WIDE, "-wide"),
    ]
    NAME: ClassVar[str]
    """Its name in `PLACES`."""
    PERIOD_S = 0.25
    """Between two frames; a slow terminal gets fewer."""
    PANES: ClassVar[tuple[tuple[str, str], ...]] = ()
    """(name, title) of what the digits choose, in their order."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", id="screen.back", key_display="esc"),
        Binding("slash", "find", "find", id="screen.find", key_display="/", priority=True),
        Binding("n", "match(1)", "next match", id="screen.next_match", show=False),
        Binding("N", "match(-1)", "match before", id="screen.match_before", show=False),
        *(
            Binding(place.key, f"go('{name}')", place.title, id=f"go.{name}", show=False)
            for name, place in PLACES.items()
        ),
        Binding("w", "jump('waiting', 1)", "next waiting", id="jump.waiting", show=False),
        Binding("W", "jump('waiting', -1)", "waiting before", id="jump.waiting_back", show=False),
        Binding("b", "jump('best', 1)", "next best", id="jump.best", show=False),
        Binding("B", "jump('best', -1)", "best before", id="jump.best_back", show=False),
        Binding("x", "jump('failure', 1)", "next failure", id="jump.failure", show=False),
        Binding("X", "jump('failure', -1)", "failure before", id="jump.failure_back", show=False),
        *REPLAYING,
        *(
            Binding(str(number), f"pane({number})", f"pane {number}", id=f"pane.{number}", show=False)
            for number in range(1, 10)
        ),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.header_bar = Bar(id="header", classes="header")
        self.screens_bar = ScreensBar(id="screens")
        self.banner = Bar(id="banner")
        self.timeline = LineView(id="timeline")
        self.timeline.can_focus = False
        self.tab_bar = Bar(id="tabs")
        self.concerns: list[Concern] = []
        """What needs a person, as the header counts it."""
        self._over = False
        self._held: bool | None = None
        """`is_held` as the key bar has it."""

    @property
    def desk(self) -> Desk:
        """The app, as screens see it."""
        return cast("Desk", self.app)

    @property
    def feed(self) -> Feed:
        """Where the state comes from."""
        feed = self.desk.feed
        assert feed is not None, "a session's screen without a session"
        return feed

    @property
    def subject(self) -> LineSubject:
        """What a `:` line without names is about; nothing where there is no cursor."""
        return LineSubject()

    @property
    def tabbed(self) -> bool:
        """Whether there is room for one pane alone."""
        return self.size.width < WIDE or self.size.height < TALL

    def compose(self) -> ComposeResult:
        """Header, names of the screens, the middle, banner, time line, keys."""
        yield self.header_bar
        yield self.screens_bar
        yield from self.middle()
        yield self.banner
        yield self.timeline
        yield KeyBar(id="keys")

    def middle(self) -> Iterable[Widget]:
        """The subclass's own widgets."""
        return ()

    def on_mount(self) -> None:
        """Draw what is known by now."""
        self.timeline.display = self.feed.replay is not None
        self.bindings_updated_signal.subscribe(self, lambda _: self._draw_screens())
        self.repaint(frozenset((EVERYTHING,)))

    def on_screen_resume(self) -> None:
        """Others drew meanwhile. Of several screens that close at once, only the last one left is drawn."""
        if self.is_current:
            self.repaint(frozenset((EVERYTHING,)))

    def on_resize(self, event: events.Resize) -> None:
        """Lines depend on the width. Children know theirs only after this."""
        self.call_after_refresh(self.repaint, frozenset((EVERYTHING,)))

    def repaint(self, dirty: frozenset[str]) -> None:
        """Draw what changed."""
        if not self.is_mounted or self.desk.feed is None:
            return
        feed = self.feed
        width = self.size.width
        self.header_bar.show(self._header(feed, width - 2))
        self._draw_screens()
        self._show_banner()
        if feed.replay is not None:
            instance = feed.state.instances.get(next(iter(self.subject.instances), ""))
            task = short_task(instance.task) if instance is not None else ""
            is_fleet, is_tall = self.NAME == "fleet", self.size.height >= TALL
            lines = timeline_lines(
                feed.replay, feed.state, width, is_fleet=is_fleet, is_tall=is_tall, task=task
            )
            if len(lines) != len(self.timeline.lines):  # the middle gets another height
                dirty |= {EVERYTHING}
            self.timeline.show(lines)
        if self.is_held != self._held:
            self._held = self.is_held
            self.refresh_bindings()
        if feed.is_over != self._over:
            self._over = feed.is_over
            dirty |= {EVERYTHING}
        if dirty:
            self.draw(dirty)

    def _header(self, feed: Feed, width: int) -> Line:
        now_wall = self.desk.wall()
        health = feed.live.health if feed.live is not None else None
        self.concerns = attention(
            feed.state, now_wall=now_wall, health=health, facts=feed.facts, present=self.desk.present()
        )
        if (
            feed.replay is not None and feed.state.stopped is not None
        ):  # the header says so; no person is needed now
            self.concerns = [concern for concern in self.concerns if concern.kind is not ConcernKind.ENGINE]
        line = header.header_line(
            feed.state,
            feed.facts.all(feed.state),
            name=feed.session,
            status=self.status(),
            concerns=self.concerns,
            now_wall=now_wall,
            shows_time=feed.replay is None,
            width=width,
        )
        return (Span(" "), *line)

    def _draw_screens(self) -> None:
        if not self.is_mounted or self.desk.feed is None:
            return
        self.screens_bar.show_screens(
            self.NAME,
            [name for name in PLACES if self.destination(name) is not None],
            keys=self.desk.preferences.keys,
            waiting=sum(concern.kind is ConcernKind.REVIEW for concern in self.concerns),
            tail=self.screens_tail(),
        )

    def screens_tail(self) -> Line:
        """Return what a screen without a header says to the right of the names."""
        return EMPTY

    def status(self) -> Line:
        """Return what is unusual about the session or the view."""
        return header.status_line(
            self.feed,
            readonly=self.desk.readonly,
            can_act=self.desk.commander.can_act,
            now_wall=self.desk.present(),
            remarks=self.desk.remarks(),
        )

    def explained(self) -> str:
        """What `?` tells of the screen beside its focused pane."""
        told = (self.HELP or "", TIMELINE if self.feed.replay is not None else "")
        return "\n".join(each for each in told if each)

    def draw(self, dirty: frozenset[str]) -> None:
        """Draw what changed in the middle."""

    def _show_banner(self) -> None:
        text, style = self.feed.trouble(), "bad"
        if not text:
            notice = next((each for each in reversed(self.feed.state.notices) if each[0] != "info"), None)
            text, style = (notice[1], "bad" if notice[0] == "error" else "warn") if notice else ("", "")
        shown = line(text, style)
        self.banner.show(shown and (Span("! ", style), *shown))
        if self.banner.display != bool(shown):
            self.banner.display = bool(shown)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of a replay work in a replay only; digits where there is a pane; screens that can be opened from here."""
        if self.desk.feed is None:
            return False
        if action == "replay":
            is_wrong_way = parameters[0] == "play" and self.is_held != (parameters[1] == 1)
            return self.feed.replay is not None and not is_wrong_way
        if action == "find":
            return isinstance(self.focused, (LineTable, LineView))
        if action == "go":
            return self.destination(str(parameters[0])) is not None
        if action == "pane":
            return isinstance(parameters[0], int) and parameters[0] <= len(self.PANES)
        return super().check_action(action, parameters)

    def tabs(self, chosen: str, names: Sequence[str]) -> Line:
        """A line that names panes with their digits, the chosen one in brackets."""
        spans: Line = ()
        for gap in (" ", ""):  # in a narrow terminal one space between two names
            spans = tuple(
                Span(f"[{number} {title}]", "bold key")
                if name == chosen
                else Span(f" {number} {title}{gap}", "dim")
                for number, (name, title) in enumerate(self.PANES, start=1)
                if name in names
            )
            if cells(spans) <= self.size.width + 1:  # the last space may be cut
                break
        return spans

    def destination(self, name: str) -> Message | None:
        """Return the message that leads to a screen of `PLACES`; `None` if there is nothing to show there from here.

        A subclass with an attempt under its cursor adds `agent` and `latency`.
        """
        messages: dict[str, Message] = {"fleet": OpenFleet(), "review": OpenReview(), "report": OpenReport()}
        return messages.get(name) if name != self.NAME else None

    def action_go(self, name: str) -> None:
        """Go to another screen of the session."""
        message = self.destination(name)
        if message is not None:
            self.post_message(message)

    @on(ScreensBar.Chosen)
    def _go_to_clicked(self, message: ScreensBar.Chosen) -> None:
        if message.name != self.NAME and self.destination(message.name) is None:
            self.notify(f"no attempt under the cursor for {PLACES[message.name].title}", timeout=4)
        self.action_go(message.name)

    def action_back(self) -> None:
        """Go back to the screen below."""
        self.dismiss()

    def action_jump(self, kind: str, direction: int) -> None:
        """Go to the next attempt (or the one before) that waits, is a best or failed; in a replay to its moment."""
        replay = self.feed.replay
        if replay is None:
            if not self.jump(kind, direction) and not (kind == "waiting" and self._go_to_waiting(direction)):
                self._tell_none(JUMPS[kind], direction)
            return
        marks = replay.story.marks
        moments = {"waiting": marks.decisions, "best": marks.bests, "failure": marks.failures}[kind]
        self._go_to_moment(replay, moments, direction, REPLAY_JUMPS[kind])

    def _go_to_waiting(self, direction: int) -> bool:
        """Open the next attempt of the session that waits, from the last one on the first; `False` if none waits."""
        waiting = [concern for concern in self.concerns if concern.kind is ConcernKind.REVIEW]
        names = [concern.subject for concern in waiting]
        if not names:
            return False
        here = self.subject.attempt
        start = names.index(here) if here in names else -1 if direction > 0 else 0
        following = waiting[(start + direction) % len(waiting)]
        if following.subject == here:
            self.notify("no other attempt waits", timeout=2)
        else:
            self.post_message(OpenInstance(following.instance, following.attempt))
        return True

    def action_find(self) -> None:
        """Find in the focused text, or filter the focused table."""
        if isinstance(self.focused, (LineTable, LineView)):
            ask_to_find(self.app, self.focused.find)

    def action_match(self, direction: int) -> None:
        """Go to the next match in the focused text, or to the one before."""
        pane = self.focused
        if isinstance(pane, LineView) and not pane.go_to_match(direction):
            self.notify(f"no match {'before' if direction < 0 else 'after'} this", timeout=2)

    def jump(self, kind: str, direction: int) -> bool:
        """Move the cursor to the next `waiting`, `best` or `failure`; `False` if there is none."""
        return False

    @property
    def is_held(self) -> bool:
        """True if the replay is paused; a subclass says so of instances."""
        return self.feed.replay is not None and not self.feed.replay.playing

    def action_replay(self, step: str, direction: int) -> None:
        """Move a replay: `play` (or pause), `attempt` (its beginning), `number` (its verdict), `event`, `speed` or `edge`."""
        replay = self.feed.replay
        if replay is None:
            return
        match step:
            case "play":
                replay.toggle()
            case "attempt":
                self._go_to_moment(replay, replay.story.marks.attempts, direction, "attempt")
            case "number":
                self._ask_for_attempt()
            case "event":
                replay.step(direction)
            case "speed":
                replay.faster(direction)
            case _:
                replay.playing = False
                replay.seek(len(replay.story.events) if direction > 0 else 0)
        self.desk.frame()

    def _go_to_moment(self, replay: Replay, moments: Sequence[int], direction: int, name: str) -> None:
        if replay.jump(moments, back=direction < 0):
            self.desk.frame()
            attempt = getattr(replay.story.events[replay.position - 1], "attempt", "")
            key = attempt.rpartition("/")[0]
            if name == "best":  # the failed exam of another attempt can make it the best
                attempt = self.feed.state.instances[key].best or attempt
            self.show_jumped(attempt)
        else:
            self._tell_none(name, direction)

    def _tell_none(self, name: str, direction: int) -> None:
        """Say that nothing of this name lies ahead, and which key looks the other way."""
        (binding, keys), is_back = JUMP_KEYS[name], direction < 0
        other = binding if is_back else f"{binding}_back"
        key = self.desk.preferences.keys.get(other, keys[not is_back])
        here, there = ("before", "after") if is_back else ("after", "before")
        self.notify(f"no {name} {here} this; {key} looks {there} it", timeout=3, markup=False)

    def _ask_for_attempt(self) -> None:
        key = next(iter(self.subject.instances), "")
        of = f"number of an attempt of {key}, or a" if key else "a"

        def answered(words: str | None) -> None:
            if words:
                self.go_to_attempt(words)

        prompt = LinePrompt("#", changed=lambda _: f"{of} name like softmax#1/2")
        self.app.push_screen(prompt, answered)

    def go_to_attempt(self, words: str) -> None:
        """Open an attempt, in a replay as it was judged; without a verdict, at its beginning.

        `words` are its name, its number in the instance under the cursor, or the numbers of instance and attempt: `2/1`.
        """
        key, replay = next(iter(self.subject.instances), ""), self.feed.replay
        task = key.partition("#")[0]
        name = f"{key}/{words}" if words.isdecimal() else words if "#" in words else f"{task}#{words}"
        if replay is not None:
            marks = {**replay.story.marks.starts, **replay.story.marks.judged}
        else:
            marks = {attempt.attempt: 0 for attempt in self.feed.state.attempts()}
        if name not in marks:
            numbers = [attempt.rpartition("/")[2] for attempt in marks if attempt.startswith(f"{key}/")]
            has = (
                f"{key} has the attempts {', '.join(numbers)}" if numbers else "type a name like softmax#1/2"
            )
            self.desk.refuse("attempt", f"there is no attempt {name}; {has}")
            return
        if replay is not None:
            replay.playing = False
            replay.seek(marks[name])
            self.desk.frame()
        self.post_message(self.message_to(name))

    def show_jumped(self, attempt: str) -> None:
        """Show the attempt that a jump of a replay went to; a screen without a cursor stays as it is."""

    def message_to(self, attempt: str) -> Message:
        """Return the message that shows an attempt."""
        name = split_attempt(attempt)
        return OpenInstance(name.instance, name.number)
