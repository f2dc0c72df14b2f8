"""Runs a task's `problem.py` in the judge: inputs from secret seeds, oracle outputs, shapes at `gpu` sizes."""

from __future__ import annotations

import importlib.util
import inspect
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

import msgspec
import torch

from harness.cases import seeds
from harness.cases.judged_case import FAR, JudgedCase, RowKind
from harness.wire.calls.tensors import Arguments, CaseSpecs
from harness.wire.messages.guest import Plain
from harness.worker.kit import arena, place
from harness.worker.kit.arena import Value
from harness.worker.kit.in_place import taking_parts, with_changed_inputs, without_plain
from harness.worker.oracle.arithmetic import EPS, Careful, exactly
from harness.worker.oracle.comparison.bounds import overflow
from harness.worker.oracle.comparison.measure import ErrorMeasure, measure_output
from harness.worker.oracle.inputs.distributions import (
    inject_degenerate,
    inject_extremes,
    inject_mask,
    inject_outliers,
    inject_special,
)
from harness.worker.oracle.inputs.sizes_alone import without_memory
from harness.worker.oracle.inputs.variants import alike, laid_out, with_other_middle
from suites.source.package import Package
from suites.task import Case, Distribution, Task, Tolerance
from suites.tolerances import dtype_of, tolerance_of

Inputs = dict[str, Value]
OUTPUT_DTYPES = "output_dtypes"
"""Parameter of an oracle that gets the torch dtypes of the outputs by name."""


class BadProblem(Exception):
    """The task's own code fails, so that no candidate can be judged."""


