"""The changes from the assembly of one attempt to that of another."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from harness.assembly.code_texts import CodeText, normal_lines
from tui.visible_text import replace_invisible

SAME_CODE = "the same code, but for registers and labels"


def assembly_diff(
    old: Sequence[CodeText], new: Sequence[CodeText], old_name: str, new_name: str
) -> list[str]:
    """Return the changes as the lines of a unified diff; empty if the code is the same.

    Registers and labels have no numbers; comments and debug information are left out.
    """
    return list(difflib.unified_diff(_normal(old), _normal(new), old_name, new_name, lineterm=""))


def visible(text: CodeText) -> str:
    """Return the text with `?` for each invisible character."""
    return replace_invisible(text.content, lambda char: char if char == "\t" else "?")


def _normal(texts: Sequence[CodeText]) -> list[str]:
    return [
        line for text in texts for line in (f"{text.kernel.kernel}:", *normal_lines(visible(text), text.name))
    ]
