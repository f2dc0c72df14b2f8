"""Finds what a sweep can change in a module: its kernels' launch options and free constants, with the values to try."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from engine.reply.module_text import parse_module
from harness import Target

from .edits import Edit, Text
from .launch_config import in_grid, literals
from .launches import LaunchedKernel, LaunchSite, launched_kernels
from .legal import Option, constant_values, launch_options, most_warps, powers_around

Value = int | str | None
Key = tuple[int, int, str]
"""First byte, byte after the last, and the option of an added keyword: several keywords can share one place."""
CONFIG_ONLY = frozenset({"num_warps", "num_stages", "num_ctas", "maxnreg"})
"""Options that every `triton.Config` sets, so a launch of an autotuned kernel cannot set them."""


@dataclass(frozen=True, slots=True)
class KnobValue:
    """One value of a knob."""

    shown: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Knob:
    """One parameter that a sweep can change in a source."""

    name: str
    present: KnobValue
    """The present value; its edits write the present text."""
    choices: tuple[KnobValue, ...]
    """Other values, nearest first."""


@dataclass(frozen=True, slots=True)
class KnobPlace:
    """A position in the source where a value is written, or would be written."""

    key: Key
    present: Value
    write: Callable[[Value], Edit | None]
    """Returns the edit for a value; `None` if nothing changes."""


@dataclass(slots=True)
class KnobDraft:
    """A knob before its values are known."""

    name: str
    places: dict[Key, KnobPlace]
    legal: list[Callable[[Value], Sequence[Value]]] = field(default_factory=list)


def knobs_of(source: str, target: Target) -> tuple[Knob, ...]:
    """Returns the knobs of a module for a target, in the order of its kernels; empty if there are none."""
    tree = parse_module(source)
    if tree is None:
        return ()
    text = Text(source)
    kernels = launched_kernels(tree)
    knobs: list[Knob] = []
    drafts: list[KnobDraft] = []
    for kernel in kernels:
        before = f"{kernel.name} " if len(kernels) > 1 else ""
        frozen = _frozen(kernel, text, before)
        if frozen is not None:
            knobs.append(frozen)
        for option in launch_options(target):
            places = _option_places(kernel, option, tree, text)
            if places:
                legal = partial(_option_values, option, target)
                drafts.append(KnobDraft(before + option.name, places, legal=[legal]))
        for name in kernel.constants:
            places = _constant_places(kernel, name, tree, text)
            if places:
                legal = partial(_legal_constants, name, target, kernel)
                drafts.append(KnobDraft(before + name, places, legal=[legal]))
    knobs += (_knob(draft) for draft in _merge(drafts))
    return tuple(knob for knob in knobs if knob.choices)


def _option_places(
    kernel: LaunchedKernel, option: Option, tree: ast.Module, text: Text
) -> dict[Key, KnobPlace]:
    """Positions of an option in a kernel's launches; empty if the text of the launches alone cannot set it."""
    if (option.needs == "dot" and not kernel.dots) or (option.needs == "loop" and not kernel.loops):
        return {}
    if any(parameter.arg == option.name for parameter in kernel.function.args.args):
        return {}
    if kernel.autotuned and (kernel.configs is None or option.name in kernel.config_options | CONFIG_ONLY):
        return {}
    places: dict[Key, KnobPlace] = {}
    for launch in kernel.launches:
        argument = launch.arguments.get(option.name)
        if argument is None:
            if launch.open or not launch.arguments:
                return {}
            place = _absent(launch, option, text)
            places[place.key] = place
            continue
        nodes = _written(argument, launch, tree)
        if not nodes:
            return {}
        places |= {place.key: place for place in (_literal(node, text) for node in nodes)}
    return places


def _written(argument: ast.expr, launch: LaunchSite, tree: ast.Module) -> list[ast.Constant]:
    if isinstance(argument, ast.Constant) and (argument.value is None or isinstance(argument.value, str)):
        return [argument]
    return list(literals(argument, launch.scope, tree))


def _absent(launch: LaunchSite, option: Option, text: Text) -> KnobPlace:
    edit = text.added_keyword(launch.call, "")

    def write(value: Value) -> Edit | None:
        if value == option.default:
            return None
        return text.added_keyword(launch.call, f"{option.name}={_printed(value)}")

    return KnobPlace((edit.start, edit.start, option.name), option.default, write)


