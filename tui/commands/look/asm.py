"""`wavedeck asm`: what the compiler made of an attempt's kernels."""

from __future__ import annotations

from functools import partial

import click

from harness.assembly.code_texts import TEXTS, CodeText, NoText, code_texts
from sessions.state.state import SessionState
from sessions.store.compiler_texts import read_text
from sessions.store.decidable import find_attempt
from tui.commands.opening import OpenedSession, complete_words, open_attempt
from tui.diagnostics import Complaint, say
from tui.facts.evaluation.assembly_diff import SAME_CODE, assembly_diff, visible
from tui.print.plain import emit_exactly


@click.command(name="asm")
@click.argument("words", nargs=-1, required=True, metavar="[SESSION] ATTEMPT", shell_complete=complete_words)
@click.option(
    "--kernel", default="", help="This kernel alone; 'NAME @2' for a config of an autotuned kernel."
)
@click.option("--case", default="", help="The code for this case; by default for the first case.")
@click.option("--ir", "name", type=click.Choice(TEXTS), help="Another text than the assembly.")
@click.option(
    "--diff", "compared", metavar="OTHER", help="The changes from attempt OTHER, as a unified diff."
)
def asm_command(
    words: tuple[str, ...], *, kernel: str, case: str, name: str | None, compared: str | None
) -> None:
    """Show the assembly of an ATTEMPT's kernels for the first target.

    With --diff, registers and labels have no numbers, and comments and debug information are left out.
    """
    opened, state, attempt, instance = open_attempt(words)
    texts = partial(_texts, opened, state, kernel=kernel, case=case, name=name or "")
    base, base_instance = find_attempt(state, compared or attempt.attempt)
    if compared is not None and (base is attempt or base_instance.task != instance.task):
        raise Complaint(f"--diff needs another attempt on {instance.task}")
    new = texts(attempt.attempt)
    if compared is None:
        emit_exactly("".join(f"{_comment(text)}\n{visible(text)}\n" for text in new))
        return
    lines = assembly_diff(texts(compared), new, base.attempt, attempt.attempt)
    emit_exactly("".join(f"{line}\n" for line in lines))
    if not lines:
        say(SAME_CODE)


def _texts(
    opened: OpenedSession, state: SessionState, attempt: str, *, kernel: str, case: str, name: str
) -> list[CodeText]:
    shown, _ = find_attempt(state, attempt)
    read = partial(read_text, opened.home, opened.name)
    try:
        return code_texts(shown.evaluation, read, kernel=kernel, case=case, name=name)
    except NoText as why:
        raise Complaint(f"{shown.attempt}: {why}") from None


def _comment(text: CodeText) -> str:
    return f"{';' if text.name in ('amdgcn', 'llir') else '//'} {text.title}"
