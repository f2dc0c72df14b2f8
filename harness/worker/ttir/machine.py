"""Runs the programs of a launch by their IR: several at once where that makes no difference, else one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import arithmetic, combining, shaping
from .effects import ADDRESSES, EFFECTS, Step, address, effect, numbering, plain
from .endings import Unread, Wrong
from .kinds import UnknownKind, kind_of
from .memory import Memory, Outside
from .text import Block, Function, Operation
from .together import MOST_LANES, Apart, Place, alike, largest, leading, numbers, outside, rank, same

MOST_TURNS = 1 << 20
"""Of one loop; one that has more waits for what never comes, as programs are run in turn."""
_MOST_TOGETHER = 1 << 12
"""Of a loop that waits, while several programs run at once: what it waits for may come when they run in turn."""
WRAPS = "a loop counts on to {at}, which {bits} bits do not hold: it wraps around there and goes on; end it earlier"
_NOTHING = frozenset({"tt.print", "gpu.barrier", "ttg.barrier", "ttg.local_barrier", "llvm.intr.assume"})
_ENDS = frozenset(
    {"tt.return", "scf.yield", "tt.reduce.return", "tt.scan.return", "tt.map_elementwise.return"}
)

Array = Any
Values = list[Array]


class _Ready(NamedTuple):
    """One operation, ready to run: `run` puts its results among the values."""

    run: Step
    line: int | None


class _Block(NamedTuple):
    """Operations up to the last one, which hands values on."""

    arguments: tuple[int, ...]
    steps: tuple[_Ready, ...]
    last: str
    given: tuple[int, ...]
    """What the last one hands on."""
    successors: tuple[int, ...]
    segments: tuple[int, ...]


class Module:
    """The functions of one kernel, ready to run."""

    def __init__(self, functions: dict[str, Function], entry: str) -> None:
        """`Unread` where an operation is not known here."""
        self._functions = {
            name: (function.values, _region(function.blocks)) for name, function in functions.items()
        }
        self.entry = entry
        self.parameters = tuple(functions[entry].blocks[0].kinds)
        """Their types, as the IR writes them."""
        self.at_once = max(MOST_LANES // max(largest(one.blocks) for one in functions.values()), 1)
        """Programs that run together; 1 once any could not."""

    def run(self, machine: Machine, name: str, given: Sequence[Array]) -> tuple[Array, ...]:
        """What the function returns."""
        count, blocks = self._functions[name]
        return machine.follow(blocks, [None] * count, given)


class Machine:
    """The programs of a launch."""

    def __init__(self, module: Module, memory: Memory, grid: tuple[int, int, int], device: int) -> None:
        """`device`: one of many, which set their brackets otherwise."""
        self.device = device
        self.module = module
        self.memory = memory
        self.grid = grid
        self.place = numbers([(0, 0, 0)])
        self.patience = MOST_TURNS
        """Turns of a loop that ends by a condition."""

    def programs(self, places: Sequence[Place], given: Sequence[Array]) -> None:
        """Runs the programs at places of the grid. `Wrong` and `Unread` come from here."""
        if len(places) > 1 and self.module.at_once > 1:
            if self._together(places, given):
                return
            self.module.at_once = 1
        try:
            for place in places:
                self.place = numbers([place])
                self.module.run(self, self.module.entry, given)
        except Apart as apart:
            raise Unread("a function of a reduction that branches on its elements") from apart

    def _together(self, places: Sequence[Place], given: Sequence[Array]) -> bool:
        """Whether they could run at once; nothing is changed where not."""
        self.place, self.patience = numbers(places), _MOST_TOGETHER
        try:
            with self.memory.at_once():
                self.module.run(self, self.module.entry, given)
        except Exception:  # noqa: BLE001 (the one program that does it tells what it is)
            return False
        finally:
            self.patience = MOST_TURNS
        return True

    def steps(self, block: _Block, values: Values) -> None:
        """All of a block but what it hands on."""
        for step in block.steps:
            try:
                step.run(self, values)
            except Outside as outside:
                raise Wrong(str(outside), step.line) from outside

    def follow(self, blocks: Sequence[_Block], values: Values, given: Sequence[Array]) -> tuple[Array, ...]:
        """What blocks hand on that lead to each other, from the first on."""
        at, handed = 0, tuple(given)
        while True:
            block = blocks[at]
            found = self.hand(block, values, handed)
            if block.last in _ENDS:
                return found
            at, handed = _next(block, values)

    def hand(self, block: _Block, values: Values, handed: Sequence[Array] = ()) -> tuple[Array, ...]:
        """What a block of a region hands on when it was handed these."""
        _enter(block, values, handed)
        self.steps(block, values)
        return tuple(values[one] for one in block.given)


def _enter(block: _Block, values: Values, handed: Sequence[Array]) -> None:
    for number, value in zip(block.arguments, handed, strict=True):
        values[number] = value


def _next(block: _Block, values: Values) -> tuple[int, tuple[Array, ...]]:
    if block.last == "cf.br":
        return block.successors[0], tuple(values[one] for one in block.given)
    _, yes, _ = block.segments
    rest = [values[one] for one in block.given[1:]]
    if same(values[block.given[0]]):
        return block.successors[0], tuple(rest[:yes])
    return block.successors[1], tuple(rest[yes:])


def _region(blocks: Sequence[Block]) -> tuple[_Block, ...]:
    return tuple(map(_block, blocks))


def _block(block: Block) -> _Block:
    *steps, last = block.operations
    if last.name not in _ENDS and last.name not in ("cf.br", "cf.cond_br", "scf.condition"):
        raise Unread(last.name)
    segments = tuple(last.numbers("operandSegmentSizes")) if last.name == "cf.cond_br" else ()
    ready = tuple(_Ready(_ready(one), one.line) for one in steps if one.name not in _NOTHING)
    return _Block(
        tuple(block.arguments), ready, last.name, tuple(last.operands), tuple(last.successors), segments
    )


def _ready(operation: Operation) -> Step:
    try:
        return _made(operation)
    except (UnknownKind, KeyError) as error:
        raise Unread(f"{operation.name} of {error}") from error


def _made(operation: Operation) -> Step:
    if operation.name == "arith.constant":
        value = arithmetic.constant(operation)
        return plain(operation, lambda: value)
    function = arithmetic.elementwise(operation) or shaping.shaping(operation)
    if function is not None and operation.name in ADDRESSES:
        return address(operation, function)
    if function is not None and arithmetic.makes_numbers(operation):
        return numbering(operation, function)
    if function is not None:
        return plain(operation, function)
    make = _OPERATIONS.get(operation.name)
    if make is None:
        raise Unread(operation.name)
    return make(operation)


def _combination(operation: Operation) -> tuple[_Block, tuple[np.dtype[Any], ...]]:
    (block,) = _region(operation.regions[0])
    return block, tuple(kind_of(kind).dtype for kind in operation.result_kinds)


def _folding(operation: Operation) -> Step:
    """Reductions and scans: elements of two operands and more stand beside each other in the region's arguments."""
    block, dtypes = _combination(operation)
    outer = tuple(outside(operation.regions[0]))
    operands, results = tuple(operation.operands), tuple(operation.results)
    given_rank = rank(operation.operand_kinds[0])
    axis = operation.number("axis") - given_rank
    backwards = operation.is_set("reverse") if operation.name == "tt.scan" else False
    is_scan = operation.name == "tt.scan"

    def run(machine: Machine, values: Values) -> None:
        def combine(left: tuple[Array, ...], right: tuple[Array, ...]) -> tuple[Array, ...]:
            return machine.hand(block, values, (*left, *right))

        if any(map(np.ndim, (values[one] for one in outer))):
            raise Apart
        given = alike([values[one] for one in operands], given_rank)
        if is_scan:
            found = combining.scanned(combine, given, axis, backwards=backwards)
        else:
            drawn = (machine.device ^ (results[0] * 0x9E3779B1)) >> 3
            found = combining.reduced(combine, given, axis, neighbours=bool(drawn & 1))
        for number, value, dtype in zip(results, found, dtypes, strict=True):
            values[number] = np.asarray(value).astype(dtype, copy=False)

    return run


