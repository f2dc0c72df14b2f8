"""In the guest: writes down what one call does to memory, so that a clean process can do it again. Evidence, no more."""

from __future__ import annotations

import bisect
import gc
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from triton.runtime import interpreter

from harness import limits
from harness.worker.compiler import noted
from harness.worker.interpreter import tuning
from harness.worker.serving.records import (
    MAX_STEPS,
    Address,
    Contents,
    Function,
    HostRead,
    Launch,
    Operator,
    Record,
    Step,
    Table,
    Value,
    View,
)

from . import naming, operators
from .importing import MOST_BYTES, Importing, living
from .importing import current as current_import
from .naming import CannotName
from .storages import NUMPY, WORDS, addresses, holder, plain_tensors, stored

_LOWEST_ADDRESS = noted.LOWEST_ADDRESS
"""Below it an integer is taken for a number."""

TWO_NAMES = "two tensors lie in the same memory and share no storage, so that what is stored by one name and read by another is not seen"

NOT_TOLD = frozenset({"device", "pin_memory"})
"""Arguments of operators that say where they run."""

_current: Recorder | None = None
_installed = False


class Recorder:
    """Numbers storages for as long as they live, and holds the record of the call that runs."""

    def __init__(self, module_file: str) -> None:
        self._file = module_file
        self._held: dict[int, torch.UntypedStorage] = {}
        self._numbers: dict[int, int] = {}
        self._weak: dict[int, StorageWeakRef] = {}
        self._spans: list[tuple[int, int, int]] = []
        """Addresses of the numbered storages, in order."""
        self._two_names = ""
        self._next = 0
        self._importing = Importing()
        self._forgotten: tuple[int, ...] = ()
        self._inputs: dict[str, int] = {}
        self._why = self._excess = ""
        self._reset()

    def importing(self) -> Importing:
        """Around the candidate's import."""
        return self._importing

    def tables(self) -> tuple[Table, ...]:
        """The tensors that the candidate's import left, the smallest first; from here on they are known by number. What is more than
        `MOST_BYTES` together is not told, and replays as poison.
        """
        self._hold_all()
        found, size_bytes = [], 0
        for storage, words in living():
            if storage._cdata not in self._numbers and size_bytes + storage.nbytes() <= MOST_BYTES:
                size_bytes += storage.nbytes()
                found.append((storage, self._number(storage), words))
        tables = tuple(
            self._importing.table(storage, number, self._address if words else None)
            for storage, number, words in found
        )
        self._let_go()
        return tables

    def begin(self, inputs: Mapping[str, torch.Tensor]) -> None:
        """A call begins."""
        global _current
        self._reset()
        self._hold_all()
        self._inputs = {name: self._number(tensor.untyped_storage()) for name, tensor in inputs.items()}
        _current = self

    def finish(self, returned: Iterable[torch.Tensor]) -> tuple[Record | None, str]:
        """The record of the call, or why there is none."""
        global _current
        _current = None
        views = tuple(self._attempt(self.view, tensor) for tensor in returned)
        record = Record(
            inputs=self._inputs,
            steps=tuple(self._steps),
            functions=self._functions.notes(),
            returned=tuple(view for view in views if view is not None),
            forgotten=self._forgotten,
            excess=self._excess,
        )
        with self._unseen():
            self._look_for_names()
        why = (self._why or self._two_names) if _installed else "launches on this device are not recorded"
        self._let_go()
        self._reset()
        return (None, why) if why else (record, "")

    def give_up(self, why: str) -> None:
        """The running call cannot be replayed; the first reason counts."""
        self._why = self._why or why

    def operator(self, func: Any, args: Any, named: Mapping[str, Any], result: Any, line: int | None) -> None:
        """One tensor operator ran."""
        name = func._schema.name.rpartition("::")[2]
        if self._paused or self._why or self._excess:
            return
        if name == "_local_scalar_dense":
            self.host_read(args[0])
            return
        if name == "resize_":
            self.give_up("a tensor was resized")
        if func.is_view or name in operators.LOOKING:
            return
        if func.namespace != "aten":
            self.give_up(f"the operator {func._schema.name} cannot be run again")
            return
        arguments = self._attempt(lambda: tuple(self.value(value) for value in args))
        keywords = self._attempt(
            lambda: {
                key: self.value(value)
                for key, value in named.items()
                if key not in NOT_TOLD and value is not None
            }
        )
        made = self._attempt(lambda: tuple(self.view(tensor, fresh=True) for tensor in tensors(result)))
        if arguments is None or keywords is None or made is None:
            return
        self._step(
            Operator(
                name=name,
                overload=func._overloadname,
                arguments=arguments,
                named=keywords,
                results=made,
                line=line,
            )
        )

    def host_read(self, tensor: torch.Tensor) -> None:
        """Python reads a tensor's elements."""
        if self._paused or self._why or self._excess:
            return
        self._read += tensor.numel()
        if self._read > limits.HOST_ELEMENTS:
            self._excess = f"Python reads more than {limits.HOST_ELEMENTS} elements in one call"
            return
        view = self._attempt(self.view, tensor)
        if view is not None:
            with self._unseen():
                self._step(HostRead(view=view, digest=digest(tensor.detach().contiguous())))

    def launch(
        self, kernel: Any, bound: Mapping[str, Any], options: Mapping[str, Any]
    ) -> Callable[..., None]:
        """A kernel is launched; call what comes back with the grid when it has run. Its own doings are not recorded."""
        arguments = self._attempt(lambda: {name: self.value(value) for name, value in bound.items()})
        kept = self._attempt(lambda: {name: self.value(value) for name, value in options.items()})
        function = self._attempt(self.function, kernel)
        if kernel.pre_run_hooks:
            self.give_up("a kernel has hooks that run before it")
        self._paused = True

        def done(grid: Any, *, failed: bool) -> None:
            self._paused = False
            if grid is None:
                return  # nothing ran
            if failed:
                self.give_up("a launch failed half-way")
            elif arguments is not None and kept is not None and function is not None:
                x, y, z = grid
                self._step(Launch(function, (x, y, z), arguments, kept, trial=tuning.trial.runs))

        return done

    def grid(self, grid: Any) -> Any:
        """The grid of a launch, or what gives it: nothing but plain tuples and whole numbers can be recorded."""

        def looked_at(sizes: Any) -> Any:
            self._attempt(naming.refuse_own_grid, sizes)
            return sizes

        return (lambda meta: looked_at(grid(meta))) if callable(grid) else looked_at(grid)

    def view(self, tensor: torch.Tensor, *, fresh: bool = False) -> View:
        """Where a tensor lies. Memory not seen before is `fresh`, or its contents become a step."""
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout is not torch.strided:
            raise CannotName(f"a {type(tensor).__name__}")
        storage = tensor.untyped_storage()
        known = storage._cdata in self._numbers
        number = self._number(storage)
        if not known and not fresh:
            self._contents(storage, number, tensor)
        return View(
            storage=number,
            dtype=str(tensor.dtype).removeprefix("torch."),
            shape=tuple(tensor.shape),
            strides=tuple(tensor.stride()),
            offset=int(tensor.storage_offset()),
        )

    def value(self, value: Any) -> Value:
        """An argument of an operator or a launch."""
        if isinstance(value, int) and not isinstance(value, bool) and value >= _LOWEST_ADDRESS:
            return self._address(value) or naming.number(value)
        return naming.value(value, self.view, self.function)

    def function(self, kernel: Any) -> Function:
        """A jit function of the candidate's; what it needs is noted once a call."""
        code = kernel.fn.__code__
        if code.co_filename != self._file:
            raise CannotName(f"the kernel `{code.co_name}` of another module")
        return self._functions.add(kernel, self.function)

    def _step(self, step: Step) -> None:
        if len(self._steps) >= MAX_STEPS:
            self._excess = f"one call makes more than {MAX_STEPS} copies, fills and launches"
        if not self._excess:
            self._steps.append(step)

    def _contents(self, storage: torch.UntypedStorage, number: int, tensor: torch.Tensor) -> None:
        self._entered.append(storage)
        elements = storage.nbytes() // tensor.element_size()
        small = self._elements + elements <= limits.HOST_ELEMENTS
        data: bytes | None = None
        held: tuple[tuple[int, Address], ...] = ()
        if small:
            self._elements += elements
            with self._unseen():
                data = stored(storage)
            held = addresses(data, self._address) if tensor.dtype in WORDS else ()
        self._step(Contents(storage=number, size_bytes=storage.nbytes(), data=data, addresses=held))

    @contextmanager
    def _unseen(self) -> Iterator[None]:
        """What happens in the block is the recorder's own doing."""
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before

    def _address(self, value: int) -> Address | None:
        """An integer as an address in a storage that this call has named; `None` for any other."""
        storage = holder(value, self._held.values())
        if storage is None:
            return None
        return Address(storage=self._number(storage), offset_bytes=value - storage.data_ptr())

    def _number(self, storage: torch.UntypedStorage) -> int:
        key = storage._cdata
        if key not in self._numbers:
            self._numbers[key] = self._next
            self._next += 1
            self._note_span(key, storage)
        self._held.setdefault(key, storage)
        return self._numbers[key]

    def _note_span(self, key: int, storage: torch.UntypedStorage) -> None:
        """A storage gets its number: those that are numbered must lie elsewhere."""
        start, end = _span(storage)
        if start == end:
            return
        at = bisect.bisect(self._spans, (start, end, key))
        at -= at > 0 and self._spans[at - 1][1] > start
        while at < len(self._spans) and self._spans[at][0] < end:
            other = self._spans[at][2]
            weak = self._weak.get(other)
            if other in self._held or (weak is not None and not weak.expired()):  # type: ignore[no-untyped-call]
                self._two_names = TWO_NAMES
            del self._spans[at]
        self._spans.insert(at, (start, end, key))

    def _look_for_names(self) -> None:
        """Memory that entered in this call may be that of a tensor which no call has named."""
        if not self._entered:
            return
        entered = [(storage._cdata, *_span(storage)) for storage in self._entered]
        for tensor in plain_tensors(gc.get_objects()):
            storage = tensor.untyped_storage()
            first, last = _span(storage)
            if any(start < last and first < end and key != storage._cdata for key, start, end in entered):
                self._two_names = TWO_NAMES

    def _hold_all(self) -> None:
        """Storages that lived on stay known; those that are gone are forgotten."""
        gone = [key for key, weak in self._weak.items() if weak.expired()]  # type: ignore[no-untyped-call]
        self._forgotten = tuple(self._numbers.pop(key) for key in gone)
        self._weak = {key: weak for key, weak in self._weak.items() if key in self._numbers}
        self._spans = [span for span in self._spans if span[2] in self._numbers]

    def _let_go(self) -> None:
        for key, storage in self._held.items():
            self._weak.setdefault(key, StorageWeakRef(storage))  # type: ignore[no-untyped-call]
        self._held = {}

    def _reset(self) -> None:
        self._inputs = {}
        self._steps: list[Step] = []
        self._functions = naming.Functions()
        self._forgotten = ()
        self._elements = self._read = 0
        self._entered: list[torch.UntypedStorage] = []
        self._why = self._excess = ""
        self._paused = False

    def _attempt(self, make: Callable[..., Any], *args: Any) -> Any:
        try:
            return make(*args)
        except CannotName as error:
            self.give_up(str(error))
            return None


