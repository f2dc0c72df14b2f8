"""
Observes every kernel launch of a guest on a GPU: name, grid, and the memory that the kernel gets.

Patches internals of Triton's launcher and autotuner (3.6 and 3.7).
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
"""The caching allocator hands out multiples of this size (`kMinBlockSize`, the same for CUDA and HIP)."""
MARK = 0xA5
TABLE_BYTES = 64 << 10
"""Largest tensor of integers that is searched for addresses."""
DELAY_CYCLES = 100_000_000
"""About 50 ms."""
_SLEEP: Any = getattr(torch.cuda, "_sleep", None)
_STILL_THERE: Any = torch.UntypedStorage._new_with_weak_ptr
TUNING_MS = 1
"""How long the autotuner runs a config. Every config must be correct, and its speed does not matter here."""


@dataclass(slots=True)
class GpuObservation(Observation):
    """Launches of one call. A GPU reports no bytes and no accesses, so that these fields stay empty."""

    reached: dict[int, object] = field(default_factory=dict)
    """Storages that a kernel got as arguments, by address. Kept alive, so that no second storage gets an address."""
    words: set[int] = field(default_factory=set)
    """Integers that a kernel got, alone or in a table, and that may be addresses."""
    home: int = 0
    """The stream of the call, as the driver numbers it."""
    delayed: set[int] = field(default_factory=set)
    """Other streams, each delayed once: work that the call does not wait for is then still running when it returns."""
    tuning: int = 0
    """Above 0 while the autotuner times configs: such launches are not the call's work."""

    behind: list[tuple[str, StorageWeakRef, torch.Tensor]] = field(default_factory=list)
    """For each tensor that the candidate made: its description, its storage, and the unused bytes behind it in its block."""

    def fresh(self, tensor: torch.Tensor) -> None:
        """Mark the unused bytes behind a new tensor: a store there is an error. Stores to the tensor cannot be observed."""
        if tensor.device.type != "cuda" or _capturing():
            return
        storage = tensor.untyped_storage()
        unused = -storage.nbytes() % BLOCK_BYTES
        if storage.nbytes() and unused:
            behind = _memory_at(storage.data_ptr() + storage.nbytes(), unused, tensor.device).fill_(MARK)
            name = f"a tensor of {tensor.numel()} elements of {str(tensor.dtype).removeprefix('torch.')}"
            self.behind.append((name, StorageWeakRef(storage), behind))  # type: ignore[no-untyped-call]

    def look_behind(self) -> None:
        """Report stores past the end of tensors that still exist. Call once all work is done."""
        for name, reference, behind in self.behind:
            storage = _STILL_THERE(reference.cdata)
            if storage is None or storage.data_ptr() + storage.nbytes() != behind.data_ptr():
                continue  # given back, or resized into another block
            if bool((behind != MARK).any()):
                self.missed_stores.append(f"a kernel stored past the end of {name} that the candidate made")
                return

    def filled(self, tensor: torch.Tensor) -> None:
        """Does nothing: fills by the host cannot be observed either."""

    def wrote(self, tensor: torch.Tensor) -> bool:
        """Whether a kernel got the tensor's memory or an address in it. A GPU does not report which bytes were stored."""
        storage = tensor.untyped_storage()
        start = storage.data_ptr()
        if start in self.reached:
            return True
        inside = range(start, start + storage.nbytes())
        return any(word in inside for word in self.words)

    def reach(self, value: Any) -> None:
        """Note the memory of an argument."""
        if isinstance(value, int) and value >= LOWEST_ADDRESS:
            self.words.add(value)
        for tensor in tensors(value):
            storage = tensor.untyped_storage()
            self.reached[storage.data_ptr()] = storage
            if tensor.dtype in WORDS and tensor.nbytes <= TABLE_BYTES and not _capturing():
                self.words.update(_possible_addresses(tensor))

    def _delay_stream(self) -> None:
        stream = torch.cuda.current_stream().cuda_stream
        if stream != self.home and stream not in self.delayed and not _capturing():
            self.delayed.add(stream)
            _SLEEP(DELAY_CYCLES)

    def note(self, kernel: Any, grid: Any, arguments: Mapping[str, Any]) -> None:
        """Note a launch that is about to happen."""
        for value in arguments.values():
            self.reach(value)
        if self.tuning:
            return
        self._delay_stream()
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
    possible: list[int] = words[words >= LOWEST_ADDRESS].tolist()
    return possible


def _capturing() -> bool:
    return bool(torch.cuda.is_current_stream_capturing())


def install(backend: str) -> None:
    """Note launches in the running observation from now on. Call once, before the candidate's module is imported."""
    _hook_functions(backend, compiler_settings.now())
    _hook_compiled_kernels()
    _hook_tuning()


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in an argument of a launch: the argument itself, parts of a tuple, or the base of a descriptor or wrapper."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from tensors(part)
    elif hasattr(value, "base"):
        yield from tensors(value.base)


def _observation() -> GpuObservation | None:
    observation = current()
    return observation if isinstance(observation, GpuObservation) else None


def _hook_functions(backend: str, before: compiler_settings.Settings) -> None:
    launch = jit.JITFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        observation = _observation()
        if observation is None or warmup:
            return launch(self, *args, grid=grid, warmup=warmup, **options)
        for name in compiler_settings.differences(before):
            raise cannot(
                f"setting `{name}` was changed, which may change the code of kernels; leave it unchanged"
            )
        names = list(inspect.signature(self.fn).parameters)
        _refuse_options(set(options) - set(names), backend)
        arguments = dict(zip(names, args, strict=False)) | options

        def note_grid(bound: Any) -> Any:
            size = grid(bound) if callable(grid) else grid
            observation.note(self.fn, size, arguments)
            return size

        return launch(self, *args, grid=note_grid, warmup=False, **options)

    jit.JITFunction.run = run


def _hook_compiled_kernels() -> None:
    """Note launches as `compiled[grid](...)`, the way in which persistent kernels run after `warmup`."""
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


def _refuse_options(options: set[str], backend: str) -> None:
    """Raise `UnsupportedHere` for a launch option that `refusal` names."""
    for name in sorted(options):
        reason = refusal(name, None, backend)
        if reason:
            raise cannot(reason)
