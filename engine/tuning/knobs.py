"""What of a module can be swept: its kernels' launch options and free constants, each with the values to try."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from engine.candidate import parsed
from harness import Target

from .edits import Edit, Text
from .launches import Kernel, Launch, launched_kernels
from .legal import Option, around, constant_values, launch_options, most_warps
from .literals import in_grid, literals

Value = int | str | None
Key = tuple[int, int, str]
"""First byte, the byte after the last, and the option where a keyword would be added: several can be at one place."""
CONFIG_ONLY = frozenset({"num_warps", "num_stages", "num_ctas", "maxnreg"})
"""What every `triton.Config` gives, so that a launch of an autotuned kernel cannot."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One value of a knob."""

    shown: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Knob:
    """One thing that a sweep can change in a source."""

    name: str
    present: Choice
    """Its edits write what stands there."""
    choices: tuple[Choice, ...]
    """Other values, nearest first."""
    shapes: bool
    """Whether it changes what a program of the grid does, and not only how that is compiled."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands, or where it would."""

    key: Key
    present: Value
    write: Callable[[Value], Edit | None]
    """`None`: nothing is to be changed."""


@dataclass(slots=True)
class Found:
    """A knob in the making."""

    name: str
    places: dict[Key, Place]
    shapes: bool
    legal: list[Callable[[Value], Sequence[Value]]] = field(default_factory=list)


def knobs_of(source: str, target: Target) -> tuple[Knob, ...]:
    """The knobs of a module for a target, in the order of its kernels; none where there is nothing to be found."""
    tree = parsed(source)
    if tree is None:
        return ()
    text = Text(source)
    kernels = launched_kernels(tree)
    knobs: list[Knob] = []
    found: list[Found] = []
    for kernel in kernels:
        before = f"{kernel.name} " if len(kernels) > 1 else ""
        frozen = _frozen(kernel, text, before)
        if frozen is not None:
            knobs.append(frozen)
        for option in launch_options(target):
            places = _option_places(kernel, option, tree, text)
            if places:
                legal = partial(_option_values, option, target)
                found.append(Found(before + option.name, places, shapes=False, legal=[legal]))
        for name in kernel.constants:
            places = _constant_places(kernel, name, tree, text)
            if places:
                legal = partial(_legal_constants, name, target, kernel)
                found.append(Found(before + name, places, shapes=True, legal=[legal]))
    knobs += (_knob(one) for one in _merged(found))
    return tuple(knob for knob in knobs if knob.choices)


def _option_places(kernel: Kernel, option: Option, tree: ast.Module, text: Text) -> dict[Key, Place]:
    """Where the option of a kernel's launches stands; empty where it cannot be set by the text of the launches alone."""
    if (option.needs == "dot" and not kernel.dots) or (option.needs == "loop" and not kernel.loops):
        return {}
    if any(parameter.arg == option.name for parameter in kernel.function.args.args):
        return {}
    if kernel.autotuned and (kernel.configs is None or option.name in kernel.config_options | CONFIG_ONLY):
        return {}
    places: dict[Key, Place] = {}
    for launch in kernel.launches:
        given = launch.arguments.get(option.name)
        if given is None:
            if launch.open or not launch.arguments:
                return {}
            place = _absent(launch, option, text)
            places[place.key] = place
            continue
        written = _written(given, launch, tree)
        if not written:
            return {}
        places |= {place.key: place for place in (_literal(node, text) for node in written)}
    return places


def _written(given: ast.expr, launch: Launch, tree: ast.Module) -> list[ast.Constant]:
    if isinstance(given, ast.Constant) and (given.value is None or isinstance(given.value, str)):
        return [given]
    return list(literals(given, launch.scope, tree))


def _absent(launch: Launch, option: Option, text: Text) -> Place:
    edit = text.added_keyword(launch.call, "")

    def write(value: Value) -> Edit | None:
        if value == option.default:
            return None
        return text.added_keyword(launch.call, f"{option.name}={_printed(value)}")

    return Place((edit.start, edit.start, option.name), option.default, write)


