"""One file in the packages of a Python that runs new text for installed modules, and leaves their package untouched."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from sessions.errors import NotApplicable
from sessions.files import write_whole
from suites.source.package import Package
from suites.task import Task

from .placing import HomeFile, read_home
from .worktree import check_same, run_program

_PREFIX = "wavedeck_overlay_"
_PROBE = """
import base64, json, sys, sysconfig
sys.path[:] = filter(None, sys.path)
modules = {}
for name in sys.argv[1:]:
    path = None
    for end in [place for place, letter in enumerate(name + ".") if letter == "."]:
        specs = (finder.find_spec(name[:end], path) for finder in sys.meta_path if hasattr(finder, "find_spec"))
        spec = next((spec for spec in specs if spec is not None), None)
        path = spec.submodule_search_locations if spec is not None else None
        if path is None:
            break
    if spec is not None and end == len(name) and (spec.origin or "").endswith(".py"):
        data = base64.b64encode(spec.loader.get_data(spec.origin)).decode()
        modules[name] = (spec.origin, data, type(spec.loader).__name__)
print(json.dumps([sys.executable, sys.version.split()[0], sysconfig.get_paths()["purelib"], modules]))
"""
"""Finds modules without importing their packages, also in a zip and in an editable install."""
_SWITCH = """
import hashlib, os, sys
from importlib.machinery import SourceFileLoader
MODULES = {modules}
class WavedeckOverlay:
    is_overlay = True  # Python 3.11 reads the .pth files of a virtual environment twice
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        digest, place = MODULES.get(name, ("", ""))
        if not os.path.exists(place):
            return None
        finders = [finder for finder in sys.meta_path if hasattr(finder, "find_spec") and not hasattr(finder, "is_overlay")]
        spec = next((spec for spec in (finder.find_spec(name, path, target) for finder in finders) if spec), None)
        if spec is not None:
            read = getattr(spec.loader, "get_data", lambda origin: b"")
            if hashlib.sha256(read(spec.origin)).hexdigest() == digest:
                original, spec.loader = spec.loader, WavedeckLoader(name, place)
                spec.loader.original = original
            else:
                print("wavedeck: " + name + " changed since its overlay was made, so it runs without", file=sys.stderr)
        return spec
class WavedeckLoader(SourceFileLoader):
    def path_stats(self, path):
        raise OSError("no bytecode is kept")
    def get_data(self, path):
        return super().get_data(path) if path == self.path else self.original.get_data(path)
    def get_resource_reader(self, name):
        return self.original.get_resource_reader(name)
