"""Reads the part of YAML that files of public benchmarks use."""

from __future__ import annotations

import re

_ENTRY = re.compile(r"(?P<indent>[ ]*)(?P<dash>-[ ]+)?(?:(?P<key>[A-Za-z_]\w*):(?:[ ]+|$))?(?P<value>.*)")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}
_BLOCK = re.compile(r"[|>][+-]?")


def yaml_scalars(text: str) -> dict[str, list[str]]:
    """Return the scalars by key, such as `parent.child` for a nested key. A map in braces is a scalar."""
    lines = text.split("\n")
    values: dict[str, list[str]] = {}
    parents: list[tuple[int, str]] = []
    key = ""
    place = 0
    while place < len(lines):
        line = lines[place]
        place += 1
        if not line.strip() or line.lstrip().startswith("#") or line.startswith("---"):
            continue
        entry = _ENTRY.fullmatch(line)
        if entry is None:
            continue
        indent = len(entry["indent"])
        if entry["key"] is not None and not entry["dash"]:
            while parents and parents[-1][0] >= indent:
                parents.pop()
            key = ".".join([*(name for _, name in parents), entry["key"]])
            parents.append((indent, entry["key"]))
        text = entry["value"].strip()
        if text in ("", "null", "[]"):
            continue
        begin = place
        while place < len(lines) and _continues(lines, begin, place, text, indent):
            place += 1
        values.setdefault(key, []).append(_scalar(text, lines[begin:place]))
    return values


def _continues(lines: list[str], begin: int, place: int, text: str, indent: int) -> bool:
    """Return whether a line belongs to the scalar that began with `text`."""
    if text[0] in "\"'":
        return not _is_closed(text, lines[begin:place])
    line = lines[place]
    return not line.strip() or len(line) - len(line.lstrip()) > indent


def _is_closed(text: str, more: list[str]) -> bool:
    quote, last = text[0], (more[-1] if more else text).rstrip()
    if not more and len(text) == 1:
        return False
    if quote == "'":
        return last.endswith("'") and (len(last) - len(last.rstrip("'"))) % 2 == 1
    before = last.removesuffix('"')
    return last.endswith('"') and (len(before) - len(before.rstrip("\\"))) % 2 == 0


def _scalar(text: str, more: list[str]) -> str:
    if _BLOCK.fullmatch(text):
        margin = min((len(line) - len(line.lstrip()) for line in more if line.strip()), default=0)
        body = [line[margin:] for line in more]
        return ("\n".join(body) if text[0] == "|" else _folded(body)).strip("\n")
    folded = _folded([text, *more])
    if text[0] == '"':
        return _ESCAPE.sub(_unescaped, folded[1:-1])
    return folded[1:-1].replace("''", "'") if text[0] == "'" else folded


def _folded(lines: list[str]) -> str:
    """Return a scalar of several lines: line breaks become blanks, empty lines become line breaks."""
    text = lines[0].strip()
    empty = 0
    for line in lines[1:]:
        body = line.strip()
        if not body:
            empty += 1
        elif text.endswith("\\") and not text.endswith("\\\\"):
            text = text[:-1] + body
            empty = 0
        else:
            text += "\n" * empty if empty else " "
            text += body
            empty = 0
    return text


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    return chr(int(code, 16)) if code else _ESCAPED.get(match[3], match[3])
