"""
Records, in the guest, what one call does to memory: operators, launches, host reads. A clean process can then replay the call.

A guest can forge a record, so nothing in it is believed; only what its replay computes counts.
"""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from harness.wire import limits
from harness.wire.calls import operators, records
from harness.wire.calls.records import LOWEST_ADDRESS, MAX_STEPS, Address, Function, Record, Value, View
from harness.worker.candidate.loading import foreign_module
from harness.worker.kit.arena import dtype_name
from harness.worker.kit.storages import NUMPY, WORDS, addresses, holder, plain_tensors, read_bytes
from harness.worker.triton_hooks.autotuning import is_static, policy
from harness.worker.triton_hooks.launches import Launch, handle_launches, sizes

from . import call_encoding
from .call_encoding import CannotEncode

MOST_BYTES = 16 << 20
"""Bytes of memory from before the call that a record holds, in all storages together. More memory is replayed as poison."""

_DEVICE_ARGUMENTS = frozenset({"device", "pin_memory"})
"""Arguments of operators that a replay on the CPU leaves out."""

_current: Recorder | None = None
_installed = False


class Recorder:
    """Records the running call. Each record is complete: it holds the contents of all memory from before the call."""

    def __init__(self, module_file: str) -> None:
        self._file = module_file
        self._reason = self._excess = ""
        self._reset()

    def begin(self, inputs: Mapping[str, torch.Tensor]) -> None:
        """Start the record of a call."""
        global _current
        self._reset()
        for name, tensor in inputs.items():
            self._inputs[name] = self._number(tensor.untyped_storage())
        _current = self

    def finish(self, returned: Iterable[torch.Tensor]) -> tuple[Record | None, str]:
        """The record of the call, or why there is none; `None` and an empty reason if the call was not recorded."""
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
        reason = self._reason if _installed else "launches on this device are not recorded"
        self._reset()
        return (None, reason) if reason else (record, "")

    def give_up(self, reason: str) -> None:
        """The running call cannot be replayed; the first reason is reported."""
        self._reason = self._reason or reason

    def operator(self, func: Any, args: Any, named: Mapping[str, Any], result: Any, line: int | None) -> None:
        """Record a tensor operator that ran."""
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
        keywords = {
            key: value for key, value in named.items() if key not in _DEVICE_ARGUMENTS and value is not None
        }
        encoded_args = self._attempt(lambda: tuple(map(self.value, args)))
        encoded_named = self._attempt(self._values, keywords)
        results = self._attempt(lambda: tuple(self.view(tensor, fresh=True) for tensor in tensors(result)))
        if encoded_args is None or encoded_named is None or results is None:
            return
        self._step(
            records.Operator(
                name=name,
                overload=func._overloadname,
                arguments=encoded_args,
                named=encoded_named,
                results=results,
                line=line,
            )
        )

    def host_read(self, tensor: torch.Tensor) -> None:
        """Record that Python reads a tensor's elements."""
        if not self._records():
            return
        self._elements_read += tensor.numel()
        if self._elements_read > limits.HOST_ELEMENTS:
            self._excess = f"Python reads more than {limits.HOST_ELEMENTS} elements in one call"
            return
        view = self._attempt(self.view, tensor)
        if view is not None:
            with self._unrecorded():
                self._step(records.HostRead(view=view, digest=digest(tensor.detach().contiguous())))

    def run(self, launch: Launch) -> Any:
        """Make a launch and record it; returns what the host code gets. Steps of a grid function come ahead of the launch."""
        bound, named = call_encoding.bind(launch)
        arguments, options = self._attempt(self._values, bound), self._attempt(self._values, named)
        function = self._attempt(self.function, launch.kernel)
        if launch.kernel.pre_run_hooks:
            self.give_up("a kernel has hooks that run before it")
        grid: tuple[int, int, int] | None = None

        def sized(values: Any) -> Any:
            nonlocal grid
            self._paused = False
            try:
                size = launch.grid(values) if callable(launch.grid) else launch.grid
            finally:
                self._paused = True
            grid = sizes(size)
            return size

        try:
            with self._unrecorded():
                result = launch.go_on(grid=sized)
        except BaseException as error:
            if grid is not None and not is_static(error):  # with a false static assertion nothing ran
                self.give_up("a launch failed half-way")
            raise
        if arguments is not None and options is not None and function is not None and grid is not None:
            self._step(records.Launch(function, grid, arguments, options, trial=policy.trying))
        return result

    def view(self, tensor: torch.Tensor, *, fresh: bool = False) -> View:
        """The tensor's place in its storage. Contents of a storage not seen before become a step, unless it is `fresh`."""
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout is not torch.strided:
            raise CannotEncode(f"a {type(tensor).__name__}")
        storage = tensor.untyped_storage()
        is_new = storage._cdata not in self._numbers
        number = self._number(storage)
        if is_new and not fresh:
            self._contents(storage, number, tensor)
        return View(
            storage=number,
            dtype=dtype_name(tensor.dtype),
            shape=tuple(tensor.shape),
            strides=tuple(tensor.stride()),
            offset=int(tensor.storage_offset()),
        )

    def value(self, value: Any) -> Value:
        """An argument of an operator or a launch as plain data."""
        if isinstance(value, int) and not isinstance(value, bool) and value >= LOWEST_ADDRESS:
            return self._address(value) or call_encoding.encode_integer(value)
        return call_encoding.encode(value, self.view, self.function)

    def function(self, kernel: Any) -> Function:
        """A jit function of the candidate or its package as its name in the record."""
        code = kernel.fn.__code__
        module = "" if code.co_filename == self._file else foreign_module(code.co_filename)
        if code.co_filename != self._file and not module:
            raise CannotEncode(f"the kernel `{code.co_name}` of another module")
        return self._functions.add(kernel, self.function, module)

    def _values(self, arguments: Mapping[str, Any]) -> dict[str, Value]:
        return {name: self.value(value) for name, value in arguments.items()}

    def _records(self) -> bool:
        return _current is self and not (self._paused or self._reason or self._excess)

    def _step(self, step: records.Step) -> None:
        if len(self._steps) >= MAX_STEPS:
            self._excess = f"one call makes more than {MAX_STEPS} copies, fills and launches"
        if not self._excess:
            self._steps.append(step)

    def _contents(self, storage: torch.UntypedStorage, number: int, tensor: torch.Tensor) -> None:
        data: bytes | None = None
        pointers: tuple[tuple[int, Address], ...] = ()
        if self._size_bytes + storage.nbytes() <= MOST_BYTES:
            self._size_bytes += storage.nbytes()
            with self._unrecorded():
                data = read_bytes(storage)
            pointers = addresses(data, self._address) if tensor.dtype in WORDS else ()
        self._step(
            records.Contents(storage=number, size_bytes=storage.nbytes(), data=data, addresses=pointers)
        )

    @contextmanager
    def _unrecorded(self) -> Iterator[None]:
        """Operators in the block are the recorder's own, so that they are not recorded."""
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before

    def _address(self, value: int) -> Address | None:
        """The integer as an address in a tensor's storage; `None` if no live tensor contains it."""
        storage = holder(value, self._storages.values())
        if storage is None:
            live = plain_tensors(gc.get_objects())
            # An empty storage is false: no address is in it.
            owner = next((tensor for tensor in live if holder(value, [tensor.untyped_storage()])), None)
            if owner is None:
                return None
            self.view(owner)
            storage = owner.untyped_storage()
        return Address(storage=self._number(storage), offset_bytes=value - storage.data_ptr())

    def _number(self, storage: torch.UntypedStorage) -> int:
        """The storage's number. The storage is kept alive, so that no later storage gets its identity."""
        self._storages.setdefault(storage._cdata, storage)
        return self._numbers.setdefault(storage._cdata, len(self._numbers))

    def _reset(self) -> None:
        self._inputs: dict[str, int] = {}
        self._steps: list[records.Step] = []
        self._functions = call_encoding.Functions()
        self._storages: dict[int, torch.UntypedStorage] = {}
        self._numbers: dict[int, int] = {}
        self._size_bytes = self._elements_read = 0
        self._reason = self._excess = ""
        self._paused = False

    def _attempt(self, make: Callable[..., Any], *args: Any) -> Any:
        try:
            return make(*args)
        except CannotEncode as error:
            self.give_up(str(error))
            return None


def install() -> None:
    """Record launches and resizes from now on. Call once in a process, after the interpreter is prepared."""
    global _installed
    _installed = True
    _watch_sizes()
    handle_launches(
        lambda launch: launch.go_on() if _current is None or launch.warmup else _current.run(launch)
    )


def digest(tensor: torch.Tensor) -> bytes:
    """A 16-byte hash of the bytes of a contiguous tensor."""
    if tensor.numel() == 0:
        return b""
    with torch._C.DisableTorchFunction():
        flat = NUMPY(tensor.cpu().reshape(-1).view(torch.uint8))
    return hashlib.blake2b(flat.tobytes(), digest_size=16).digest()


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The dense tensors in the arguments or the result of an operator."""
    if isinstance(value, torch.Tensor):
        if value.layout is torch.strided:
            yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors(part)
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))


def _watch_sizes() -> None:
    """Give up when a storage is resized: torch reports no operator for it."""
    kind: Any = torch.UntypedStorage
    resize = kind.resize_

    def resize_(storage: Any, size_bytes: int) -> Any:
        if _current is not None:
            _current.give_up("a storage was resized")
        return resize(storage, size_bytes)

    kind.resize_ = resize_
