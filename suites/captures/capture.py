"""The file of `wavedeck capture`: its types, reading, and the merge of what several processes wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from suites.errors import BadCapture


class TensorValue(msgspec.Struct, frozen=True, tag_field="kind", tag="tensor"):
    """A tensor, without its values."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements."""
    dtype: str
    """Name of a torch dtype, such as `float16`."""
    device: str
    """`cpu`, or `cuda` for any GPU."""
    requires_grad: bool = False


class ScalarValue(msgspec.Struct, frozen=True, tag_field="kind", tag="scalar"):
    """A number, a short text, a truth value, or `None`."""

    value: bool | int | float | str | None


class ListValue(msgspec.Struct, frozen=True, tag_field="kind", tag="list"):
    """A list or tuple."""

    items: tuple[Value, ...]
    is_tuple: bool = False

    def named_items(self, name: str) -> list[tuple[str, Value]]:
        """Return the items of an argument with their names: `kv[0]` in a list, `kv(0)` in a tuple."""
        first, last = "()" if self.is_tuple else "[]"
        return [(f"{name}{first}{place}{last}", item) for place, item in enumerate(self.items)]


class DictValue(msgspec.Struct, frozen=True, tag_field="kind", tag="dict"):
    """A dict with texts as keys."""

    items: dict[str, Value]


class ObjectValue(msgspec.Struct, frozen=True, tag_field="kind", tag="object"):
    """Any other value, of which only the type is known."""

    type: str
    """The type's full name; for a dtype or a device its own name."""


Value = TensorValue | ScalarValue | ListValue | DictValue | ObjectValue


class IndexValues(msgspec.Struct, frozen=True):
    """Values of an integer tensor, read in the calls 1, 2, 4, 8, ... of a signature."""

    low: int
    high: int
    values: object = None
    """Nested lists: the values in the first of these calls, if they are few and index."""


class CallSignature(msgspec.Struct, frozen=True):
    """Calls with equal arguments, except for the values of tensors."""

    arguments: dict[str, Value]
    """Values by parameter, defaults included; `args[3]` if it has no name. A launch also has `grid` and its options."""
    same: tuple[tuple[str, ...], ...]
    """Arguments that are one tensor."""
    shared: tuple[tuple[str, ...], ...]
    """Arguments that are different tensors in one storage."""
    clock: str
    """`gpu`: events on the GPU's stream before and after the call. `wall`: the time until the function returned."""
    calls: int
    """Calls outside of the captures of a CUDA graph."""
    warm_up: int
    """Calls without a time: the first of each process."""
    timed: int
    graph_calls: int
    """Calls in captures of a CUDA graph. How often the graph ran is unknown."""
    total_us: float
    """Sum over the timed calls."""
    indices: dict[str, IndexValues]
    """Values of integer tensors, by argument."""

    @property
    def is_frequency_known(self) -> bool:
        """False if a CUDA graph repeats calls: the hook does not see its replays."""
        return not self.graph_calls

    @property
    def mean_us(self) -> float | None:
        """Mean duration of a call; `None` if no call was timed."""
        return self.total_us / self.timed if self.timed else None

    @property
    def weight_us(self) -> float | None:
        """Time of all its calls, if each takes the mean; `None` if the mean or the frequency is unknown."""
        return None if self.mean_us is None or not self.is_frequency_known else self.mean_us * self.calls


class Process(msgspec.Struct, frozen=True):
    """A process that called the function."""

    pid: int
    host: str
    rank: str
    """`RANK` of the environment."""
    device: str
    """Name of its GPU; empty without one."""
    calls: int


