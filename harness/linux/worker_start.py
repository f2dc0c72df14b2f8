"""Starts a module of the judge in any interpreter: `python worker_start.py MODULE ARGUMENTS`. Only the standard library.

A person's interpreter has its own torch and Triton, and nothing of Wavedeck. Packages that the judge needs besides and that
the interpreter lacks are imported from the folders in `WAVEDECK_PACKAGES`. Without a module, the script prints what is
installed, as JSON.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import runpy
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

PACKAGES = "WAVEDECK_PACKAGES"
NEEDED = {
    "msgspec": "msgspec", "numpy": "numpy", "ml_dtypes": "ml_dtypes", "elftools": "pyelftools", "tomli": "tomli",
}  # fmt: skip
"""Modules that the judge's processes import besides torch and triton, with the distributions that have them."""
_SINCE_3_11 = "tomli"
"""Python 3.11 and newer have this module in their standard library, as `tomllib`."""
_ROOMS = ("harness", "suites")
_ROOT = Path(__file__).resolve().parents[2]


def command(*arguments: str, python: str = sys.executable) -> list[str]:
    """Return the command that runs this script, by default in this interpreter."""
    return [python, str(Path(__file__).resolve()), *arguments]


def lent_folders() -> list[str]:
    """Return the folders with packages that this interpreter may lack."""
    return [folder for folder in os.environ.get(PACKAGES, "").split(os.pathsep) if folder]


class LentPackages:
    """Finds packages of `NEEDED` that this interpreter lacks: the last finder, so that its own packages come first."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The spec of a needed package in the lent folders; `None` for all other modules."""
        return PathFinder.find_spec(name, lent_folders()) if name in NEEDED else None


def version(package: str) -> str | None:
    """Return the installed version of a package; ROCm's triton has another distribution name."""
    names: Sequence[str] = importlib.metadata.packages_distributions().get(package, [package])
    for name in names:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def _installed() -> dict[str, Any]:
    """Return the versions of torch and triton, and the needed packages that do not import, with the reason."""
    versions = {name: version(name) or "" for name in ("torch", "triton") if importlib.util.find_spec(name)}
    broken = {}
    for name in NEEDED:
        if name == _SINCE_3_11 and sys.version_info >= (3, 11):
            continue
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            broken[name] = "" if error.name == name else str(error)
        except Exception as error:  # noqa: BLE001 -- a package that was built for another version may raise anything
            broken[name] = str(error)
    return {"versions": versions, "broken": broken}


def _import_rooms() -> None:
    """Import the rooms of the judge from their place: no other package beside them is found."""
    for room in _ROOMS:
        spec = PathFinder.find_spec(room, [str(_ROOT)])
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[room] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


def main() -> None:
    """Run the module of the first argument, or print what is installed."""
    here = str(Path(__file__).resolve().parent)
    sys.path[:] = [entry for entry in sys.path if entry != here]
    sys.meta_path.append(LentPackages())
    if len(sys.argv) == 1:
        sys.stdout.write(json.dumps(_installed()))
        return
    _import_rooms()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
