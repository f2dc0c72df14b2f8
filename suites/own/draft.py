"""The draft of a task for a kernel file: its reference, the design of its inputs, first calls and tolerances."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from suites.dtypes import BY_TARGET, is_exact
from suites.errors import BadKernelFile
from suites.source.package import Package
from suites.task import Axis

from .entry import Function, KernelFile
from .evidence import FirstCallSeen, OutputSeen
from .shapes import Dim
from .sizes import CASE_DTYPE, Design

MARGIN = 4.0
"""A tolerance is at least this many times the error of the kernel itself."""
TOLERANCES = {
    "float64": (1e-12, 1e-9, 1e-6),
    "float32": (2e-5, 1e-4, 3e-4, 1e-3, 1e-2),
    "float16": (2e-3, 3e-3, 5e-3, 1e-2, 3e-2),
    "bfloat16": (1e-2, 2e-2, 3e-2, 5e-2, 1e-1),
}
"""Values of `rtol` and `scale` by dtype of an output: the smallest fitting one is taken."""
EIGHT_BITS = (0.15, 0.3)
_DOT = re.compile(r"\btl\.dot(_scaled)?\(|\blanguage\.dot")


@dataclass(frozen=True, slots=True)
class Reference:
    """A function that says what is right."""

    name: str
    place: str
    """Location for messages: `rms_norm_ref in rms.py`."""
    imports: tuple[str, ...]
    text: str
    """Its definition; empty if it is imported."""
    parameters: tuple[str, ...]
    """Parameters of the entry point that it gets, in the order of its own parameters."""
    by_name: tuple[str, ...] = ()
    """Its last parameters, which can only be passed by name."""
    is_kernel: bool = False
    """It is the kernel itself; `text` is its whole file."""
    file: Path | None = None
    """The file of `text`, if it is not the kernel's."""
    is_sent: bool = True
    """Models may read `text`."""

    def module(self, entry: Function) -> str:
        """Text that defines a function `reference` with the entry point's signature."""
        signature = entry.signature.removeprefix(entry.name)
        call = f"def reference{signature}:\n    return {self.call(self.parameters)}\n"
        return "\n\n\n".join(part for part in ("\n".join(self.imports), self.text, call) if part)

    def call(self, arguments: Sequence[str]) -> str:
        """Return the text of a call with the texts of the arguments."""
        first = len(arguments) - len(self.by_name)
        named = [f"{name}={text}" for name, text in zip(self.by_name, arguments[first:], strict=True)]
        return f"{self.name}({', '.join([*arguments[:first], *named])})"


@dataclass(frozen=True, slots=True)
class Draft:
    """Everything that a task is made of."""

    file: KernelFile
    entry: Function
    reference: Reference
    design: Design
    small: tuple[dict[str, int], ...]
    """Sizes of each case for the interpreter."""
    seen: dict[int, FirstCallSeen]
    """First calls by the number of the case; the first case has one."""
    axes: dict[str, Axis]
    """Values that the named sizes may have."""
    package: Package | None
    """The package that the file needs."""

    @property
    def outputs(self) -> tuple[OutputSeen, ...]:
        """Tensors that the kernel returns or changes."""
        return self.seen[0].kernel.outputs

    @property
    def changed(self) -> tuple[str, ...]:
        """Inputs that the kernel writes."""
        return tuple(output.input for output in self.outputs if output.input)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs; a changed input keeps its name."""
        new = [output for output in self.outputs if not output.input]
        names = iter(["out"] if len(new) == 1 else [f"out_{place}" for place in range(len(new))])
        taken = set(self.entry.parameters)
        return tuple(
            output.input or (f"{name}_" if (name := next(names)) in taken else name)
            for output in self.outputs
        )

    @property
    def returns(self) -> tuple[str, ...]:
        """Parts of the returned tuple as in `Task.returns`; empty if all are tensors."""
        plain = self.seen[0].kernel.plain
        if not plain:
            return ()
        names = iter(self.output_names)
        count = len(plain) + sum(output.is_returned for output in self.outputs)
        return tuple("" if place in plain else next(names) for place in range(count))

    @property
    def errors(self) -> dict[str, float]:
        """Largest error of the kernel itself, as `FirstCallSeen` measures it, by dtype of a floating-point output."""
        errors: dict[str, float] = {}
        for seen in self.seen.values():
            for output, error in zip(seen.kernel.outputs, seen.errors, strict=True):
                if not is_exact(output.dtype):
                    errors[output.dtype] = max(error, errors.get(output.dtype, 0.0))
        return errors

    @property
    def tolerances(self) -> dict[str, float]:
        """Relative tolerance by dtype of a floating-point output."""
        if self.reference.is_kernel:  # how far it is from the truth is not known
            return {dtype: TOLERANCES.get(dtype, EIGHT_BITS)[1] for dtype in self.errors}
        return {dtype: tolerance_for(dtype, error) for dtype, error in self.errors.items()}

    @property
    def multiplies(self) -> bool:
        """The kernels use `tl.dot`."""
        return _DOT.search(self.file.text) is not None

    def dtype_of(self, output: OutputSeen) -> str:
        """Return the dtype of an output in `task.toml`."""
        place = self.outputs.index(output)
        follows = all(
            seen.kernel.outputs[place].dtype
            in BY_TARGET.get(self.design.dtypes[case], (self.design.dtypes[case],))
            for case, seen in self.seen.items()
        )
        return CASE_DTYPE if follows else output.dtype

    def shape_of(self, output: OutputSeen) -> tuple[Dim, ...] | None:
        """Return the shape of an output in named sizes; `None` if no sizes give it."""
        if output.input:
            return self.design.tensors[output.input].shape
        sizes = self.small[0]
        for name, tensor in self.design.tensors.items():
            if self.design.shape(name, sizes) == output.shape:
                return tensor.shape
        dims: list[Dim] = []
        for size in output.shape:
            name = next((axis for axis, value in sizes.items() if value == size), "")
            if not name and size != 1:
                return None
            dims.append(name or 1)
        return tuple(dims)


def tolerance_for(dtype: str, error: float) -> float:
    """Return the smallest of the dtype's tolerances that leaves `MARGIN`; the largest if none does."""
    steps = TOLERANCES.get(dtype, EIGHT_BITS)
    return next((step for step in steps if step >= MARGIN * error), steps[-1])


