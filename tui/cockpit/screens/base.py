"""What the screens of a session share: header, banner, time line, keys of a replay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widget import Widget

from tui.cockpit import views, wording
from tui.cockpit.feed import EVERYTHING, Feed
from tui.cockpit.lines import EMPTY, Line, Span, line
from tui.cockpit.replays import Replay
from tui.cockpit.widgets.bar import Bar
from tui.cockpit.widgets.key_bar import KeyBar

if TYPE_CHECKING:
    from tui.cockpit.app import Cockpit

TIMELINE = """\
The line above the keys is the replay's time, to scale: letters of verdicts
where they came, `*` a new best of an agent, `+` accepted, `!` rejected by a
person, `u` undone. Where several fall on one place the last named stands.
Stretches without events play as 30 s at most.
"""
WIDE = 110
TALL = 32
REPLAY_ACTIONS = frozenset({"play", "event", "attempt", "verdict", "best", "decision", "speed", "edge"})


class SessionScreen(Screen[None]):
    """Draws from the app's feed. A subclass says what is in the middle and how to repaint it."""

    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012  # Textual types it as an instance's
        (0, "-narrow"),
        (WIDE, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [  # noqa: RUF012
        (0, "-short"),
        (TALL, "-tall"),
    ]
    PERIOD_S = 0.25
    """Between two frames."""
    PANES: ClassVar[tuple[tuple[str, str], ...]] = ()
    """(name, title) of what the digits choose, in their order."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "play", "play", id="replay.play", priority=True),
        Binding("right", "attempt(1)", "attempt", id="replay.attempt", key_display="←→", priority=True),
        Binding("left", "attempt(-1)", "attempt before", id="replay.attempt_back", show=False, priority=True),
        Binding("n", "verdict(1)", "verdict", id="replay.verdict"),
        Binding("N", "verdict(-1)", "verdict before", id="replay.verdict_back", show=False),
        Binding("b", "best(1)", "best", id="replay.best"),
        Binding("B", "best(-1)", "best before", id="replay.best_back", show=False),
        Binding("x", "decision(1)", "decision", id="replay.decision"),
        Binding("X", "decision(-1)", "decision before", id="replay.decision_back", show=False),
        Binding("full_stop", "event(1)", "event", id="replay.event", key_display=",.", show=True),
        Binding("comma", "event(-1)", "event before", id="replay.event_back", show=False),
        Binding("plus,equals_sign", "speed(1)", "speed", id="replay.faster", key_display="+-"),
        Binding("minus", "speed(-1)", "slower", id="replay.slower", show=False),
        Binding("0", "edge(0)", "start", id="replay.start", show=False),
        Binding("dollar_sign", "edge(1)", "end", id="replay.end", show=False),
        *(
            Binding(str(number), f"pane({number})", f"pane {number}", id=f"pane.{number}", show=False)
            for number in range(1, 8)
        ),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.header_bar = Bar(id="header", classes="header")
        self.banner = Bar(id="banner")
        self.timeline = Bar(id="timeline")
        self.tab_bar = Bar(id="tabs")
        self._over = False

    @property
    def cockpit(self) -> Cockpit:
        """The app."""
        return cast("Cockpit", self.app)

    @property
    def feed(self) -> Feed:
        """Where the state comes from."""
        feed = self.cockpit.feed
        assert feed is not None, "a session's screen without a session"
        return feed

    @property
    def tabbed(self) -> bool:
        """Whether there is room for one pane alone."""
        return self.size.width < WIDE or self.size.height < TALL

    def compose(self) -> ComposeResult:
        """Header, the middle, banner, time line, keys."""
        yield self.header_bar
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
        self.repaint(frozenset((EVERYTHING,)))

    def on_screen_resume(self) -> None:
        """Others drew meanwhile."""
        self.repaint(frozenset((EVERYTHING,)))

    def on_resize(self, event: events.Resize) -> None:
        """Lines depend on the width. Children know theirs only after this."""
        self.call_after_refresh(self.repaint, frozenset((EVERYTHING,)))

    def repaint(self, dirty: frozenset[str]) -> None:
        """Draw what changed."""
        if not self.is_mounted or self.cockpit.feed is None:
            return
        feed = self.feed
        width = self.size.width
        self.header_bar.show(
            views.header(
                feed.state, name=feed.session, word=feed.word(), extra=self.cockpit.remarks(), width=width - 1
            )
        )
        self._show_banner()
        if feed.replay is not None:
            self.timeline.show(timeline_line(feed.replay, width))
        if feed.is_over != self._over:
            self._over = feed.is_over
            dirty |= {EVERYTHING}
        if dirty:
            self.draw(dirty)

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
        """Keys of a replay work in a replay alone; digits where there is a pane."""
        if action in REPLAY_ACTIONS:
            return self.cockpit.feed is not None and self.feed.replay is not None
        if action == "pane":
            return isinstance(parameters[0], int) and parameters[0] <= len(self.PANES)
        return super().check_action(action, parameters)

    def tabs(self, chosen: str, names: Sequence[str]) -> Line:
        """A line that names panes with their digits, the chosen one in brackets."""
        spans: list[Span] = []
        for number, (name, title) in enumerate(self.PANES, start=1):
            if name in names:
                here = name == chosen
                spans.append(
                    Span(
                        f"[{number} {title}]" if here else f" {number} {title} ",
                        "bold key" if here else "dim",
                    )
                )
        return tuple(spans)

    def action_play(self) -> None:
        """Play or pause."""
        self._replay().toggle()
        self.cockpit.frame()

    def action_event(self, steps: int) -> None:
        """Some events on or back."""
        self._replay().step(steps)
        self.cockpit.frame()

    def action_attempt(self, direction: int) -> None:
        """To the start of the next attempt, or the one before."""
        self._jump(self._replay().story.marks.attempts, direction, "attempt")

    def action_verdict(self, direction: int) -> None:
        """To the next verdict."""
        self._jump(self._replay().story.marks.verdicts, direction, "verdict")

    def action_best(self, direction: int) -> None:
        """To the next attempt that became its instance's best."""
        self._jump(self._replay().story.marks.bests, direction, "best")

    def action_decision(self, direction: int) -> None:
        """To the next decision of a person."""
        self._jump(self._replay().story.marks.decisions, direction, "decision")

    def action_speed(self, steps: int) -> None:
        """Faster or slower."""
        self._replay().faster(steps)
        self.cockpit.frame()

    def action_edge(self, end: int) -> None:
        """To the start or the end, paused."""
        replay = self._replay()
        replay.playing = False
        replay.seek(len(replay.story.events) if end else 0)
        self.cockpit.frame()

    def _jump(self, marks: Sequence[int], direction: int, what: str) -> None:
        if self._replay().jump(marks, back=direction < 0):
            self.cockpit.frame()
        else:
            self.notify(f"no {what} {'before' if direction < 0 else 'after'} this", timeout=2)

    def _replay(self) -> Replay:
        replay = self.feed.replay
        assert replay is not None, "its keys work in a replay alone"
        return replay


def timeline_line(replay: Replay, width: int) -> Line:
    """Where a replay stands: state, speed, time, a bar with verdicts, bests and decisions in their places, events."""
    story = replay.story
    word = "playing" if replay.playing else "at end " if replay.at_end else "paused "
    left = (
        f" {word} {replay.speed:g}x  {wording.clock(replay.offset_s)} / {wording.clock(story.duration_s)}  "
    )
    right = f"  event {replay.position}/{len(story.events)} "
    room = width - len(left) - len(right)
    if room < 8:
        return (Span(left.rstrip(), "busy"),)
    share = replay.offset_s / story.duration_s if story.duration_s else float(replay.at_end)
    at = min(room - 1, int(share * room))
    bar = ["━" if cell < at else "─" for cell in range(room)]
    for letter, mark in story.landmarks:
        when = story.offsets[mark - 1] / story.duration_s if story.duration_s else 0.0
        bar[min(room - 1, int(when * room))] = letter
    bar[at] = "█"
    text = "".join(bar)
    return (
        (Span(left, "busy"), Span(text[: at + 1], "busy"), Span(text[at + 1 :], "dim"), Span(right, "dim"))
        if story.events
        else (Span(" an empty session", "dim"), *EMPTY)
    )
