"""The environment of a program under capture, and the files that its processes write."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from suites.captures.capture import LOOKUPS, OPERATORS, Capture, merge, read_capture, read_parts, target_words
from suites.errors import BadCapture

STARTUP = Path(__file__).parent / "startup"
ENVIRONMENT = "_WAVEDECK_CAPTURE"
"""The same name as in the hook, which lives outside of our packages."""
_TARGET = re.compile(
    r"(?P<module>torch\.ops)\.(?P<operator>\w+\.\w+)|(?P<module_>[A-Za-z_][\w.]*):(?P<function>[A-Za-z_][\w.]*)"
)


class OpenCapture:
    """A capture that is being made: the folder beside its file, into which processes write."""

    def __init__(self, target: str, out: Path) -> None:
        """Make the folder. Raises `BadCapture` if the target is no name of a function, or `out` is not free."""
        match = _TARGET.fullmatch(target)
        if match is None:
            raise BadCapture(
                f"{target!r} names no function; write it as PACKAGE.MODULE:FUNCTION or torch.ops.NAMESPACE.OPERATOR"
            )
        self.module = match["module"] or match["module_"]
        self.function = match["operator"] or match["function"]
        is_operators = f"{self.module}.".startswith(f"{OPERATORS}.")
        if self.module == "__main__" or (is_operators and not match["operator"]):
            raise BadCapture(
                f"{self.module} is no module that is imported; name a function of a module, or torch.ops.NAMESPACE.OPERATOR"
            )
        self.out = out.absolute()
        self.parts = self.out.with_name(f"{self.out.name}.parts")
        if self.out.exists():
            read_capture(self.out)  # only a capture is replaced
        try:
            self.parts.mkdir(parents=True)
        except FileExistsError:
            raise BadCapture(
                f"{self.parts} exists: another capture runs, or was killed; "
                f"see `wavedeck capture --show {self.parts}`, then delete the folder"
            ) from None
        except OSError as error:
            raise BadCapture(f"{self.parts} cannot be made: {error.strerror}") from error

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of the program. All its Python processes inherit the hook."""
        path = os.pathsep.join(filter(None, (str(STARTUP), environ.get("PYTHONPATH"))))
        return {
            **environ,
            "PYTHONPATH": path,
            ENVIRONMENT: "\n".join((self.module, self.function, str(self.parts))),
        }

    @property
    def problem(self) -> str:
        """Why the function cannot be recorded; empty if no process said so."""
        try:
            return (self.parts / "problem").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def finish(self, command: Sequence[str], exit_code: int, started: float) -> Capture:
        """Write the file of the capture, remove the folder, and return the capture.

        Raises `BadCapture` with the reason if there are no calls; then there is no new file.
        """
        words = tuple(word.encode("utf-8", "replace").decode() for word in command)
        try:
            capture = msgspec.structs.replace(
                self._merged(), command=words, exit_code=exit_code, started=started
            )
            temporary = self.out.with_name(f".{self.out.name}.new")
            temporary.write_bytes(msgspec.json.encode(capture) + b"\n")
            temporary.replace(self.out)
        except OSError as error:
            raise BadCapture(f"{self.out} cannot be written: {error.strerror}") from error
        finally:
            shutil.rmtree(self.parts, ignore_errors=True)
        return capture

    def _merged(self) -> Capture:
        """Return what all processes recorded, as one capture. Raises `BadCapture`, with the remedy, if no call was recorded."""
        target = target_words(self.module, self.function)
        if not self.parts.is_dir():
            raise BadCapture(f"the program deleted {self.parts}, and so the recorded calls")
        if not (self.parts / "followed").exists():
            raise BadCapture(
                "the command started no Python that can be followed: not `python -I` or `-E`, no container of its own"
            )
        parts = read_parts(self.parts)
        if not parts and target == LOOKUPS:
            raise BadCapture("no process imported a loader of configurations of vLLM, SGLang or aiter")
        if not parts:
            raise BadCapture(
                f"no process imported {self.module}; check its name. A function of the script itself cannot be "
                "recorded: move it to a module that the script imports"
            )
        capture = merge(parts, str(self.parts))
        if not capture.signatures and capture.compiled:
            raise BadCapture(
                f"{target} was only traced by a compiler: how often its compiled form ran is unknown; "
                "record a run without torch.compile"
            )
        if not capture.signatures:
            why = f"; {capture.missed} calls could not be recorded: {capture.error}" if capture.missed else ""
            raise BadCapture(f"{target} was imported, but never called{why}")
        return capture