def _map(operation: Operation) -> Step:
    """`tt.map_elementwise`, whose region may branch on single elements, so that it is run for each, or for as many as it takes."""
    blocks = _region(operation.regions[0])
    pack = operation.number("pack")
    operands, results = tuple(operation.operands), tuple(operation.results)
    kinds = tuple(map(kind_of, operation.result_kinds))
    ranks = tuple(map(rank, operation.operand_kinds))

    def run(machine: Machine, values: Values) -> None:
        if any(leading(values[one], own) for one, own in zip(operands, ranks, strict=True)):
            raise Apart
        packs = zip(*(values[one].reshape(-1, pack) for one in operands), strict=True)
        made = [machine.follow(blocks, values, [one for part in each for one in part]) for each in packs]
        columns = np.array(made, dtype=object).reshape(len(made), len(results), pack)
        for at, (number, kind) in enumerate(zip(results, kinds, strict=True)):
            values[number] = columns[:, at].reshape(kind.shape).astype(kind.dtype)

    return run


def _if(operation: Operation) -> Step:
    condition, results = operation.operands[0], tuple(operation.results)
    branches = [_region(region) for region in operation.regions]
    if any(len(one) > 1 for one in branches):
        raise Unread("branches of several blocks")
    yes, no = (one[0] if one else None for one in branches)

    def run(machine: Machine, values: Values) -> None:
        block = yes if same(values[condition]) else no
        if block is not None:
            for number, value in zip(results, machine.hand(block, values), strict=True):
                values[number] = value

    return run


