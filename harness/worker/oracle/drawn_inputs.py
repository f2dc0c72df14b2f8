"""`python -m harness.worker.oracle.drawn_inputs FOLDER`: draws the inputs of one case into a file, for a profiled process.

A process of its own, because the task's code and the candidate's never share one.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from harness.wire.calls.tensors import TensorSpec
from harness.wire.channels.channel import ENCODER
from harness.wire.messages.profiled import DRAW, DRAW_INPUTS, DRAWN, MEMORY, DrawInputs
from harness.worker.kit import arena, place

from .problem import BadProblem, Problem


def main() -> None:
    """Answer the request of the folder."""
    folder = Path(sys.argv[1])
    request = DRAW_INPUTS.decode((folder / DRAW).read_bytes())
    place.take(request.device if request.device.kind != "cpu" else None)
    try:
        draw(request, folder)
    except BadProblem as problem:
        sys.exit(str(problem))


def draw(request: DrawInputs, folder: Path) -> None:
    """Draw the request's inputs, and write their bytes and their description into the folder.

    Raises `BadProblem` if the task's code fails, `OSError` if the disk is full.
    """
    case = next(case for case in request.task.cases if case.name == request.case)
    inputs = Problem(request.task).inputs(case, request.seed, "profile")
    arguments, size_bytes = arena.lay_out(inputs)
    with (folder / MEMORY).open("wb") as file:
        file.truncate(size_bytes)
        for name, spec in arguments.items():
            value = inputs[name]
            if isinstance(value, torch.Tensor) and isinstance(spec, TensorSpec) and spec.storage_bytes:
                data = arena.storage_bytes(value)
                file.seek(spec.offset_bytes + spec.storage_bytes - spec.tail_bytes - len(data))
                file.write(data)
    (folder / DRAWN).write_bytes(ENCODER.encode(arguments))


if __name__ == "__main__":
    main()
