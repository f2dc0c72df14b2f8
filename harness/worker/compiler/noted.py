"""Launches as far as they must be the same wherever a source runs, of a record and of a compile run alike. Torch-free."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest

import msgspec

from harness.worker.guest.operators import ALLOCATING
from harness.worker.serving.records import (
    Address,
    Constant,
    Constexpr,
    Contents,
    Descriptor,
    Dtype,
    Function,
    FunctionNotes,
    HostRead,
    Items,
    Language,
    Launch,
    Operator,
    Record,
    Reinterpreted,
    Table,
    Value,
    View,
)

LOWEST_ADDRESS = 1 << 32
"""Integers from here on may be addresses, which differ from process to process; those below are numbers."""
MOST = 256
"""Launches of a case that are told in full, and moves."""
TABLE_BYTES = 64 << 10
"""Of a storage that Python filled and whose contents are compared."""


class Noted(msgspec.Struct, frozen=True):
    """One launch."""

    kernel: str
    line: int
    grid: tuple[int, int, int]
    values: tuple[str, ...]
    """Arguments and options as `name=value`, in order of their names; of tensors dtype, shape, strides and memory."""


class Launched(msgspec.Struct, frozen=True):
    """What one case launches."""

    case: str
    first: tuple[Noted, ...]
    """At most `MOST`."""
    count: int
    names: tuple[str, ...]
    """What jit functions' texts leave open: values of names that they do not define, defaults, kinds of parameters; in order."""
    reads: bool
    """Python read tensors' elements, on which launches may depend."""
    moves: tuple[str, ...] = ()
    """Tensor operators that fill or copy, in order, each with how many launches came before it; at most `MOST`."""
    returned: tuple[str, ...] = ()
    """The tensors that it returned, as arguments are told."""
    digest: str = ""
    """Of all launches and moves, in order."""
    tables: dict[str, str] = {}
    """Digest of what the import left or Python put into memory that launches or moves name, as it first entered a call."""


class Memories:
    """Tells the storages of a call apart: its inputs in their order, others as launches and operators come to name them."""

    def __init__(self, inputs: Iterable[int] = ()) -> None:
        self._known: dict[int, str] = {}
        for at, storage in enumerate(inputs):
            self._known.setdefault(storage, f"input {at}")
        self._inputs = len(self._known)

    def told(self, view: View) -> str:
        """A tensor in words that are equal for equal memory of equal calls."""
        start = f" from {view.offset}" if view.offset else ""
        return f"{view.dtype}{list(view.shape)}{list(view.strides)} in {self.name(view.storage)}{start}"

    def name(self, storage: int) -> str:
        """What a storage is called in this call."""
        return self._known.setdefault(storage, f"memory {len(self._known) - self._inputs}")

    def tables(self, contents: Mapping[int, Contents | Table]) -> dict[str, str]:
        """
        Digests by name of those storages here that are among `contents`; addresses in them count by what they lie in.

        To be asked for when all else is told, as memory that nothing named gets a name of the table's own.
        """
        return {
            name: self._digest(contents[storage])
            for storage, name in self._known.items()
            if storage in contents
        }

    def _digest(self, entered: Contents | Table) -> str:
        if isinstance(entered, Table) and entered.made:
            return entered.made
        data, unnamed = bytearray(entered.data or b""), dict[int, str]()
        told = []
        for place, address in entered.addresses:
            data[place : place + 8] = bytes(8)
            own = unnamed.setdefault(address.storage, f"unnamed {len(unnamed)}")
            told.append(f"{place}: {address.offset_bytes} into {self._known.get(address.storage, own)}")
        return hashlib.blake2b(data + "\n".join(told).encode(), digest_size=16).hexdigest()


def entered(record: Record) -> dict[int, Contents]:
    """Small contents that entered in a call, by storage. Storages keep their numbers over all calls of a guest."""
    return {
        step.storage: step
        for step in record.steps
        if isinstance(step, Contents) and step.data is not None and step.size_bytes <= TABLE_BYTES
    }


def launched(case: str, record: Record | None, contents: Mapping[int, Contents | Table]) -> Launched | None:
    """
    What a call launched where kernels were interpreted; `None` where there is no whole record of it.

    `contents` are what the import left, and those that `entered` in this call and in the ones before it.
    """
    if record is None or record.excess:
        return None
    memories = Memories(record.inputs.values())
    launches: list[Noted] = []
    moves: list[str] = []
    for step in record.steps:
        match step:
            case Launch(kernel=kernel, grid=grid):
                told = values(step.arguments, step.options, memories)
                launches.append(Noted(kernel.name, kernel.line, grid, told))
            case Operator(name=name) if name not in ALLOCATING:
                moves.append(
                    moved(name, len(launches), (*step.arguments, *step.results), step.named, memories)
                )
    returned = tuple(memories.told(view) for view in record.returned)
    return Launched(
        case=case,
        first=tuple(launches[:MOST]),
        count=len(launches),
        names=names(record.functions),
        reads=any(isinstance(step, HostRead) for step in record.steps),
        moves=tuple(moves[:MOST]),
        returned=returned,
        digest=digest(launches, moves),
        tables=memories.tables(contents),
    )


