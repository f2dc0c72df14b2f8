"""A request to make a task of a kernel file, from a person's arguments."""

from __future__ import annotations

import math
import shlex
from pathlib import Path

import msgspec

from suites.errors import BadKernelFile
from suites.own.shapes import Inputs
from suites.task import Tolerance


class KernelRequest(msgspec.Struct, frozen=True):
    """A kernel file, and what is not found in it."""

    where: str
    """FILE or FILE.py:FUNCTION."""
    shapes: tuple[str, ...] = ()
    reference: str = ""
    allowed: Tolerance = Tolerance()
    """Errors beyond those of careful arithmetic that are right too."""
    calls: tuple[Inputs, ...] = ()
    """Inputs of recorded calls; they replace `shapes`."""
    send_only: tuple[Path, ...] = ()
    """Files with a text that may reach the provider of a model; empty: all that the task is made of."""


def is_kernel_file(text: str) -> bool:
    """Return whether an argument names a file, as `softmax.py` or `softmax.py:softmax`, and no task."""
    return text.endswith(".py") or ".py:" in text


def allowance_of(text: str) -> Tolerance:
    """Return the errors that `--tolerance` allows: `1e-2` of a value, `1ulp`, or `cosine:0.999`; none for an empty text.

    Raises `BadKernelFile` for any other text.
    """
    words = text.strip().lower()
    steps, least = words.removesuffix("s").removesuffix("ulp"), words.removeprefix("cosine:")
    try:
        number = float(least if least != words else steps)
    except ValueError:
        number = -1.0
    if not words:
        return Tolerance()
    if "ulp" in words and 0 < number < math.inf:
        return Tolerance(ulps=number)
    if not 0 < number < 1:
        raise BadKernelFile(
            f"--tolerance {text} is no allowance; write 1e-2 (of a value), 1ulp (steps of the dtype) or cosine:0.999"
        )
    return Tolerance(cosine=number) if least != words else Tolerance(rtol=number, scale=number)


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
        allowed=allowance_of("".join(options["--tolerance"][-1:])),
        send_only=tuple(map(Path, options["--send-only"])),
    )
