"""Locks a worker process in and imports the candidate there; reports its exceptions and its signatures."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import multiprocessing
import os
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from harness.linux import syscalls
from harness.sandbox import landlock, sandbox
from harness.wire.calls.signatures import Parameter
from harness.wire.messages.guest import EXCEPTION, Broken, Failed, FailedKind
from harness.wire.messages.server import Spawn
from harness.wire.results.evaluation import Layer
from harness.worker.kit import candidate_trace
from suites.source.package import Package, PackageView


@dataclass
class _Process:
    """The package of this worker process, and whether foreign code may have run in it."""

    view: PackageView | None = None
    """The package of the candidates, if their task has one."""
    import_began: bool = False
    """True once the import of a candidate has begun."""


_process = _Process()


def confine(spawn: Spawn, address_space_bytes: int, *, run_programs: bool = False) -> tuple[Layer, ...]:
    """Put this process into its sandbox for good, before any foreign code runs. Returns the layers that are active.

    The package of the task, if there is one, becomes importable, and its variables are set. `spawn` says what the worker is
    for.
    """
    syscalls.keep_undumpable()
    torch.set_num_threads(1)
    close_doors()
    if spawn.package is not None:
        see_package(spawn.package)
    layers = sandbox.apply(
        Path(spawn.scratch),
        spawn.cpu_limit_s,
        address_space_bytes,
        run_programs=run_programs,
        gpu=spawn.device is not None,
        package=spawn.package,
    )
    if spawn.package is not None:
        set_variables(spawn.package)
    return layers


def see_package(package: PackageView) -> None:
    """Make a package importable in this process, and let each later candidate take the place of its module."""
    _process.view = package
    sys.path[:0] = [folder for folder in package.import_folders if folder not in sys.path]


def set_variables(package: PackageView) -> None:
    """Set the variables that the package reads."""
    os.environ.update(package.package.variables)


def close_doors() -> None:
    """Make only the standard library and installed packages importable, for the rest of the process.

    Folders of this project, of people's `PYTHONPATH`, and of packages that are installed as editable are removed.
    """
    kept = [str(folder) for folder in landlock.python_folders()]
    sys.path[:] = [entry for entry in sys.path if entry in kept]
    sys.meta_path[:] = [finder for finder in sys.meta_path if "__editable__" not in str(_home(finder))]
    sys.path_hooks[:] = [hook for hook in sys.path_hooks if "__editable__" not in str(_home(hook))]


def import_candidate(file: Path, source: str) -> ModuleType:
    """The candidate's module, imported from a file so that tracebacks and `inspect` find its lines; see `import_written`."""
    write_candidate(file, source)
    return import_written(file)


def write_candidate(file: Path, source: str) -> None:
    """Write the candidate's text to its file. An `OSError` is no fault of the candidate: the disk may be full."""
    file.write_text(source, encoding="utf-8")


def import_written(file: Path) -> ModuleType:
    """Import the candidate from the file that `write_candidate` wrote; return its module. Raises what the candidate raises.

    With a package (`see_package`), the candidate takes the place of the package's own module: from now on every import of that
    name in this process gets this candidate, until the next one is imported. Without a package its name is that of the file.
    """
    _replace_library_functions()
    _process.import_began = True
    if _process.view is not None:
        return _import_into(_process.view.package, file)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _import_into(package: Package, file: Path) -> ModuleType:
    """Import the candidate under the name of the package's module, in the place of that module or of an earlier candidate."""
    other_finders = [finder for finder in sys.meta_path if not isinstance(finder, Replacement)]
    sys.meta_path[:] = [Replacement(package, file), *other_finders]
    sys.modules.pop(package.module, None)
    return importlib.import_module(package.module)


def _replace_library_functions() -> None:
    """Replace functions of torch and multiprocessing that cannot work in the sandbox, for the rest of the process."""
    if hasattr(torch.library, "wrap_triton"):
        # torch's own wraps a kernel for tracing: slow, and no mode of the judge has a rule for such a call.
        torch.library.wrap_triton = _itself
    for module in (multiprocessing, torch.multiprocessing):
        # A semaphore is a file, which a candidate may not write.
        module.Lock, module.RLock = threading.Lock, threading.RLock  # type: ignore[attr-defined]


class Replacement:
    """Finds the candidate's text under the name of the module that it replaces."""

    def __init__(self, package: Package, file: Path) -> None:
        self._package = package
        self._file = file

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of the replaced module, which loads the candidate's file; `None` for all other modules.

        A candidate that replaces a package's `__init__.py` keeps the package's folder for its submodules.
        """
        if name != self._package.module:
            return None
        original = self._package.file
        folders = [str(original.parent)] if self._package.parent == name else None
        return importlib.util.spec_from_file_location(
            name,
            self._file,
            loader=_Loader(name, str(self._file), original),
            submodule_search_locations=folders,
        )


class _Loader(SourceFileLoader):
    """Loads the candidate's text. `__file__` is the replaced file, so that files beside it are found."""

    def __init__(self, name: str, path: str, original: Path) -> None:
        super().__init__(name, path)
        self._original = str(original)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module."""
        module.__file__ = self._original
        super().exec_module(module)


def foreign_module(code_file: str) -> str:
    """The module of the candidate's package that a function's code comes from, by name; empty for any other file."""
    if _process.view is not None:
        file, root = Path(code_file), Path(_process.view.package.root)
        if file.is_relative_to(root):
            return ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    return ""


def failed(error: BaseException, file: Path, kind: FailedKind = EXCEPTION) -> Failed:
    """The report on an exception of the candidate."""
    explained = candidate_trace.explain(error, file)
    message = explained.message
    view = _process.view
    if view is not None and isinstance(error, PermissionError) and error.filename is not None:
        message += f": a candidate may only read files, and only those of its package in {view.package.root}"
        kind = "files"
    return Failed(kind=kind, message=message, trace=explained.trace, line=explained.line)


def broken(error: Exception) -> Broken:
    """The report on an exception of the harness; the traceback goes to the output of the process."""
    traceback.print_exc()
    message = "".join(traceback.format_exception_only(error)).strip()
    return Broken(message=message, imported=_process.import_began)


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
