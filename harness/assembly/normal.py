"""Rewrites a compiler's text so that two texts differ only where their code does."""

from __future__ import annotations

import re

from .listing import Kind, jump_target, parse

_RANGE = re.compile(r"\b([vsa])\[(\d+):(\d+)\]")
_REGISTER = re.compile(r"\b([vsa])\d+\b")
_PTX_REGISTER = re.compile(r"(%[a-z]+)\d+\b")
_SASS_REGISTER = re.compile(r"\b(U?[RP])\d+\b")
_VALUE = re.compile(r"%[\w.$-]+(?:[:#]\d+)?")
_PLACES = re.compile(r"\s*(?:,\s*!dbg !\d+|loc\([^)]*\))")
_NUMBERED = re.compile(r"([!#][a-z]*)\d+\b")
_DEBUG = ("#loc", "!", "source_filename", "; ModuleID", "  #dbg_")


def normal_lines(text: str, name: str) -> list[str]:
    """Return the code of a text alone, in lines; `name` is that of the text, such as `amdgcn`.

    Of a register its kind and its width are left, of an SSA value nothing; labels are numbered in the order of their places.
    Comments, debug information and directives are left out.
    """
    if name in ("amdgcn", "ptx"):
        return _normal_assembly(text, is_ptx=name == "ptx")
    if name == "sass":
        return [_SASS_REGISTER.sub(r"\1", line) for line in text.splitlines()]
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith(_DEBUG))
    return [_NUMBERED.sub(r"\1", _VALUE.sub("%", _PLACES.sub("", line))).rstrip() for line in lines]


def _normal_assembly(text: str, *, is_ptx: bool) -> list[str]:
    listing = parse(text)
    targets = {
        jump_target(instruction.text)
        for instruction in listing.instructions
        if instruction.kind is Kind.BRANCH
    }
    labels = {
        label: f"L{number}" for number, label in enumerate(name for name in listing.labels if name in targets)
    }
    starts: dict[int, list[str]] = {}
    for label, new in labels.items():
        starts.setdefault(listing.labels[label].place, []).append(f"{new}:")
    lines: list[str] = []
    for place, instruction in enumerate(listing.instructions):
        lines += starts.get(place, ())
        code = instruction.text
        if instruction.kind is Kind.BRANCH and (target := jump_target(code)) in labels:
            code = code.replace(target, labels[target])
        if is_ptx:
            code = _PTX_REGISTER.sub(r"\1", code)
        else:
            code = _RANGE.sub(lambda match: f"{match[1]}[{int(match[3]) - int(match[2]) + 1}]", code)
            code = _REGISTER.sub(r"\1", code)
        lines.append(f"  {' '.join(code.split())}")
    return lines
