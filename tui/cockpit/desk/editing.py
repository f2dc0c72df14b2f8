"""A kernel in the person's own editor."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path


class NotEdited(Exception):
    """The editor could not be used; the message is one line that says why and what to do."""


def edited(source: str, environ: Mapping[str, str]) -> str:
    """Return the source as the person left it in `$VISUAL`, `$EDITOR` or vi; raises `NotEdited`."""
    editor = environ.get("VISUAL") or environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="wavedeck-") as folder:
        file = Path(folder) / "kernel.py"
        file.write_text(source, encoding="utf-8")
        try:
            done = subprocess.run([*shlex.split(editor), str(file)], check=False)
            text = file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise NotEdited(
                f"{editor} cannot edit the kernel ({error}); set EDITOR to another one"
            ) from error
    if done.returncode:
        raise NotEdited(f"{editor} ended with status {done.returncode}; nothing is sent")
    return text
