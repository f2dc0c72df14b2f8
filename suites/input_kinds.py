"""Kinds of inputs as a server has them: offsets of sequences, block tables, slots and others. A task's `problem.py` draws them.

`draw(random, shape, drawn)` of a kind returns its values; `drawn` has those of inputs that the kind reads. Needs numpy and no
other module of ours, so that an exported test takes this file along.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from typing import Any

Size = Any
"""A whole number; only in a task that is not written yet the text of a size, such as `2*N`."""
Drawn = Mapping[str, Any]
"""Arrays of numpy by name of the input."""
EMPTY_SHARE, IGNORED_SHARE, SHARED_SHARE = 0.2, 0.1, 0.5
"""Shares of empty sequences, of slots of -1, and of rows of a block table that begin like the row before."""


@dataclass(frozen=True)
class Integers:
    """Integers from `low` to below `high`."""

    low: Size
    high: Size

    def draw(self, random: Any, shape: tuple[int, ...], drawn: Drawn) -> Any:  # noqa: D102
        return random.integers(self.low, self.high, shape)


@dataclass(frozen=True)
class PowersOfTwo(Integers):
    """Powers of two from `low` to below `high`."""

    def draw(self, random: Any, shape: tuple[int, ...], drawn: Drawn) -> Any:  # noqa: D102
        return 1 << random.integers((self.low - 1).bit_length(), (self.high - 1).bit_length(), shape)


@dataclass(frozen=True)
class Sorted(Integers):
    """Values from `low` to below `high` that never fall along a row; several may be equal. Floats if `high` is one."""

    def draw(self, random: Any, shape: tuple[int, ...], drawn: Drawn) -> Any:  # noqa: D102
        is_float = isinstance(self.high, float)
        values = (random.uniform if is_float else random.integers)(self.low, self.high, shape)
        values.sort(-1)
        return values


@dataclass(frozen=True)
class Distinct:
    """Numbers from 0 to below `high`, different within a row: permutations, if a row has `high` of them."""

    high: Size

    def draw(self, random: Any, shape: tuple[int, ...], drawn: Drawn) -> Any:  # noqa: D102
        rows = math.prod(shape[:-1])
        return [random.choice(self.high, shape[-1], replace=False) for _ in range(rows)]


@dataclass(frozen=True)
class Slots:
    """Different numbers below `pool * block`. Some are -1 and mean no slot; so is the last one, as padding is."""

    pool: Size
    block: Size = 1

    def draw(self, random: Any, shape: tuple[int, ...], drawn: Drawn) -> Any:  # noqa: D102
        count = math.prod(shape)
        slots = random.permutation(self.pool * self.block)[:count]
        if count > 1:
            slots[random.random(count) < IGNORED_SHARE] = -1
            slots[[random.integers(count), -1]] = -1
        return slots


@dataclass(frozen=True)
class Lengths:
    """Lengths of sequences with the sum `total`. Some sequences are empty, and the last one is, as padding is."""

    total: Size
    least: Size = 0
    """The shortest length, or the name of an input with lengths or offsets: no sequence is shorter than there, and what is empty
    there is empty here, as sequences of queries and keys are."""

    def draw(self, random: Any, shape: tuple[int, ...], drawn: Drawn) -> Any:  # noqa: D102
        import numpy as np

        count = shape[0]
        if isinstance(self.least, str):
            least = drawn[self.least] if len(drawn[self.least]) == count else np.diff(drawn[self.least])
            empty = least == 0
        else:
            least, empty = np.full(count, self.least), random.random(count) < EMPTY_SHARE
            if count > 2:
                empty[[random.integers(count - 1), -1]] = True
            if empty.all():
                empty[:1] = False
        shares = np.where(empty, 0, random.exponential(size=count))
        return least + (random.multinomial(self.total - least.sum(), shares / shares.sum()) if count else 0)


@dataclass(frozen=True)
class CuSeqlens(Lengths):
    """Offsets of sequences, from 0 to `total`. Some sequences are empty, and the last one is, as padding is."""

    def draw(self, random: Any, shape: tuple[int, ...], drawn: Drawn) -> Any:  # noqa: D102
        lengths = super().draw(random, (shape[0] - 1,), drawn)
        return [0, *lengths.cumsum()]


@dataclass(frozen=True)
class Starts:
    """Starts of sequences, by the input `lengths`."""

    lengths: str

    def draw(self, random: Any, shape: tuple[int, ...], drawn: Drawn) -> Any:  # noqa: D102
        return drawn[self.lengths].cumsum() - drawn[self.lengths]


@dataclass(frozen=True)
class BlockTable:
    """Rows of different block numbers below `pool`, as many as `lengths` tokens of the row need; what follows means nothing.

    A block has `block` tokens. Some rows share their first blocks with the row before, none its last. What follows are numbers
    of other rows. Without `lengths`, the name of an input, a row uses all its numbers.
    """

    pool: Size
    lengths: str = ""
    block: Size = 1

    def draw(self, random: Any, shape: tuple[int, ...], drawn: Drawn) -> Any:  # noqa: D102
        import numpy as np

        rows, columns = shape
        lengths = drawn.get(self.lengths, np.full(rows, columns * self.block))
        blocks = -(-lengths // self.block)
        table = random.integers(self.pool, size=shape)
        order, first = random.permutation(self.pool), 0
        last, further = order[:rows], order[rows:]
        for row, used in enumerate(blocks):
            shared = 0
            if row and random.random() < SHARED_SHARE:
                shared = int(random.integers(max(1, min(used, blocks[row - 1]))))
                table[row, :shared] = table[row - 1, :shared]
            window = further[(first + np.arange(used - 1)) % max(len(further), 1)]
            own = window[~np.isin(window, table[row, :shared])][: used - 1 - shared]
            first += len(own)
            if used:  # the last block of a row is of no other row: the server writes into it
                table[row, shared:used] = [*own, last[row]]
        return table


InputKind = Integers | Distinct | Slots | Lengths | Starts | BlockTable
KINDS: dict[str, tuple[Callable[..., InputKind], str]] = {
    "cu_seqlens": (CuSeqlens, "cu_seqlens(T), cu_seqlens(T,1) or cu_seqlens(T,OTHER)"),
    "lengths": (Lengths, "lengths(T), lengths(T,1) or lengths(T,OTHER)"),
    "starts": (Starts, "starts(LENGTHS)"),
    "block_table": (BlockTable, "block_table(N), or block_table(N,LENGTHS,16)"),
    "slots": (Slots, "slots(N), or slots(N,16)"),
    "distinct": (Distinct, "distinct(E)"),
    "permutation": (Distinct, "permutation"),
    "sorted": (Sorted, "sorted(0,100)"),
    "pow2": (PowersOfTwo, "pow2(1,512)"),
}
"""Kinds, and how they are written, by their word in `--shapes`; `Integers` is a range."""


def problem_of(kind: InputKind, shape: tuple[int, ...], kinds: Mapping[str, InputKind]) -> str:
    """Return why no tensor of a shape can have a kind beside the other inputs' kinds; empty if one can."""
    words: str = ""
    match kind:
        case Integers(low, high) if low >= high:
            words = f"no value is from {low} to below {high}"
        case Distinct(high) if shape[-1] > high:
            words = f"a row of {shape[-1]} different values needs as many, not {high}"
        case Slots(pool, block) if math.prod(shape) > pool * block:
            words = f"{math.prod(shape)} different slots need a pool of as many, not {pool * block}"
        case Lengths(total, least):
            count = shape[0] - isinstance(kind, CuSeqlens)
            rows = getattr(kinds.get(least), "total", 0) if isinstance(least, str) else least * count
            words = f"{count} sequences need {rows} rows, but there are {total}" * (rows > total)
            words = words or f"there is no sequence for {total} rows" * (count < 1 <= total)
        case Starts(lengths) if lengths not in kinds:
            words = f"it reads {lengths}, which must be lengths; add {lengths}=8:i32:lengths(T)"
        case BlockTable(pool) if len(shape) != 2 or sum(shape) - 1 > pool:
            words = f"a block table of the shape {list(shape)} needs {sum(shape) - 1} blocks, not {pool}"
        case BlockTable(_, lengths, _) if lengths and lengths not in kinds:
            words = f"it reads {lengths}, which must be integers; add {lengths}=8:i32:1..1025"
        case BlockTable(_, lengths, block):
            read, tokens = kinds.get(lengths), shape[1] * block
            most = read.total if isinstance(read, Lengths) else getattr(read, "high", 1) - 1
            is_more = f"a row has {tokens} tokens, but {lengths} goes up to {most}: make it 1..{tokens + 1}"
            words = is_more * (most > tokens)
        case _:
            pass
    return words


def draw_inputs(generator: Any, inputs: Mapping[str, tuple[InputKind, tuple[int, ...]]]) -> dict[str, Any]:
    """Return an array of numpy for each input, by its kind and shape. A seed of the generator always gives the same values.

    `generator` is one of torch, which is not changed. Raises `ValueError` with the input that cannot be drawn.
    """
    import numpy as np

    kinds = {name: kind for name, (kind, _) in inputs.items()}
    drawn: dict[str, Any] = {}

    def depth(name: str) -> int:
        return 1 + max((depth(part) for part in astuple(kinds[name]) if part in kinds), default=0)

    for name in sorted(inputs, key=depth):  # a kind that reads another input comes after it
        kind, shape = inputs[name]
        if why := problem_of(kind, shape, kinds):
            raise ValueError(f"{name}: {why}")
        random = np.random.default_rng([generator.initial_seed(), *name.encode()])
        drawn[name] = np.asarray(kind.draw(random, shape, drawn)).reshape(shape)
    return drawn
