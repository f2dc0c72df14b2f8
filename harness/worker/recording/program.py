"""Runs a benchmark's test with a kernel as one program, as the benchmark's own evaluation does."""

from __future__ import annotations

import io
import os
import random
import sys
import traceback
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from harness.wire.program_messages import RanProgram, RunProgram, Value
from harness.worker.interpreter.interpreter import UnsupportedHere

from .values import value_of

MOST_PRINTED = 1 << 20
"""Characters of output that are kept."""


def run_program(request: RunProgram, scratch: Path) -> RanProgram:
    """Run the program and return its report, which includes what the program raises."""
    folder = scratch / "program"
    file = folder / request.file
    for name, text in ({request.file: request.text} | request.helpers).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    sys.path.insert(0, str(folder))
    os.chdir(folder)
    _seed(request.seed)
    module = ModuleType("__main__")
    vars(module)["__file__"] = str(file)
    sys.modules["__main__"] = module
    printed = io.StringIO()
    error, unsupported = "", False
    results: Value | None = None
    try:
        with redirect_stdout(printed):
            exec(compile(request.text, str(file), "exec"), vars(module))  # noqa: S102 -- the sandbox is for this
    except SystemExit as ended:
        error = f"it exits with code {ended.code}" if ended.code else ""
    except BaseException as raised:  # noqa: BLE001 -- programs may raise anything
        error = _in_one_line(raised)
        unsupported = _is_unsupported(raised)
        traceback.print_exc(file=sys.stderr)
    if request.result_name and not error and request.result_name in vars(module):
        results = value_of(vars(module)[request.result_name])
    return RanProgram(
        nonce=request.nonce,
        error=error,
        unsupported=unsupported,
        printed=printed.getvalue()[:MOST_PRINTED],
        results=results,
    )


def _in_one_line(raised: BaseException) -> str:
    if isinstance(raised, SyntaxError):
        return f"{type(raised).__name__}: {raised.msg} in line {raised.lineno}"
    return "".join(traceback.format_exception_only(raised)).strip().partition("\n")[0][:400]


def _seed(seed: int | None) -> None:
    """Seed every generator; `None` draws a seed, because a forked process has the generators of its parent."""
    if seed is None:
        seed = int.from_bytes(os.urandom(4))
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def _is_unsupported(raised: BaseException | None) -> bool:
    """True if the exception, or one of its causes, says that the interpreter lacks something."""
    cause: Any = raised
    while cause is not None:
        if isinstance(cause, UnsupportedHere):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
