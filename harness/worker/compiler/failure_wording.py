"""Says in words why a candidate's launches fail to compile, and names the candidate's own line."""

from __future__ import annotations

import linecache
import re
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from triton import CompilationError, OutOfResources

from harness.wire.device import Target
from harness.worker.kit.candidate_trace import file_of
from harness.worker.triton_hooks.autotuning import is_static
from harness.worker.triton_hooks.launches import jit_function

from .capture import CompiledLaunch, ForeignOption

MESSAGE_CHARACTERS = 600
_DIAGNOSTIC = re.compile(r'"?(?P<file>[^\s":]+\.py)"?:(?P<line>\d+):\d+\)?: error: (?P<message>.+)')
_CAUSE = re.compile(
    r"Pipeline failed while executing \[`(?P<stage>\w+)`|: Assertion `(?P<assertion>[^\n]+)' failed"
)
"""Which pass of the compiler failed, or which of its assertions; beside a diagnostic that says no more than that."""


class FailureWording(NamedTuple):
    """Words for the failures of one candidate on one target."""

    module: ModuleType
    target: Target

    def explain(
        self, error: BaseException, launches: Sequence[CompiledLaunch], case: str
    ) -> tuple[str, int | None]:
        """Message and line for an exception that left the entry point."""
        launch = next((launch for launch in launches if launch.failure is error), None)
        if launch is None:
            message = f"the entry point raised {_with_type(error)} at the gpu sizes of case {case}"
            return message, self._traceback_line(error)
        message, line = self._message(error, launch)
        return _describe(launch, case, message), self._traceback_line(error) if line is None else line

    def slow_host(self, cpu_s: float, case: str, line: int | None) -> str:
        """Words for host code that did not end within `cpu_s` CPU seconds, with the line that ran last."""
        text = linecache.getline(file_of(self.module), line or 0).strip()
        return (
            f"the host code of case {case} did not end within {cpu_s:g} s of CPU time at its gpu sizes, compiling not "
            f"counted; it last ran line {line}: `{text}`"
        )

    def failure(self, launch: CompiledLaunch) -> str:
        """Why a launch failed; empty if it did not."""
        return self._message(launch.failure, launch)[0] if launch.failure is not None else ""

    def notes(self, launches: Sequence[tuple[str, CompiledLaunch]], error: str) -> tuple[str, ...]:
        """One note for each failed launch of the pairs of case and launch, except the launch that `error` describes."""
        notes = {
            _describe(launch, case, self.failure(launch)): None
            for case, launch in launches
            if launch.failure is not None and not isinstance(launch.failure, ForeignOption)
        }
        return tuple(note for note in notes if note != error)

    def _message(self, error: BaseException, launch: CompiledLaunch) -> tuple[str, int | None]:
        """Return the message for a compile error, with the line of the candidate; `None` if the error names no line of it."""
        if isinstance(error, OutOfResources):
            return self._too_large(error), None
        if isinstance(error, CompilationError):
            return self._front_end(error)
        diagnostic = _DIAGNOSTIC.search(launch.log)
        if diagnostic is None:
            return _with_type(error), None
        is_own = Path(diagnostic["file"]).name == Path(file_of(self.module)).name
        causes = [cause.group(1) or f"assertion {cause.group(2)}" for cause in _CAUSE.finditer(launch.log)]
        lead = f"; in Triton's compiler: {', '.join(dict.fromkeys(causes))}" if causes else ""
        message = diagnostic["message"] + lead
        return shorten(message), int(diagnostic["line"]) if is_own else None

    def _too_large(self, error: OutOfResources) -> str:
        """Return the message for a kernel that needs more of something than the target has, with a remedy."""
        name = self.target.name
        if error.name != "shared memory":
            return f"needs {error.required} {error.name} a workgroup, {name} allows {error.limit}"
        memory = "LDS" if self.target.backend == "hip" else "shared memory"
        return (
            f"needs {error.required} bytes of {memory} a workgroup, {name} has {error.limit}; "
            "smaller blocks or fewer num_stages help"
        )

    def _front_end(self, error: CompilationError) -> tuple[str, int | None]:
        """Triton chains one error per called function: the innermost has the reason, the innermost own line is the line."""
        chain: list[BaseException] = [error]
        while chain[-1].__cause__ is not None:
            chain.append(chain[-1].__cause__)
        reason = chain[-1]
        links = [link for link in chain if isinstance(link, CompilationError)]
        messages = [link.error_message for link in links if link.error_message]
        message = messages[-1] if messages else str(reason) or type(reason).__name__
        if is_static(reason) and not messages:
            message = "tl.static_assert failed"
        lines = [line for link in links if (line := self._own_line(link)) is not None]
        return shorten(message), lines[-1] if lines else None

    def _own_line(self, error: CompilationError) -> int | None:
        """Triton counts lines from a function's `def`: find the module's function with this source and add its line."""
        line = getattr(error.node, "lineno", None)
        if line is None or error.src is None:
            return None
        for value in vars(self.module).values():
            function = jit_function(value)
            if function is not None and function.src == error.src:
                texts = enumerate(function.raw_src)
                decorators = next((i for i, text in texts if text.lstrip().startswith("def ")), 0)
                return int(function.starting_line_number) + decorators + int(line) - 1
        return None

    def _traceback_line(self, error: BaseException) -> int | None:
        """Line of the innermost frame in the candidate's module."""
        frames = traceback.extract_tb(error.__traceback__)
        return next(
            (frame.lineno for frame in reversed(frames) if frame.filename == file_of(self.module)), None
        )


def _describe(launch: CompiledLaunch, case: str, message: str) -> str:
    index = f" config {launch.autotune_index}" if launch.autotune_index is not None else ""
    config = ", ".join(f"{name}={value}" for name, value in launch.config.items())
    return f"{launch.kernel}{index} ({config}), case {case}: {message}"


def _with_type(error: BaseException) -> str:
    return shorten(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


def shorten(text: str) -> str:
    """The first six non-empty lines of a message, cut to `MESSAGE_CHARACTERS`."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return "\n".join(lines[:6])[:MESSAGE_CHARACTERS]
