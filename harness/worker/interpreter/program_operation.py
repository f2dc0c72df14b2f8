"""One operation of a traced program, and the names of those that ask for the program's place in the grid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .candidate_lines import UNKNOWN

PLACE = "create_get_program_id"
GRID = "create_get_num_programs"


class Operation(NamedTuple):
    """One of them, in the order in which they were asked for."""

    name: str
    number: int
    """How many that Python asks for came before."""
    call: Callable[..., Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    pure: bool
    """It does nothing but give its outputs, the same ones for the same inputs."""
    repeated: bool
    """It may be done once more for a program that goes on in Python."""
    shown: Callable[..., Any]
    """What Python is given, of the outputs."""
    line: tuple[str, int] = UNKNOWN
    """File name and line that asked for it; of pure ones it is not told."""
