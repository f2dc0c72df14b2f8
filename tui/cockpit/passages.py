"""What a model said in an attempt, as passages; a mark stands for the code, which has a pane of its own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from engine.candidate import LANGUAGES, LINE_END, Block, fenced_blocks
from sessions.events import Role
from sessions.state import AttemptState, CallState
from tui import vocabulary

SHORTEST_PART = 4
"""Lines of a block that is a part of the code, not a quotation of it."""


class Passage(NamedTuple):
    """A stretch of what a model said, or a line about it."""

    key: str
    """Stays the same while the passage grows."""
    text: str
    style: str


def passages(attempt: AttemptState, *, place: str = "") -> list[Passage]:
    """Returns all that was said in an attempt's calls, in order; `place` says where its code is."""
    found: list[Passage] = []
    code = written_code(attempt)
    for call in attempt.calls:
        found.append(Passage(f"{call.call} head", _call_head(call), "rule"))
        if call.retries:
            retry = f"try {call.retries + 1}, after {call.last_retry}"
            found.append(Passage(f"{call.call} retry {call.retries}", retry, "warn"))
        if call.reasoning:
            found.append(Passage(f"{call.call} reasoning {call.retries}", call.reasoning, "reasoning"))
        for number, (text, style) in enumerate(_reply(call, code, place)):
            found.append(Passage(f"{call.call} text {call.retries} {number}", text, style))
        if call.failed:
            found.append(Passage(f"{call.call} failed", f"no reply: {call.failed}", "bad"))
        elif call.finished and call.stop_reason not in ("", "end"):
            found.append(Passage(f"{call.call} stop", f"the reply ended early: {call.stop_reason}", "warn"))
    return found or [Passage("none", "Nothing was asked yet.", "dim")]


def written_code(attempt: AttemptState) -> str | None:
    """Returns the candidate; before there is one, the code of the latest reply as far as it is written."""
    if attempt.source or attempt.evaluation is not None or not attempt.calls:
        return attempt.source
    blocks = _code_blocks(attempt.calls[-1])
    return blocks[-1].source if blocks else None


def _code_blocks(call: CallState) -> tuple[Block, ...]:
    """The Python blocks of a reply that should hold a candidate."""
    return _python_blocks(call.text) if call.role is not Role.REFLECTOR else ()


@lru_cache(maxsize=16)
def _python_blocks(text: str) -> tuple[Block, ...]:
    return tuple(block for block in fenced_blocks(text) if block.language in LANGUAGES)


def _reply(call: CallState, code: str | None, place: str) -> Iterator[tuple[str, str]]:
    """Yield the text of a reply with its style, and a mark for each block that is part of `code`."""
    lines = LINE_END.split(call.text)
    at = 0
    for block in _code_blocks(call):
        if code is None or not _is_shown(block, code):
            continue
        if text := _joined(lines[at : block.start]):
            yield text, ""
        count = block.source.count("\n")
        so_far = "" if block.closed or not call.live else " so far"
        yield f"code: {count} line{'s' if count != 1 else ''}{so_far}{place}", "hunk"
        at = block.end
    if text := _joined(lines[at:]):
        yield text, ""


def _is_shown(block: Block, code: str) -> bool:
    """True if the pane of the code shows the block. A short quotation of the code stays where it is."""
    source = block.source.strip()
    if not source or source not in code:
        return False
    return source == code.strip() or block.source.count("\n") >= SHORTEST_PART


def _joined(lines: list[str]) -> str:
    while lines and not lines[0].strip():
        lines = lines[1:]
    return "\n".join(lines).rstrip("\n") if any(lines) else ""


def _call_head(call: CallState) -> str:
    number = call.call.rpartition("/")[2]
    parts = [f"{call.role.value} {number}", call.model]
    if call.seconds is not None:
        parts.append(vocabulary.seconds(call.seconds))
    usage = call.usage
    if usage.input_tokens or usage.output_tokens:
        cached = f" ({vocabulary.count(usage.cached_tokens)} cached)" if usage.cached_tokens else ""
        parts.append(
            f"{vocabulary.count(usage.input_tokens or 0)}{cached} in {vocabulary.count(usage.output_tokens or 0)} out"
        )
    if call.cost_usd is not None:
        parts.append(vocabulary.money(call.cost_usd))
    if call.own_temperature:
        parts.append("its own temperature")
    if call.live:
        parts.append("writing")
    return " · ".join(part for part in parts if part)