def _literal(node: ast.Constant, text: Text) -> KnobPlace:
    key = (text.start(node), text.end(node), "")
    present = node.value
    assert present is None or isinstance(present, int | str)

    def write(value: Value) -> Edit:
        return text.replaced(node, text.of(node) if value == present else _printed(value))

    return KnobPlace(key, present, write)


def _constant_places(kernel: LaunchedKernel, name: str, tree: ast.Module, text: Text) -> dict[Key, KnobPlace]:
    """Positions of the numbers that set a constant of a kernel.

    Empty if no launch sets it, or if the value at any launch cannot be traced to numbers.
    """
    nodes: list[ast.Constant] = []
    values = [launch.arguments[name] for launch in kernel.launches if name in launch.arguments]
    if not values:
        default = None if name in kernel.config_options else _default(kernel.function, name)
        nodes = [default] if default is not None else []
    for launch in kernel.launches:
        value = launch.arguments.get(name)
        if value is None:
            continue
        numbers = list(literals(value, launch.scope, tree))
        if not numbers:
            return {}
        nodes += (*numbers, *in_grid(launch, {node.value for node in numbers}, tree))
    return {place.key: place for place in (_literal(node, text) for node in nodes)}


def _default(function: ast.FunctionDef, name: str) -> ast.Constant | None:
    """The number of a parameter that a launch does not set."""
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
    return powers_around(present, 1, most_warps(target)) if isinstance(present, int) else ()


def _legal_constants(name: str, target: Target, kernel: LaunchedKernel, present: Value) -> Sequence[Value]:
    return constant_values(name, present, target, dots=kernel.dots) if isinstance(present, int) else ()


def _merge(drafts: Iterable[KnobDraft]) -> list[KnobDraft]:
    """Merge knobs that share a position: a change of one changes the other."""
    merged: list[KnobDraft] = []
    for draft in drafts:
        same = [knob for knob in merged if knob.places.keys() & draft.places.keys()]
        if not same:
            merged.append(draft)
            continue
        first = same[0]
        for match in (*same[1:], draft):
            first.name += f", {match.name}"
            first.places |= match.places
            first.legal += match.legal
        merged = [knob for knob in merged if knob not in same[1:]]
    return merged


def _knob(draft: KnobDraft) -> Knob:
    places = list(draft.places.values())
    presents = [place.present for place in places]
    now = _choice(places, presents)
    if len(set(presents)) == 1:
        changes = [[value] * len(places) for value in _legal(draft, presents[0])]
    else:
        # Different values keep their ratio.
        factored = [
            [(value * 2 if up else value // 2) if isinstance(value, int) else value for value in presents]
            for up in (True, False)
        ]
        changes = [
            values
            for values in factored
            if all(new in _legal(draft, old) for new, old in zip(values, presents, strict=True))
        ]
    return Knob(draft.name, now, tuple(_choice(places, values) for values in changes))


def _legal(draft: KnobDraft, present: Value) -> list[Value]:
    first, *rest = (legal(present) for legal in draft.legal)
    return [value for value in first if all(value in values for values in rest)]


def _choice(places: Sequence[KnobPlace], values: Sequence[Value]) -> KnobValue:
    edits = [place.write(value) for place, value in zip(places, values, strict=True)]
    shown = "|".join(dict.fromkeys(str(value) for value in values))
    return KnobValue(shown, tuple(edit for edit in edits if edit is not None))


def _frozen(kernel: LaunchedKernel, text: Text, before: str) -> Knob | None:
    """A knob that keeps one config of an autotuned kernel; the config's text stays unchanged."""
    configs = kernel.configs
    if configs is None or len(configs.elts) < 2:
        return None
    present = KnobValue(f"{len(configs.elts)} configs", (text.replaced(configs, text.of(configs)),))
    choices = [
        KnobValue(
            f"config {at} alone: {' '.join(text.of(config).split())}",
            (text.replaced(configs, f"[{text.of(config)}]"),),
        )
        for at, config in enumerate(configs.elts)
    ]
    return Knob(f"{before}autotune", present, tuple(choices))


def _printed(value: Value) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