class Problem:
    """One loaded `problem.py`. Inputs have the sizes that the task, resolved for its device, has as `cpu` sizes."""

    plain: tuple[Plain, ...] = ()
    """Parts of the last result of the oracle that are no tensors."""

    def __init__(self, task: Task) -> None:
        self._task = task
        module = _load(task)
        self._make_inputs: Callable[..., Inputs] = _function(module, "make_inputs", task)
        self._oracle: Callable[..., Any] = _function(module, "oracle", task)
        named = inspect.signature(self._oracle).parameters
        self._wants_dtypes = OUTPUT_DTYPES in named and OUTPUT_DTYPES not in task.entry_points[0].signature
        self._answers_in_place = False
        """True once the oracle returned nothing and left its outputs in its arguments."""
        settle = getattr(module, "settle_inputs", None)
        self._settle_inputs: Callable[[Inputs], Inputs] | None = settle if callable(settle) else None
        self._far: dict[str, tuple[RowKind, ...]] = {}
        """Kinds of degenerate rows in doubt for which the oracle has an answer, by dtype."""
        self._specified: dict[tuple[str, tuple[tuple[str, int], ...]], Arguments] = {}
        self._probe_inputs = self._make_inputs
        if task.quantization is not None and task.quantization.probe is not None:
            self._probe_inputs = _function(module, "probe_inputs", task)

    def given(self, case: JudgedCase, session_seed: int, place: int) -> Inputs:
        """Return the inputs at one place of the session's pool, in the case's layout.

        Place `POOL + n` is place `n` with the middle of a different place.
        """
        inputs = self._drawn(case, session_seed, place % seeds.POOL)
        if place >= seeds.POOL:
            next_place = self._drawn(case, session_seed, (place + 1) % seeds.POOL)
            inputs = with_other_middle(inputs, next_place)
        laid = {
            name: laid_out(value, case.layout) if isinstance(value, torch.Tensor) else value
            for name, value in inputs.items()
        }
        if case.twice:
            pairs = alike(laid)
            if not pairs:
                raise BadProblem(f"no two inputs of case {case.name} have one shape and dtype")
            number = seeds.derive(session_seed, self._task.id, case.name, "pair")
            first, second = pairs[number % len(pairs)]
            laid[second] = laid[first]
        return laid

    def _drawn(self, case: JudgedCase, session_seed: int, place: int) -> Inputs:
        """Return the inputs of a call at one place of the session's pool, with the plain arguments that the case sets."""
        purpose = f"{'exam' if case.case.exam else 'open'} {place}"
        drawn = self._made(
            case.case,
            session_seed,
            purpose,
            special=case.special,
            extreme=case.extreme,
            masked=case.masked,
            degenerate=self._answerable(case),
            probe=case.probe,
        )
        return dict(case.scalars) | drawn

    def _answerable(self, case: JudgedCase) -> tuple[RowKind, ...]:
        """Return the case's kinds of degenerate row, without kinds for which the oracle has no finite answer."""
        doubted = tuple(RowKind) if self._task.is_measured else FAR
        if not set(case.degenerate) & set(doubted):
            return case.degenerate
        dtype = case.case.dtype
        if dtype not in self._far:
            self._far[dtype] = tuple(kind for kind in doubted if self._has_answer(kind, dtype))
        return tuple(kind for kind in case.degenerate if kind not in doubted or kind in self._far[dtype])

    def _has_answer(self, kind: RowKind, dtype: str) -> bool:
        """True if the oracle's answer stays finite in the output's dtype when each input has such a row.

        Tested in the largest open case of the dtype, at `cpu` sizes. False for metrics over a whole output, where one row
        with large values hides the other rows.
        """
        if self._task.quantization is not None:
            return False
        cases = [declared for declared in self._task.cases if declared.dtype == dtype]
        largest = max(cases, key=lambda declared: math.prod(declared.cpu.values()))
        standard = Distribution.STANDARD
        case = msgspec.structs.replace(largest, gpu=largest.cpu, distribution=standard)
        try:
            inputs = self._made(case, 0, f"answer to {kind}", degenerate=(kind,))
            outputs = self.oracle(case, inputs)
        except BadProblem:
            return False
        return all(
            bool((truth.abs() <= torch.finfo(torch_dtype(dtype_of(output, case))).max).all())
            for output, truth in zip(self._task.outputs_of(case), outputs, strict=True)
            if torch_dtype(dtype_of(output, case)).is_floating_point
        )

    def inputs(self, case: Case, session_seed: int, purpose: str) -> Inputs:
        """Return the task's inputs of a case; the same seed and purpose give the same inputs."""
        return self._made(case, session_seed, purpose)

    def group(self, case: Case) -> str:
        """Return the name of the cases that test an oracle's strength together: each case alone."""
        return case.name

    def sizes(self, case: Case) -> dict[str, int]:
        """Return the case's sizes on this device."""
        return case.cpu

    def _made(self, case: Case, session_seed: int, purpose: str, **kinds: Any) -> Inputs:
        """Return the inputs of a case for a purpose, on the judge's device; the same arguments give the same values.

        `kinds`: see `_made_by`. Raises `BadProblem` if the task's code raises, but `OutOfMemoryError` unchanged.
        """
        seed = seeds.derive(session_seed, self._task.id, case.name, purpose)
        try:
            if place.is_gpu():
                # Drawing on the GPU is a hundred times faster; if the task's code needs CPU tensors, fall back.
                with _without_errors_of_tasks(), place.device():
                    return _here(self._made_by(place.generator(seed), case, **kinds))
            return _here(self._made_by(torch.Generator().manual_seed(seed), case, **kinds))
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            name = "probe_inputs" if kinds.get("probe") else "make_inputs"
            raise BadProblem(f"{name} of {self._task.id}, case {case.name}: {error}") from error

    def _made_by(
        self,
        generator: torch.Generator,
        case: Case,
        *,
        special: bool = False,
        extreme: bool = False,
        masked: bool = False,
        degenerate: tuple[RowKind, ...] = (),
        probe: bool = False,
    ) -> Inputs:
        """Return the inputs that the task makes with this generator, with the changes that the case asks for.

        `settle_inputs` of the task runs after outliers and degenerate rows, and before values that no task can settle.
        """
        make = self._probe_inputs if probe else self._make_inputs
        inputs = make(self.sizes(case), torch_dtype(case.dtype), generator)
        named = self._task.outlier_inputs or tuple(inputs)
        if case.distribution is Distribution.OUTLIER:
            tensors = {name: value for name, value in inputs.items() if isinstance(value, torch.Tensor)}
            inject_outliers(tensors, self._task.outlier_inputs, generator)
        if degenerate:
            inject_degenerate(inputs, named, generator, degenerate, is_measured=self._task.is_measured)
        if self._settle_inputs is not None:
            inputs = self._settle_inputs(inputs)
        if special:
            inject_special(inputs, named, generator)
        if masked:
            inject_mask(inputs, named)
        if extreme:
            inject_extremes(inputs, named, generator, moved=self._moves(case))
        return inputs

    def _moves(self, case: Case) -> bool:
        """True if the task only moves values: every output must be exact."""
        return self._task.quantization is None and all(
            tolerance_of(self._task, output, case) == Tolerance() for output in self._task.outputs_of(case)
        )

    def oracle(self, case: Case, inputs: Mapping[str, Value]) -> tuple[torch.Tensor, ...]:
        """Return the oracle's outputs, in the order of the task's outputs; does not change `inputs`.

        An oracle that changes inputs in place may return nothing. It gets these inputs in float64, if its code accepts that.
        """
        if not self._task.is_measured:
            return self._outputs(case, inputs)
        with exactly():
            return self._outputs(case, inputs, wide=tuple(inputs))

    def measures(
        self,
        case: Case,
        inputs: Mapping[str, Value],
        truths: Sequence[torch.Tensor],
        calls: int,
        least_eps: float,
    ) -> tuple[ErrorMeasure, ...]:
        """Return the tolerance that careful arithmetic needs for each output: how far its errors move the oracle's outputs.

        The oracle runs `calls` times in the dtypes of its inputs, each time with other roundings. An element-wise operator errs
        by `least_eps` or more.
        """
        floats = [value.dtype for value in inputs.values() if isinstance(value, torch.Tensor)]
        eps = [torch.finfo(dtype).eps for dtype in floats if dtype.is_floating_point and dtype.itemsize > 1]
        careful = Careful(place.generator(0), max(eps, default=EPS), max(least_eps, EPS))
        answers = [careful.call(lambda: self._outputs(case, inputs)) for _ in range(calls)]
        return tuple(
            measure_output(
                truth,
                [answer[number] for answer in answers],
                torch_dtype(dtype_of(output, case)),
            )
            for number, (output, truth) in enumerate(zip(self._task.outputs_of(case), truths, strict=True))
        )

    def _outputs(
        self, case: Case, inputs: Mapping[str, Value], wide: tuple[str, ...] = ()
    ) -> tuple[torch.Tensor, ...]:
        """Return the oracle's outputs in the order of the task's, after checks of their number, shape and dtype.

        `wide`: inputs that the oracle gets in float64. An oracle that returns nothing is called again with copies of the inputs
        that it changes, and then on every call. Keeps the parts of the result that are no tensors in `plain`. Raises
        `BadProblem`.
        """
        declared, changed = self._task.outputs_of(case), self._task.changed_inputs_of(case)
        result, copies = self._answer(case, inputs, wide=wide or (changed if self._answers_in_place else ()))
        if result is None and changed and not self._answers_in_place and not self._task.is_measured:
            self._answers_in_place = True
            result, copies = self._answer(case, inputs, wide=changed)
        if result is None and not changed:
            remedy = "list the inputs that it changes in `in_place` and among the outputs"
            raise BadProblem(f"oracle of {self._task.id} returns nothing; {remedy}")
        result, plain = without_plain(result, self._task.returns)
        if plain is None:
            raise BadProblem(
                f'oracle of {self._task.id} must return {len(self._task.returns)} parts, and None or a number where `returns` has ""'
            )
        self.plain = plain
        result = with_changed_inputs(result, changed, copies)
        outputs = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        if len(outputs) != len(declared):
            raise BadProblem(f"oracle of {self._task.id} returns {len(outputs)}, not {len(declared)} outputs")
        for output, truth in zip(declared, outputs, strict=True):
            wrong = unfit(truth, torch_dtype(dtype_of(output, case)))
            if wrong:
                raise BadProblem(f"oracle of {self._task.id}, case {case.name}, `{output.name}`: {wrong}")
        return outputs

    def noise(self, case: Case, inputs: Mapping[str, Value]) -> tuple[torch.Tensor | None, ...]:
        """Return the changes of `reference_noise` for each output; empty if the oracle does not round."""
        return ()

    def wide_answer(self, case: Case, inputs: Mapping[str, Value]) -> tuple[torch.Tensor, ...]:
        """Return the oracle's outputs for the inputs in float64; empty if it takes none, or computes in float64 anyway."""
        return ()

    def _answer(
        self, case: Case, inputs: Mapping[str, Value], *, wide: tuple[str, ...]
    ) -> tuple[Any, dict[str, Any]]:
        """Call the oracle on copies; return its result and the copies. Inputs in `wide` are float64 if the oracle allows it."""
        copies: dict[str, Any] = {
            k: place.here(v.clone()) if isinstance(v, torch.Tensor) else v for k, v in inputs.items()
        }
        for name in wide:
            if isinstance(copies.get(name), torch.Tensor) and copies[name].is_floating_point():
                copies[name] = copies[name].double()
        named = {}
        if self._wants_dtypes:
            declared = self._task.outputs_of(case)
            named[OUTPUT_DTYPES] = {output.name: torch_dtype(dtype_of(output, case)) for output in declared}
        try:
            return taking_parts(self._oracle, copies)(**copies, **named), copies
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            if wide:
                return self._answer(case, inputs, wide=())
            raise BadProblem(f"oracle of {self._task.id}, case {case.name}: {error}") from error

    def specifications(self, cases: Iterable[Case]) -> CaseSpecs:
        """Return the argument specifications of the cases at `gpu` sizes, without allocating memory."""
        return {case.name: self._specify(case) for case in cases}

    def _specify(self, case: Case) -> Arguments:
        """Return the argument specifications of a case at `gpu` sizes, which are kept for equal sizes; not those of exams."""
        if case.exam:  # drawn for each candidate: no use in a cache
            return self._described(case)
        key = case.dtype, tuple(case.gpu.items())
        if key not in self._specified:
            self._specified[key] = self._described(case)
        return self._specified[key]

    def _described(self, case: Case) -> Arguments:
        """Return the argument specifications of a case at `gpu` sizes, by the task's code without memory.

        Raises `BadProblem`.
        """
        try:
            inputs = without_memory(
                lambda: self._make_inputs(case.gpu, torch_dtype(case.dtype), torch.Generator())
            )
        except Exception as error:
            raise BadProblem(
                f"make_inputs of {self._task.id} at gpu sizes, case {case.name}: {error}"
            ) from error
        return specified(inputs)


