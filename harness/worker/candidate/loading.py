"""Locks a worker process in and imports the candidate there; reports its exceptions and its signatures."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from harness.linux import syscalls
from harness.sandbox import landlock, sandbox
from harness.wire.evaluation import Layer
from harness.wire.guest_messages import Broken, Failed, FailedKind
from harness.wire.server_messages import Spawn
from harness.wire.signatures import Parameter
from harness.worker.kit import candidate_trace

_imports: list[Path] = []
"""The candidate's file, once its import has begun."""


def confine(spawn: Spawn, address_space_bytes: int, *, run_programs: bool = False) -> tuple[Layer, ...]:
    """Put this process into its sandbox, before any foreign code runs. Returns the layers that are active."""
    syscalls.keep_undumpable()
    torch.set_num_threads(1)
    close_doors()
    return sandbox.apply(
        Path(spawn.scratch),
        spawn.cpu_limit_s,
        address_space_bytes,
        run_programs=run_programs,
        gpu=spawn.device is not None,
    )


def close_doors() -> None:
    """Make only the standard library and installed packages importable, not the folder of the project."""
    kept = [str(folder) for folder in landlock.python_folders()]
    sys.path[:] = [entry for entry in sys.path if entry in kept]
    sys.meta_path[:] = [finder for finder in sys.meta_path if "__editable__" not in str(_home(finder))]
    sys.path_hooks[:] = [hook for hook in sys.path_hooks if "__editable__" not in str(_home(hook))]


def import_candidate(file: Path, source: str) -> ModuleType:
    """The candidate's module, imported from a file so that tracebacks and `inspect` find its lines."""
    file.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    if hasattr(torch.library, "wrap_triton"):
        # torch's own wraps a kernel for tracing: slow, and no mode of the judge has a rule for such a call.
        torch.library.wrap_triton = _itself
    _imports.append(file)
    spec.loader.exec_module(module)
    return module


def failed(error: BaseException, file: Path, kind: FailedKind = "exception") -> Failed:
    """The report on an exception of the candidate."""
    explained = candidate_trace.explain(error, file)
    return Failed(kind=kind, message=explained.message, trace=explained.trace, line=explained.line)


def broken(error: Exception) -> Broken:
    """The report on an exception of the harness; the traceback goes to the output of the process."""
    traceback.print_exc()
    message = "".join(traceback.format_exception_only(error)).strip()
    return Broken(message=message, imported=bool(_imports))


def missing_entry_points(names: Sequence[str]) -> Failed:
    """The report on a module without these entry points."""
    message = f"kernel.py defines no function {', '.join(f'`{name}`' for name in names)}"
    return Failed(kind="missing_entry_point", message=message, trace="", line=None)


def parameters_of(entry: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The parameters of an entry point; empty if Python cannot list them, so that the call itself decides."""
    try:
        parameters = inspect.signature(entry).parameters.values()
    except Exception:  # noqa: BLE001 (a `__signature__` of the candidate may raise anything)
        return ()
    if any(item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD) for item in parameters):
        return ()
    return tuple(
        Parameter(
            name=item.name,
            default=None if item.default is item.empty else repr(item.default),
            by_name=item.kind is not item.POSITIONAL_ONLY,
        )
        for item in parameters
    )


def _itself(kernel: Any, /) -> Any:
    return kernel


def _home(finder: Any) -> Any:
    return getattr(finder, "__module__", type(finder).__module__)