def _for(operation: Operation) -> Step:
    (block,) = _region(operation.regions[0])
    low, high, step, *carried = operation.operands
    results = tuple(operation.results)
    unsigned = operation.is_set("unsignedCmp")

    def run(machine: Machine, values: Values) -> None:
        kind = type(np.asarray(values[low])[()])
        at, end, by = (int(same(values[one])) for one in (low, high, step))
        bits = 8 * np.dtype(kind).itemsize
        most = (1 << (bits if unsigned else bits - 1)) - 1
        if unsigned:
            at, end = (one % (1 << bits) for one in (at, end))
        held = tuple(values[one] for one in carried)
        turns = 0
        while at < end:
            turns += 1
            if turns > MOST_TURNS:
                raise Wrong("a loop does not end", operation.line)
            held = machine.hand(block, values, (np.asarray(at).astype(kind)[()], *held))
            at += by
        if turns and at > most:
            raise Wrong(WRAPS.format(at=at, bits=bits), operation.line)
        for number, value in zip(results, held, strict=True):
            values[number] = value

    return run


def _while(operation: Operation) -> Step:
    (before,), (after,) = (_region(region) for region in operation.regions)
    carried, results = tuple(operation.operands), tuple(operation.results)

    def run(machine: Machine, values: Values) -> None:
        held = tuple(values[one] for one in carried)
        for _ in range(machine.patience):
            goes_on, *found = machine.hand(before, values, held)
            if not same(goes_on):
                break
            held = machine.hand(after, values, found)
        else:
            raise Unread("a loop that waits for other programs")
        for number, value in zip(results, found, strict=True):
            values[number] = value

    return run


def _call(operation: Operation) -> Step:
    name = operation.attributes["callee"].removeprefix("@").strip('"')
    return effect(operation, lambda machine, *given: machine.module.run(machine, name, given))


_OPERATIONS: dict[str, Callable[[Operation], Step]] = {
    **EFFECTS,
    "tt.reduce": _folding,
    "tt.scan": _folding,
    "tt.map_elementwise": _map,
    "scf.if": _if,
    "scf.for": _for,
    "scf.while": _while,
    "tt.call": _call,
}