def install() -> None:
    """Tell the recorder of each launch; once a process, after the interpreter is prepared."""
    global _installed
    _installed = True
    _watch_sizes()
    run_kernel = interpreter.InterpretedFunction.run
    set_grid = interpreter.InterpreterBuilder.set_grid_dim
    grids: list[Any] = []

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        writing = _current or current_import()
        if writing is None or warmup:
            return run_kernel(self, *args, grid=grid, warmup=warmup, **kwargs)
        bound, options = naming.bind(self, args, kwargs)
        done = writing.launch(self, bound, options)
        grid = writing.grid(grid) if isinstance(writing, Recorder) else grid
        grids.append(None)
        failed = True
        try:
            result = run_kernel(self, *args, grid=grid, warmup=False, **kwargs)
            failed = False
        except Exception as error:
            if tuning.is_static(error):
                grids[-1] = None  # it would not have compiled, so that nothing ran
            raise
        finally:
            done(grids.pop(), failed=failed)
        return result

    def set_grid_dim(self: Any, x: int, y: int, z: int) -> None:
        if grids:
            grids[-1] = (int(x), int(y), int(z))
        set_grid(self, x, y, z)

    interpreter.InterpretedFunction.run = run
    interpreter.InterpreterBuilder.set_grid_dim = set_grid_dim


def digest(tensor: torch.Tensor) -> bytes:
    """Of a contiguous tensor's bytes."""
    if tensor.numel() == 0:
        return b""
    with torch._C.DisableTorchFunction():
        flat = NUMPY(tensor.cpu().reshape(-1).view(torch.uint8))
    return hashlib.blake2b(flat.tobytes(), digest_size=16).digest()


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in an operator's arguments or result that have a storage: sparse ones have none."""
    if isinstance(value, torch.Tensor):
        if value.layout is torch.strided:
            yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors(part)
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))


def _span(storage: torch.UntypedStorage) -> tuple[int, int]:
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def _watch_sizes() -> None:
    """A storage that is resized is past torch's operators, and the judge's are not to be."""
    kind: Any = torch.UntypedStorage
    resize = kind.resize_

    def resize_(storage: Any, size_bytes: int) -> Any:
        if _current is not None:
            _current.give_up("a storage was resized")
        return resize(storage, size_bytes)

    kind.resize_ = resize_
