"""Tree: what is inside what, costs summed upward, folding, and the way to an attempt."""

from __future__ import annotations

from syrupy.assertion import SnapshotAssertion

from sessions.folding import fold
from tests.support import fleets
from tests.support.cockpits import NARROW, WIDE, live, until
from tests.support.pictures import picture
from tui.cockpit import tree_view
from tui.cockpit.screens.agent import AgentScreen
from tui.cockpit.screens.fleet import FleetScreen
from tui.cockpit.screens.tree import TreeScreen
from tui.instance_facts import FactsCache

UNFOLDED = {"task:starter/softmax", "softmax#3", "softmax#3/2"}


def rows(*, wide: bool = True) -> dict[str, list[str]]:
    state = fold(fleets.busy().events)
    found = tree_view.tree_rows(state, FactsCache(), UNFOLDED, wide=wide)
    return {row.key: [cell.text.strip() for cell in row.cells] for row in found}


def test_costs_are_summed_from_calls_upward() -> None:
    known = rows()
    costs = {key: known[key][4:7] for key in (*UNFOLDED, "softmax#3/2/generator/1", "softmax#3/1")}
    assert costs == {
        "softmax#3/2/generator/1": ["1.84k", "612", "$0.0400"],
        "softmax#3/1": ["1.84k", "612", "$0.0400"],
        "softmax#3/2": ["1.84k", "612", "$0.0400"],
        "softmax#3": ["3.68k", "1.22k", "$0.0800"],
        "task:starter/softmax": ["9.2k", "3.06k", "$0.20"],
    }
    assert known["task:starter/rope"][6] == "-", "nothing is known, so it is not 0"


def test_rows_say_state_verdicts_and_best() -> None:
    known = rows()
    assert known["task:starter/softmax"][1:4] == ["0/4 done", "4 of 5 correct", "1.84x [1.80, 1.88] ?"]
    assert known["softmax#3"][1:4] == ["review", "CC", "1.84x [1.80, 1.88] ?"]
    assert known["softmax#3/2"][:3] == ["▾ softmax#3/2  optimize", "review", "C correct"]
    assert rows(wide=False)["softmax#2"][1] == "timing"


def test_only_what_is_unfolded_is_listed() -> None:
    known = rows()
    assert "softmax#3/2/generator/1" in known
    assert "softmax#3/1/generator/1" not in known
    assert "layer_norm#1" not in known


async def test_keys_fold_and_open() -> None:
    app, _ = live(fleets.busy().events)
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        await pilot.press("w", "T")
        screen = app.screen
        assert isinstance(screen, TreeScreen)
        assert screen.table.cursor_key == "softmax#3", "the instance under Fleet's cursor"
        await pilot.press("l")
        assert screen.table.cursor_key == "softmax#3/1"
        await pilot.press("l", "l")
        assert screen.table.cursor_key == "softmax#3/1/generator/1"
        await pilot.press("h", "h")
        assert "generator" not in screen.table.text
        assert screen.table.cursor_key == "softmax#3/1"
        await pilot.press("h")
        assert screen.table.cursor_key == "softmax#3"
        await pilot.press("j", "enter")
        agent = app.screen
        assert isinstance(agent, AgentScreen)
        assert agent.attempt is not None
        assert agent.attempt.attempt == "softmax#3/1"


async def test_picture_of_the_tree(snapshot: SnapshotAssertion) -> None:
    log = fleets.busy()
    app, _ = live(log.events, wall=lambda: log.wall)
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        await pilot.press("w", "T", "l", "l")
        await pilot.pause()
        assert picture(app) == snapshot
