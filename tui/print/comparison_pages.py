"""The comparison of two sides as plain text, Markdown and JSON."""

from __future__ import annotations

import msgspec

from tui.facts.report.comparison import ComparedSides, comparison_facts, comparison_sections

from .plain import wrapped
from .report.markdown import section_markdown
from .report.text import section_text


def comparison_text(compared: ComparedSides) -> str:
    """Return the comparison as plain text for a terminal."""
    facts = comparison_facts(compared)
    width = max(map(len, facts))
    head = "\n".join(f"{name:<{width}}  {value}" for name, value in facts.items())
    return "\n\n".join([wrapped(head), *map(section_text, comparison_sections(compared))])


def comparison_markdown(compared: ComparedSides) -> str:
    """Return the comparison in GitHub's Markdown."""
    facts = "\n".join(f"- {name}: {value}" for name, value in comparison_facts(compared).items())
    return "\n\n".join(["# A and B compared", facts, *map(section_markdown, comparison_sections(compared))])


def comparison_json(compared: ComparedSides) -> dict[str, object]:
    """Return the comparison for programs: its sides, and every figure."""
    return {"schema": 1, "sides": compared.sides} | msgspec.structs.asdict(compared.comparison)
