"""The code pane: the cycle of diffs, hunks, folds, the other side, and the lines that an error names."""

from __future__ import annotations

import msgspec

from sessions.events import AnyEvent, AttemptStarted, InstanceStarted, Origin, ReplyPiece, Role
from sessions.state.folding import fold
from tests.support.cockpit.agent_screens import chain, opened
from tests.support.cockpit.cockpits import NARROW, until
from tests.support.sessions.journals import FAST_SOURCE, RIGHT_SOURCE, EventLog, correct, running
from tui.cockpit.data.sides import ComparedTo, other_sides, read_baseline
from tui.cockpit.draw.lines import plain
from tui.cockpit.screens.agent.agent import AgentScreen
from tui.facts.evaluation.verdict import error_lines

PADDING = '''\
def padded(x: torch.Tensor) -> torch.Tensor:
    """Pads rows to a multiple of 16 elements."""
    missing = -x.shape[1] % 16
    return torch.nn.functional.pad(x, (0, missing)) if missing else x'''


def title(screen: AgentScreen) -> str:
    return str(screen.code.border_title)


def visible(screen: AgentScreen) -> str:
    return "\n".join(screen.code.render_line(y).text for y in range(screen.code.size.height))


async def test_d_goes_from_code_to_base_baseline_best_and_back_and_less_and_greater_choose_the_other_side() -> (
    None
):
    async with opened("softmax#1", 4, events=chain()) as (pilot, screen, _):

        async def titles(*keys: str) -> list[str]:
            shown = []
            for key in keys:
                await pilot.press(key)
                shown.append(title(screen).partition("   ")[0])
            return shown

        assert await titles("d", "d", "d", "d") == [
            "diff base #1/3 -> #1/4", "diff baseline triton -> #1/4", "diff best #1/5 -> #1/4", "code #1/4",
        ]  # fmt: skip
        await pilot.press("right_square_bracket")
        assert await titles("d", "less_than_sign", "less_than_sign", "greater_than_sign", "d") == [
            "diff base #1/3 -> #1/5", "diff #1/2 -> #1/5", "diff #1/1 -> #1/5", "diff #1/2 -> #1/5", "code #1/5",
        ]  # fmt: skip
        assert screen.code.copy_text == FAST_SOURCE


async def test_diff_is_made_in_a_thread_while_the_plain_source_is_shown_and_capital_d_puts_it_side_by_side() -> (
    None
):
    async with opened("softmax#1", 5, events=chain()) as (pilot, screen, _):
        screen.action_code("diff")
        assert title(screen) == "diff base #1/3 -> #1/5   comparing"
        assert screen.code.copy_text == FAST_SOURCE
        assert {span.style for row in screen.code.lines for span in row} <= {"", "dim"}, "no colours yet"
        await pilot.pause()
        assert "hunk 1 of" in title(screen)
        assert "+ " in screen.code.text
        await pilot.press("D")
        assert screen.code.two_columns
        assert " │ " in screen.code.text


def test_sides_without_a_source_or_with_the_same_source_are_left_out() -> None:
    state = fold(chain())
    instance = state.instances["softmax#1"]
    first, best = state.attempt("softmax#1/1"), state.attempt("softmax#1/5")
    assert list(other_sides(state, instance, first, None, None)) == [ComparedTo.BEST]
    assert list(other_sides(state, instance, best, None, None)) == [ComparedTo.BASE]


def test_baseline_is_the_tasks_own_the_given_kernel_or_none_for_torch() -> None:
    (started, *_) = running()
    settings = started.settings
    own = read_baseline(settings, "starter/softmax")
    assert (own.name, "@triton.jit" in own.source) == ("baseline triton", True)
    with_kernel = msgspec.structs.replace(settings, against="mine.py", against_source="x = 1")
    kernel = read_baseline(with_kernel, "starter/softmax")
    assert (kernel.name, kernel.source) == ("baseline mine.py", "x = 1")
    eager = msgspec.structs.replace(settings, against="eager")
    assert read_baseline(eager, "starter/softmax") is None
    assert read_baseline(settings, "other/unknown") is None


def far_apart() -> list[AnyEvent]:
    """Return the events of two attempts with differences at the start and at the end of their sources."""
    before = f"{RIGHT_SOURCE}\n\n{PADDING}\n"
    after = before.replace("import triton\n", "import triton as triton\n").replace("% 16", "% 32")
    log = EventLog()
    log.open()
    log.add(InstanceStarted(task="starter/softmax", instance=1), after_s=0.1)
    log.attempt("softmax#1/1", before, correct())
    log.attempt("softmax#1/2", after, correct(), origin=Origin.OPTIMIZE, base="softmax#1/1")
    return log.events


