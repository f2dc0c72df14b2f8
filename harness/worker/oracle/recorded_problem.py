"""The problem of a task whose cases are calls of a script: inputs and right outputs come from recordings of the script."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import cast

import msgspec
import torch

from harness.cases import seeds
from harness.cases.judged_case import JudgedCase
from harness.wire.calls.tensors import CaseSpecs, TensorSpec
from harness.wire.messages.script import (
    CALL,
    CALLS_FILE,
    DRAW_SEED,
    EXPRESSIONS_FILE,
    LIKE_RESULTS,
    NAN,
    SCRIPT_FILE,
    RanScript,
    RecordedCall,
    Script,
)
from harness.worker.kit import place
from harness.worker.kit.arena import Value, data_of
from harness.worker.kit.poison import open_elements
from harness.worker.oracle.comparison.reference_noise import measure_noise, quantize_outputs
from suites.dtypes import ITEM_BYTES
from suites.task import Case, Task

from .problem import BadProblem, Inputs, Problem, specified, torch_dtype
from .script_runs import CannotJudge, ScriptRuns, SlowScript

SLOW_S, LARGE_BYTES = 3.0, 64 << 20
"""A script that takes longer, or has larger inputs, is recorded for `FEW` seeds only."""
FEW = 2


TRIES = 4
"""Sets of values that are drawn until the script makes a call with one of them."""


class OtherCall(CannotJudge):
    """The script does not make the call with these values."""


class RecordedInputs(dict[str, Value]):
    """The inputs of one recorded call, with its right outputs."""

    truth: tuple[torch.Tensor, ...] = ()
    unsettled: tuple[torch.Tensor | None, ...] = ()
    """By output, which elements depend on memory that the reference never wrote; `None` if there are none."""
    seed: int = 0
    """The seed of the recording."""
    noise: tuple[torch.Tensor | None, ...] | None = None
    """The changes of `reference_noise` by output; `None` before they are measured."""
    wide: tuple[torch.Tensor, ...] | None = None
    """The reference's outputs for float64 inputs; `None` before it is asked, empty if it takes none."""


