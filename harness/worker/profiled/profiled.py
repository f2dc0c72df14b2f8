"""`python -m harness.worker.profiled.profiled FOLDER SCRATCH`, started by a profiler: calls a source on drawn inputs.

The profiler sees a mark, one steady call, and a mark. The calls before them compile, tune and warm up.
FOLDER belongs to the caller and is read before foreign code runs. Foreign code can write to SCRATCH alone.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
import triton

from harness.sandbox import sandbox
from harness.wire import limits
from harness.wire.channels.channel import ENCODER
from harness.wire.messages.profiled import (
    DRAWN,
    DRAWN_INPUTS,
    ENDED,
    MEMORY,
    PROFILE_REQUEST,
    REQUEST,
    SCOPE,
    ProfileEnded,
    ProfileRequest,
)
from harness.worker.candidate.loading import close_doors, import_candidate, see_package, set_variables
from harness.worker.kit import arena, candidate_trace, gpu
from harness.worker.kit.in_place import taking_parts
from harness.worker.kit.stopwatch import Stopwatch
from harness.worker.triton_hooks import warm
from harness.worker.triton_hooks.autotuning import Mode, Policy

WARM_CALLS = 3


@triton.jit
def wavedeck_mark(place):  # type: ignore[no-untyped-def]
    """Separates launches in a tool that records all of them."""


def main() -> None:
    """Make the profile that the folder of the command line asks for: warm calls of the source, then one between two marks.

    The tool around this process counts and writes. What the source raises is in the file `ENDED`.
    """
    folder, scratch = map(Path, sys.argv[1:])
    request = PROFILE_REQUEST.decode((folder / REQUEST).read_bytes())
    arguments = DRAWN_INPUTS.decode((folder / DRAWN).read_bytes())
    warm.start_gpu(request.device)
    memory = torch.from_file(str(folder / MEMORY), size=(folder / MEMORY).stat().st_size, dtype=torch.uint8)
    original = memory.to(gpu.HERE)
    inputs = original.clone()
    values = arena.open_each(arguments, lambda spec: gpu.view(inputs, spec))
    mark = torch.zeros(1, device=gpu.HERE)
    stopwatch = Stopwatch(request.flush_bytes) if request.flush_bytes else None
    counted = _counted_by(request.tool, scratch)
    with counted():  # the tool opens its libraries and connections before the sandbox closes
        wavedeck_mark[(1,)](mark)
        torch.cuda.synchronize()
    opened = _confine(request, scratch)
    file = scratch / candidate_trace.NAME
    try:
        entry = taking_parts(getattr(import_candidate(file, request.source), request.entry_point), arguments)
        for _ in range(WARM_CALLS):
            inputs.copy_(original)
            entry(**values)
        inputs.copy_(original)
        if stopwatch is not None:
            stopwatch.around(cold=True)
        torch.cuda.synchronize()
        with counted():
            wavedeck_mark[(1,)](mark)
            entry(**values)
            wavedeck_mark[(1,)](mark)
            torch.cuda.synchronize()
        ended = ProfileEnded(opened=opened)
    except Exception as error:  # noqa: BLE001 -- foreign code may raise anything
        ended = ProfileEnded(problem=candidate_trace.explain(error, file).message, opened=opened)
    if request.tool == "proton":
        _proton().finalize()
    (scratch / ENDED).write_bytes(ENCODER.encode(ended))


def _confine(request: ProfileRequest, scratch: Path) -> tuple[str, ...]:
    """Close the sandbox around this process, as far as the tool allows; returns the layers that stay open."""
    os.chdir(scratch)
    tempfile.tempdir = str(scratch)
    Policy(Mode.FIXED, fixed=request.configs).install()
    close_doors()
    if request.package is not None:
        see_package(request.package)
        set_variables(request.package)
    folders = tuple(map(Path, request.folders))
    return sandbox.apply_under_tool(scratch, limits.GPU_WORKER_CPU_S, folders, request.package)


def _counted_by(tool: str, scratch: Path) -> Callable[[], AbstractContextManager[Any]]:
    """Return a context in which the tool counts; rocprofv3 counts everything, and its reader finds the marks."""
    if tool == "ncu":
        return _between_profiler_calls
    if tool == "proton":
        _proton().start(str(scratch / "profile"), hook="triton")
        return lambda: _proton().scope(SCOPE)
    return nullcontext


@contextmanager
def _between_profiler_calls() -> Iterator[None]:
    torch.cuda.profiler.start()  # type: ignore[no-untyped-call]
    yield
    torch.cuda.profiler.stop()  # type: ignore[no-untyped-call]


def _proton() -> Any:
    import triton.profiler

    return triton.profiler


if __name__ == "__main__":
    main()
