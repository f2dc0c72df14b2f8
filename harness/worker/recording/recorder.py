"""In the guest: records what one call does to memory, so that a clean process can do it again. Evidence, no more."""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from triton.runtime import interpreter

from harness.wire import limits, operators
from harness.wire.records import (
    LOWEST_ADDRESS,
    MAX_STEPS,
    Address,
    Contents,
    Function,
    HostRead,
    Launch,
    Operator,
    Record,
    Step,
    Value,
    View,
)
from harness.worker.interpreter import tuning
from harness.worker.kit.storages import NUMPY, WORDS, addresses, holder, plain_tensors, stored

from . import naming
from .naming import CannotName

MOST_BYTES = 16 << 20
"""Of memory from before the call, all storages together: larger memory is replayed as poison."""

NOT_TOLD = frozenset({"device", "pin_memory"})
"""Arguments of operators that say where they run."""

_current: Recorder | None = None
_installed = False


class Recorder:
    """Holds the record of the call that runs. Each record stands alone: it has the contents of all memory from before the call."""

    def __init__(self, module_file: str) -> None:
        self._file = module_file
        self._why = self._excess = ""
        self._reset()

    def begin(self, inputs: Mapping[str, torch.Tensor]) -> None:
        """A call begins that is to be recorded."""
        global _current
        self._reset()
        for name, tensor in inputs.items():
            self._inputs[name] = self._number(tensor.untyped_storage())
        _current = self

    def finish(self, returned: Iterable[torch.Tensor]) -> tuple[Record | None, str]:
        """The record of the call, or why there is none; two times nothing where the call was not to be recorded."""
        global _current
        if _current is not self:
            return None, ""
        _current = None
        views = tuple(self._attempt(self.view, tensor) for tensor in returned)
        record = Record(
            inputs=self._inputs,
            steps=tuple(self._steps),
            functions=self._functions.notes(),
            returned=tuple(view for view in views if view is not None),
            excess=self._excess,
        )
        why = self._why if _installed else "launches on this device are not recorded"
        self._reset()
        return (None, why) if why else (record, "")

    def give_up(self, why: str) -> None:
        """The running call cannot be replayed; the first reason counts."""
        self._why = self._why or why

    def operator(self, func: Any, args: Any, named: Mapping[str, Any], result: Any, line: int | None) -> None:
        """One tensor operator ran."""
        name = func._schema.name.rpartition("::")[2]
        if not self._records():
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
        if not self._records():
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
        """A kernel is launched; call the result with the grid when it has run. What happens inside a launch is not recorded."""
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
        if isinstance(value, int) and not isinstance(value, bool) and value >= LOWEST_ADDRESS:
            return self._address(value) or naming.number(value)
        return naming.value(value, self.view, self.function)

    def function(self, kernel: Any) -> Function:
        """A jit function of the candidate's; what it needs is noted once a call."""
        code = kernel.fn.__code__
        if code.co_filename != self._file:
            raise CannotName(f"the kernel `{code.co_name}` of another module")
        return self._functions.add(kernel, self.function)

    def _records(self) -> bool:
        return _current is self and not (self._paused or self._why or self._excess)

    def _step(self, step: Step) -> None:
        if len(self._steps) >= MAX_STEPS:
            self._excess = f"one call makes more than {MAX_STEPS} copies, fills and launches"
        if not self._excess:
            self._steps.append(step)

    def _contents(self, storage: torch.UntypedStorage, number: int, tensor: torch.Tensor) -> None:
        data: bytes | None = None
        held: tuple[tuple[int, Address], ...] = ()
        if self._size_bytes + storage.nbytes() <= MOST_BYTES:
            self._size_bytes += storage.nbytes()
            with self._unseen():
                data = stored(storage)
            held = addresses(data, self._address) if tensor.dtype in WORDS else ()
        self._step(Contents(storage=number, size_bytes=storage.nbytes(), data=data, addresses=held))

    @contextmanager
    def _unseen(self) -> Iterator[None]:
        """The block is the recorder's own work, not the candidate's."""
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before

    def _address(self, value: int) -> Address | None:
        """An integer as an address in a tensor's storage; `None` for any other integer."""
        storage = holder(value, self._held.values())
        if storage is None:
            owner = next((one for one in plain_tensors(gc.get_objects()) if _holds(one, value)), None)
            if owner is None:
                return None
            self.view(owner)
            storage = owner.untyped_storage()
        return Address(storage=self._number(storage), offset_bytes=value - storage.data_ptr())

    def _number(self, storage: torch.UntypedStorage) -> int:
        """The storage's number; the storage is kept alive, so that no other one gets its identity."""
        self._held.setdefault(storage._cdata, storage)
        return self._numbers.setdefault(storage._cdata, len(self._numbers))

    def _reset(self) -> None:
        self._inputs: dict[str, int] = {}
        self._steps: list[Step] = []
        self._functions = naming.Functions()
        self._held: dict[int, torch.UntypedStorage] = {}
        self._numbers: dict[int, int] = {}
        self._size_bytes = self._read = 0
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
        if _current is None or warmup:
            return run_kernel(self, *args, grid=grid, warmup=warmup, **kwargs)
        bound, options = naming.bind(self, args, kwargs)
        done = _current.launch(self, bound, options)
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


def _holds(tensor: torch.Tensor, address: int) -> bool:
    storage = tensor.untyped_storage()
    return storage.data_ptr() <= address < storage.data_ptr() + storage.nbytes()


def _watch_sizes() -> None:
    """A resize of a storage is past torch's operators: the record cannot say what it did."""
    kind: Any = torch.UntypedStorage
    resize = kind.resize_

    def resize_(storage: Any, size_bytes: int) -> Any:
        if _current is not None:
            _current.give_up("a storage was resized")
        return resize(storage, size_bytes)

    kind.resize_ = resize_
