"""Notes to which 16-bit floats a reference casts wider ones: by operators of torch, and in its kernels."""

from __future__ import annotations

import re
from typing import Any

import torch

from harness.worker.interpreter.semantics import arithmetic
from harness.worker.kit.operator_mode import OperatorMode
from harness.worker.triton_hooks.launches import handle_compiled_launches

_TRUNCATED = re.compile(r"truncf.* to .*?(b?)f16\b")


class CastWatch(OperatorMode):  # type: ignore[no-untyped-call]
    """Notes casts of torch while it is on, and of kernels since they were first launched."""

    def __init__(self, *, on_gpu: bool) -> None:
        super().__init__()
        self._seen: set[str] = set()
        if on_gpu:
            handle_compiled_launches(lambda kernel, _grid, _values: self._read(kernel.asm.get("ttir", "")))

    @property
    def seen(self) -> tuple[str, ...]:
        """Names of the dtypes."""
        return tuple(sorted(self._seen | arithmetic.narrowed))

    def _read(self, text: str) -> None:
        self._seen |= {"bfloat16" if brain else "float16" for brain in _TRUNCATED.findall(text)}

    def _run(self, func: Any, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        result = func(*args, **named)
        if name in ("_to_copy", "copy_"):
            source = args[0 if name == "_to_copy" else 1]
            is_wide = source.dtype in (torch.float32, torch.float64)
            if is_wide and result.dtype in (torch.float16, torch.bfloat16):
                self._seen.add(str(result.dtype).removeprefix("torch."))
        return result
