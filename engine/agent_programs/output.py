"""Reads the output of an agent's program: text for people, and tokens and cost as the agent counts them.

Nothing in it is a result. A line that is not of the expected format is shown as it is.
"""

from __future__ import annotations

import codecs
import json
import math
import operator
import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from engine.models.bookkeeping import field as at
from engine.models.bookkeeping import read_count, read_usage
from sessions.events import Usage

from .stated import Stated

SERVER = "wavedeck"
"""Wavedeck's MCP server in configurations."""
OWN_TOOL = re.compile(rf"mcp__?{SERVER}__?(?P<tool>\w+)")
"""Name of one of its tools in Claude Code and Gemini CLI."""
LONGEST_LINE = 1 << 20
"""The rest of a longer line is dropped."""
ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\))")
"""Colours, movements of the cursor and titles of a terminal."""
MOST_JUDGE_CALLS = 1000
RECENT = 64
LONGEST_ID = 200
SHORT = 400
"""Characters of a tool's arguments or result that are shown."""


class AgentOutput:
    """Reads the output of an agent piece by piece."""

    def __init__(self, format_name: str) -> None:
        self.usage = Usage()
        """Tokens that the agent stated since its start."""
        self.cost_usd: float | None = None
        """Cost that it stated since its start; `None`: it stated none."""
        self.messages: deque[str] = deque(maxlen=RECENT)
        """Ids of messages whose tokens are counted: each part of a message states them again."""
        self.judge_calls: set[str] = set()
        """Ids of its calls of Wavedeck's tools: their results are the verdicts, which people see anyway."""
        self.last_line = ""
        """The last line that was shown, which names the error of an agent that failed."""
        self._describe = FORMATS.get(format_name)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._line = ""
        self._cut = False
        self._in_message = False
        self._taken = Stated()

    @property
    def stated(self) -> Stated:
        """Tokens and cost that the agent stated since its start."""
        return Stated(self.usage, self.cost_usd)

    @property
    def untaken(self) -> Stated:
        """Spending that the agent stated and that `take_spending` did not return yet."""
        return self.stated.since(self._taken)

    def take_spending(self) -> Stated:
        """Returns what the agent stated since the last call of this method."""
        spending, self._taken = self.untaken, self.stated
        return spending

    def read(self, data: bytes, *, last: bool = False) -> str:
        """Returns what the next bytes say to people."""
        text = ESCAPES.sub("", self._decoder.decode(data, last))
        if self._describe is None:
            self._remember(text)
            return text
        *lines, rest = (self._line + text).split("\n")
        shown = [self._show(line) for line in lines]
        self._line, self._cut = rest[:LONGEST_LINE], self._cut or len(rest) > LONGEST_LINE
        if last and self._line:
            shown.append(self._show(self._line))
            self._line = ""
        return "".join(shown)

    def _show(self, line: str) -> str:
        cut, self._cut = self._cut, False
        assert self._describe is not None
        event: object = None
        words = line[:LONGEST_LINE]
        try:
            event = None if cut else msgspec.json.decode(line)
            if isinstance(event, dict):
                words = "\n".join(filter(None, self._describe(event, self)))
        except (msgspec.DecodeError, RecursionError, OverflowError):  # nested too deep, or a number too large
            pass
        self._remember(words)
        if not words.strip():
            return ""
        # Gemini CLI streams a message in pieces.
        is_piece = isinstance(event, dict) and event.get("delta") is True
        before = "\n" if self._in_message and not is_piece else ""
        self._in_message = is_piece
        return f"{before}{words}" if is_piece else f"{before}{words}\n"

    def _remember(self, text: str) -> None:
        lines = [line.strip() for line in text[-2000:].splitlines() if line.strip()]
        self.last_line = lines[-1] if lines else self.last_line


def claude_words(event: dict[str, Any], output: AgentOutput) -> Iterator[str]:
    """Yield the words of an event of Claude Code's `stream-json`."""
    match event.get("type"):
        case "system" if event.get("subtype") == "init":
            yield f"Claude Code {text(event.get('claude_code_version'))}, model {text(event.get('model'))}"
        case "assistant" | "user":
            blocks = at(event, "message", "content")
            message = text(at(event, "message", "id"))[:LONGEST_ID]
            if message and message not in output.messages:
                output.messages.append(message)
                usage = claude_usage(at(event, "message", "usage"))
                output.usage = combined(output.usage, usage, operator.add)
            for block in blocks if isinstance(blocks, list) else ():
                yield from block_words(block, output.judge_calls)
        case "result":
            # The messages state the tokens of their first part; the result states all.
            output.usage = combined(output.usage, claude_usage(event.get("usage")), max)
            output.cost_usd = cost(event.get("total_cost_usd"))
            if event.get("is_error"):
                yield text(event.get("result")) or text(event.get("subtype"))
        case _:
            pass


