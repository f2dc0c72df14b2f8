"""Observes every kernel launch of a guest on a GPU: name, grid, and the memory that the kernel gets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import _disable_current_modes

from harness.worker.interpreter.traffic import LaunchRecord, Observation, cannot, current
from harness.worker.kit.gpu import ADDRESS_DTYPES, LOWEST_ADDRESS, NUMPY
from harness.worker.triton_hooks import compiler_options
from harness.worker.triton_hooks.autotuning import policy
from harness.worker.triton_hooks.compiler_options import refusal
from harness.worker.triton_hooks.launches import (
    Launch,
    handle_compiled_launches,
    handle_launches,
    sizes,
    tensors_in,
)

BLOCK_BYTES = 512
"""The caching allocator hands out multiples of this size (`kMinBlockSize`, the same for CUDA and HIP)."""
MARK = 0xA5
TABLE_BYTES = 64 << 10
"""Largest tensor of integers that is searched for addresses."""
DELAY_CYCLES = 100_000_000
"""About 50 ms."""
_SLEEP: Any = getattr(torch.cuda, "_sleep", None)
_STILL_THERE: Any = torch.UntypedStorage._new_with_weak_ptr


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
        for tensor in tensors_in(value):
            storage = tensor.untyped_storage()
            self.reached[storage.data_ptr()] = storage
            if tensor.dtype in ADDRESS_DTYPES and tensor.nbytes <= TABLE_BYTES and not _capturing():
                self.words.update(_possible_addresses(tensor))

    def _delay_stream(self) -> None:
        stream = torch.cuda.current_stream().cuda_stream
        if stream != self.home and stream not in self.delayed and not _capturing():
            self.delayed.add(stream)
            _SLEEP(DELAY_CYCLES)

    def note(self, kernel: str, grid: Any, values: tuple[Any, ...]) -> None:
        """Note a launch that is about to happen."""
        for value in values:
            self.reach(value)
        if policy.trying:
            return
        self._delay_stream()
        x, y, z = sizes(grid)
        self.launches.append(LaunchRecord(kernel, (x, y, z), x * y * z))


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
    before = compiler_options.read_settings()

    def refuse(launch: Launch) -> Any:
        """Start a launch, unless its options or changed settings may change the kernel's code: then raise `cannot`."""
        if _observation() is not None and not launch.warmup:
            for name in compiler_options.changed_settings(before):
                raise cannot(
                    f"setting `{name}` was changed, which may change the code of kernels; leave it unchanged"
                )
            for name in sorted(launch.options):
                if reason := refusal(name, None, backend):
                    raise cannot(reason)
        return launch.go_on()

    def note(kernel: Any, grid: Any, values: tuple[Any, ...]) -> None:
        observation = _observation()
        if observation is not None:
            observation.note(kernel.src.fn.fn.__name__, grid, values)

    handle_launches(refuse)
    handle_compiled_launches(note)
    policy.brief = True
    policy.install()


def _observation() -> GpuObservation | None:
    observation = current()
    return observation if isinstance(observation, GpuObservation) else None