@contextmanager
def _without_errors_of_tasks() -> Iterator[None]:
    """Ignore errors of a task's code. A full GPU is none: other values would be drawn, depending on the neighbours."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except Exception:  # noqa: BLE001 (a task's code may raise anything)
        return


def _here(inputs: Inputs) -> Inputs:
    return {k: place.here(v) if isinstance(v, torch.Tensor) else v for k, v in inputs.items()}


def specified(inputs: Mapping[str, Value]) -> Arguments:
    """Return the inputs without the values of tensors."""
    return {
        name: arena.describe(value) if isinstance(value, torch.Tensor) else value
        for name, value in inputs.items()
    }


def torch_dtype(name: str) -> torch.dtype:
    """Return `torch.float32` for `float32`; raises `BadProblem` for an unknown name."""
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise BadProblem(f"{name} is no torch dtype")
    return dtype


def unfit(truth: object, dtype: torch.dtype) -> str:
    """Return why an oracle's answer cannot judge an output of `dtype`; empty if it can."""
    if not isinstance(truth, torch.Tensor):
        return f"it returns a {type(truth).__name__}, not a tensor"
    if not dtype.is_floating_point:
        whole = not truth.is_floating_point() or bool((truth == truth.round()).all())
        return "" if whole else f"values are not whole, but the output is {dtype}"
    # Casts of larger values saturate on one device and give NaN on another: the task must choose.
    if dtype.itemsize == 1 and truth.is_floating_point():
        largest = torch.finfo(dtype).max
        if bool((truth.double().abs() >= overflow(dtype)).any()):
            return f"values go beyond {largest:g}, the largest {dtype}; clamp them, and say so in the instruction"
    return ""


