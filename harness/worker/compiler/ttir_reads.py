"""Finds the pointer arguments that a kernel reads, in the text of its Triton IR (`ttir`)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain

_VALUE = re.compile(r"%[\w.$-]+(?:#\d+)?")
_OPERATION = re.compile(r'^(?:(?P<results>%[^=]*?)\s*=\s*)?"?(?P<name>[a-z_]\w*(?:\.\w+)+)"?(?P<rest>.*)$')
_RESULT = re.compile(r"(%[\w.$-]+)(?::(\d+))?")
_POINTER_ARGUMENT = re.compile(r"(%[\w.$-]+): !tt\.(?:ptr|tensordesc)<")
_TYPED = re.compile(r"(%[\w.$-]+)\s*:")
_CARRIED = re.compile(r"(%[\w.$-]+)\s*=\s*(%[\w.$-]+(?:#\d+)?)")
_LOCATION = re.compile(r"\s+loc\(.*$")
_PLACED = {"tt.load": (0, 1), "tt.atomic_rmw": (0, 2), "tt.atomic_cas": (0,)}
"""Operations that read memory, and their operands that say where: the address and the mask."""
_BY_DESCRIPTOR = frozenset(
    f"tt.{stage}descriptor_{access}" for stage in ("", "experimental_") for access in ("load", "gather")
)
"""Further operations that read memory; all their operands say where."""
_CALLS = frozenset({"tt.call", "func.call"})
_BRANCH = "cf"
"""Source of the arguments of all blocks of a function: the operands of all its branches."""


@lru_cache(maxsize=256)
def arguments_read(ttir: str) -> Mapping[str, bool] | None:
    """Return the arguments that the kernel reads, by name; `None` if the text does not show it.

    True: in some read, no value from memory decides on addresses, mask, loop or branch. False: in every read one does, such as
    an index or a length, so the kernel may read only a part of the argument.
    """
    try:
        return _KernelReads(ttir).arguments_read()
    except (_Unclear, IndexError, ValueError):
        return None


class _Unclear(Exception):
    """The text has something that this module does not follow."""


@dataclass(slots=True)
class _Region:
    """A region of an operation, or of the function."""

    name: str = ""
    """The operation's name."""
    operands: Sequence[str] = ()
    results: Sequence[str] = ()
    carried: Sequence[str] = ()
    """Values that one round of a loop gives to the next, by their names inside."""
    forwarded: Sequence[str] = ()
    """Values that the condition of `scf.while` gives to its second region."""
    controls: list[str] = field(default_factory=list)
    """Values that decide whether and how often the region runs."""