class RecordedProblem(Problem):
    """Inputs at one size on every device: those of the script."""

    def __init__(self, task: Task, runs: ScriptRuns) -> None:
        self._task = task
        try:
            self._script = msgspec.json.decode((task.folder / SCRIPT_FILE).read_bytes(), type=Script)
            self._expressions = msgspec.json.decode(
                (task.folder / EXPRESSIONS_FILE).read_bytes(), type=dict[int, tuple[int, str]]
            )
            self._calls = (task.folder / CALLS_FILE).read_text(encoding="utf-8")
        except (OSError, msgspec.DecodeError) as error:
            raise BadProblem(f"{task.folder}: {error}; record the task again") from error
        self._runs = runs
        self._places = seeds.POOL
        self._latest_seed = 0
        self._casts: tuple[str, ...] = ()
        """Casts of the reference's latest call."""

    def given(self, case: JudgedCase, session_seed: int, place: int) -> Inputs:
        """Return the inputs of a call in the recording at one place of the session's pool."""
        purpose = f"{'exam' if case.case.exam else 'open'} {place % self._places}"
        return self.inputs(case.case, session_seed, purpose)

    def inputs(self, case: Case, session_seed: int, purpose: str, tries: int = TRIES) -> Inputs:
        """Return the inputs of a call; the same seed and purpose give the same inputs."""
        try:
            return self._call(case, seeds.derive(session_seed, self._task.id, "script", purpose))
        except OtherCall:
            if tries == 1:
                raise
            return self.inputs(case, session_seed, f"{purpose}, again", tries - 1)

    def oracle(self, case: Case, inputs: Mapping[str, Value]) -> tuple[torch.Tensor, ...]:
        """Return the right outputs of recorded inputs; other inputs raise `BadProblem`."""
        if not isinstance(inputs, RecordedInputs):
            raise BadProblem(f"case {case.name}: the script's outputs are known for its own inputs only")
        return inputs.truth

    def noise(self, case: Case, inputs: Mapping[str, Value]) -> tuple[torch.Tensor | None, ...]:
        """Return the changes of the reference's outputs if its inputs move.

        Of a quantization task, return the outputs with quantized inputs.
        """
        widths, is_quantized = self._script.widths, self._task.quantization is not None
        if not isinstance(inputs, RecordedInputs) or (is_quantized and not widths):
            return ()
        if inputs.noise is None:
            generator = place.generator(inputs.seed)
            try:
                if is_quantized:
                    inputs.noise = quantize_outputs(
                        self._repeated, inputs, inputs.truth, widths=widths, generator=generator
                    )
                else:
                    inputs.noise = measure_noise(
                        self._repeated,
                        inputs,
                        inputs.truth,
                        casts=lambda: self._casts,
                        generator=generator,
                        has_oracle=bool(self._script.oracle),
                    )
            except SlowScript:
                raise
            except BadProblem:  # the reference may end its process if its inputs move
                inputs.noise = ()
        return inputs.noise

    def wide_answer(self, case: Case, inputs: Mapping[str, Value]) -> tuple[torch.Tensor, ...]:
        """Return the reference's outputs for the inputs in float64; empty if it takes none."""
        if not isinstance(inputs, RecordedInputs):
            return ()
        if inputs.wide is None:
            try:
                inputs.wide = tuple(self._repeated({name: _widened(value) for name, value in inputs.items()}))
            except SlowScript:
                raise
            except BadProblem:
                inputs.wide = ()
        return inputs.wide

    def _repeated(self, inputs: Mapping[str, Value]) -> list[torch.Tensor]:
        """Make a recorded call again with these inputs and return its outputs, no outputs if it raises.

        Raises like `ScriptRuns.call`.
        """
        source = f"{self._script.reference.rstrip()}\n\n\n{self._calls}"
        arguments = {
            name: data_of(value) if isinstance(value, torch.Tensor) else cast(int, value)
            for name, value in inputs.items()
        }
        ran = self._runs.call(source, arguments)
        self._casts = ran.casts
        return [_comparable(tensor_of(output)) for output in ran.outputs]

    def group(self, case: Case) -> str:
        """Return the callee: many scripts have calls with constants beside calls with drawn values."""
        return self._expressions[case.cpu[CALL]][1].partition("(")[0]

    def specifications(self, cases: Iterable[Case]) -> CaseSpecs:
        """Return the argument specifications of the cases: a script has the same sizes on every device."""
        return {case.name: specified(self._call(case, self._latest_seed)) for case in cases}

    def _call(self, case: Case, seed: int) -> Inputs:
        """Return the inputs and right outputs of a case's call in the recording with this seed. Raises `OtherCall`.

        If the script has unsettled outputs, a second recording shows which elements depend on memory that nothing wrote.
        """
        inputs = self._inputs(case, self._same_call(case, seed, poison=NAN))
        inputs.seed = seed
        if self._script.unsettled:
            repeated = self._inputs(case, self._same_call(case, seed, poison=LIKE_RESULTS))
            inputs.unsettled = tuple(map(open_elements, inputs.truth, repeated.truth))
        return inputs

    def _same_call(self, case: Case, seed: int, *, poison: int) -> RecordedCall:
        """Return the call of a case in the recording with this seed.

        Raises `OtherCall` if the script makes another call there, as it may with other values, and like `ScriptRuns.recorded`.
        """
        number, expression = self._expressions[case.cpu[CALL]]
        recorded = self._recorded(seed, poison)
        if number >= len(recorded.calls) or recorded.calls[number].expression != expression:
            why = f": it stops with {recorded.error}" if recorded.error else ""
            raise OtherCall(
                f"case {case.name}: with {TRIES} sets of values the benchmark's test does not make this call{why}"
            )
        return recorded.calls[number]

    def _inputs(self, case: Case, call: RecordedCall) -> RecordedInputs:
        """Return the inputs of a recorded call, with the right outputs.

        Raises `OtherCall` if the call lacks an output of the case.
        """
        inputs = RecordedInputs({CALL: case.cpu[CALL]})
        if call.draw_seed is not None:
            inputs[DRAW_SEED] = call.draw_seed
        inputs |= {name: tensor_of(data) for name, data in call.inputs.items()}
        own = {output.name: output.tensor for output in call.outputs}
        by_oracle = dict(zip(own, call.truths, strict=False)) if self._script.oracle else {}
        truths = []
        for output in self._task.outputs_of(case):
            name = output.name
            # With some values a call leaves an input as it is.
            right = by_oracle.get(name) or own.get(name) or call.inputs.get(name)
            if right is None:
                raise OtherCall(
                    f"case {case.name}: with {TRIES} sets of values the reference does not compute `{name}`"
                )
            truths.append(_comparable(tensor_of(right)))
        inputs.truth = tuple(truths)
        return inputs

    def _recorded(self, seed: int, poison: int) -> RanScript:
        """Return a recording of the script.

        A slow or large one lowers the number of recordings that the session uses and keeps.
        """
        recorded = self._runs.recorded(self, self._script, seed, poison)
        self._latest_seed = seed
        if recorded.seconds > SLOW_S or recorded.input_bytes > LARGE_BYTES:
            self._places = FEW
        self._runs.keep_latest(self, 2 * self._places)
        return recorded


def _comparable(truth: torch.Tensor) -> torch.Tensor:
    """An 8-bit float in float32, which holds all its values and has the operators of a comparison."""
    return truth.float() if truth.is_floating_point() and truth.itemsize == 1 else truth


def _widened(value: Value) -> Value:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def tensor_of(data: TensorSpec) -> torch.Tensor:
    """Return a recorded tensor on the judge's device, with its strides. Raises `BadProblem` if the bytes do not fill it."""
    if data.dtype not in ITEM_BYTES or len(data.shape) != len(data.strides) or min(data.shape, default=0) < 0:
        raise BadProblem(f"no tensor is {data.dtype}{list(data.shape)}")
    dtype = torch_dtype(data.dtype)
    if not math.prod(data.shape):
        return torch.empty(data.shape, dtype=dtype, device=place.device())
    span = 1 + sum((size - 1) * stride for size, stride in zip(data.shape, data.strides, strict=True))
    if min(data.strides, default=0) < 0 or span * dtype.itemsize != len(data.data):
        raise BadProblem(f"{len(data.data)} bytes for {data.dtype}{list(data.shape)}")
    flat = place.here(torch.frombuffer(bytearray(data.data), dtype=dtype))
    return flat.as_strided(data.shape, data.strides)