class Capture(msgspec.Struct, frozen=True):
    """The recorded calls of one function in all processes of a program, or in one process."""

    module: str
    function: str
    kind: str
    """`function`, `operator`, `kernel` for a Triton kernel: then the rows are its launches; `lookups` of configurations."""
    file: str
    parameters: tuple[str, ...]
    versions: dict[str, str]
    """Versions of `python`, `torch`, `triton`, `cuda` or `hip`, and the function's package."""
    processes: tuple[Process, ...]
    signatures: tuple[CallSignature, ...]
    others: int
    """Calls of further signatures, which are too many to keep."""
    compiled: int
    """Not 0 if a compiler traced the function. How often its compiled form ran is unknown."""
    missed: int
    """Times that the hook could not read a call, or a part of it."""
    error: str = ""
    """Why, the first time."""
    problem: str = ""
    """Why the function could not be recorded at all."""
    command: tuple[str, ...] = ()
    exit_code: int | None = None
    started: float | None = None
    """Seconds since the epoch."""
    schema: int = 1

    @property
    def target(self) -> str:
        """The function, as `PKG.MOD:FN`, or the operator."""
        return target_words(self.module, self.function)

    @property
    def weight_us(self) -> float:
        """Total time of the signatures with a known time."""
        return sum(signature.weight_us or 0.0 for signature in self.signatures)


OPERATORS = "torch.ops"
"""The module of registered operators: its functions are `NAMESPACE.NAME`."""

LOOKUPS = "tuned_configurations:lookups"
"""The target that means all loaders of tuned configurations in vLLM, SGLang and aiter."""


def target_words(module: str, function: str) -> str:
    """Return what a person writes to record a function."""
    return f"{module}{'.' if module == OPERATORS else ':'}{function}"


CAPTURES: msgspec.json.Decoder[Capture] = msgspec.json.Decoder(Capture)


def read_capture(path: Path) -> Capture:
    """Return the capture in a file, or the parts in the folder of a capture that was killed. Raises `BadCapture`."""
    try:
        if not path.is_dir():
            return CAPTURES.decode(path.read_bytes())
        return merge(read_parts(path), str(path))
    except OSError as error:
        raise BadCapture(f"{path} cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise BadCapture(f"{path} is no capture: {error}; `wavedeck capture` makes one") from error


def read_parts(folder: Path) -> list[Capture]:
    """Return what the processes of a program wrote, without damaged files: the program may change the folder."""
    captures = []
    for file in sorted(folder.glob("part-*.json")):
        with suppress(OSError, msgspec.DecodeError, RecursionError):
            if file.is_file():
                captures.append(CAPTURES.decode(file.read_bytes()))
    return captures


def merge(parts: Sequence[Capture], source: str) -> Capture:
    """Return one capture of what several processes wrote; the signature with the longest time first.

    Raises `BadCapture` if there is no part, or why no part holds the function.
    """
    if not parts:
        raise BadCapture(f"{source} holds no calls")
    recorded = [part for part in parts if not part.problem]
    if not recorded:
        raise BadCapture(parts[0].problem)
    rows: dict[bytes, list[CallSignature]] = {}
    for signature in (signature for part in recorded for signature in part.signatures):
        key = msgspec.json.encode((signature.arguments, signature.same, signature.shared, signature.clock))
        rows.setdefault(key, []).append(signature)
    signatures = sorted(
        map(_merged, rows.values()), key=lambda row: (row.weight_us or 0.0, row.calls), reverse=True
    )
    return msgspec.structs.replace(
        recorded[0],
        versions={name: version for part in recorded for name, version in part.versions.items()},
        processes=tuple(process for part in recorded for process in part.processes if process.calls),
        signatures=tuple(signatures),
        others=sum(part.others for part in recorded),
        compiled=sum(part.compiled for part in recorded),
        missed=sum(part.missed for part in recorded),
        error=next((part.error for part in recorded if part.error), ""),
    )


def _merged(rows: Sequence[CallSignature]) -> CallSignature:
    """Return the rows of one signature from several processes as one row: sums of their counts and times."""
    return msgspec.structs.replace(
        rows[0],
        calls=sum(row.calls for row in rows),
        warm_up=sum(row.warm_up for row in rows),
        timed=sum(row.timed for row in rows),
        graph_calls=sum(row.graph_calls for row in rows),
        total_us=sum(row.total_us for row in rows),
        indices=_merged_indices(row.indices for row in rows),
    )


def _merged_indices(rows: Iterable[Mapping[str, IndexValues]]) -> dict[str, IndexValues]:
    """Return the bounds of each index tensor over all processes; its values are those of the first process."""
    merged: dict[str, IndexValues] = {}
    for name, index in (item for row in rows for item in row.items()):
        first = merged.setdefault(name, index)
        merged[name] = IndexValues(min(first.low, index.low), max(first.high, index.high), first.values)
    return merged
