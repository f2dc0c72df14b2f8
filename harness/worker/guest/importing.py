"""What a candidate's import leaves in memory, told alike where its kernels run and where they are only noted.

What Python and operators put there is told by its bytes. Memory that a kernel was given holds other bytes where none runs, and is told
by how it was made: what it held, and each launch and operator since.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from harness.worker.compiler import noted
from harness.worker.serving.poison import poison
from harness.worker.serving.records import Address, Function, FunctionNotes, Table, Value, View

from . import naming, operators
from .storages import DEVICE, NUMPY, WORDS, addresses, holder, plain_tensors, stored

MOST_BYTES = 16 << 20
"""Of a storage that is told; in a guest, of all of them."""

SEED = 1
"""Of random numbers that an import draws without a seed of its own."""

_current: Importing | None = None


def current() -> Importing | None:
    """The import that runs."""
    return _current


@dataclass(slots=True)
class _Made:
    """Memory that a kernel was given, or that was made of such."""

    told: str
    """How it was made."""
    after: str
    """What it held then: if that is something else later, Python wrote it past torch's operators."""
    weak: StorageWeakRef
    """As long as it is here, no other storage gets the same identity."""


class Importing(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Around one import: random numbers begin alike in every process, memory that is left empty is poison, and what kernels were given is followed."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._made: dict[int, _Made] = {}
        self._paused = False

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __enter__(self) -> Importing:
        global _current
        _current = self
        torch.default_generator.manual_seed(SEED)
        random.seed(SEED)
        np.random.seed(SEED)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *why: Any) -> None:
        global _current
        super().__exit__(*why)  # type: ignore[no-untyped-call]
        _current = None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """The operator's own result."""
        given = dict(kwargs or {})
        name = func._schema.name.rpartition("::")[2]
        if self._paused or func.is_view or name in operators.LOOKING:
            return func(*args, **given)
        told = _Telling(self)
        what = ""
        if any(one.untyped_storage()._cdata in self._made for one in tensors((args, given))):
            values = [told.value(one) for one in args]
            named = {key: told.value(one) for key, one in given.items()}
            what = noted.moved(func._schema.name, 0, values, named, told) + _seeds(func, given)
        result = func(*args, **given)
        if name in operators.ALLOCATING:
            for made in tensors(result):
                if made.untyped_storage().nbytes() <= MOST_BYTES:
                    poison(made)
        elif what:
            changed = tensors((result, args, given) if func._schema.is_mutable else result)
            self._note([one.untyped_storage() for one in changed], what)
        return result

    def launch(
        self, kernel: Any, bound: Mapping[str, Any], options: Mapping[str, Any]
    ) -> Callable[..., None]:
        """A kernel is launched; call what comes back with the grid when it has run, or `None` where nothing ran. What it runs is not followed."""
        told = _Telling(self)
        values = {name: told.value(one) for name, one in bound.items()}
        named = {name: told.value(one) for name, one in options.items()}
        texts = [kernel.fn.__code__.co_name, *noted.values(values, named, told)]
        with contextlib.suppress(naming.CannotName):
            told.function_of(kernel)
        texts += noted.names(told.functions.values())
        before, self._paused = self._paused, True

        def done(grid: Any, *, failed: bool = False) -> None:  # noqa: ARG001 -- half-way or not, it was given what it was given
            self._paused = before
            if grid is not None:
                self._note(list(told.storages.values()), repr((tuple(grid), texts)))

        return done

    def state(self, storage: torch.UntypedStorage) -> str:
        """How memory came to be: what it holds, or how it was made where a kernel was given it."""
        now, made = _digest(storage), self._made.get(storage._cdata)
        if made is None:
            return now
        if made.after != now:
            made.told, made.after = _hash(f"{made.told}, Python: {now}"), now
        return made.told

    def table(
        self,
        storage: torch.UntypedStorage,
        number: int,
        find: Callable[[int], Address | None] | None,
    ) -> Table:
        """A storage that the import left, called by `number`; `find` tells addresses among its words, where there may be any."""
        if storage.nbytes() > MOST_BYTES:
            return Table(storage=number, data=b"", made=_digest(storage))
        made = self.state(storage) if storage._cdata in self._made else ""
        data = stored(storage)
        held = addresses(data, find) if find is not None and len(data) <= noted.TABLE_BYTES else ()
        return Table(storage=number, data=data, addresses=held, made=made)

    def _note(self, storages: list[torch.UntypedStorage], what: str) -> None:
        for place, storage in enumerate({one._cdata: one for one in storages}.values()):
            weak = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
            self._made[storage._cdata] = _Made(_hash(f"{place} of {what}"), _digest(storage), weak)


