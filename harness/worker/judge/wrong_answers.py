"""Tests a task's oracle with wrong answers: each must be refused, and the right answer accepted.

The wrong answers are made from the oracle's own and compared like a candidate's; no guest takes part. They cover what
robust-kbench filters by fixed limits: outputs near zero, constant outputs, outputs constant along an axis, and outputs
that ignore an input.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from harness.cases.judged_case import JudgedCase
from harness.wire.results.evaluation import Weakness
from harness.worker.oracle.answers import compare_output
from harness.worker.oracle.problem import BadProblem, Inputs, Problem, torch_dtype
from harness.worker.oracle.vault import Given
from suites.task import Case, Task
from suites.tolerances import dtype_of

DRAWN, OTHER = "strength", "strength, other values"
TRUTH = "truth"

Outputs = tuple[torch.Tensor, ...]


class Strength:
    """Tries wrong answers on a task's oracle."""

    def __init__(self, problem: Problem, task: Task, seed: int) -> None:
        self._problem = problem
        self._task = task
        self._seed = seed
        self.tried = 0

    def weaknesses(self, cases: tuple[Case, ...]) -> tuple[Weakness, ...]:
        """Return the weaknesses of the oracle in these cases. Raises `BadProblem` if it can judge nothing.

        A candidate must be right in all cases of a group, so a group with a case that refuses every wrong answer has none.
        """
        weaknesses: list[tuple[str, Weakness]] = []
        strong: set[str] = set()
        elements = 0
        # In a case with an axis of one element, a constant or a copy may be the right answer. A recorded call has no axes.
        is_flat = self._task.script is None
        flat = {case.name for case in cases if is_flat and min(case.cpu.values(), default=0) <= 1}
        degenerate = flat if len(flat) < len(cases) else set()
        for case in cases:
            inputs = self._problem.inputs(case, self._seed, DRAWN)
            expected = self._problem.oracle(case, inputs)
            count = sum(truth.numel() for truth in expected)
            elements += count
            if not count:
                continue
            group = self._problem.group(case)
            call = Given(self._problem, JudgedCase(case), inputs, expected)
            case_weaknesses = [*self._weak_truths(call)]
            case_weaknesses += self._accepted_answers(call, plain=case.name in degenerate)
            weaknesses += [(group, weakness) for weakness in case_weaknesses]
            if not case_weaknesses:
                strong.add(group)
        if cases and not elements:
            raise BadProblem(f"no case of {self._task.id} has an output with an element to compare")
        return tuple(
            weakness for group, weakness in weaknesses if group not in strong or weakness.control == TRUTH
        )

    def _weak_truths(self, call: Given) -> Iterator[Weakness]:
        """Yield outputs with a truth that is too coarse: it is not in float64, or rounding it once is an error already."""
        case = call.case.case
        for number, truth in enumerate(call.expected):
            output = self._task.outputs_of(case)[number]
            dtype = torch_dtype(dtype_of(output, case))
            rounded = truth.is_floating_point() and truth.dtype is not torch.float64
            if rounded and dtype.is_floating_point and self._task.script is None:
                name = str(truth.dtype).removeprefix("torch.")
                yield Weakness(case.name, output.name, TRUTH, f"the oracle answers in {name}, not in float64")
            elif not self._accepts(call, number, truth.to(dtype)):
                problem = f"the oracle's own answer, rounded to {dtype_of(output, case)}, is refused: the tolerance is below one rounding"
                yield Weakness(case.name, output.name, TRUTH, problem)

    def _accepted_answers(self, call: Given, *, plain: bool) -> Iterator[Weakness]:
        """Yield the wrong answers that the oracle accepts for a call.

        Tried are constants, altered truths, copies of inputs, and answers to other inputs. `plain`: constants alone.
        """
        case = call.case.case
        other_inputs = self._problem.inputs(case, self._seed, OTHER)
        other_outputs = self._problem.oracle(case, other_inputs)
        outputs = self._task.outputs_of(case)
        for place, (output, truth) in enumerate(zip(outputs, call.expected, strict=True)):
            if not truth.numel():
                continue
            answers = [("zeros", torch.zeros_like(truth)), ("ones", torch.ones_like(truth))]
            if not plain:
                answers += _altered(truth, dtype_of(output, case))
                answers += [
                    (f"a copy of {name}", value.reshape(truth.shape))
                    for name, value in call.inputs.items()
                    if isinstance(value, torch.Tensor) and value.numel() == truth.numel()
                ]
                if other_outputs[place].shape == truth.shape:
                    answers.append(("the answer to other inputs", other_outputs[place]))
            for control, answer in answers:
                self.tried += 1
                if self._accepts(call, place, answer):
                    problem = f"accepted as `{output.name}`: {control}"
                    yield Weakness(case.name, output.name, control, problem)
        if not plain:
            yield from self._ignored_inputs(call, other_inputs)

    def _ignored_inputs(self, call: Given, other_inputs: Inputs) -> Iterator[Weakness]:
        """Yield inputs that make no difference: with other values, every output is still accepted."""
        case = call.case.case
        tensors = {
            name: value
            for name, value in call.inputs.items()
            if isinstance(value, torch.Tensor) and value.numel() and name not in self._task.in_place
        }  # memory for an output is left out: a baseline that reads it, and an oracle that does not, differ
        indices = [name for name, value in tensors.items() if value.dtype in (torch.int32, torch.int64)]
        # Lengths and offsets of two draws make a kernel that is its own reference write beyond its tensors.
        for names in [indices] * bool(indices) + [[name] for name in tensors if name not in indices]:
            try:
                others = {name: other_inputs[name] for name in names}
                changed = self._problem.oracle(case, {**call.inputs, **others})
            except BadProblem:
                continue  # these inputs only work together
            self.tried += 1
            if all(self._accepts(call, place, answer) for place, answer in enumerate(changed)):
                words = " and ".join(f"`{name}`" for name in names)
                yield Weakness(
                    case.name,
                    "",
                    f"input {' and '.join(names)}",
                    f"the values of input {words} make no difference",
                )

    def _accepts(self, call: Given, place: int, answer: torch.Tensor) -> bool:
        """True if the judge accepts `answer`, rounded to the output's dtype, as output number `place` of a call."""
        case, truth = call.case.case, call.expected[place]
        output = self._task.outputs_of(case)[place]
        answer = answer.to(torch_dtype(dtype_of(output, case)))
        judged = compare_output(
            self._task,
            output,
            call.case,
            answer,
            truth,
            sizes=case.cpu,
            noise=partial(call.noise, place),
            measure=partial(call.measure, place),
        )
        return judged.mismatch is None


def _altered(truth: torch.Tensor, dtype: str) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield wrong answers of `dtype` made from the right one; skip those that its shape makes right."""
    wide = truth.double()
    wide = torch.where(wide.isfinite(), wide, 0.0)
    if truth.is_floating_point() and bool(wide.any()):
        yield "the answer times 1.01", truth * 1.01
        largest = wide.abs() == wide.abs().max()
        first = largest & (largest.flatten().cumsum(0).view(truth.shape) == 1)
        # A measured tolerance lets one element of 10,000 be off by 24 careful errors: in bfloat16 about a tenth.
        words, factor = ("a quarter", 1.25) if dtype == "bfloat16" else ("a tenth", 1.1)
        yield f"the answer with one element off by {words}", torch.where(first, truth * factor, truth)
    elif truth.dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64):
        yield "the answer and one step more", truth + 1
    if truth.numel() > 1:
        yield "the mean of the answer", wide.mean().expand_as(wide)
    for axis, size in enumerate(truth.shape):
        if size > 1 and truth.numel() > size:
            yield f"the mean along axis {axis}", wide.mean(dim=axis, keepdim=True).expand_as(wide)
        if size > 1:
            yield f"the answer shifted by one along axis {axis}", truth.roll(1, dims=axis)
