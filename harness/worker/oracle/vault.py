"""The vault: inputs and oracle outputs that the judge keeps, so that an oracle runs once per set of inputs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

import torch

from harness.cases.judged_case import JudgedCase
from harness.wire.messages.guest import Plain
from harness.worker.kit import place
from harness.worker.kit.arena import Value

from .comparison.measure import ErrorMeasure
from .problem import Inputs, Problem


@dataclass(slots=True)
class Given:
    """The inputs of one call, and the outputs that are right."""

    problem: Problem
    case: JudgedCase
    inputs: Inputs
    _expected: tuple[torch.Tensor, ...] | None = field(default=None)
    _plain: tuple[Plain, ...] = ()
    _measures: dict[tuple[int, float], tuple[ErrorMeasure, ...]] = field(default_factory=dict)
    size_bytes: int = field(init=False)
    """Bytes of the inputs, and of the outputs once they are computed."""

    def __post_init__(self) -> None:
        self.size_bytes = _bytes(self.inputs.values()) + _bytes(self._expected or ())

    @property
    def expected(self) -> tuple[torch.Tensor, ...]:
        """The oracle's outputs, computed once."""
        if self._expected is None:
            self._expected = self.problem.oracle(self.case.case, self.inputs)
            self._plain = self.problem.plain
            self.size_bytes += _bytes(self._expected)
        return self._expected

    @property
    def plain(self) -> tuple[Plain, ...]:
        """Parts of the oracle's result that are no tensors."""
        return self._plain if self.expected else ()

    def settled(self, number: int, output: torch.Tensor) -> torch.Tensor:
        """Return an output with the right values where the oracle leaves elements open, so that they are not judged.

        Where the oracle overflows, these are the elements that are not finite.
        """
        expected = self.expected[number]
        if expected.shape != output.shape:
            return output
        masks = getattr(self.inputs, "unsettled", ())
        if masks and masks[number] is not None:
            output = torch.where(masks[number], expected.to(output.dtype), output)
        if not expected.is_floating_point() or bool(expected.isfinite().all()):
            return output
        infinite = ~(output.double().isfinite() | expected.isfinite())
        if torch.allclose(output.double()[infinite], expected.double()[infinite], equal_nan=True):
            return output
        wide = self.problem.wide_answer(self.case.case, self.inputs)
        if not wide or wide[number].shape != output.shape:
            return output
        return torch.where(infinite & wide[number].isfinite(), expected.to(output.dtype), output)

    def noise(self, number: int) -> torch.Tensor | None:
        """Return the changes of an output by the oracle's own rounding; measured once, `None` if they are not known."""
        changes = self.problem.noise(self.case.case, self.inputs)
        return changes[number] if changes else None

    def measure(self, number: int, *, calls: int, least_eps: float = 0.0) -> ErrorMeasure:
        """Return the measure of an output's right errors, from so many calls of the oracle; computed once.

        Operands move by `least_eps` at least.
        """
        key = calls, least_eps
        if key not in self._measures:
            measures = self.problem.measures(self.case.case, self.inputs, self.expected, *key)
            self._measures[key] = measures
            self.size_bytes += _bytes(measure.careful_error for measure in measures)
        return self._measures[key][number]

    @property
    def empty(self) -> bool:
        """True if an input has no element, so that a kernel may have nothing to do."""
        tensors = [value for value in self.inputs.values() if isinstance(value, torch.Tensor)]
        return any(tensor.numel() == 0 for tensor in tensors)


class Vault:
    """A cache of `Given` by memory: the least recently used go first."""

    def __init__(self, capacity_bytes: int | None = None) -> None:
        self._capacity_bytes = capacity_bytes or place.vault_bytes()
        self._kept: OrderedDict[Hashable, Given] = OrderedDict()

    @property
    def size_bytes(self) -> int:
        """Bytes that are kept now."""
        return sum(given.size_bytes for given in self._kept.values())

    def given(self, problem: Problem, case: JudgedCase, session_seed: int, place: int) -> Given:
        """Return the inputs of a case at one place of the session's pool, from the cache if they are there."""
        key = (problem, session_seed, case.key, place)
        inputs = self._kept.pop(key, None)
        if inputs is None:
            inputs = Given(problem, case, problem.given(case, session_seed, place))
            self._make_room(inputs.size_bytes)
        self._kept[key] = inputs
        return inputs

    def _make_room(self, size_bytes: int) -> None:
        total = self.size_bytes + size_bytes
        while self._kept and total > self._capacity_bytes:
            total -= self._kept.popitem(last=False)[1].size_bytes

    def forget_drawn(self) -> None:
        """Drop the cases that were drawn for one candidate: the next candidate gets different ones."""
        for key, given in list(self._kept.items()):
            if given.case.hidden or given.case.case.exam:
                del self._kept[key]


def _bytes(values: Iterable[Value]) -> int:
    return sum(value.nbytes for value in values if isinstance(value, torch.Tensor))
