"""`/`: text is marked and gone to, tables are filtered."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.geometry import Region

from tests.support.cockpit.cockpits import NARROW, live
from tests.support.sessions.journals import running
from tui.cockpit.dialogs.line_prompt import LinePrompt
from tui.cockpit.draw.lines import Span, line, plain
from tui.cockpit.terminal.themes import palette
from tui.cockpit.widgets.line_view import LineView, with_matches
from tui.cockpit.widgets.palette import COMPONENTS
from tui.cockpit.widgets.table import LineTable
from tui.facts.tables import Cell, Column, Row


class Panes(App[None]):
    COMPONENT_CLASSES = COMPONENTS
    CSS_PATH = "../../../tui/cockpit/cockpit.tcss"

    def get_css_variables(self) -> dict[str, str]:
        variables = super().get_css_variables()
        return variables | palette(variables, ansi=False)

    def compose(self) -> ComposeResult:
        yield LineView(id="text")
        yield LineTable([Column("task", 8, 20), Column("state", 8, 8)], id="table")


def test_every_place_of_a_text_is_marked_and_styles_stay() -> None:
    marked = with_matches((Span("tl.load(x", "key"), Span("_ptr)", "dim")), "x_p")
    assert plain(marked) == "tl.load(x_ptr)"
    assert [span.text for span in marked if "match" in span.style] == ["x", "_p"]
    assert marked[1].style == "key match"


async def test_long_line_between_rows_leaves_nothing_when_a_shorter_one_replaces_it() -> None:
    """The error of a form's field is a line over all columns; the screen is painted where a line changed."""
    app = Panes()
    async with app.run_test(size=(60, 20)) as pilot:
        table = app.query_one(LineTable)
        table.set_rows(
            [Row("error", (Cell("there is no file gone.py; give one Python module"),), between=True)]
        )
        await pilot.pause()
        refreshed: list[Region] = []
        table.refresh = lambda *regions, **_: refreshed.extend(regions)  # type: ignore[method-assign,assignment,return-value]
        table.set_rows([Row("error", (Cell("no task yet"),), between=True)])
        (region,) = refreshed
        assert region.x <= 0
        assert region.right >= table.size.width


async def test_finding_goes_to_the_first_line_and_on() -> None:
    app = Panes()
    async with app.run_test(size=(60, 20)) as pilot:
        view = app.query_one(LineView)
        view.show([line(f"row {number} {'NaN' if number % 40 == 30 else ''}") for number in range(120)])
        await pilot.pause()
        assert view.find("nan") == "in 3 lines"
        await pilot.pause()
        first = view.scroll_offset.y
        assert 20 < first <= 30
        assert view.go_to_match(1)
        await pilot.pause()
        assert view.scroll_offset.y == first + 40
        assert view.go_to_match(-1)
        await pilot.pause()
        assert view.scroll_offset.y == first
        assert not view.go_to_match(-1)
        assert view.find("absent") == "in 0 lines"


async def test_filter_keeps_rows_with_all_words_and_the_cursor_follows() -> None:
    app = Panes()
    async with app.run_test(size=(60, 20)):
        table = app.query_one(LineTable)
        rows = [("softmax", "done"), ("softmax", "judge"), ("rope", "judge")]
        table.set_rows([Row(f"{task}/{state}", (Cell(task), Cell(state))) for task, state in rows])
        assert table.find("JUDGE soft") == "1 of 3 rows"
        assert table.cursor_key == "softmax/judge"
        table.find("")
        assert len(table.rows) == 3


async def test_cursor_that_nobody_moved_stays_with_its_row() -> None:
    app = Panes()
    async with app.run_test(size=NARROW):
        table = app.query_one(LineTable)
        rows = [Row(task, (Cell(task), Cell("judge"))) for task in ("softmax", "rope")]
        table.set_rows(rows)
        table.set_rows(rows[::-1])
        assert table.cursor_key == "softmax"


async def test_second_enter_in_the_same_moment_answers_nothing_and_closes_nothing() -> None:
    answers: list[str | None] = []
    app, _ = live(running())
    async with app.run_test(size=NARROW) as pilot:
        screen = app.screen
        prompt = LinePrompt(":")
        app.push_screen(prompt, answers.append)
        await pilot.pause()
        prompt.dismiss("first")
        prompt.dismiss("second")
        await pilot.pause()
        assert answers == ["first"]
        assert app.screen is screen