def _load(task: Task) -> object:
    """Run a task's `problem.py` and return its module. Raises `BadProblem` if it is missing or raises."""
    file = task.folder / "problem.py"
    spec = importlib.util.spec_from_file_location(f"problem_of_{task.folder.name}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise BadProblem(f"{file} cannot be read")
    if task.package is not None:  # a kernel that is its own reference imports from its package
        _PACKAGES.show(task.package, file.read_text(encoding="utf-8"))
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadProblem(f"{file}: {type(error).__name__}: {error}") from error
    return module


class _Packages:
    """Finds the packages from which references import. They are the user's code, as the references are."""

    def __init__(self) -> None:
        self._roots: dict[str, str] = {}
        """The root of each package that is found before those that are installed."""
        self._shown: list[str] = []
        """All roots; the one of the last task is the last."""

    def show(self, package: Package, source: str) -> None:
        """Make what a source imports from its package importable. Modules of that name from another root are forgotten."""
        os.environ.update(package.variables)
        root = package.root
        self._shown = [*(shown for shown in self._shown if shown != root), root]
        for name in {*package.tops(source), *self._roots} - _LOADED:
            if self._roots.get(name) != root and _found_in(root, name) is not None:
                for module in [module for module in sys.modules if module.partition(".")[0] == name]:
                    del sys.modules[module]
                self._roots[name] = root

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of a package that a shown source imports."""
        return _found_in(self._roots[name], name) if name in self._roots else None

    def find_unknown(self, name: str) -> ModuleSpec | None:
        """Return the spec of a package that no other finder has, from the newest root that has it."""
        for root in reversed(self._shown):
            if (spec := _found_in(root, name)) is not None:
                self._roots[name] = root
                return spec
        return None


class _Beside:
    """Finds what packages of references import from beside themselves, unless it is installed."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of a package in a root that was shown."""
        return _PACKAGES.find_unknown(name) if path is None else None


def _found_in(root: str, name: str) -> ModuleSpec | None:
    """Return the spec of a package in a root. A folder without `__init__.py` yields to an installed package of its name."""
    spec = PathFinder.find_spec(name, [root])
    is_folder = spec is not None and spec.origin is None
    return None if is_folder and PathFinder.find_spec(name) is not None else spec


_LOADED = frozenset(name.partition(".")[0] for name in sys.modules)
"""Modules of the judge, which no package may replace."""
_PACKAGES = _Packages()
sys.meta_path.insert(0, _PACKAGES)
sys.meta_path.append(_Beside())


def _function(module: object, name: str, task: Task) -> Callable[..., Any]:
    function = getattr(module, name, None)
    if not callable(function):
        raise BadProblem(f"problem.py of {task.id} defines no {name}")
    return function  # type: ignore[no-any-return]
