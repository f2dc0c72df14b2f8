"""The steps of an attempt in their order: calls with reasoning, plan and code, then verdict, exam and decision."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from engine.reply.candidate import LANGUAGES, LINE_END, FencedBlock, fenced_blocks
from harness import Evaluation, Verdict
from sessions.events import Role
from sessions.names import stage_word
from sessions.state.findings import findings_of
from sessions.state.state import AttemptState, CallState
from tui.cockpit.draw.lines import clean
from tui.facts import vocabulary
from tui.facts.attempt import decided_words, served_as
from tui.facts.evaluation.certainty import exam_of
from tui.facts.vocabulary import speed_style, verdict_style
from tui.print.narrate import rung_words, swept_words

SHORTEST_PART = 4
"""Lines of a block that counts as a part of the code. A shorter block is a quotation."""
CALL_WORDS = {Role.GENERATOR: "generate", Role.OPTIMIZER: "optimize", Role.REFLECTOR: "reflect"}


class AttemptStep(NamedTuple):
    """One step: a line, and text below it while the step is open."""

    key: str
    """Stays the same while the step grows."""
    name: str
    facts: str = ""
    """Time, tokens and size of the step, in one line."""
    text: str = ""
    style: str = ""
    """Style of the facts."""
    is_call: bool = False
    """True for the line over the steps of one call of a model."""
    is_open: bool = False
    """True if the text is shown unless a person folded it."""
    leads_to: str = ""
    """The pane that shows this step: `code` or `verdict`; empty if its text is here."""


def steps_of(attempt: AttemptState, *, stopped: bool = False) -> list[AttemptStep]:
    """Return the steps of an attempt so far. Reasoning and reply of its latest call are open.

    `stopped`: no engine works on the session, or waits for a decision.
    """
    steps: list[AttemptStep] = []
    code = written_code(attempt)
    for call in attempt.calls:
        steps += _call_steps(call, code, is_latest=call is attempt.calls[-1], stopped=stopped)
    steps += _judge_steps(attempt, stopped=stopped)
    return steps or [AttemptStep("none", "no step", "no call of a model has started yet", style="dim")]


def written_code(attempt: AttemptState) -> str | None:
    """Return the candidate; before there is one, the code of the latest reply as far as it is written."""
    if attempt.source or attempt.evaluation is not None or not attempt.calls:
        return attempt.source
    blocks = _code_blocks(attempt.calls[-1])
    return blocks[-1].source if blocks else None


def _call_steps(
    call: CallState, code: str | None, *, is_latest: bool, stopped: bool
) -> Iterator[AttemptStep]:
    yield AttemptStep(call.call, CALL_WORDS[call.role], _call_facts(call, stopped=stopped), is_call=True)
    if call.retries:
        retry = f"{call.retries + 1}, after {clean(call.last_retry)}"
        yield AttemptStep(f"{call.call} retry", "try", retry, style="warn")
    if call.reasoning:
        key = f"{call.call} reasoning {call.retries}"
        yield AttemptStep(key, "reasoning", _length(call.reasoning), call.reasoning, is_open=is_latest)
    for number, (name, text) in enumerate(_reply(call, code)):
        key = f"{call.call} {name} {call.retries} {number}"
        if name == "code":
            yield AttemptStep(key, name, text, leads_to="code")
        else:
            yield AttemptStep(key, name, _length(text), text, is_open=is_latest)
    if call.failed:
        yield AttemptStep(f"{call.call} failed", "no reply", clean(call.failed), style="bad")
    elif call.finished and call.stop_reason not in ("", "end"):
        yield AttemptStep(
            f"{call.call} stop", "cut", f"the reply ended early: {call.stop_reason}", style="warn"
        )


def _call_facts(call: CallState, *, stopped: bool) -> str:
    usage = call.usage
    parts = [vocabulary.seconds(call.seconds) if call.seconds is not None else ""]
    if usage.input_tokens or usage.output_tokens:
        parts.append(vocabulary.tokens(usage.input_tokens or 0, usage.output_tokens or 0))
    if usage.cached_tokens:
        parts.append(f"{vocabulary.count(usage.cached_tokens)} cached")
    if call.cost_usd is not None:
        parts.append(vocabulary.money(call.cost_usd))
    if call.live:
        parts.append("stopped" if stopped else "writing" if call.streamed else "waits for the model")
    parts += [call.model, served_as(call)]
    if call.own_temperature:
        parts.append("its own temperature")
    return " · ".join(filter(None, parts))


def _length(text: str) -> str:
    return f"{vocabulary.count(len(text))} characters"


def _reply(call: CallState, code: str | None) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of the parts of a reply; for a block that the code pane shows, only its number of lines."""
    name = "reflection" if call.role is Role.REFLECTOR else "plan"
    lines = LINE_END.split(call.text)
    at = 0
    for block in _code_blocks(call):
        if code is None or not _is_shown(block, code):
            continue
        if text := _joined(lines[at : block.start]):
            yield name, text
        name = "reply"
        count = vocabulary.counted(block.source.count("\n"), "line")
        yield "code", count if block.closed or not call.live else f"{count} so far"
        at = block.end
    if text := _joined(lines[at:]):
        yield name, text


