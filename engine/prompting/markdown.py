"""Jinja filters of the prompt templates: how values are written in a prompt."""

from __future__ import annotations

import re

FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$")


def fenced(text: str, language: str = "") -> str:
    """Returns the text as a code block; the fence is longer than any fence in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def quoted(text: str) -> str:
    """Returns the text as a Markdown quotation."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())


def sizes(values: dict[str, int]) -> str:
    """Returns sizes as text: `m=128, n=64`."""
    return ", ".join(f"{name}={value}" for name, value in values.items())


def number(value: float | None) -> str:
    """Returns a number as text: integers in full, other numbers with four digits, `-` if unknown."""
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.4g}"


def tidy(text: str) -> str:
    """Returns the text without repeated blank lines; code blocks stay unchanged."""
    kept: list[str] = []
    fence = ""
    for line in text.strip().split("\n"):
        mark = FENCE.match(line)
        if fence:
            closes = mark and not mark[2] and mark[1].startswith(fence)
            fence = "" if closes else fence
        elif mark:
            fence = mark[1]
        elif not line.strip() and kept and not kept[-1].strip():
            continue
        kept.append(line)
    return "\n".join(kept) + "\n"
