"""`wavedeck show`: one attempt of a session."""

from __future__ import annotations

from collections.abc import Iterator

import click

from sessions.state.state import AttemptState, CallState, InstanceState
from sessions.store.attempt_commits import code_call
from sessions.store.decidable import find_attempt
from tui.commands.keep.sessions import attempt_row
from tui.commands.opening import complete_words, open_attempt
from tui.commands.options import json_option
from tui.diagnostics import Complaint
from tui.facts.attempt import decided_words, origin_words, served_words
from tui.facts.evaluation.certainty import exam_sentence
from tui.facts.evaluation.page import evaluation_tables
from tui.facts.evaluation.spread import spread_lines
from tui.facts.evaluation.times import exam_tables
from tui.facts.settings_words import REFERENCE_SHOWN
from tui.facts.text_diff import unified_lines
from tui.print.plain import emit, emit_exactly, emit_json, tables_text


@click.command(name="show")
@click.argument("words", nargs=-1, required=True, metavar="[SESSION] ATTEMPT", shell_complete=complete_words)
@click.option("--source", is_flag=True, help="The kernel alone.")
@click.option(
    "--diff", "compared", metavar="OTHER", help="The changes from attempt OTHER, as a unified diff."
)
@click.option("--prompt", is_flag=True, help="The messages of the model call that made the kernel.")
@click.option("--reasoning", is_flag=True, help="The model's reasoning in that call so far.")
@click.option(
    "--reply",
    is_flag=True,
    help="The model's reply in that call so far, or the output of an agent's program.",
)
@json_option
def show_command(
    words: tuple[str, ...],
    *,
    source: bool,
    compared: str | None,
    prompt: bool,
    reasoning: bool,
    reply: bool,
    as_json: bool,
) -> None:
    """Show an ATTEMPT, such as softmax#2/7, with its verdict and all results; also one that is still running."""
    if source + bool(compared) + prompt + reasoning + reply + as_json > 1:
        raise Complaint(
            "--source, --diff, --prompt, --reasoning, --reply and --json exclude each other; give one of them"
        )
    opened, state, attempt, instance = open_attempt(words, also=(compared,) if compared else ())
    shows_reference = state.started is not None and state.started.shows_reference(instance.task)
    if source:
        emit_exactly(source_of(attempt))
    elif compared is not None:
        emit_exactly(changes(find_attempt(state, compared)[0], attempt))
    elif prompt:
        emit_exactly(prompt_of(attempt))
    elif reasoning or reply:
        emit(output_of(attempt, "reasoning" if reasoning else "reply"))
    elif as_json:
        more = {
            "reference_shown": shows_reference,
            "source": attempt.source,
            "evaluation": attempt.evaluation,
            "exam_evaluation": attempt.exam,
        }
        emit_json({"session": opened.name, **attempt_row(attempt), **more})
    else:
        emit("\n".join(verdict_lines(opened.name, attempt, instance)))
        if shows_reference:
            emit(f"reference: {REFERENCE_SHOWN}")


def verdict_lines(session: str, attempt: AttemptState, instance: InstanceState) -> Iterator[str]:
    """Yield lineage, evaluation, exam, measurements and decision of an attempt."""
    yield f"{attempt.attempt} of {session}: {origin_words(attempt)}"
    if attempt.strategy:
        yield f"strategy: {attempt.strategy}"
    if (call := code_call(attempt.calls)) is not None:
        yield f"model: {', '.join(filter(None, (call.model, served_words(call))))}"
    yield ""
    yield (
        tables_text(evaluation_tables(attempt.evaluation)) if attempt.evaluation is not None else "not judged"
    )
    further = [exam_sentence(attempt, instance), *(f"measured on {words}" for words in spread_lines(attempt))]
    if attempt.decision is not None:
        further.append(decided_words(attempt.decision))
    if any(further):
        yield ""
    yield from filter(None, further)
    if again := tables_text(exam_tables(attempt.exam)):
        yield ""
        yield again


def source_of(attempt: AttemptState) -> str:
    """Return the kernel of an attempt. Raises `Complaint` if it has none."""
    if not attempt.source:
        raise Complaint(f"{attempt.attempt} has no kernel; choose an attempt that has one")
    return attempt.source


def changes(old: AttemptState, new: AttemptState) -> str:
    """Return the unified diff of two kernels; empty if they are the same."""
    before, after = source_of(old).splitlines(), source_of(new).splitlines()
    lines = unified_lines(before, after, old.attempt, new.attempt)
    return "".join(f"{line}\n" for line in lines)


def prompt_of(attempt: AttemptState) -> str:
    """Return the messages of the call that made an attempt, each after a line with its role."""
    return "\n".join(f"=== {message.role}\n{message.content}\n" for message in _call_of(attempt).messages)


def output_of(attempt: AttemptState, kind: str) -> str:
    """Return the `reasoning` or the `reply` of the call that made an attempt; of an agent's program, all of its output.

    Raises `Complaint` if it is empty.
    """
    call = _call_of(attempt)
    text = call.reasoning if kind == "reasoning" else call.text
    if call.is_of_agent:
        text = "".join(call.reasoning for call in attempt.calls)
    if not text.strip():
        raise Complaint(f"{attempt.attempt} has no {kind}; its prompt: --prompt, its kernel: --source")
    return text


def _call_of(attempt: AttemptState) -> CallState:
    call = code_call(attempt.calls) or next((call for call in attempt.calls if call.live), None)
    if call is None:
        raise Complaint(f"no model call made {attempt.attempt}; its origin is {attempt.origin}")
    return call
