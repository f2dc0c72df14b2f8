"""Title, bell and message to a person who looks elsewhere; drawing in ASCII."""

from __future__ import annotations

from rich.segment import Segment
from textual.color import Color

from tui.cockpit.terminal.terminal import RESTORE_TITLE, AsciiOnly, Outside, to_ascii


def test_title_counts_what_waits_and_the_bell_rings_once_for_each() -> None:
    written: list[str] = []
    outside = Outside(written.append, notify="bell", tmux=False)
    outside.show("paged attention", frozenset())
    outside.show("paged attention", frozenset({"softmax#3/7"}))
    outside.show("paged attention", frozenset({"softmax#3/7"}))
    assert [text for text in written if "]2;" in text] == [
        "\x1b]2;wavedeck paged attention\a",
        "\x1b]2;wavedeck ! 1 paged attention\a",
    ]
    assert written.count("\a") == 1
    outside.restore()
    assert written[-1] == RESTORE_TITLE


def test_message_names_the_attempt_and_passes_through_tmux() -> None:
    written: list[str] = []
    outside = Outside(written.append, notify="osc9", tmux=True)
    outside.show("s", frozenset({"rope#1/4", "softmax#3/7"}))
    assert written[-1] == "\x1bPtmux;\x1b\x1b]9;wavedeck: rope#1/4 waits for you, and 1 more\a\x1b\\"


def test_nothing_rings_when_notices_are_off() -> None:
    written: list[str] = []
    Outside(written.append, notify="off", tmux=False).show("s", frozenset({"rope#1/4"}))
    assert not any(text == "\a" or "]9;" in text for text in written)


def test_ascii_keeps_every_cell_in_its_place() -> None:
    assert to_ascii("1.84x▴ ─ 12 …") == "1.84x^ - 12 ~"
    assert to_ascii("列x") == "??x"
    line = AsciiOnly().apply([Segment("│ run"), Segment("▁▃▇")], Color.parse("black"))
    assert [segment.text for segment in line] == ["| run", "-.#"]