class _KernelReads:
    """A kernel's values, each with the values that it is computed from."""

    def __init__(self, ttir: str) -> None:
        """Raises `_Unclear`."""
        self._sources: dict[str, set[str]] = defaultdict(set)
        self._pointers: dict[str, str] = {}
        """Names of the pointer arguments, by value."""
        self._loaded: set[str] = set()
        self._reads: list[tuple[Sequence[str], tuple[_Region, ...]]] = []
        """The operands of each read that say where it reads, and the regions around it."""
        self._regions = [_Region()]
        """The regions around the line that is read, the innermost last."""
        self._names: dict[str, str] = {}
        """Unique names of values by their names in the text. Regions one after another may use the same names there."""
        self._count = 0
        self._has_function = False
        for line in map(str.strip, ttir.splitlines()):
            if line and not line.startswith("#"):
                self._follow(line)
        if not self._has_function:
            raise _Unclear

    def arguments_read(self) -> dict[str, bool]:
        """Return the arguments that are read, as the function of that name."""
        read: dict[str, bool] = {}
        for operands, regions in self._reads:
            origins = self._origins(operands[:1])
            names = [self._pointers[value] for value in origins if value in self._pointers]
            if not names:
                raise _Unclear
            controls = chain.from_iterable(region.controls for region in regions)
            is_free = self._loaded.isdisjoint(self._origins(chain(operands, controls)))
            for name in names:
                read[name] = read.get(name, False) or is_free
        return read

    def _origins(self, values: Iterable[str]) -> set[str]:
        """Return the values, and all from which they are computed without a read."""
        origins: set[str] = set()
        waiting = list(values)
        while waiting:
            value = waiting.pop()
            if value not in origins:
                origins.add(value)
                waiting += () if value in self._loaded else self._sources[value]
        return origins

    def _follow(self, line: str) -> None:
        """Note one line of the text: the beginning of a function, block or operation, or the end of a region.

        Raises `_Unclear`.
        """
        opens = _LOCATION.sub("", line).endswith("{")
        if line.startswith("tt.func"):
            self._begin_function(line)
        elif line.startswith("^"):
            self._begin_block(line)
        elif line.startswith("}"):
            region = self._regions.pop()
            if opens:  # `} else {`, `} do {`: the next region of the same operation
                self._regions.append(region)
        elif operation := _OPERATION.match(_LOCATION.sub("", line)):
            region = self._note(operation)
            if opens:
                self._regions.append(region)
        elif opens:
            self._regions.append(_Region())

    def _begin_function(self, line: str) -> None:
        if self._has_function:
            raise _Unclear
        self._has_function = True
        self._regions.append(_Region("tt.func"))
        self._pointers = {self._define(value): value[1:] for value in _POINTER_ARGUMENT.findall(line)}

    def _begin_block(self, line: str) -> None:
        region = self._regions[-1]
        sources: Sequence[str] = (_BRANCH,) if region.name == "tt.func" else region.operands
        for place, value in enumerate(_TYPED.findall(line)):
            if region.name == "scf.while":
                sources = region.forwarded[place : place + 1]
            self._sources[self._define(value)].update(sources)

    def _define(self, value: str) -> str:
        """Return a unique name for a value that the text defines. Lines after this one mean it by the text's name."""
        self._count += 1
        self._names[value] = f"{value}@{self._count}"
        return self._names[value]

    def _values(self, text: str) -> list[str]:
        """Return the values that a text uses, by their unique names."""
        return [self._names.get(value, value) for value in _VALUE.findall(text)]

    def _note(self, operation: re.Match[str]) -> _Region:
        """Note one operation: its results come from its operands, and a load reads by the operands that are its places.

        Returns its region, which the text may not open. Raises `_Unclear` for a call, which the text does not follow.
        """
        name, rest = operation["name"], operation["rest"]
        operands = self._values(rest)
        results = [self._define(value) for value in _results(operation["results"] or "")]
        region = _Region(name, operands, results)
        if name in _CALLS:
            raise _Unclear
        if name in ("scf.for", "scf.while"):
            self._begin_loop(region, rest)
        elif name in ("scf.yield", "scf.condition"):
            self._end_round(name, operands)
        elif name.startswith("cf."):
            self._sources[_BRANCH].update(operands)
            if name != "cf.br":  # it decides on the reads after it, not on those before it
                inside = self._regions[-1]
                self._regions[-1] = replace(inside, controls=[*inside.controls, operands[0]])
        else:
            if name == "scf.if":
                region.controls.append(operands[0])
            for value in results:
                self._sources[value].update(operands)
        places = _PLACED.get(name, range(len(operands)) if name in _BY_DESCRIPTOR else ())
        if places:
            places_read = [operands[place] for place in places if place < len(operands)]
            self._reads.append((places_read, tuple(self._regions)))
            self._loaded.update(results)
        return region

    def _begin_loop(self, region: _Region, rest: str) -> None:
        """Enter a loop: its carried values come from the initial ones, and their results from what a round leaves.

        A `for` loop's counter, and so all results, also depend on its bounds.
        """
        pairs = _CARRIED.findall(rest)
        if region.name == "scf.for":
            (counter, first), *pairs = pairs
            region.controls += self._values(f"{first} {rest.partition(' to ')[2].partition('iter_args')[0]}")
            self._sources[self._define(counter)].update(region.controls)
        region.carried = [self._define(inner) for inner, _ in pairs]
        for place, (inner, (_, initial)) in enumerate(zip(region.carried, pairs, strict=True)):
            self._sources[inner].update(self._values(initial))
            if region.name == "scf.for":
                self._sources[region.results[place]].update((inner, *region.controls))

    def _end_round(self, name: str, operands: Sequence[str]) -> None:
        """Leave a region: its operands become the results, or the carried values of the next round of a loop."""
        region = self._regions[-1]
        if name == "scf.condition":
            condition, *region.forwarded = operands
            region.controls.append(condition)
            self._connect(region.results, region.forwarded)
            for value in region.results:
                self._sources[value].add(condition)
        elif region.name in ("scf.for", "scf.while"):
            self._connect(region.carried, operands)
        else:
            self._connect(region.results, operands)

    def _connect(self, values: Sequence[str], sources: Sequence[str]) -> None:
        for value, source in zip(values, sources, strict=False):
            self._sources[value].add(source)


def _results(text: str) -> list[str]:
    """Return the values in front of `=`: `%a, %b:2` gives `%a`, `%b#0` and `%b#1`."""
    values = []
    for value, count in _RESULT.findall(text):
        values += [f"{value}#{place}" for place in range(int(count))] if count else [value]
    return values