def digest(launches: Iterable[Noted], moves: Iterable[str]) -> str:
    """Of a call's launches and moves, those that are not told in full too."""
    found = hashlib.blake2b(digest_size=16)
    for one in (*launches, *moves):
        found.update(msgspec.msgpack.encode(one))
    return found.hexdigest()


def names(functions: Iterable[FunctionNotes]) -> tuple[str, ...]:
    """What jit functions' texts leave open, in words that are equal for equal values."""
    nothing = Memories()  # no jit function names a tensor
    return tuple(
        sorted(
            f"{name}={told} in `{one.function.name}` (line {one.function.line})"
            for one in functions
            for name, told in _left_open(one, nothing)
        )
    )


def _left_open(one: FunctionNotes, memories: Memories) -> Iterator[tuple[str, str]]:
    for name, value in one.names.items():
        yield name, _told(value, memories)
    yield "defaults", _told(Items(one.defaults), memories)
    yield "constexprs", f"({', '.join(one.constexprs)})"
    yield "parameters that stay tensors", repr(one.unspecialised)
    yield "types of parameters", repr(one.types)
    yield "computes constants", repr(one.computes_constants)
    yield "debug", repr(one.debug)


def values(
    arguments: Mapping[str, Value], options: Mapping[str, Value], memories: Memories
) -> tuple[str, ...]:
    """Arguments and options in words that are equal for equal values."""
    told = {name if name not in arguments else f"option {name}": one for name, one in options.items()}
    return tuple(f"{name}={_told(value, memories)}" for name, value in sorted({**told, **arguments}.items()))


def moved(
    name: str, launches: int, given: Iterable[Value], named: Mapping[str, Value], memories: Memories
) -> str:
    """A tensor operator that fills or copies, with its arguments and results, after so many launches."""
    told = [_told(value, memories) for value in given]
    told += [f"{key}={_told(value, memories)}" for key, value in sorted(named.items())]
    return f"after {launches} launches {name}({', '.join(told)})"


def difference(ran: Launched, compiled: Launched) -> str:
    """The first launch that is another one where kernels are compiled, in words; empty where there is none."""
    for at, (here, there) in enumerate(zip(ran.first, compiled.first, strict=False), start=1):
        if (here.kernel, here.line, here.grid) != (there.kernel, there.line, there.grid):
            return f"launch {at} is {_named(here)} where kernels are interpreted and {_named(there)} where they are compiled"
        if here.values != there.values:
            only = [one for one in here.values if one not in there.values]
            other = [one for one in there.values if one not in here.values]
            return (
                f"launch {at}, {_named(here)}, has {_few(only)} where kernels are interpreted and {_few(other)} "
                "where they are compiled"
            )
    for what, ours, theirs in (
        ("fills and copies with", ran.moves, compiled.moves),
        ("returns", ran.returned, compiled.returned),
    ):
        for mine, yours in zip_longest(ours, theirs, fillvalue="nothing"):
            if mine != yours:
                return f"the call {what} {mine} where kernels are interpreted and {yours} where they are compiled"
    if ran.names != compiled.names:
        only = [one for one in ran.names if one not in compiled.names]
        other = [one for one in compiled.names if one not in ran.names]
        return (
            f"there is {_few(only)} where kernels are interpreted and {_few(other)} where they are compiled"
        )
    if ran.count != compiled.count:
        return f"there are {ran.count} launches where kernels are interpreted and {compiled.count} where they are compiled"
    if ran.digest != compiled.digest:
        return f"a launch, fill or copy after the first {MOST} is another one where kernels are compiled"
    for name, held in ran.tables.items():
        if held != compiled.tables.get(name):
            return f"the tensor from Python or the import that is {name} holds one thing where kernels are interpreted and another where they are compiled"
    return ""


def _named(one: Noted) -> str:
    return f"`{one.kernel}` (line {one.line}) over {one.grid}"


def _few(told: Iterable[str]) -> str:
    return ", ".join(list(told)[:4]) or "nothing else"


def _told(value: Value, memories: Memories) -> str:
    match value:
        case View():
            return memories.told(value)
        case Reinterpreted(base=base, dtype=dtype):
            return f"{dtype} of {_told(base, memories)}"
        case Descriptor(base=base, shape=shape, strides=strides, block_shape=block):
            return f"descriptor of {_told(base, memories)}, {list(shape)}, {list(strides)}, {list(block)}"
        case Constexpr(value=inner):
            return _told(inner, memories)
        case Items(items=items):
            return f"({', '.join(_told(one, memories) for one in items)})"
        case Dtype(name=name) | Constant(name=name):
            return name
        case Language(module=module, member=member):
            return f"{module}.{member}"
        case Function(name=name, line=line):
            return f"{name}:{line}"
        case Address(storage=storage, offset_bytes=offset):
            return f"the address {offset} bytes into {memories.name(storage)}"
        case _:
            return repr(value)
