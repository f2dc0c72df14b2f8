"""Writes the arguments of recorded calls as `--shapes` does, with the kinds that recorded values show."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, takewhile

from suites.errors import BadKernelFile

from .capture import CallSignature, DictValue, ListValue, ObjectValue, ScalarValue, TensorValue, Value

_PLAIN = (TensorValue, ScalarValue)


def signature_text(signature: CallSignature) -> str:
    """Return the arguments in words: `x=8192x4096:float16, kv[0]=8x8:float16, eps=1e-06, window=(-1 0)`."""
    return _texts(_parts(signature), signature)


def shapes_text(signature: CallSignature) -> str:
    """Return the arguments as `--shapes` reads them: `window(0)=-1, window(1)=0`. Raises `BadKernelFile` if it cannot."""
    parts = _parts(signature, least_tensors=0)
    if unreadable := [part for part in parts if not isinstance(part[1], _PLAIN)]:
        raise BadKernelFile(
            f"{_texts(unreadable, signature)}: no tensor, no plain value, and no list or tuple of these; "
            "capture a function that takes their parts"
        )
    return _texts(parts, signature)


def _texts(parts: Sequence[tuple[str, Value]], signature: CallSignature) -> str:
    return ", ".join(f"{name}={_text(name, value, signature)}" for name, value in parts)


def _parts(signature: CallSignature, *, least_tensors: int = 1) -> list[tuple[str, Value]]:
    """Return the arguments; of lists and tuples of tensors and plain values, with as many tensors, their items."""
    parts: list[tuple[str, Value]] = []
    for name, value in signature.arguments.items():
        items = value.named_items(name) if isinstance(value, ListValue) else []
        tensors = sum(isinstance(item, TensorValue) for _, item in items)
        is_split = items and all(isinstance(item, _PLAIN) for _, item in items) and tensors >= least_tensors
        parts += items if is_split else [(name, value)]
    return parts


def _text(name: str, value: Value, signature: CallSignature) -> str:
    """Return an argument in words, as `--shapes` writes tensors. `signature` has the values of index tensors."""
    match value:
        case TensorValue():
            return _tensor_text(value, _pattern_text(name, signature) if name in signature.indices else "")
        case ScalarValue(value=int(number)) if not isinstance(number, bool):
            return _largest_text(name, number, signature)
        case ScalarValue(value=scalar):
            return repr(scalar)
        case ListValue():
            words = " ".join(_text(part, item, signature) for part, item in value.named_items(name))
            return f"({words})" if value.is_tuple else f"[{words}]"
        case DictValue(items=named):
            texts = (f"{key}={_text(f'{name}.{key}', item, signature)}" for key, item in named.items())
            return f"{{{' '.join(texts)}}}"
        case ObjectValue():
            return f"<{value.type.rpartition('.')[2]}>"


def _tensor_text(tensor: TensorValue, pattern: str) -> str:
    """Return a tensor as `--shapes` writes it: shape, dtype, range or kind of an index tensor, and strides unless dense."""
    parts = ["x".join(map(str, tensor.shape)), tensor.dtype, *filter(None, [pattern])]
    if tensor.strides != dense_strides(tensor.shape):
        swapped = (*tensor.shape[:-2], *reversed(tensor.shape[-2:]))
        dense = dense_strides(swapped)
        is_transposed = len(dense) > 1 and tensor.strides == (*dense[:-2], *reversed(dense[-2:]))
        parts.append("t" if is_transposed else f"strides={'x'.join(map(str, tensor.strides))}")
    return ":".join(parts)


def dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor, as torch has them: a dimension of size 0 counts as 1."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _pattern_text(name: str, signature: CallSignature) -> str:
    """Return the kind of an integer tensor if its values show one, else its range: `cu_seqlens(4096)`, `0..32000`.

    A range ends at the rows of another tensor if the values nearly reach them, as indices do.
    """
    index, vectors = signature.indices[name], _vectors(signature)
    values, lengths = vectors.get(name, []), _lengths(vectors.get(name, []))
    shapes = [tensor.shape for part, tensor in _tensors(signature) if tensor.shape and part != name]
    sizes, high = sorted(shape[0] for shape in shapes), index.high + 1
    rows = next((size for size in sizes if high <= size <= 2 * high and not index.low), high)
    if table := _block_table(name, signature):
        return f"block_table({','.join(map(str, table))})"
    if lengths and values[-1] in sizes:
        before = takewhile(name.__ne__, signature.indices)
        queries = next(
            (query for query in before if _are_queries(_lengths(vectors.get(query, [])), lengths)), ""
        )
        return f"cu_seqlens({values[-1]}{f',{queries}' * bool(queries)})"
    taken = [value for value in values if value >= 0]
    if taken and len(set(taken)) == len(taken):
        caches = (shape for shape in shapes if len(shape) > 2 and shape[0] < high <= shape[0] * shape[1])
        pool, block, *_ = next(caches, (rows, 1))
        if index.low == -1 and pool in sizes:
            return f"slots({pool},{block})"
        if sorted(values) == [*range(len(values))] != values:
            return "permutation"
        if index.low >= 0 and sorted(values) != values and len(values) ** 2 > 2 * high and rows in sizes:
            return f"distinct({rows})"  # hardly by chance
    tables = (_block_table(argument, signature) for argument in signature.indices)
    is_length = any(table and table[1] == name for table in tables)
    return f"{index.low}..{high if is_length else rows}"


def _largest_text(name: str, number: int, signature: CallSignature) -> str:
    """Return `max(ARGUMENT)` for a number that is the largest of an argument, as `max_seqlen` is; else the number."""
    for argument, values in sorted(_vectors(signature).items(), key=lambda item: item[0][-1] != name[-1]):
        if "max" in name and max(_lengths(values) or values) == number:
            return f"max({argument})"
    return repr(number)


def _tensors(signature: CallSignature) -> list[tuple[str, TensorValue]]:
    return [(name, value) for name, value in _parts(signature) if isinstance(value, TensorValue)]


def _vectors(signature: CallSignature) -> dict[str, list[int]]:
    """Return the recorded values of tensors with one dimension."""
    values = {name: index.values for name, index in signature.indices.items()}
    return {name: v for name, v in values.items() if isinstance(v, list) and v and isinstance(v[0], int)}


def _lengths(values: Sequence[int]) -> list[int]:
    """Return the lengths of sequences with these offsets; empty if the values are no offsets."""
    lengths = [last - first for first, last in pairwise(values)]
    return lengths if lengths and values[0] == 0 < values[-1] and min(lengths) >= 0 else []


def _are_queries(queries: Sequence[int], keys: Sequence[int]) -> bool:
    """Return whether no sequence of queries is longer than that of keys, and both are empty together."""
    pairs = list(zip(queries, keys, strict=False))
    return len(queries) == len(keys) and all(
        query <= key and bool(query) == bool(key) for query, key in pairs
    )


def _block_table(name: str, signature: CallSignature) -> tuple[int, str, int] | None:
    """Return the pool of a block table, the argument with the tokens of its rows, and its block; `None` for other arguments.

    The block is a size of a cache with which the tokens of each row use different blocks of it.
    """
    rows = signature.indices[name].values
    if not isinstance(rows, list) or not isinstance(rows[0], list):
        return None
    caches = [tensor.shape for _, tensor in _tensors(signature) if len(tensor.shape) > 2]
    blocks = [(pool, block) for pool, *sizes in caches for block in (*sorted(sizes), 1)]
    for argument, tokens in _vectors(signature).items():
        for pool, block in blocks if len(tokens) == len(rows) else ():
            counts = [-(-length // block) for length in tokens]
            used = [row[:count] for row, count in zip(rows, counts, strict=True)]
            is_in_pool = all(0 <= number < pool for row in used for number in row)
            if is_in_pool and [len(set(row)) for row in used] == counts != [0] * len(rows):
                return pool, argument, block
    return None
