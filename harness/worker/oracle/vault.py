"""Inputs and oracle outputs, kept in the judge while they fit, so that oracles run once for each place of the pool."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

import torch

from harness.cases.judged_case import JudgedCase
from harness.worker.kit import place
from harness.worker.kit.arena import Value

from .problem import Inputs, Problem


@dataclass(slots=True)
class Given:
    """What one call is given, and what it should answer."""

    problem: Problem
    case: JudgedCase
    inputs: Inputs
    _expected: tuple[torch.Tensor, ...] | None = field(default=None)
    size_bytes: int = field(init=False)
    """Memory that it holds; the outputs are counted when they are there."""

    def __post_init__(self) -> None:
        self.size_bytes = _bytes(self.inputs.values()) + _bytes(self._expected or ())

    @property
    def expected(self) -> tuple[torch.Tensor, ...]:
        """The oracle's outputs, asked for once."""
        if self._expected is None:
            self._expected = self.problem.oracle(self.case.case, self.inputs)
            self.size_bytes += _bytes(self._expected)
        return self._expected

    @property
    def empty(self) -> bool:
        """Whether an input has no element, so that there may be nothing for a kernel to do."""
        tensors = [value for value in self.inputs.values() if isinstance(value, torch.Tensor)]
        return any(tensor.numel() == 0 for tensor in tensors)


class Vault:
    """Least recently used first out."""

    def __init__(self, capacity_bytes: int | None = None) -> None:
        self._capacity_bytes = capacity_bytes or place.vault_bytes()
        self._kept: OrderedDict[Hashable, Given] = OrderedDict()

    @property
    def size_bytes(self) -> int:
        """Memory that is held now."""
        return sum(given.size_bytes for given in self._kept.values())

    def given(self, problem: Problem, case: JudgedCase, session_seed: int, place: int) -> Given:
        """The inputs of a case at a place of a session's pool; the same again for as long as they are kept."""
        key = (problem, session_seed, case.key, place)
        found = self._kept.pop(key, None)
        if found is None:
            found = Given(problem, case, problem.given(case, session_seed, place))
            self._make_room(found.size_bytes)
        self._kept[key] = found
        return found

    def _make_room(self, size_bytes: int) -> None:
        """Outputs that were asked for since are counted in."""
        held = self.size_bytes + size_bytes
        while self._kept and held > self._capacity_bytes:
            held -= self._kept.popitem(last=False)[1].size_bytes

    def forget_drawn(self) -> None:
        """Lets go the cases that were drawn for one candidate: the next one gets others."""
        for key, given in list(self._kept.items()):
            if given.case.hidden or given.case.case.exam:
                del self._kept[key]


def _bytes(values: Iterable[Value]) -> int:
    return sum(value.nbytes for value in values if isinstance(value, torch.Tensor))
