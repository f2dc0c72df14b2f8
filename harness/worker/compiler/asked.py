"""
What Triton's compiler is asked for, kept as plain data beside what it made, for a clean process to ask for it again.

Touches the internals of Triton's launcher (3.6 and 3.7).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from triton.runtime import jit

from harness.worker.guest import naming
from harness.worker.serving.records import Function, View
from harness.worker.serving.specializations import Specialization

_LEFT_OUT = frozenset({"extern_libs"})
"""Options that a back end fills in itself: paths on this machine."""
_made: dict[str, Specialization | str] = {}
"""By the hash of a compiled kernel; a text says why it cannot be told."""


def install() -> None:
    """Keep what each kernel is compiled from; once a process, before the candidate's module is imported."""
    compile_now = jit.JITFunction._do_compile

    def do_compile(
        kernel: Any,
        key: Any,
        signature: Any,
        device: Any,
        constexprs: Any,
        options: Any,
        attrs: Any,
        warmup: bool,  # noqa: FBT001 -- as Triton's
    ) -> Any:
        made = compile_now(kernel, key, signature, device, constexprs, options, attrs, warmup)
        if getattr(made, "hash", "") and made.hash not in _made:
            try:
                called = str(made.name) if kernel._repr is not None else ""
                _made[made.hash] = _told(kernel, signature, constexprs, vars(options), attrs, called)
            except naming.CannotName as reason:
                _made[made.hash] = f"`{kernel.fn.__name__}` is compiled with {reason}"
        return made

    jit.JITFunction._do_compile = do_compile


def of(compiled: Any) -> Specialization | str:
    """What a compiled kernel was made of, without its code; a text says why that cannot be told."""
    return _made.get(compiled.hash, "a kernel is compiled by other ways than a launch")


def _told(
    kernel: Any,
    signature: Mapping[str, Any],
    constexprs: Mapping[tuple[int, ...], Any],
    options: Mapping[str, Any],
    attrs: Mapping[tuple[int, ...], Any],
    called: str,
) -> Specialization:
    functions = naming.Functions()

    def told(one: Any) -> Function:
        return functions.add(one, told)

    return Specialization(
        kernel=told(kernel),
        signature=dict(signature),
        constants=tuple(
            (place, naming.value(value, _no_tensor, told)) for place, value in constexprs.items()
        ),
        attributes=tuple(attrs.items()),
        options={name: value for name, value in options.items() if name not in _LEFT_OUT},
        called=called,
        functions=functions.notes(),
        code_sha256="",
    )


def _no_tensor(_: torch.Tensor) -> View:
    raise naming.CannotName("a tensor as a constant")
