"""The steps of an attempt: streamed text, code as one line, folding, following the end."""

from __future__ import annotations

from sessions.events import (
    AttemptStarted,
    CallFailed,
    CallFinished,
    CallRetried,
    CandidateProposed,
    EngineStopped,
    InstanceStarted,
    Origin,
    ReplyPiece,
    Role,
)
from sessions.journal.reader import KeptEvent
from sessions.state.folding import fold
from tests.support.cockpit.agent_screens import chain, opened
from tests.support.cockpit.cockpits import NARROW, WIDE, until
from tests.support.cockpit.pictures import picture
from tests.support.sessions.journals import FAST_SOURCE, EventLog, running
from tui.cockpit.data.steps import steps_of

CALL = "vector_add#1/1/generator/1"


async def test_text_is_followed_until_the_user_scrolls_up() -> None:
    async with opened("vector_add#1", size=NARROW) as (pilot, screen, source):
        seq = 1000
        steps = screen.steps

        async def stream(text: str) -> None:
            nonlocal seq
            seq += 1
            source.pending = [ReplyPiece(call=CALL, kind="text", text=text, seq=seq)]
            word = text.split()[-1]
            await until(pilot, lambda: word in steps.text, word)

        await stream("\n".join(f"line {number}" for number in range(100)) + "\nfirst_end ")
        assert steps.scroll_offset.y == steps.max_scroll_y > 0
        await pilot.press("g")
        assert steps.scroll_offset.y == 0
        await stream("\nmore\nmore\nsecond_end ")
        assert steps.scroll_offset.y == 0, "held"
        assert "held" in str(steps.border_title)
        await pilot.press("f")
        await stream("\nthird_end ")
        assert steps.scroll_offset.y == steps.max_scroll_y


async def test_retry_removes_the_streamed_text_and_text_cannot_control_the_terminal() -> None:
    async with opened("vector_add#1") as (pilot, screen, source):
        assert "vanish" in screen.steps.text
        retried = CallRetried(call=CALL, reason="cut", message="the stream ended", wait_s=1, retry=1, seq=900)
        source.pending = [retried]
        await until(pilot, lambda: "vanish" not in screen.steps.text, "the void words")
        assert "2, after cut: the stream ended" in screen.steps.text
        hostile = "\x1b[2J\x1b[31mnothing to see\x07"
        source.pending = [ReplyPiece(call=CALL, kind="text", text=hostile, seq=901)]
        await until(pilot, lambda: "to see" in screen.steps.text, "the words")
        assert "\x1b" not in screen.steps.text


async def test_text_streamed_in_pieces_gives_the_same_lines() -> None:
    text = "A paragraph that is longer than the pane is wide, again and again. " * 6 + "\n\n    indented\nend"
    async with opened("vector_add#1") as (pilot, screen, source):
        for number, character in enumerate(text):
            source.pending.append(ReplyPiece(call=CALL, kind="text", text=character, seq=1000 + number))
            if number % 37 == 0:
                pilot.app.frame()
        await until(pilot, lambda: screen.steps.text.endswith("end"), "the end")
        pieces = screen.steps.text
        screen.steps._texts.clear()
        screen.steps.show_steps(steps_of(screen.attempt))
        assert screen.steps.text == pieces


async def test_code_streams_in_its_pane_and_is_one_line_among_the_steps() -> None:
    async with opened("vector_add#1", size=WIDE) as (pilot, screen, source):
        text = " the sum.\n\n```python\n" + FAST_SOURCE * 2 + "def last_line("
        source.pending = [ReplyPiece(call=CALL, kind="text", text=text, seq=900)]
        await until(pilot, lambda: "code       51 lines so far" in screen.steps.text, "the step")
        assert "so that they vanish in" in screen.steps.text
        assert "import torch" not in screen.steps.text
        assert "51 lines so far" in str(screen.code.border_title)
        rows = [screen.code.render_line(y).text for y in range(screen.code.size.height)]
        assert any("def last_line(" in row for row in rows), "the end of the code is in sight"
        source.pending = [
            CallFinished(
                call=CALL, text=f"First.\n```python\n{FAST_SOURCE}```\nLast.", stop_reason="end", seq=901
            ),
            CandidateProposed(attempt="vector_add#1/1", source=FAST_SOURCE, seq=902),
        ]
        await until(pilot, lambda: screen.code.copy_text == FAST_SOURCE, "the candidate")
        text = screen.steps.text
        assert text.index("First.") < text.index("code       25 lines") < text.index("Last.")


async def test_reasoning_stays_in_sight_while_long_code_is_written() -> None:
    async with opened("vector_add#1", size=NARROW) as (pilot, screen, source):
        text = " the sum.\n```python\n" + FAST_SOURCE * 40
        source.pending = [ReplyPiece(call=CALL, kind="text", text=text, seq=900)]
        await until(pilot, lambda: "1,000 lines so far" in screen.steps.text, "the code")
        rows = [screen.steps.render_line(y).text for y in range(screen.steps.size.height)]
        assert any("The row fits into one block" in row for row in rows)


async def test_enter_folds_a_step_and_leads_from_the_code_to_its_pane() -> None:
    async with opened("softmax#1", 5, size=NARROW, events=chain()) as (pilot, screen, _):
        assert "The kernel below" in screen.steps.text
        await pilot.press("k", "k", "k")
        await pilot.press("enter")
        folded = next(line for line in screen.steps.text.splitlines() if "plan" in line)
        assert '"The kernel below' in folded
        assert "   The kernel below" not in screen.steps.text
        await pilot.press("j", "enter")
        assert screen.code.display
        assert screen.focused is screen.code


def test_short_quotations_of_the_code_stay_in_the_reply() -> None:
    attempt = fold(running()).attempt("softmax#1/3")
    text = "Set\n```python\n    return y\n```\nas before."
    attempt.calls[-1].reply = KeptEvent(CallFinished(call=attempt.calls[-1].call, text=text), None)
    assert "    return y" in "\n".join(step.text for step in steps_of(attempt))


def test_failed_call_names_its_cause() -> None:
    call = "softmax#2/2/reflector/1"
    failed = CallFailed(call=call, reason="gave_up", message="5 tries failed", cause="connection", seq=999)
    (*_, step) = steps_of(fold([*running(), failed]).attempt("softmax#2/2"))
    assert (step.name, step.facts) == ("no reply", "gave_up, connection: 5 tries failed")


async def test_attempt_of_a_stopped_session_does_not_look_at_work() -> None:
    log = EventLog()
    log.open(iterations=10)
    log.add(InstanceStarted(task="starter/softmax", instance=1))
    log.add(AttemptStarted(attempt="softmax#1/1", origin=Origin.FRESH))
    log.ask("softmax#1/1", Role.GENERATOR, text=None)
    async with opened("softmax#1", size=NARROW, events=log.events) as (pilot, screen, source):
        assert "writing" in screen.steps.text
        source.pending = [EngineStopped(reason="stopped by ada", seq=900)]
        await until(pilot, lambda: "no verdict: the session stopped" in screen.verdict[0].text, "the end")
        assert "writing" not in screen.steps.text
        assert "[1s]" in picture(screen.app)
        assert "generate" not in screen.head.text
