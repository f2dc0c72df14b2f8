"""Python imports this module when it starts, because its folder is on PYTHONPATH. It starts the hooks of
`wavedeck capture` and `wavedeck apply --e2e`.

Then it runs the `sitecustomize` that the program would have had. Python 3.9 and newer; standard library only.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.machinery import PathFinder, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from types import CodeType
from typing import Any

FOLDER = os.path.dirname(os.path.abspath(__file__))
INTERNAL = "<frozen importlib._bootstrap: wavedeck capture>"
"""`warnings`, `logging` and torch.compile skip the frames of files with such a name."""


class StartupLoader(SourceFileLoader):
    """Loads a module of the hook, with `INTERNAL` as the name of its file in all frames."""

    def get_code(self, fullname: str) -> Any:
        """Return the code of the module."""
        return renamed(super().get_code(fullname))


def renamed(code: Any) -> Any:
    """Return the code with `INTERNAL` as the name of its file."""
    constants = (renamed(value) if isinstance(value, CodeType) else value for value in code.co_consts)
    return code.replace(co_filename=INTERNAL, co_consts=tuple(constants))


def run_module(name: str, spec: Any) -> None:
    """Execute a module in the place that its name has."""
    sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])


with suppress(Exception):  # the program must run without the hook, too; the capture says that it has no calls
    hooks = ("wavedeck_capture_hook", "wavedeck_kernel_witness")
    parts = ("signatures", "proxy", "lookups")
    for name in (*(f"wavedeck_capture_{part}" for part in parts), *hooks):
        path = os.path.join(FOLDER, f"{name}.py")
        run_module(name, spec_from_file_location(name, path, loader=StartupLoader(name, path)))
    for name in hooks:
        sys.modules[name].start(os.environ)

sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != FOLDER]
own = PathFinder.find_spec("sitecustomize")
if own is not None and own.loader is not None:
    run_module("sitecustomize", own)
