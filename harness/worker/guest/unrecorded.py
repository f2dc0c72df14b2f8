"""Stands in for the recorder where calls are not replayed: on a GPU, whose launches no clean process runs again yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import torch

from harness.worker.serving.records import Record


class Recording(Protocol):
    """What a guest tells of its calls while they run."""

    def begin(self, inputs: Mapping[str, torch.Tensor]) -> None:
        """A call begins that is to be recorded."""

    def operator(
        self, func: Any, args: tuple[Any, ...], named: Mapping[str, Any], result: Any, line: int | None
    ) -> None:
        """A tensor operator ran."""

    def host_read(self, tensor: torch.Tensor) -> None:
        """Python read the tensor's elements."""

    def finish(self, returned: Iterable[torch.Tensor]) -> tuple[Record | None, str]:
        """The record of the call, or why there is none."""


class Unrecorded:
    """Records nothing; see `Recording`."""

    def begin(self, inputs: Mapping[str, torch.Tensor]) -> None:
        """Nothing to begin."""

    def operator(
        self, func: Any, args: tuple[Any, ...], named: Mapping[str, Any], result: Any, line: int | None
    ) -> None:
        """Not written down."""

    def host_read(self, tensor: torch.Tensor) -> None:
        """Not written down."""

    def finish(self, returned: Iterable[torch.Tensor]) -> tuple[Record | None, str]:
        """Never a record."""
        return None, "launches on a GPU are not recorded"
