"""
Every launch of a kernel on a GPU: its name, its grid, and the memory that it was handed.

Touches the internals of Triton's launcher and autotuner (3.6 and 3.7).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import _disable_current_modes
from triton.compiler.compiler import CompiledKernel
from triton.runtime import autotuner, jit
from triton.testing import do_bench

from harness.wire.records import LOWEST_ADDRESS
from harness.worker.interpreter.observing import cannot, current
from harness.worker.interpreter.traffic import LaunchRecord, Observation
from harness.worker.kit import compiler_settings
from harness.worker.kit.launch_options import refusal
from harness.worker.kit.storages import NUMPY, WORDS

BLOCK_BYTES = 512
"""The caching allocator hands out multiples of it (`kMinBlockSize`, on both makers' GPUs)."""
MARK = 0xA5
TABLE_BYTES = 64 << 10
"""Largest tensor of integers that is searched for addresses."""
DELAY_CYCLES = 100_000_000
"""Some 50 ms of a GPU's clock."""
_SLEEP: Any = getattr(torch.cuda, "_sleep", None)
_STILL_THERE: Any = torch.UntypedStorage._new_with_weak_ptr
TUNING_MS = 1
"""How long a config runs while it is tuned: any of them must be right, and none is chosen for its speed here."""


@dataclass(slots=True)
class GpuObservation(Observation):
    """What one call launched. A GPU counts no bytes and tells of no access: those fields stay empty."""

    reached: dict[int, object] = field(default_factory=dict)
    """Storages that a kernel was handed, by their address; kept alive, so that no address is ever that of two."""
    words: set[int] = field(default_factory=set)
    """Numbers that a kernel was handed, alone or in a table, and that may be addresses."""
    home: int = 0
    """The stream that the call was made on, as the driver numbers it."""
    delayed: set[int] = field(default_factory=set)
    """Other streams, each held up once: what nobody waits for then still runs when the call returns."""
    tuning: int = 0
    """Above 0 while the autotuner times configs: those launches are not the call's work."""

    behind: list[tuple[str, StorageWeakRef, torch.Tensor]] = field(default_factory=list)
    """Of tensors that the candidate made, in words, and the bytes between their end and that of their block: nobody's to store into."""

    def fresh(self, tensor: torch.Tensor) -> None:
        """Nobody here tells which bytes of it a kernel stores; those behind it, up to its block's end, are marked."""
        if tensor.device.type != "cuda" or _capturing():
            return
        storage = tensor.untyped_storage()
        left = -storage.nbytes() % BLOCK_BYTES
        if storage.nbytes() and left:
            behind = _memory_at(storage.data_ptr() + storage.nbytes(), left, tensor.device).fill_(MARK)
            what = f"a tensor of {tensor.numel()} elements of {str(tensor.dtype).removeprefix('torch.')}"
            self.behind.append((what, StorageWeakRef(storage), behind))  # type: ignore[no-untyped-call]

    def look_behind(self) -> None:
        """Tell of stores past the end of tensors that are still there, once all work is done."""
        for what, reference, behind in self.behind:
            storage = _STILL_THERE(reference.cdata)
            if storage is None or storage.data_ptr() + storage.nbytes() != behind.data_ptr():
                continue  # given back, or resized into another block
            if bool((behind != MARK).any()):
                self.missed_stores.append(f"a kernel stored past the end of {what} that the candidate made")
                return

    def filled(self, tensor: torch.Tensor) -> None:
        """As `fresh`."""

    def wrote(self, tensor: torch.Tensor) -> bool:
        """Whether a kernel was handed the tensor's memory, or an address in it: no GPU tells which of it was stored into."""
        storage = tensor.untyped_storage()
        start = storage.data_ptr()
        if start in self.reached:
            return True
        inside = range(start, start + storage.nbytes())
        return any(word in inside for word in self.words)

    def reach(self, value: Any) -> None:
        """Notes the memory of an argument."""
        if isinstance(value, int) and value >= LOWEST_ADDRESS:
            self.words.add(value)
        for tensor in tensors(value):
            storage = tensor.untyped_storage()
            self.reached[storage.data_ptr()] = storage
            if tensor.dtype in WORDS and tensor.nbytes <= TABLE_BYTES and not _capturing():
                self.words.update(_possible_addresses(tensor))

    def _hold_up(self) -> None:
        stream = torch.cuda.current_stream().cuda_stream
        if stream != self.home and stream not in self.delayed and not _capturing():
            self.delayed.add(stream)
            _SLEEP(DELAY_CYCLES)

    def note(self, kernel: Any, grid: Any, arguments: Mapping[str, Any]) -> None:
        """One launch is about to happen."""
        for value in arguments.values():
            self.reach(value)
        if self.tuning:
            return
        self._hold_up()
        x, y, z = (*(int(size) for size in grid), 1, 1, 1)[:3]
        record = LaunchRecord(kernel.__name__, (x, y, z), x * y * z, function=kernel, arguments=arguments)
        self.launches.append(record)
        if self.on_launch is not None:
            self.on_launch(record)


def _memory_at(address: int, size_bytes: int, device: torch.device) -> torch.Tensor:
    storage = torch._C._construct_storage_from_data_pointer(address, device, size_bytes)
    return torch.empty(0, dtype=torch.uint8, device=device).set_(storage)


def _possible_addresses(table: torch.Tensor) -> list[int]:
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        words = NUMPY(table.detach().cpu()).ravel()
    found: list[int] = words[words >= LOWEST_ADDRESS].tolist()
    return found


def _capturing() -> bool:
    return bool(torch.cuda.is_current_stream_capturing())


def install(backend: str) -> None:
    """Note launches in the observation that runs; once a process, before the candidate's module is imported."""
    _hook_functions(backend, compiler_settings.now())
    _hook_compiled_kernels()
    _hook_tuning()


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in an argument of a launch: itself, in a tuple, or under a descriptor or a reinterpreting wrapper."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from tensors(part)
    elif hasattr(value, "base"):
        yield from tensors(value.base)


def _observation() -> GpuObservation | None:
    found = current()
    return found if isinstance(found, GpuObservation) else None


def _hook_functions(backend: str, before: compiler_settings.Settings) -> None:
    launch = jit.JITFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        observation = _observation()
        if observation is None or warmup:
            return launch(self, *args, grid=grid, warmup=warmup, **options)
        for name in compiler_settings.differences(before):
            raise cannot(
                f"setting `{name}` was changed, so that any code may be made of a kernel; leave it alone"
            )
        names = list(inspect.signature(self.fn).parameters)
        _refuse_foreign(set(options) - set(names), backend)
        arguments = dict(zip(names, args, strict=False)) | options

        def noted(bound: Any) -> Any:
            size = grid(bound) if callable(grid) else grid
            observation.note(self.fn, size, arguments)
            return size

        return launch(self, *args, grid=noted, warmup=False, **options)

    jit.JITFunction.run = run


def _hook_compiled_kernels() -> None:
    """Persistent kernels are compiled ahead and then launched as `compiled[grid](...)`."""
    choose_grid: Callable[..., Any] = CompiledKernel.__getitem__

    def getitem(self: Any, grid: Any) -> Any:
        launch = choose_grid(self, grid)

        def run(*args: Any, **options: Any) -> Any:
            observation = _observation()
            if observation is not None:
                function = self.src.fn
                observation.note(function.fn, grid, dict(zip(function.arg_names, args, strict=False)))
            return launch(*args, **options)

        return run

    CompiledKernel.__getitem__ = getitem


def _hook_tuning() -> None:
    bench = autotuner.Autotuner._bench

    def timed(self: Any, *args: Any, **options: Any) -> Any:
        observation = _observation()
        if observation is None:
            return bench(self, *args, **options)
        own = self._do_bench
        observation.tuning += 1
        self._do_bench = own or functools.partial(do_bench, warmup=TUNING_MS, rep=TUNING_MS)
        try:
            return bench(self, *args, **options)
        finally:
            self._do_bench = own
            observation.tuning -= 1

    autotuner.Autotuner._bench = timed


def _refuse_foreign(options: set[str], backend: str) -> None:
    """`UnsupportedHere` for a launch option that only the other vendor's compiler has."""
    for name in sorted(options):
        foreign = refusal(name, None, backend)
        if foreign:
            raise cannot(foreign)