sys.meta_path.insert(0, WavedeckOverlay)
"""
"""Standard library only: the Python does not need Wavedeck. Without the file of the new text it does nothing."""


class _Probed(msgspec.Struct, frozen=True, array_like=True):
    executable: str
    version: str
    packages: str
    modules: Mapping[str, tuple[str, bytes, str]]
    """Origin, content and type of the loader of each module that has Python source."""


class InstalledPython:
    """A person's Python, with the packages that are installed in it."""

    def __init__(self, path: str) -> None:
        """Raises `NotApplicable` if this is no Python."""
        program = shutil.which(Path(path).expanduser())
        if program is None:
            raise NotApplicable(f"--overlay {path}: no such program; give a Python, such as .venv/bin/python")
        # Not resolved: a virtual environment is found by the place of its link.
        self.program = str(Path(program).absolute())
        probed = self._probe()
        self.name, self._packages = f"Python {probed.version}, {probed.executable}", Path(probed.packages)

    def _probe(self, *modules: str) -> _Probed:
        problem = f"--overlay: {self.program} does not work as a Python"
        output = run_program([self.program, "-c", _PROBE, *modules], Path.cwd(), problem)
        try:
            return msgspec.json.decode(output.strip().rpartition("\n")[2], type=_Probed)
        except msgspec.DecodeError as error:
            raise NotApplicable(problem) from error

    def find_files(self, task: Task, original: str, file: str = "") -> list[HomeFile]:
        """Return the installed files that the task was made of, with modules as paths; the first one has the entry point.

        `file` names the first one, as `vllm/ops/rms.py`. Raises `NotApplicable` if a module is not installed as Python source,
        or if a definition of the original changed in it.
        """
        first = re.sub(r"(/__init__)?\.py$", "", file).replace("/", ".")
        package = task.package or Package("", first)
        modules = [first or package.module, *package.kernels]
        if not modules[0]:
            raise NotApplicable(f"{task.id} is of no package; name its module with --file PACKAGE/MODULE.py")
        probed = self._probe(*modules).modules
        if missing := [module for module in modules if module not in probed]:
            raise NotApplicable(f"{self.name} has no module {missing[0]} with Python source")
        homes = [
            read_home(module, probed[module][1], msgspec.structs.replace(package, module=module))
            for module in modules
        ]
        check_same(task, original, homes)
        return homes

    def users(self, name: str, *, other_than: Sequence[str]) -> list[str]:
        """Return the other installed files of the package with this word. A package in a zip is not searched."""
        origins = [Path(origin) for origin, _, _ in self._probe(*other_than).modules.values()]
        tops = [top for top in origins[0].parents if top.name == other_than[0].partition(".")[0]]
        word = re.compile(rf"\b{re.escape(name)}\b".encode())
        files = (file for top in tops for file in top.rglob("*.py") if file not in origins)
        return [str(file) for file in files if word.search(file.read_bytes())]

    def check_free(self, module: str) -> None:
        """Raise `NotApplicable` if an overlay of a module cannot be written, or exists."""
        file = self._packages / f"{_PREFIX}{module}.pth"
        if file.exists():
            raise NotApplicable(
                f"{self.name} has {file} already; remove it with: wavedeck apply --overlay {self.program} --remove"
            )
        if not os.access(file.parent, os.W_OK):
            raise NotApplicable(
                f"{self.name} has read-only packages, {file.parent}; use a virtual environment that you may write"
            )

    def write(self, texts: Mapping[str, bytes], folder: Path) -> tuple[Path, frozenset[str]]:
        """Write the new text of each module, then the file that makes a Python import it; return this file and the others."""
        places = {module: folder / f"{_PREFIX}{module}.py" for module in texts}
        modules = {
            module: (hashlib.sha256(data).hexdigest(), str(places[module]))
            for module, (_, data, _) in self._probe(*texts).modules.items()
        }
        heading = f"# Wavedeck runs other text for {', '.join(texts)}. Delete this file, and the installed text runs again."
        code = _SWITCH.replace("{modules}", ascii(modules))
        switch = folder / f"{_PREFIX}{next(iter(texts))}.pth"
        for module, text in texts.items():
            write_whole(places[module], text)
        write_whole(switch, f"{heading}\nimport sys; exec({code!a}, {{}})\n".encode())
        return switch, frozenset(map(str, places.values()))

    def install(self, texts: Mapping[str, bytes]) -> Path:
        """Write an overlay; return its file. Raises `NotApplicable` if that fails or this Python does not load it.

        Then, and after an interrupt, nothing is left.
        """
        module = next(iter(texts))
        self.check_free(module)
        try:
            switch, _ = self.write(texts, self._packages)
            if self._probe(module).modules[module][2] != "WavedeckLoader":
                raise NotApplicable(
                    f"{self.name} does not read .pth files of {switch.parent}; use a virtual environment"
                )
        except BaseException as error:
            self._remove([f"{_PREFIX}{module}.pth", *(f"{_PREFIX}{module}.py" for module in texts)])
            if isinstance(error, OSError):
                raise NotApplicable(f"{self._packages} cannot be written: {error.strerror}") from error
            raise
        return switch

    def remove_overlays(self) -> list[Path]:
        """Delete all overlays of this Python; return their files. Raises `NotApplicable` if there is none, or one stays."""
        files = sorted(self._packages.glob(f"{_PREFIX}*"), key=lambda file: file.suffix == ".py")
        if not files:
            raise NotApplicable(f"{self.name} has no overlay")
        self._remove([file.name for file in files])
        return files

    def _remove(self, names: Sequence[str]) -> None:
        try:
            for name in names:
                (self._packages / name).unlink(missing_ok=True)
        except OSError as error:
            raise NotApplicable(f"{error.filename} cannot be deleted: {error.strerror}") from error
