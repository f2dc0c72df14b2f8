"""
The IR's generic text as a tree of operations.

A module that does not verify is printed in MLIR's generic form, which is the same for all dialects: one operation a line, its
regions on lines of their own. Source: https://mlir.llvm.org/docs/LangRef/#operations. Attributes stay text but for those that
operations ask for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_OPERATION = re.compile(r'\s*(?:(%\S+(?:, %\S+)*) = )?"([\w.]+)"\(([^)]*)\)(?:\[([^\]]*)\])?(.*)$')
_BLOCK = re.compile(r"\s*(\^\w+)(?:\((.*)\))?:(?: .*)?$")
_LOCATION = re.compile(r"(#loc\d*) = loc\((.*)\)$")
_PLACE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):\d+')
_REFERENCE = re.compile(r"#loc\d*")
_OPENING, _CLOSING = "<{([", ">})]"


class Unreadable(Exception):
    """Text that is not MLIR's generic form."""


@dataclass(slots=True)
class Block:
    """Operations that run one after the other."""

    arguments: list[int] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)


@dataclass(slots=True)
class Operation:
    """One operation; values are numbered within their function."""

    name: str
    operands: list[int]
    results: list[int] = field(default_factory=list)
    regions: list[list[Block]] = field(default_factory=list)
    successors: list[int] = field(default_factory=list)
    """Places of blocks in the region."""
    attributes: dict[str, str] = field(default_factory=dict)
    operand_kinds: list[str] = field(default_factory=list)
    result_kinds: list[str] = field(default_factory=list)
    line: int | None = None
    """In the candidate's file."""

    def number(self, name: str) -> int:
        """An integer attribute."""
        return int(self.attributes[name].split(" : ")[0])

    def numbers(self, name: str) -> list[int]:
        """An attribute as `array<i32: 1, 0>`."""
        _, _, items = self.attributes[name].removesuffix(">").partition(":")
        return [int(item) for item in items.split(",") if item.strip()]

    def is_set(self, name: str) -> bool:
        """Whether a flag is there and true."""
        return self.attributes.get(name, "false") in ("true", "unit", "")


@dataclass(slots=True)
class Function:
    """One function: its blocks, and how many values it has."""

    name: str
    public: bool
    """The kernel itself is, the functions that it calls are not."""
    blocks: list[Block]
    values: int


def parse(text: str, file: str) -> dict[str, Function]:
    """The functions of a module by name. `file` is the candidate's; `Unreadable` for text that is none."""
    lines = text.splitlines()
    places = _Places(lines, file)
    reader = _Reader(lines, places)
    return {function.name: function for function in reader.functions()}


class _Places:
    """Lines of the candidate's file by the names of locations."""

    def __init__(self, lines: list[str], file: str) -> None:
        self._file = file
        self._told = {found[1]: found[2] for line in lines if (found := _LOCATION.match(line))}
        self._known: dict[str, int | None] = {}

    def line(self, told: str) -> int | None:
        """The innermost line of the candidate's that a location names."""
        if told not in self._known:
            self._known[told] = None  # should locations ever name each other
            self._known[told] = self._found(told)
        return self._known[told]

    def _found(self, told: str) -> int | None:
        place = _PLACE.search(told)
        if place:
            return int(place[2]) if place[1] == self._file else None
        for name in _REFERENCE.findall(told):
            line = self.line(self._told.get(name, ""))
            if line is not None:
                return line
        return None


class _Scope:
    """Numbers of a function's values; names come again in regions beside each other."""

    def __init__(self) -> None:
        self.count = 0
        self._names: list[dict[str, int]] = [{}]

    def enter(self) -> None:
        self._names.append({})

    def leave(self) -> None:
        self._names.pop()

    def define(self, name: str) -> int:
        number = self._names[-1][name] = self.count
        self.count += 1
        return number

    def find(self, name: str) -> int:
        for names in reversed(self._names):
            if name in names:
                return names[name]
        raise Unreadable(f"nothing is called {name}")


