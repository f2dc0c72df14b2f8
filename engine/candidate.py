"""From a model's reply to a candidate: the one Python module it wants judged, and the strategy it says it followed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

LANGUAGES = frozenset({"", "python", "python3", "py", "triton"})
STRATEGY_LIMIT = 2000
FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$")
LINE_END = re.compile(r"\r\n|\n|\r")
HEADING = re.compile(r"^ {0,3}(?:#{1,6}[ \t]+(.+?)[ \t]*#*|\*\*(.+?)\*\*:?)[ \t]*$")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A module to judge."""

    source: str
    strategy: str
    """Words of the reply's strategy section; empty where it has none."""


@dataclass(frozen=True, slots=True)
class Unusable:
    """A reply that holds no module to judge."""

    reason: str
    """`empty`, `truncated`, `no_code_block` or `several_modules`."""
    message: str
    """What was wrong and what is wanted, as the corrective request says it."""


class Block(NamedTuple):
    """One fenced block."""

    language: str
    source: str
    closed: bool


def read_reply(text: str, entry_points: Sequence[str], *, stop_reason: str = "end") -> Candidate | Unusable:
    """The candidate of a reply, or why there is none.

    Prose and `<think>` text around the code do no harm. Of several Python blocks the last one counts that defines every
    entry point; a single block counts whatever it defines, for the judge says best what it misses. A block that the
    end of the reply cut off is no module.
    """
    answer = without_thoughts(text)
    if not answer.strip():
        if stop_reason == "truncated":
            return truncated()
        return Unusable("empty", "Your reply held no text. Answer again with the strategy and the module.")
    blocks = [block for block in fenced_blocks(answer) if block.language in LANGUAGES]
    named = [block for block in blocks if block.language] or blocks
    if named and not named[-1].closed and (stop_reason == "truncated" or not parses(named[-1].source)):
        return truncated()
    if stop_reason == "truncated" and not named:
        return truncated()
    written = [block.source for block in named if block.source.strip()]
    if not written:
        return Unusable(
            "no_code_block",
            "Your reply held no ```python block. Answer again with the whole module in exactly one ```python block.",
        )
    whole = [source for source in written if defines(source, entry_points)]
    if not whole and len(written) > 1:
        return Unusable(
            "several_modules",
            f"Your reply held {len(written)} code blocks and none of them defines {listed(entry_points)}. "
            "Answer again with one complete module in exactly one ```python block.",
        )
    return Candidate(source=(whole or written)[-1], strategy=strategy_of(answer))


def truncated() -> Unusable:
    """The reply met its limit before its code was whole."""
    return Unusable(
        "truncated",
        "Your reply was cut off before the module was complete. Answer again and be brief: "
        "two sentences of strategy, then the whole module in one ```python block, nothing else.",
    )


def without_thoughts(text: str) -> str:
    """The reply without reasoning that a server left in its text, marked as `<think>...</think>`.

    Some servers drop the opening mark: what stands before a lone closing one is reasoning too.
    """
    text = re.sub(r"<think>.*?</think>", "", text, flags=re.DOTALL)
    before, closing, after = text.partition("</think>")
    if closing and "```" not in after and "```" in before:
        after = text
    answer = after if closing else text
    return answer.partition("<think>")[0] if answer.lstrip().startswith("<think>") else answer


def fenced_blocks(text: str) -> Iterator[Block]:
    """Fenced code blocks in order, by CommonMark's rules; the last one may lack its closing fence."""
    fence, language = "", ""
    lines: list[str] = []
    for line in LINE_END.split(text):
        found = FENCE.match(line)
        if not fence:
            if found:
                fence, language = found[1], found[2].lower()
                lines = []
        elif found and not found[2] and found[1][0] == fence[0] and len(found[1]) >= len(fence):
            yield Block(language, joined(lines), closed=True)
            fence = ""
        else:
            lines.append(line)
    if fence:
        if lines and not lines[-1]:
            lines.pop()  # what follows the last line end is no line
        yield Block(language, joined(lines), closed=False)


def joined(lines: list[str]) -> str:
    """Lines as a file's text."""
    return "".join(f"{line}\n" for line in lines)


def parses(source: str) -> bool:
    """Whether Python can read it."""
    return parsed(source) is not None


def parsed(source: str) -> ast.Module | None:
    """The syntax tree; `None` where there is none."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def defines(source: str, entry_points: Sequence[str]) -> bool:
    """Whether the module binds every entry point at its top level; where Python cannot read it, its lines decide."""
    tree = parsed(source)
    if tree is None:
        return all(
            re.search(rf"^(def\s+{name}\s*\(|{name}\s*=)", source, re.MULTILINE) for name in entry_points
        )
    bound = {name for statement in tree.body for name in names_bound(statement)}
    return bound.issuperset(entry_points)


def names_bound(statement: ast.stmt) -> Iterator[str]:
    """Names that a statement gives a meaning, those inside its branches included."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name for alias in node.names)


def strategy_of(text: str) -> str:
    """What stands under the heading that says strategy, up to the next heading or code; empty where there is none."""
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


def listed(names: Sequence[str]) -> str:
    """`a`, `b` and `c`."""
    quoted = [f"`{name}`" for name in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