class _Telling(noted.Memories):
    """Values of one launch or operator, tensors by the state of their memory."""

    def __init__(self, importing: Importing) -> None:
        super().__init__()
        self._importing = importing
        self.storages: dict[int, torch.UntypedStorage] = {}
        """Those that were named."""
        self.functions: dict[Function, FunctionNotes] = {}

    def name(self, storage: int) -> str:
        """How its memory came to be."""
        return self._importing.state(self.storages[storage])

    def value(self, given: Any) -> Value:
        """What no record can hold is told by its type."""
        if isinstance(given, int) and not isinstance(given, bool) and given >= noted.LOWEST_ADDRESS:
            storage = holder(given, (one for one, _ in living()))
            if storage is not None:
                self.storages[storage._cdata] = storage
                return Address(storage=storage._cdata, offset_bytes=given - storage.data_ptr())
        try:
            return naming.value(given, self._view, self.function_of)
        except naming.CannotName:
            return type(given).__name__

    def function_of(self, kernel: Any) -> Function:
        """A jit function, with what its text leaves open."""
        code = kernel.fn.__code__
        function = Function(name=code.co_name, line=code.co_firstlineno)
        if function not in self.functions:
            self.functions[function] = FunctionNotes(function, {}, (), ())  # it may call itself
            self.functions[function] = naming.notes(function, kernel, self.function_of)
        return function

    def _view(self, tensor: torch.Tensor) -> View:
        if tensor.layout is not torch.strided:
            raise naming.CannotName(f"a {tensor.layout} tensor")
        storage = tensor.untyped_storage()
        self.storages[storage._cdata] = storage
        return View(
            storage=storage._cdata,
            dtype=str(tensor.dtype).removeprefix("torch."),
            shape=tuple(tensor.shape),
            strides=tuple(tensor.stride()),
            offset=int(tensor.storage_offset()),
        )


def living() -> list[tuple[torch.UntypedStorage, bool]]:
    """Storages of all tensors, smallest first, and of each whether one of its tensors may hold addresses."""
    found: dict[int, tuple[torch.UntypedStorage, bool]] = {}
    for tensor in plain_tensors(gc.get_objects()):
        storage = tensor.untyped_storage()
        if DEVICE(storage).type == "cpu":
            words = tensor.dtype in WORDS or found.get(storage._cdata, (storage, False))[1]
            found[storage._cdata] = storage, words
    return sorted(found.values(), key=lambda one: one[0].nbytes())


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors on this machine in an operator's arguments or result that have a storage."""
    if isinstance(value, torch.Tensor):
        return [value] if value.layout is torch.strided and not value.is_meta else []
    if isinstance(value, dict):
        return tensors(list(value.values()))
    return [one for part in value for one in tensors(part)] if isinstance(value, (tuple, list)) else []


def _seeds(func: Any, named: Mapping[str, Any]) -> str:
    """The generator that an operator draws from, as it is before."""
    if torch.Tag.nondeterministic_seeded not in func.tags:
        return ""
    generator = named.get("generator") or torch.default_generator
    return _hash(NUMPY(generator.get_state()).tobytes().hex())


def _digest(storage: torch.UntypedStorage) -> str:
    if storage.nbytes() > MOST_BYTES or DEVICE(storage).type != "cpu":
        return f"{storage.nbytes()} bytes"
    with _disable_current_modes():
        return hashlib.blake2b(stored(storage), digest_size=16).hexdigest()


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
