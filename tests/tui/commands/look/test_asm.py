"""`wavedeck asm`, and the tab with source and assembly."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from textual.pilot import Pilot

from harness import Verdict
from sessions import Home
from sessions import events as ev
from tests.support.cockpit.agent_screens import opened
from tests.support.cockpit.cockpits import until
from tests.support.command_line import Shell, one_line
from tests.support.judge.assemblies import AMD, SOURCE, packed, with_assembly
from tests.support.sessions import stored_sessions as stored
from tests.support.sessions.journals import SESSION, correct, softmax_log
from tui.cockpit.screens.agent.assembly_view import AssemblyView
from tui.cockpit.viewer import ExitNote
from tui.diagnostics import ExitCode

CHANGED = AMD.replace("v13", "v12").replace("\ts_barrier\n", "")


def record(home: Home, *texts: str) -> None:
    """Record a finished session with an attempt for each assembly."""
    recorder = stored.begin(home)
    for number, text in enumerate(texts, start=1):
        recorder.files.keep_texts(dict([packed(text)]))
        name = f"softmax#1/{number}"
        recorder.record(ev.AttemptStarted(attempt=name, origin=ev.Origin.FRESH))
        recorder.record(ev.CandidateProposed(attempt=name, source=SOURCE))
        evaluation = with_assembly(stored.evaluation(Verdict.CORRECT), text)
        recorder.record(ev.AttemptJudged(attempt=name, evaluation=evaluation))
    stored.finish(recorder)


def test_assembly_is_printed_and_compared_without_register_numbers(shell: Shell, home: Home) -> None:
    record(home, AMD, CHANGED, AMD.replace("v13", "v12"))
    printed = shell("asm", "softmax#1/1").out
    assert printed.splitlines()[0] == "; kernel, amdgcn for gfx942, case fp32: BLOCK=128"
    assert AMD in printed
    changes = shell("asm", "softmax#1/2", "--diff", "softmax#1/1").out.splitlines()
    assert changes[:2] == ["--- softmax#1/1", "+++ softmax#1/2"]
    assert [line for line in changes[2:] if line[0] in "+-"] == ["-  s_barrier"]
    same = shell("asm", "softmax#1/3", "--diff", "softmax#1/1")
    assert (same.out, same.code) == ("", ExitCode.DONE)
    assert "the same code" in one_line(same)
    itself = shell("asm", "softmax#1/2", "--diff", "softmax#1/2")
    assert "--diff needs another attempt on" in one_line(itself)


def test_missing_text_says_why(shell: Shell, home: Home) -> None:
    record(home, AMD)
    assert "for gfx942 there is amdgcn" in one_line(shell("asm", "softmax#1/1", "--ir", "ptx"))
    assert "it has no kernel other; it has kernel" in one_line(
        shell("asm", "softmax#1/1", "--kernel", "other")
    )
    assert "there is code for fp32" in one_line(shell("asm", "softmax#1/1", "--case", "fp64"))


def test_session_of_an_older_version_says_that_it_has_no_texts(shell: Shell, home: Home) -> None:
    recorder = stored.begin(home)
    evaluation = with_assembly(stored.evaluation(Verdict.CORRECT), AMD)
    row = msgspec.structs.replace(evaluation.resources["gfx942"][0], code=None, loops=(), texts={})
    recorder.record(ev.AttemptStarted(attempt="softmax#1/1", origin=ev.Origin.FRESH))
    recorder.record(ev.CandidateProposed(attempt="softmax#1/1", source=SOURCE))
    old = msgspec.structs.replace(evaluation, resources={"gfx942": (row,)})
    recorder.record(ev.AttemptJudged(attempt="softmax#1/1", evaluation=old))
    stored.finish(recorder)
    refused = shell("asm", "softmax#1/1")
    assert "recorded without the compiler's texts" in one_line(refused)
    assert refused.code == ExitCode.USAGE


@asynccontextmanager
async def on_assembly(home: Home, *texts: str) -> AsyncIterator[tuple[Pilot[ExitNote], AssemblyView]]:
    """Open the assembly of the last attempt, each derived from the one before it."""
    log = softmax_log(devices=("cpu",), iterations=2)
    for number, text in enumerate(texts, start=1):
        base, origin = (
            (f"softmax#1/{number - 1}", ev.Origin.OPTIMIZE) if number > 1 else (None, ev.Origin.FRESH)
        )
        log.attempt(f"softmax#1/{number}", SOURCE, with_assembly(correct(), text), origin=origin, base=base)
    folder = home.files(SESSION)
    folder.folder.mkdir(parents=True)
    folder.keep_texts(dict(map(packed, texts)))
    async with opened("softmax#1", len(texts), events=log.events, home=home) as (pilot, screen, _):
        await pilot.press("9")
        await until(pilot, lambda: bool(screen.assembly.source.lines), "the assembly")
        yield pilot, screen.assembly


async def test_d_shows_the_same_difference_as_the_command(home: Home) -> None:
    async with on_assembly(home, AMD, CHANGED) as (pilot, view):
        await pilot.press("d")
        await until(pilot, lambda: "assembly diff" in str(view.code.border_title), "the difference")
        assert str(view.code.border_title) == "assembly diff base #1/1 -> #1/2   +0 -1"
        assert [row for row in view.code.text.splitlines() if row[0] in "+-"] == ["-  s_barrier"]
        assert not view.source.display
        await pilot.press("d")
        await until(pilot, lambda: bool(view.source.lines) and view.source.display, "both columns")
        await pilot.press("left_square_bracket", "d")
        await until(pilot, lambda: bool(view.source.lines), "the first attempt")
        assert view.source.display, "the first attempt has no base"


async def test_cursor_in_one_column_marks_its_lines_in_the_other(home: Home) -> None:
    async with on_assembly(home, AMD) as (pilot, view):
        assert "+ loop at line 5: 9 instructions, 1 MFMA, 1 load of 128 bits" in view.code.text
        assert "buffer_load" not in view.code.text, "the loop is folded"
        await pilot.press("j", "j", "enter", "j")
        assert view.code.row.line[-1].text.startswith("L buffer_load_dwordx4")
        assert view.source.row.sources == {5}
        assert any("marked" in span.style for span in view.source.lines[4])
        assert "L2" in view.source.text.splitlines()[4]