class _Reader:
    """Goes through the lines of a module."""

    def __init__(self, lines: list[str], places: _Places) -> None:
        self._lines = [line for line in lines if not line.startswith("#") and line.strip()]
        self._places = places
        self._at = 0

    def functions(self) -> Iterator[Function]:
        if not self._lines or not self._lines[0].startswith('"builtin.module"'):
            raise Unreadable("no module")
        self._at = 1
        while not self._lines[self._at].startswith("})"):
            scope = _Scope()
            operation = self._operation(scope)
            if operation.name != "tt.func":
                raise Unreadable(f"{operation.name} outside of functions")
            name = operation.attributes["sym_name"].strip('"')
            public = operation.attributes.get("sym_visibility", "") == '"public"'
            yield Function(name, public, operation.regions[0], scope.count)

    def _operation(self, scope: _Scope) -> Operation:
        line = self._lines[self._at]
        found = _OPERATION.match(line)
        if not found:
            raise Unreadable(line.strip())
        results, name, operands, successors, rest = found.groups()
        made = Operation(name, [scope.find(one) for one in operands.split(", ") if one])
        made.successors = [
            int(one.strip().removeprefix("^bb")) for one in (successors or "").split(",") if one
        ]
        rest = rest.strip()
        if rest.startswith("<{"):
            end = _end(rest, 0)
            made.attributes.update(_attributes(rest[2 : end - 2]))
            rest = rest[end:].strip()
        self._at += 1
        if rest == "({":
            rest = self._regions(made, scope)
        if rest.startswith("{"):
            end = _end(rest, 0)
            made.attributes.update(_attributes(rest[1 : end - 1]))
            rest = rest[end:].strip()
        self._signature(made, rest)
        for one in (results or "").split(", ") if results else ():
            self._define(made, one, scope)
        return made

    def _define(self, made: Operation, name: str, scope: _Scope) -> None:
        base, _, count = name.partition(":")
        if not count:
            made.results.append(scope.define(base))
            return
        made.results.extend(scope.define(f"{base}#{at}") for at in range(int(count)))

    def _signature(self, made: Operation, rest: str) -> None:
        """What stands behind the attributes, as ` : (i32) -> tensor<8xi32> loc(#loc3)`."""
        if not rest.startswith(": ("):
            raise Unreadable(rest)
        end = _end(rest, 2)
        made.operand_kinds = _parts(rest[3 : end - 1])
        results, _, place = rest[end:].removeprefix(" -> ").rpartition(" loc(")
        made.result_kinds = _parts(results[1:-1] if results.startswith("(") else results)
        made.line = self._places.line(place)

    def _regions(self, made: Operation, scope: _Scope) -> str:
        """Reads all regions of an operation; what stands behind the last."""
        while True:
            blocks: list[Block] = []
            scope.enter()
            made.regions.append(blocks)
            while not self._lines[self._at].strip().startswith("}"):
                head = _BLOCK.match(self._lines[self._at])
                if head:
                    self._at += 1
                    blocks.append(self._block(head[2] or "", scope))
                    continue
                if not blocks:
                    blocks.append(Block())
                blocks[-1].operations.append(self._operation(scope))
            scope.leave()
            line = self._lines[self._at].strip()
            self._at += 1
            if line != "}, {":
                return line.removeprefix("})").strip()

    def _block(self, arguments: str, scope: _Scope) -> Block:
        made = Block()
        for one in _parts(arguments):
            name, _, kind = one.partition(": ")
            made.arguments.append(scope.define(name))
            made.kinds.append(kind.split(" loc(")[0])
        return made


def _end(text: str, start: int) -> int:
    """The place behind the bracket that closes the one at `start`."""
    depth, at = 0, start
    while at < len(text):
        letter = text[at]
        if letter == '"':
            at = _behind_string(text, at)
            continue
        if text.startswith("->", at):
            at += 2
            continue
        if letter in _OPENING:
            depth += 1
        elif letter in _CLOSING:
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    raise Unreadable(text)


def _behind_string(text: str, start: int) -> int:
    at = start + 1
    while at < len(text) and text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    return at + 1


def _parts(text: str) -> list[str]:
    """What commas part that stand in no bracket."""
    parts, at, begin = [], 0, 0
    while at < len(text):
        letter = text[at]
        if letter == '"':
            at = _behind_string(text, at)
        elif letter in _OPENING:
            at = _end(text, at)
        elif letter == ",":
            parts.append(text[begin:at].strip())
            at += 1
            begin = at
        else:
            at += 1
    last = text[begin:].strip()
    return [*parts, last] if last else parts


def _attributes(text: str) -> dict[str, str]:
    found = {}
    for part in _parts(text):
        name, _, value = part.partition(" = ")
        found[name.strip('"')] = value
    return found
