"""The jit functions of a driver's own file, as a record names them."""

from __future__ import annotations

from harness.worker.serving.records import Function


def jit_functions(source: str) -> dict[str, Function]:
    """By name, with the line of their decorator."""
    lines = source.splitlines()
    names = {
        number: line.split("def ")[1].split("(")[0]
        for number, line in enumerate(lines)
        if line.startswith("def ") and lines[number - 1] == "@triton.jit"
    }
    return {name: Function(name, number) for number, name in names.items()}