def _literal(node: ast.Constant, text: Text) -> Place:
    key = (text.start(node), text.end(node), "")
    present = node.value
    assert present is None or isinstance(present, int | str)

    def write(value: Value) -> Edit:
        return text.replaced(node, text.of(node) if value == present else _printed(value))

    return Place(key, present, write)


def _constant_places(kernel: Kernel, name: str, tree: ast.Module, text: Text) -> dict[Key, Place]:
    """Where the numbers stand that a constant of a kernel gets; empty where no launch gives it, or any gives what cannot be
    told.
    """
    nodes: list[ast.Constant] = []
    given = [launch.arguments[name] for launch in kernel.launches if name in launch.arguments]
    if not given:
        default = None if name in kernel.config_options else _default(kernel.function, name)
        nodes = [default] if default is not None else []
    for launch in kernel.launches:
        value = launch.arguments.get(name)
        if value is None:
            continue
        written = list(literals(value, launch.scope, tree))
        if not written:
            return {}
        nodes += (*written, *in_grid(launch, {node.value for node in written}, tree))
    return {place.key: place for place in (_literal(node, text) for node in nodes)}


def _default(function: ast.FunctionDef, name: str) -> ast.Constant | None:
    """The number that a parameter has when a launch does not give it."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(reversed(positional), reversed(arguments.defaults), strict=False),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    value = next((value for parameter, value in pairs if parameter.arg == name), None)
    return value if isinstance(value, ast.Constant) and type(value.value) is int else None


def _option_values(option: Option, target: Target, present: Value) -> Sequence[Value]:
    if option.values:
        return [value for value in option.values if value != present]
    return around(present, 1, most_warps(target)) if isinstance(present, int) else ()


def _legal_constants(name: str, target: Target, kernel: Kernel, present: Value) -> Sequence[Value]:
    return constant_values(name, present, target, dots=kernel.dots) if isinstance(present, int) else ()


def _merged(found: Iterable[Found]) -> list[Found]:
    """Knobs that stand in the same place are one: what changes the one changes the other."""
    merged: list[Found] = []
    for one in found:
        same = [other for other in merged if other.places.keys() & one.places.keys()]
        if not same:
            merged.append(one)
            continue
        first = same[0]
        for other in (*same[1:], one):
            first.name += f", {other.name}"
            first.places |= other.places
            first.shapes |= other.shapes
            first.legal += other.legal
        merged = [other for other in merged if other not in same[1:]]
    return merged


def _knob(found: Found) -> Knob:
    places = list(found.places.values())
    presents = [place.present for place in places]
    now = _choice(places, presents)
    if len(set(presents)) == 1:
        changes = [[value] * len(places) for value in _legal(found, presents[0])]
    else:
        # Values that differ keep their ratio.
        factored = [
            [(value * 2 if up else value // 2) if isinstance(value, int) else value for value in presents]
            for up in (True, False)
        ]
        changes = [
            values
            for values in factored
            if all(new in _legal(found, old) for new, old in zip(values, presents, strict=True))
        ]
    return Knob(found.name, now, tuple(_choice(places, values) for values in changes), found.shapes)


def _legal(found: Found, present: Value) -> list[Value]:
    first, *others = (legal(present) for legal in found.legal)
    return [value for value in first if all(value in other for other in others)]


def _choice(places: Sequence[Place], values: Sequence[Value]) -> Choice:
    edits = [place.write(value) for place, value in zip(places, values, strict=True)]
    shown = "|".join(dict.fromkeys(str(value) for value in values))
    return Choice(shown, tuple(edit for edit in edits if edit is not None))


def _frozen(kernel: Kernel, text: Text, before: str) -> Knob | None:
    """An autotuned kernel's configs as candidates to keep alone; they are left as they are written."""
    configs = kernel.configs
    if configs is None or len(configs.elts) < 2:
        return None
    present = Choice(f"{len(configs.elts)} configs", (text.replaced(configs, text.of(configs)),))
    choices = [
        Choice(
            f"config {at} alone: {' '.join(text.of(one).split())}",
            (text.replaced(configs, f"[{text.of(one)}]"),),
        )
        for at, one in enumerate(configs.elts)
    ]
    return Knob(f"{before}autotune", present, tuple(choices), shapes=True)


def _printed(value: Value) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