async def test_enter_opens_and_folds_the_unchanged_lines_around_a_hunk() -> None:
    async with opened("softmax#1", events=far_apart()) as (pilot, screen, _):
        await pilot.press("d", "2")
        assert "unchanged lines (enter opens them)" in screen.code.text
        assert "tl.program_id" not in screen.code.text
        await pilot.press("enter")
        assert "11 11       x = tl.load" in screen.code.text
        await pilot.press("enter")
        assert "tl.program_id" not in screen.code.text


async def test_braces_go_through_the_hunks() -> None:
    async with opened("softmax#1", size=(80, 16), events=far_apart()) as (pilot, screen, _):
        await pilot.press("2", "d")
        assert "hunk 1 of 2" in title(screen)
        assert "% 32" not in visible(screen)
        await pilot.press("right_curly_bracket", "right_curly_bracket")
        await pilot.pause()
        assert title(screen).endswith("hunk 2 of 2   padded")
        assert "▌+" in visible(screen)
        assert "% 32" in visible(screen)


async def test_long_lines_of_code_are_folded_left_of_the_scrollbar_and_y_copies_them_whole() -> None:
    async with opened("softmax#1", size=NARROW) as (pilot, screen, _):
        await pilot.press("2")
        await pilot.pause()
        room = screen.code.scrollable_content_region.width
        rows = [plain(row) for row in screen.code.lines]
        assert max(map(len, rows)) <= room < max(map(len, FAST_SOURCE.splitlines())) + 5
        folded = "".join(row[len(str(FAST_SOURCE.count("\n"))) + 3 :] for row in rows)
        assert folded == "".join(FAST_SOURCE.splitlines())
        await pilot.press("y")
        await until(pilot, lambda: bool(pilot.app._notifications), "the notification")
        assert pilot.app.clipboard == FAST_SOURCE
        (notification,) = pilot.app._notifications
        assert f"{len(FAST_SOURCE)} B sent to the terminal" in notification.message


async def test_key_e_visits_each_line_of_the_error_once_and_marks_it_every_time() -> None:
    async with opened("softmax#2", 1, size=(160, 40)) as (pilot, screen, _):
        assert screen.attempt is not None
        assert error_lines(screen.attempt) == [14, 23]
        for line, link in (
            (14, "> kernel.py lines 14, 23"),
            (23, '> File "kernel.py", line 23'),
            (14, "> kernel"),
        ):
            await pilot.press("e")
            assert screen.code.chosen_error == line
            assert marked_lines(screen) == [line]
            assert link in screen.page.text


def marked_lines(screen: AgentScreen) -> list[int]:
    """Return the line numbers that are drawn as the chosen error line."""
    return [int(row[0].text.split()[0]) for row in screen.code.lines if "error-line" in row[0].style]


async def test_second_e_on_the_only_line_marks_it_and_says_so_and_a_diff_opens_its_fold() -> None:
    async with opened("softmax#1", 2, size=NARROW, events=chain()) as (pilot, screen, _):
        await pilot.press("e", "3", "e")
        assert screen.code.display
        assert marked_lines(screen) == [13]
        assert any("only line that the error names" in note.message for note in pilot.app._notifications)
        await pilot.press("d", "e")
        assert title(screen).startswith("diff base #1/1 -> #1/2")
        assert "E     y = e / tl.sum(e, axis=0)" in screen.code.text


async def test_code_of_the_base_is_shown_until_the_new_code_is_streamed() -> None:
    log = EventLog()
    log.open(iterations=10)
    log.add(InstanceStarted(task="starter/softmax", instance=1))
    log.attempt("softmax#1/1", RIGHT_SOURCE, correct())
    log.add(AttemptStarted(attempt="softmax#1/2", origin=Origin.OPTIMIZE, base="softmax#1/1"))
    log.ask("softmax#1/2", Role.OPTIMIZER, text=None)
    async with opened("softmax#1", events=log.events) as (pilot, screen, source):
        assert title(screen).startswith("code base #1/1, #1/2 has no code yet   ")
        assert screen.code.copy_text == RIGHT_SOURCE
        call = "softmax#1/2/optimizer/1"
        piece = "\n```python\nimport triton\n"
        source.pending = [ReplyPiece(call=call, kind="text", text=piece, seq=900)]
        await until(pilot, lambda: "so far" in title(screen), "the new code")
        assert screen.code.copy_text.strip() == "import triton"


async def test_baseline_is_shown_until_a_fresh_attempt_has_code() -> None:
    log = EventLog()
    log.open(iterations=10)
    log.add(InstanceStarted(task="starter/softmax", instance=1))
    log.add(AttemptStarted(attempt="softmax#1/1", origin=Origin.FRESH))
    log.ask("softmax#1/1", Role.GENERATOR, text=None)
    async with opened("softmax#1", events=log.events) as (_, screen, _source):
        assert title(screen).startswith("code baseline triton, #1/1 has no code yet   ")
