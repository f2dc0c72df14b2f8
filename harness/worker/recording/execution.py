"""Executes a text of a benchmark as a module or as a program; ends it early."""

from __future__ import annotations

import io
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from harness.wire.messages.program import RanProgram, Results, RunProgram
from harness.worker.interpreter.interpreter import UnsupportedHere

from .values import results_of

PROGRAM = "program.py"
MOST_PRINTED = 1 << 20
"""Characters of output that are kept."""
AGAIN_S = 1.0
"""CPU seconds after which `EndsHere` is raised again, for code that catches everything."""


class EndsHere(BaseException):
    """Ends a script. `except Exception` in the script does not catch it."""


class TimeLimit:
    """Raises `EndsHere` in its block after some CPU seconds, as soon as `may_end()` is true."""

    def __init__(self, seconds: float, may_end: Callable[[], bool] = lambda: True) -> None:
        self._seconds = seconds
        self._may_end = may_end
        self.is_over = False
        """True if the block took longer."""

    def __enter__(self) -> None:
        self._previous = signal.signal(signal.SIGPROF, self._end)
        signal.setitimer(signal.ITIMER_PROF, self._seconds, AGAIN_S)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, self._previous)

    def _end(self, *_: Any) -> None:
        self.is_over = True
        if self._may_end():
            raise EndsHere


def lay_texts(folder: Path, texts: Mapping[str, str], *paths: Path) -> None:
    """Write texts by file name into a folder and work there. Texts can be imported from the folder and from `paths`."""
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    for path in (*paths, folder):
        if str(path) not in sys.path:
            sys.path.insert(0, str(path))
    os.chdir(folder)


def execute(text: str, file: Path, module: ModuleType) -> None:
    """Execute a text in a module. The text may raise anything, also `SystemExit`."""
    vars(module)["__file__"] = str(file)
    exec(compile(text, str(file), "exec"), vars(module))  # noqa: S102 -- the sandbox is for this


def run_program(request: RunProgram, scratch: Path) -> RanProgram:
    """Run a program as the benchmark's own evaluation does, and return its report; what the program raises is in the report.

    Without a seed in the request, random numbers differ from run to run. The program becomes `__main__` of this process, and
    the process works in the program's folder from now on.
    """
    folder = scratch / "program"
    lay_texts(folder, {PROGRAM: request.text} | request.helpers)
    # A forked process has the generators of its parent.
    seed = int.from_bytes(os.urandom(4)) if request.seed is None else request.seed
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    sys.modules["__main__"] = module = ModuleType("__main__")
    printed = io.StringIO()
    error, unsupported = "", False
    results: Results | None = None
    try:
        with redirect_stdout(printed):
            execute(request.text, folder / PROGRAM, module)
    except SystemExit as ended:
        error = f"it exits with code {ended.code}" if ended.code else ""
    except BaseException as raised:  # noqa: BLE001 -- programs may raise anything
        error = in_one_line(raised)
        unsupported = _is_unsupported(raised)
        traceback.print_exc(file=sys.stderr)
    if request.result_name and not error and request.result_name in vars(module):
        results = results_of(vars(module)[request.result_name])
    return RanProgram(
        error=error, unsupported=unsupported, printed=printed.getvalue()[:MOST_PRINTED], results=results
    )


def in_one_line(raised: BaseException) -> str:
    """Return the first and the last line: Triton's compile errors have the place in the first, the reason in the last."""
    if isinstance(raised, SyntaxError):
        return f"{type(raised).__name__}: {raised.msg} in line {raised.lineno}"
    lines = "".join(traceback.format_exception_only(raised)).strip().splitlines()
    return " ".join(dict.fromkeys((lines[0].strip(), lines[-1].strip())))[:400]


def _is_unsupported(raised: BaseException | None) -> bool:
    """True if the exception, or one of its causes, says that the interpreter lacks something."""
    while raised is not None and not isinstance(raised, UnsupportedHere):
        raised = raised.__cause__ or raised.__context__
    return raised is not None
