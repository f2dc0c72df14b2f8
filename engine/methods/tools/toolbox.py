"""The tools of an agent: names, what they do, and arguments. The MCP server and the method `tools` offer the same ones.

The server's tools name a task besides, because an agent may work on several.
"""

from __future__ import annotations

from engine.models import Tool

CODE = """One complete Python module: imports, kernels, and every entry point with exactly the given signature. No tests and no \
example calls; at import time only definitions."""
NOTE = "One sentence: what the module changes, and why."
ATTEMPT = "Name of the attempt, as an answer has it."
KERNEL = "This kernel alone."
CASE = "The code for this case; by default for the first case."
PROFILED_CASE = "The open case that is called; by default the one farthest from its roof."
ON_GPUS = ("measure", "profile")
"""Tools that need a GPU."""


def _tool(name: str, description: str, *optional: str, **arguments: str) -> Tool:
    """Returns a tool with these arguments, each a text with its description."""
    properties = {argument: {"type": "string", "description": words} for argument, words in arguments.items()}
    required = [argument for argument in arguments if argument not in optional]
    return Tool(
        name,
        description,
        {"type": "object", "properties": properties, "required": required, "additionalProperties": False},
    )


TOOLBOX = {
    tool.name: tool
    for tool in (
        _tool(
            "eval", "Judge one complete module. Each call uses one evaluation.", "note", code=CODE, note=NOTE
        ),
        _tool("measure", "Time a correct attempt again on its GPU, in new processes.", attempt=ATTEMPT),
        _tool(
            "profile",
            "Show what the hardware counts in one call of a correct attempt: time, bytes, stalls, and what limits each kernel. "
            "It uses device time, once for each case.",
            "case",
            attempt=ATTEMPT,
            case=PROFILED_CASE,
        ),
        _tool(
            "explain",
            "Show all that is known of an earlier attempt: error with trace, or times, estimates and resources.",
            attempt=ATTEMPT,
        ),
        _tool(
            "asm",
            "Show the assembly that the compiler made of an attempt's kernels, for the first target.",
            "kernel",
            "case",
            attempt=ATTEMPT,
            kernel=KERNEL,
            case=CASE,
        ),
        _tool("history", "List your attempts in short, oldest first."),
        _tool(
            "best",
            "Show your best correct attempt with its code and figures, and where another attempt is faster.",
        ),
        _tool(
            "submit", "End your work. Your best correct attempt is the result; no further candidate is taken."
        ),
    )
}


def misfit(tool: Tool, arguments: object) -> str:
    """Returns what is wrong with the arguments of a call, in a sentence; empty if they fit."""
    if not isinstance(arguments, dict):
        return f"the arguments of {tool.name} are not a JSON object; send them again"
    for name in tool.parameters["properties"]:
        value = arguments.get(name)
        if value is not None and not isinstance(value, str):
            return f"`{name}` of {tool.name} must be a text"
        if name in tool.parameters["required"] and not (value or "").strip():
            return f"{tool.name} needs `{name}`; send it again"
    return ""
