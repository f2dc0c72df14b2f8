"""
The recompiling worker: kernels compiled from a candidate's text alone. Sandboxed; none of its host code runs here.

In the process that compiles first the candidate's module was imported, and the compiler is Python as the candidate is: what
that process hands over as a kernel's code may be anything. What is compiled here is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import triton
from triton.compiler.compiler import ASTSource

from harness import limits
from harness.device import Target
from harness.targets import target as find_target
from harness.worker.guest.candidate import close_doors
from harness.worker.interpreter import shim
from harness.worker.sandbox import sandbox
from harness.worker.serving import linux
from harness.worker.serving.channel import Channel
from harness.worker.serving.messages import ENCODER, Hello, Spawn
from harness.worker.serving.records import Function, Language, Value
from harness.worker.serving.specializations import (
    RECOMPILE_REQUESTS,
    Recompile,
    Recompiled,
    Specialization,
)
from harness.worker.verifier.kernels_only import Kernels, language
from harness.worker.verifier.values import constant

from . import capture, resources


def main(channel: Channel, spawn: Spawn) -> None:
    """Answers one `Recompile` and ends."""
    linux.keep_undumpable()
    torch.set_num_threads(1)
    close_doors()
    layers = sandbox.apply(
        Path(spawn.scratch), spawn.cpu_limit_s, limits.COMPILE_ADDRESS_SPACE_BYTES, run_programs=True
    )
    channel.send(ENCODER.encode(Hello(sandbox=layers)))
    request = RECOMPILE_REQUESTS.decode(channel.receive().payload)
    target = find_target(request.target)
    capture.install(target)
    again = _Again(request, target)
    results = [again.compile(one) for one in request.wanted]
    codes, failures = zip(*results, strict=True) if results else ((), ())
    channel.send(ENCODER.encode(Recompiled(nonce=request.nonce, codes=codes, failures=failures)))


class _Again:
    """Compiles the kernels of one source."""

    def __init__(self, request: Recompile, target: Target) -> None:
        self._target = target
        self._kernels = Kernels(request.source, request.file, self._value, whole=True)
        self._functions: Mapping[Function, Any] = {}

    def compile(self, wanted: Specialization) -> tuple[str, str]:
        """SHA-256 of the code, or nothing and why."""
        try:
            with capture.CompilerOutput():
                compiled = self._compiled(wanted)
            binary = compiled.asm["hsaco" if self._target.backend == "hip" else "cubin"]
            return resources.code_digest(binary), ""
        except Exception as error:  # noqa: BLE001 -- a hostile process said what to compile: whatever that leads to is told
            lines = str(error).strip().splitlines()
            return "", f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__

    def _compiled(self, wanted: Specialization) -> Any:
        self._functions = {}
        self._functions = self._kernels.build(wanted.functions, readable=True)
        kernel = self._functions[wanted.kernel]
        kernel._repr = (lambda _: wanted.called) if wanted.called.isidentifier() else None
        source = ASTSource(
            kernel,
            {name: _tuples(kind) for name, kind in wanted.signature.items()},
            {place: self._value(value) for place, value in wanted.constants},
            {place: _lists(promised) for place, promised in wanted.attributes},
        )
        options = {name: _tuples(value) for name, value in wanted.options.items()}
        return triton.compile(source, target=shim.gpu_target(self._target), options=options)

    def _value(self, value: Value) -> Any:
        match value:
            case Language(member=member) if member:
                return language(value)
            case Function() if value in self._functions:
                return self._functions[value]
            case _:
                return constant(value, self._value)


def _tuples(given: Any) -> Any:
    """What msgpack made lists of."""
    return tuple(map(_tuples, given)) if isinstance(given, list) else given


def _lists(given: Any) -> Any:
    return list(map(_lists, given)) if isinstance(given, (list, tuple)) else given