def claude_usage(usage: object) -> Usage:
    """Returns the tokens of a message, or of all messages."""
    return read_usage(
        input_tokens=total(usage, "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
        output_tokens=at(usage, "output_tokens"),
        cached_tokens=at(usage, "cache_read_input_tokens"),
        cache_write_tokens=at(usage, "cache_creation_input_tokens"),
    )


def combined(first: Usage, second: Usage, combine: Callable[[int, int], int]) -> Usage:
    """Returns the combination of each two counts; of an unknown count and a known one, the known one."""

    def both(count: int | None, further: int | None) -> int | None:
        if count is None or further is None:
            return further if count is None else count
        return combine(count, further)

    return Usage(*map(both, msgspec.structs.astuple(first), msgspec.structs.astuple(second)))


def block_words(block: object, judge_calls: set[str]) -> Iterator[str]:
    """Yield the words of a content block of Claude Code."""
    match at(block, "type"):
        case "text":
            yield text(at(block, "text"))
        case "thinking":
            yield text(at(block, "thinking"))
        case "tool_use":
            yield tool_words(at(block, "name"), at(block, "input"), at(block, "id"), judge_calls)
        case "tool_result" if text(at(block, "tool_use_id")) not in judge_calls:
            yield f"< {short(at(block, 'content'))}"
        case _:
            pass


def codex_words(event: dict[str, Any], output: AgentOutput) -> Iterator[str]:
    """Yield the words of an event of `codex exec --json`."""
    item = event.get("item")
    match event.get("type"), at(item, "type"):
        case "item.completed", "agent_message" | "reasoning":
            yield text(at(item, "text"))
        case "item.started", "mcp_tool_call" if at(item, "server") == SERVER:
            yield f"> {text(at(item, 'tool'))}"
        case "item.completed", "mcp_tool_call" if at(item, "server") == SERVER:
            yield text(at(item, "error", "message"))
        case "item.started", "mcp_tool_call":
            yield f"> {text(at(item, 'tool'))} {short(at(item, 'arguments'))}"
        case "item.started", "command_execution":
            yield f"> {short(at(item, 'command'))}"
        case "item.completed", "command_execution":
            yield f"< {short(at(item, 'aggregated_output'))}"
        case "item.completed", "mcp_tool_call":
            yield f"< {short(at(item, 'error', 'message') or at(item, 'result', 'content'))}"
        case "item.completed", "error":
            yield text(at(item, "message"))
        case "turn.failed" | "error", _:
            yield text(at(event, "error", "message")) or text(event.get("message"))
        case "turn.completed", _:
            usage = event.get("usage")
            output.usage = read_usage(
                input_tokens=at(usage, "input_tokens"),
                output_tokens=at(usage, "output_tokens"),
                cached_tokens=at(usage, "cached_input_tokens"),
                cache_write_tokens=None,
            )
        case _:
            pass


def gemini_words(event: dict[str, Any], output: AgentOutput) -> Iterator[str]:
    """Yield the words of an event of Gemini CLI's `stream-json`."""
    match event.get("type"):
        case "init":
            yield f"Gemini CLI, model {text(event.get('model'))}"
        case "message" if event.get("role") != "user":
            yield text(event.get("content"))
        case "tool_use":
            name, arguments = event.get("tool_name"), event.get("parameters")
            yield tool_words(name, arguments, event.get("tool_id"), output.judge_calls)
        case "tool_result" if text(event.get("tool_id")) not in output.judge_calls:
            yield f"< {short(event.get('output') or event.get('error'))}"
        case "error":
            yield text(event.get("message"))
        case "result":
            stats = event.get("stats")
            output.usage = read_usage(
                input_tokens=at(stats, "input_tokens"),
                output_tokens=at(stats, "output_tokens"),
                cached_tokens=at(stats, "cached"),
                cache_write_tokens=None,
            )
            yield text(at(event, "error", "message"))
        case _:
            pass


def own_words(event: dict[str, Any], output: AgentOutput) -> Iterator[str]:
    """Yield the words of a JSON object of an agent without a preset.

    `{"wavedeck": {"input_tokens": 5000, "output_tokens": 900, "cost_usd": 0.03}}` states its totals since its start. Every
    other object is text.
    """
    stated = event.get("wavedeck")
    if not isinstance(stated, dict):
        yield json.dumps(event, ensure_ascii=False)
        return
    output.usage = read_usage(
        input_tokens=stated.get("input_tokens"),
        output_tokens=stated.get("output_tokens"),
        cached_tokens=stated.get("cached_tokens"),
        cache_write_tokens=None,
    )
    output.cost_usd = cost(stated.get("cost_usd"))


FORMATS: dict[str, Callable[[dict[str, Any], AgentOutput], Iterator[str]]] = {
    "claude": claude_words,
    "codex": codex_words,
    "gemini": gemini_words,
    "own": own_words,
}
"""Readers of one JSON object a line; any other format is text."""


def tool_words(name: object, arguments: object, call: object, judge_calls: set[str]) -> str:
    """Returns the words of a call of a tool; notes the call in `judge_calls` if it is one of Wavedeck's tools."""
    own = OWN_TOOL.match(text(name))
    if own is None:
        return f"> {text(name)} {short(arguments)}"
    # Bounded, because an agent may print calls for ever: the result of a call that is not noted is shown.
    if len(judge_calls) < MOST_JUDGE_CALLS and len(text(call)) <= LONGEST_ID:
        judge_calls.add(text(call))
    return f"> {own['tool']}"


def text(value: object) -> str:
    """Returns a text; empty if the value is none."""
    return value if isinstance(value, str) else ""


def short(value: object) -> str:
    """Returns the beginning of a value on one line."""
    words = " ".join((value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).split())
    return words if len(words) <= SHORT else f"{words[:SHORT]} ..."


def total(value: object, *names: str) -> int | None:
    """Returns the sum of the counts with these names; `None` if the first of them is unknown."""
    counts = [read_count(at(value, name)) for name in names]
    return None if counts[0] is None else sum(filter(None, counts))


def cost(value: object) -> float | None:
    """Returns a cost in USD; `None` if the value cannot be one."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) and value >= 0 else None  # type: ignore[operator,arg-type]
