"""Writes the grid of a launch as text, also if the grid depends on values that an autotuner chooses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .expressions import CannotExpress

META = "meta"
"""Name of the grid's parameter in the text."""


class ChosenValue(int):
    """A value that an autotuner chooses: the number of one config, and its text. Arithmetic keeps both."""

    text: str

    def __new__(cls, value: int, text: str) -> ChosenValue:
        """Return the number `value` with its text."""
        chosen = super().__new__(cls, value)
        chosen.text = text
        return chosen

    def _refuse(self, *_: Any) -> Any:
        raise CannotExpress("its grid compares values that an autotuner chooses")

    def __neg__(self) -> ChosenValue:
        return ChosenValue(-int(self), f"(-{self.text})")

    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __bool__ = __hash__ = _refuse


def _operator(name: str, symbol: str) -> None:
    plain, reflected = f"__{name}__", f"__r{name}__"

    def from_left(self: ChosenValue, right: Any) -> Any:
        return ChosenValue(getattr(int, plain)(self, right), f"({self.text} {symbol} {_text(right)})")

    def from_right(self: ChosenValue, left: Any) -> Any:
        return ChosenValue(getattr(int, reflected)(self, left), f"({_text(left)} {symbol} {self.text})")

    setattr(ChosenValue, plain, from_left)
    setattr(ChosenValue, reflected, from_right)


for _name, _symbol in (("add", "+"), ("sub", "-"), ("mul", "*"), ("floordiv", "//"), ("mod", "%")):
    _operator(_name, _symbol)


class _Meta(dict[str, Any]):
    """The arguments of a launch. A missing name gives the value that the autotuner chooses."""

    def __init__(self, arguments: Mapping[str, Any], chosen: Mapping[str, Any]) -> None:
        super().__init__(arguments)
        self._chosen = chosen

    def __missing__(self, name: str) -> Any:
        if not isinstance(self._chosen.get(name), int):
            raise KeyError(name)
        return ChosenValue(self._chosen[name], f"{META}[{name!r}]")


def grid_text(grid: Any, kernel: Any, arguments: Mapping[str, Any]) -> str:
    """Return the text of a launch's grid: numbers, or a function of the values that the kernel's autotuner chooses.

    Raises `CannotExpress` if the function cannot be written as arithmetic.
    """
    configs = getattr(kernel, "configs", None)
    if callable(grid):
        grid = grid(_Meta(arguments, configs[0].all_kwargs() if configs else {}))
    sizes = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
    inside = f"{', '.join(map(_text, sizes))}{',' if len(sizes) == 1 else ''}"
    return f"lambda {META}: ({inside})" if any(isinstance(size, ChosenValue) for size in sizes) else inside


def _text(value: Any) -> str:
    return value.text if isinstance(value, ChosenValue) else str(int(value))