def itself(entry: str) -> str:
    """Return the place of a kernel that is its own reference."""
    return f"{entry} itself"


def check_agreement(entry: str, reference: str, seen: FirstCallSeen) -> None:
    """Raise `BadKernelFile` if a first call failed, or if the reference does not agree with the kernel."""
    if seen.inputs_error:
        raise BadKernelFile(f"the inputs cannot be made: {seen.inputs_error}")
    if not seen.kernel.is_imported:
        advice = _import_advice(seen.kernel.error)
        raise BadKernelFile(f"the file of {entry} cannot be imported: {seen.kernel.error}{advice}")
    if seen.reference is not None and seen.reference.error:
        advice = _import_advice(seen.reference.error)
        if reference == itself(entry):
            advice = "; give a PyTorch function with --reference"
        raise BadKernelFile(f"the reference {reference} fails: {seen.reference.error}{advice}")
    if seen.kernel.error:
        raise BadKernelFile(f"{entry} fails with these inputs: {seen.kernel.error}")
    if seen.reference is None:
        return
    if not seen.errors:
        raise BadKernelFile(
            f"{entry} gives {_outputs_words(seen.kernel.outputs)}, but the reference {reference} gives "
            f"{_outputs_words(seen.reference.outputs)}; they must be the same tensors in the same order"
        )
    for place, part in seen.kernel.plain.items():
        right = seen.reference.plain.get(place)
        if right != part and not (
            isinstance(right, float) and math.isclose(right, part or 0.0, rel_tol=1e-6)
        ):
            raise BadKernelFile(
                f"{entry} returns {part} as part {place}, but the reference {reference} {right}"
            )
    for output, truth in zip(seen.kernel.outputs, seen.reference.outputs, strict=True):
        if output.shape != truth.shape:
            raise BadKernelFile(
                f"{entry} gives {_outputs_words([output])}, but the reference {reference} gives {_outputs_words([truth])}; "
                "give inputs that fit together, or another reference"
            )
    for output, error in zip(seen.kernel.outputs, seen.errors, strict=True):
        most = 0.0 if is_exact(output.dtype) else TOLERANCES.get(output.dtype, EIGHT_BITS)[-1]
        if error > most:
            words = "in other values" if math.isinf(error) else f"by {error:.1%} of the size of the values"
            result = f"the changed {output.input}" if output.input else "its result"
            raise BadKernelFile(
                f"{entry} and the reference {reference} differ {words} in {result} ({output.dtype}, {list(output.shape)}); "
                "nothing can be judged before one of them is fixed"
            )


def _import_advice(error: str) -> str:
    is_missing = error.startswith("ModuleNotFoundError")
    return "; install it beside Wavedeck, or name the Python that has it with --python" if is_missing else ""


def _outputs_words(outputs: Sequence[OutputSeen]) -> str:
    words = [
        f"changed {output.input}"
        if output.input and not output.is_returned
        else f"{output.dtype}{list(output.shape)}"
        for output in outputs
    ]
    return ", ".join(words) or "nothing"