def _judge_steps(attempt: AttemptState, *, stopped: bool) -> Iterator[AttemptStep]:
    key = attempt.attempt
    if attempt.evaluation is None and attempt.stage:
        words = f"stopped at {stage_word(attempt.stage)}" if stopped else stage_word(attempt.stage)
        style = "dim" if stopped else "busy"
        yield AttemptStep(f"{key} judge", "judge", words, style=style, leads_to="verdict")
    if attempt.evaluation is not None:
        words, style = _verdict_words(attempt, attempt.evaluation)
        yield AttemptStep(f"{key} verdict", "verdict", words, style=style, leads_to="verdict")
    if attempt.sweep is not None:
        yield AttemptStep(f"{key} sweep", "sweep", swept_words(attempt.sweep), sweep_text(attempt))
    exam = exam_of(attempt, None)
    if exam is not None and (attempt.exam is not None or attempt.examining is not None):
        yield AttemptStep(f"{key} exam", "exam", clean(exam.sentence), style=exam.style, leads_to="verdict")
    if attempt.decision is not None:
        facts = clean(decided_words(attempt.decision))
        yield AttemptStep(
            f"{key} decision", "decision", facts, style="" if attempt.decision.accepted else "bad"
        )
    elif attempt.waiting:
        words = "not decided" if stopped else "waits for you"
        yield AttemptStep(f"{key} decision", "decision", words, style="warn")


def sweep_text(attempt: AttemptState) -> str:
    """Return the rungs of the sweeps of an attempt, then the variants of the last sweep, a line each."""
    swept = attempt.sweep
    if swept is None:
        return ""
    dropped = [f"dropped: {count} {why}" for why, count in swept.pruned.items()]
    variants = [
        f"{'better? ' if variant.better else ''}{'; '.join(variant.changes)}" for variant in swept.variants
    ]
    return clean("\n".join([*map(rung_words, attempt.rungs), *dropped, *variants]))


def _verdict_words(attempt: AttemptState, evaluation: Evaluation) -> tuple[str, str]:
    if evaluation.verdict is not Verdict.CORRECT:
        return vocabulary.words(evaluation.verdict), verdict_style(evaluation.verdict)
    speed = attempt.speed
    words = "correct, no speedup" if speed is None else f"correct, {speed.figure}"
    if findings := findings_of(attempt):
        return f"{words}, {vocabulary.counted(len(findings), 'finding')}", "warn"
    return words, speed_style(speed)


def _code_blocks(call: CallState) -> tuple[FencedBlock, ...]:
    """The Python blocks of a reply that should hold a candidate."""
    return _python_blocks(call.text) if call.role is not Role.REFLECTOR else ()


@lru_cache(maxsize=16)
def _python_blocks(text: str) -> tuple[FencedBlock, ...]:
    return tuple(block for block in fenced_blocks(text) if block.language in LANGUAGES)


def _is_shown(block: FencedBlock, code: str) -> bool:
    """True if the code pane shows the block. A short quotation of the code stays in the reply."""
    source = block.source.strip()
    if not source or source not in code:
        return False
    return source == code.strip() or block.source.count("\n") >= SHORTEST_PART


def _joined(lines: list[str]) -> str:
    while lines and not lines[0].strip():
        lines = lines[1:]
    return "\n".join(lines).rstrip("\n") if any(lines) else ""
