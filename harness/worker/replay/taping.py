"""Records a launch tape of one call of the candidate, in the candidate's own timer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import torch

from harness.wire.calls import operators
from harness.wire.calls.launch_tape import Address, Fill, Scalar, Tape, TapedKernel, TapedLaunch
from harness.wire.calls.tensors import INPUTS, TensorSpec
from harness.worker.candidate import outputs
from harness.worker.kit import arena
from harness.worker.kit.operator_mode import OperatorMode
from harness.worker.triton_hooks.launches import handle_compiled_launches, sizes

_FILLED = {"zeros": 0, "zeros_like": 0, "new_zeros": 0, "zero_": 0, "ones": 1, "ones_like": 1, "new_ones": 1}
_FULL = {"full": 1, "full_like": 1, "new_full": 2, "fill_": 1}
"""Index of the fill value among the arguments."""
_INTEGERS = frozenset({"i1", "i8", "i16", "i32", "i64", "u1", "u8", "u16", "u32", "u64"})
_FLOATS = frozenset({"fp32", "f32", "fp64"})


class NotTaped(Exception):
    """The call does something that a tape cannot hold; the message says what."""


class _Taping(OperatorMode):  # type: ignore[no-untyped-call]
    """Records what one call allocates, fills and launches."""

    def __init__(self, inputs: torch.Tensor) -> None:
        super().__init__()
        self._inputs = inputs
        self._storages: list[torch.UntypedStorage] = []
        """Kept alive, so that no two storages have the same address."""
        self._kernels: list[Any] = []
        self._steps: list[TapedLaunch | Fill] = []
        self._why = ""
        """Why there can be no tape; empty if nothing speaks against it so far."""

    def _run(self, func: Any, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Run an operator of torch within the taped call. Allocations and fills become part of the tape; views need nothing.

        Any other operator that gives or reads tensors makes the tape impossible, and is noted as the reason.
        """
        result = func(*args, **named)
        if name in operators.ALLOCATING:
            self._allocated(result)
        elif name in _FILLED:
            self._fill(result, _FILLED[name])
        elif name in _FULL:
            index = _FULL[name]
            self._fill(result, args[index] if len(args) > index else named.get("fill_value"))
        elif not func.is_view and any(isinstance(value, torch.Tensor) for value in _flat(result)):
            self._refuse(f"`{name}` of torch computes between launches")
        elif not func.is_view and any(isinstance(value, torch.Tensor) for value in (*args, *named.values())):
            self._refuse(f"Python reads a tensor by `{name}`, and may go on by what it finds")
        return result

    def launched(self, kernel: Any, grid: Sequence[int], values: tuple[Any, ...]) -> None:
        """Add a launch to the tape just before it happens. A launch that the tape cannot repeat makes the tape impossible.

        `values` are the kernel's arguments in order.
        """
        metadata = kernel.metadata
        if getattr(metadata, "num_ctas", 1) != 1 or getattr(metadata, "launch_cooperative_grid", False):
            self._refuse("a launch of clusters or of a cooperative grid")
        if getattr(metadata, "launch_pdl", False):
            self._refuse("a launch that depends on the one before while it runs")
        if getattr(metadata, "global_scratch_size", 0) or getattr(metadata, "profile_scratch_size", 0):
            self._refuse("a kernel with scratch memory of the driver's")
        if kernel not in self._kernels:
            self._kernels.append(kernel)
        types = list(kernel.src.signature.values())
        arguments = tuple(
            self._argument(kind, value)
            for kind, value in zip(types, values, strict=True)
            if kind != "constexpr"
        )
        self._steps.append(
            TapedLaunch(kernel=self._kernels.index(kernel), grid=sizes(grid), arguments=arguments)
        )

    def tape(self, value: Any) -> Tape:
        """The tape of the call, which returned `value`; raises `NotTaped` if it cannot be taped."""
        if self._why:
            raise NotTaped(self._why)
        structure, parts = outputs.parts_of(value)
        return Tape(
            kernels=tuple(_taped(kernel) for kernel in self._kernels),
            storages=tuple(storage.nbytes() for storage in self._storages),
            steps=tuple(self._steps),
            outputs=tuple(self._output(part) for part in parts),
            structure=structure,
        )

    def _allocated(self, tensor: torch.Tensor) -> int:
        self._storages.append(tensor.untyped_storage())
        return len(self._storages) - 1

    def _fill(self, tensor: torch.Tensor, value: Any) -> None:
        """Add a fill to the tape. A fill that does not cover a whole buffer, or fills an input, makes the tape impossible."""
        storage = tensor.untyped_storage()
        addresses = [buffer.data_ptr() for buffer in self._storages]
        is_known = storage.data_ptr() in addresses
        number = addresses.index(storage.data_ptr()) if is_known else self._allocated(tensor)
        whole = arena.span_bytes(tensor) == storage.nbytes()
        if not isinstance(value, (int, float)) or not whole or tensor.data_ptr() == self._inputs.data_ptr():
            self._refuse("a fill of a part of a buffer")
            return
        self._steps.append(Fill(storage=number, dtype=arena.dtype_name(tensor.dtype), value=value))

    def _argument(self, kind: Any, value: Any) -> Address | Scalar:
        """Return an argument of a launch by its type; one that a tape cannot have makes the tape impossible."""
        if isinstance(kind, str) and kind.startswith("*") and isinstance(value, torch.Tensor):
            return self._address(value.data_ptr())
        if kind in _INTEGERS and isinstance(value, int):
            return Scalar(kind=str(kind), value=int(value))
        if kind in _FLOATS and isinstance(value, (int, float)):
            return Scalar(kind=str(kind), value=float(value))
        self._refuse(f"an argument of the type {kind}")
        return Scalar(kind="i32", value=0)

    def _address(self, address: int) -> Address:
        """Return the place of an address in the inputs or in a buffer of the call; any other makes the tape impossible."""
        memories = [
            (INPUTS, self._inputs.data_ptr(), self._inputs.nbytes),
            *((number, buffer.data_ptr(), buffer.nbytes()) for number, buffer in enumerate(self._storages)),
        ]
        for number, start, length in memories:
            if start <= address < start + max(length, 1):
                return Address(storage=number, offset_bytes=address - start)
        self._refuse("memory that neither the call allocated nor the inputs hold")
        return Address(storage=INPUTS, offset_bytes=0)

    def _output(self, part: Any) -> TensorSpec:
        """Return where an output lies.

        Raises `NotTaped` for an output that is no plain tensor, and if the tape is impossible.
        """
        if not isinstance(part, torch.Tensor) or outputs.problem(part):
            raise NotTaped("an output that is no plain tensor")
        address = self._address(part.data_ptr())
        offset, odd_bytes = divmod(address.offset_bytes, part.element_size())
        if odd_bytes:
            self._refuse("an output that is not aligned")
        if self._why:
            raise NotTaped(self._why)
        return msgspec.structs.replace(arena.describe(part), storage=address.storage, offset=offset)

    def _refuse(self, why: str) -> None:
        self._why = self._why or why


def taped(call: Callable[[], Any], inputs: torch.Tensor) -> Tape:
    """The tape of `call`, with all its inputs in the memory `inputs`; raises `NotTaped` if it cannot be taped."""
    taping = _Taping(inputs)

    end = handle_compiled_launches(taping.launched)
    try:
        with taping:
            value = call()
        torch.cuda.synchronize()
        return taping.tape(value)
    finally:
        end()


def _taped(kernel: Any) -> TapedKernel:
    """Return a compiled kernel as the tape has it: its binary, and what its launch needs."""
    metadata = kernel.metadata
    return TapedKernel(
        name=str(kernel.name),
        binary=bytes(kernel.kernel),
        shared_bytes=int(metadata.shared),
        threads=int(metadata.num_warps) * int(metadata.target.warp_size),
    )


def _flat(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (tuple, list)) else (value,)
