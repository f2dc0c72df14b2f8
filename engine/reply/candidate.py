"""Reads a model's reply: finds the candidate module and the strategy text, or says why there is none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from engine.models.client import CUT
from engine.reply.module_text import defines, join_pieces, module_within, parse_module

LANGUAGES = frozenset({"", "python", "python3", "py", "triton"})
STRATEGY_LIMIT = 2000
FENCE = re.compile(r"^([ \t]*+)(`{3,}+|~{3,}+)[ \t]*+(?:\{?\.?([\w+#-]*+))[^`]*+$")
"""At any depth: models indent the blocks of a list's items. Possessive, because a line may have a million characters."""
_FURTHER = 3
"""A closing fence may be indented so much more than its opening fence."""
LINE_END = re.compile(r"\r\n|\n|\r")
HEADING = re.compile(r"^ {0,3}(?:#{1,6}[ \t]+(.+)|\*\*(.+?)\*\*:?[ \t]*)$")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A module to judge."""

    source: str
    strategy: str
    """Text of the reply's strategy section; empty if there is none."""


@dataclass(frozen=True, slots=True)
class Unusable:
    """A reply without a module to judge."""

    reason: str
    """`empty`, `truncated`, `no_code_block`, `several_modules`, or `cut at N bytes`."""
    message: str
    """The defect and the wanted answer, in the words of the corrective request."""


class FencedBlock(NamedTuple):
    """One fenced code block."""

    language: str
    source: str
    closed: bool
    start: int
    """Number of the line with the opening fence, from 0."""
    end: int
    """Number of the line after the block."""


def read_reply(text: str, entry_points: Sequence[str], *, stop_reason: str = "end") -> Candidate | Unusable:
    """Returns the candidate in a reply, or the reason why there is none.

    Prose and `<think>` text around the code are ignored. Of several Python blocks, the last block that defines every
    entry point is the candidate, joined with the blocks that define what it lacks. A single block is always the
    candidate: the judge reports best what it lacks. Text without a block counts if it is a module that lacks nothing.
    A block that the end of the reply cut off is not a candidate, and no other block of a `truncated` reply is. A reply that
    the client cut may repeat itself for ever: its whole blocks count.
    """
    answer = without_thoughts(text)
    is_cut = stop_reason.startswith(CUT)
    is_truncated = is_cut or stop_reason == "truncated"
    if not answer.strip():
        if is_truncated:
            return truncated(stop_reason)
        return Unusable("empty", "Your reply held no text. Answer again with the strategy and the module.")
    blocks = [
        block
        for block in fenced_blocks(answer)
        if block.language in LANGUAGES or _is_module(block.source, entry_points)
    ]
    named = [block for block in blocks if block.language or _is_module(block.source, entry_points)] or blocks
    if is_cut:
        named = [block for block in named if block.closed and block.source.strip()]
    if named and not named[-1].closed and not is_truncated:
        # The closing fence is missing, or is not on a line of its own.
        text_to_end = named[-1].source.rstrip().removesuffix("```") + "\n"
        whole = text_to_end if parse_module(text_to_end) else module_within(text_to_end, entry_points)
        if whole is None:
            return truncated("truncated")
        named[-1] = named[-1]._replace(source=whole, closed=True)
    if is_truncated and (not named or not named[-1].closed):
        return truncated(stop_reason)
    written = [block.source for block in named if block.source.strip()]
    if not written:
        bare = module_within(answer, entry_points)
        if bare is not None:
            return Candidate(source=bare, strategy=strategy_of(answer))
        return Unusable(
            "no_code_block",
            "Your reply held no ```python block. Answer again with the whole module in exactly one ```python block.",
        )
    whole_ones = [source for source in written if defines(source, entry_points)]
    last = (whole_ones or written)[-1]
    # A last module that Python cannot parse is what the model wants judged.
    joined = join_pieces(written, entry_points) if not whole_ones or parse_module(last) else None
    if joined is None and not whole_ones and len(written) > 1:
        if is_cut:
            return truncated(stop_reason)
        return Unusable(
            "several_modules",
            f"Your reply held {len(written)} code blocks and none of them defines {_list_names(entry_points)}. "
            "Answer again with one complete module in exactly one ```python block.",
        )
    return Candidate(source=joined or last, strategy=strategy_of(answer))


def _is_module(source: str, entry_points: Sequence[str]) -> bool:
    return parse_module(source) is not None and defines(source, entry_points)


def truncated(reason: str) -> Unusable:
    """The result for a reply that reached its length limit before its code was complete."""
    return Unusable(
        reason,
        "Your reply was cut off before the module was complete. Answer again and be brief: "
        "two sentences of strategy, then the whole module in one ```python block, nothing else.",
    )


def without_thoughts(text: str) -> str:
    """Returns the reply without the reasoning that a server left in its text (`<think>...</think>`).

    Some servers drop the opening tag: text before a lone closing tag is reasoning too.
    """
    # Each opening tag before the last closing tag has an end, so that the search is linear.
    thoughts, last, rest = text.rpartition("</think>")
    text = re.sub(r"<think>.*?</think>", "", thoughts + last, flags=re.DOTALL) + rest
    before, closing, after = text.partition("</think>")
    if closing and "```" not in after and "```" in before:
        after = text
    answer = after if closing else text
    return answer.partition("<think>")[0] if answer.lstrip().startswith("<think>") else answer


def fenced_blocks(text: str) -> Iterator[FencedBlock]:
    """Yield the fenced code blocks in order; the last block may lack its closing fence.

    The rules are CommonMark's, but a fence may be indented at any depth. Its block loses that indentation.
    """
    fence, language, depth = "", "", 0
    lines: list[str] = []
    start = 0
    text_lines = LINE_END.split(text)
    for number, line in enumerate(text_lines):
        mark = FENCE.match(line)
        if not fence:
            if mark:
                depth, fence, language = len(mark[1]), mark[2], mark[3].lower()
                start, lines = number, []
        elif (
            mark
            and line.strip() == mark[2]
            and mark[2][0] == fence[0]
            and len(mark[2]) >= len(fence)
            and len(mark[1]) <= depth + _FURTHER
        ):
            yield FencedBlock(language, _join_lines(lines), True, start, number + 1)
            fence = ""
        else:
            lines.append(line[min(depth, len(line) - len(line.lstrip(" \t"))) :])
    if fence:
        if lines and not lines[-1]:
            lines.pop()  # the text ended with a line end
        yield FencedBlock(language, _join_lines(lines), False, start, len(text_lines))


def _join_lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def strategy_of(text: str) -> str:
    """Returns the text under the heading that contains "strategy", up to the next heading or code block."""
    lines: list[str] = []
    inside = False
    for line in LINE_END.split(text):
        heading = HEADING.match(line)
        if FENCE.match(line) or (heading and inside):
            if inside:
                break
            continue
        if inside:
            lines.append(line)
        elif heading and "strategy" in (heading[1] or heading[2]).lower():
            inside = True
    return "\n".join(lines).strip()[:STRATEGY_LIMIT]


def _list_names(names: Sequence[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
