"""A request to make a task of a kernel file, from a person's arguments."""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec

from suites.errors import BadKernelFile
from suites.own.shapes import Inputs


class KernelRequest(msgspec.Struct, frozen=True):
    """A kernel file, and what is not found in it."""

    where: str
    """FILE or FILE.py:FUNCTION."""
    shapes: tuple[str, ...] = ()
    reference: str = ""
    allowed: float = 0.0
    """Errors beyond careful arithmetic that are right, as a share of the value and of the median value."""
    calls: tuple[Inputs, ...] = ()
    """Inputs of recorded calls; they replace `shapes`."""
    send_only: tuple[Path, ...] = ()
    """Files with a text that may reach the provider of a model; empty: all that the task is made of."""


def is_kernel_file(text: str) -> bool:
    """Return whether an argument names a file, as `softmax.py` or `softmax.py:softmax`, and no task."""
    return text.endswith(".py") or ".py:" in text


def share_of(text: str) -> float:
    """Return the number of `--tolerance`; 0 for an empty text. Raises `BadKernelFile` unless it is from 0 to below 1."""
    try:
        share = float(text or "0")
    except ValueError:
        share = 1.0
    if not 0 <= share < 1:
        raise BadKernelFile(f"--tolerance {text} is no share of a value; write a number as 1e-2")
    return share


def parse_request(text: str) -> KernelRequest:
    """Return the request in a line such as `rms.py --shapes "x=8x8:fp16"`, as typed in a shell. Raises `BadKernelFile`."""
    form = 'write it as in a shell: rms.py --shapes "x=Mx4096:fp16, M=1,16" --reference FUNCTION'
    try:
        where, *words = shlex.split(text)
    except ValueError as error:
        raise BadKernelFile(f"{text!r} names no file; {form}") from error
    options: dict[str, list[str]] = {"--shapes": [], "--reference": [], "--tolerance": [], "--send-only": []}
    for option, value in zip(words[::2], [*words[1::2], ""], strict=False):
        if option not in options or not value:
            raise BadKernelFile(f"{option!r} needs a value, or is no option here; {form}")
        options[option].append(value)
    return KernelRequest(
        where,
        tuple(options["--shapes"]),
        "".join(options["--reference"][-1:]),
        allowed=share_of("".join(options["--tolerance"][-1:])),
        send_only=tuple(map(Path, options["--send-only"])),
    )
