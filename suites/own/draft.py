"""The draft of a task for a kernel file: its reference, the design of its inputs, first calls and tolerances.

The judge's process runs a kernel that is its own reference with tensors in the CPU's memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from suites.dtypes import BY_TARGET, ITEM_BYTES, is_exact
from suites.errors import BadKernelFile
from suites.source.package import Package
from suites.task import Axis, Tolerance
from suites.tolerances import unmeasured

from .entry import Function, KernelFile
from .evidence import FirstCallSeen, OutputSeen
from .shapes import Dim
from .sizes import CASE_DTYPE, Design

_RESERVED = {"make_inputs", "oracle", "torch", "strided"}
_DOT = re.compile(r"\btl\.dot(_scaled)?\(|\blanguage\.dot")
_SELECT = re.compile(r"\btorch\.cuda\.device\(")
_HELPER = '''

import contextlib  # noqa: E402


def _wavedeck_device(device):
    """Select the GPU of a tensor; nothing is selected for a tensor in the CPU's memory."""
    in_memory = device is None or getattr(device, "type", "cuda") == "cpu"
    return contextlib.nullcontext() if in_memory else torch.cuda.device(device)
'''


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
        """Text that defines a function `oracle` with the entry point's signature."""
        self.check_name()
        signature = entry.signature.removeprefix(entry.name)
        call = f"def oracle{signature}:\n    return {self.call(self.parameters)}\n"
        return "\n\n\n".join(part for part in ("\n".join(self.imports), self.text, call) if part)

    def check_name(self) -> None:
        """Raise `BadKernelFile` if the modules that are made around it have another function of its name."""
        if self.name in _RESERVED:
            raise BadKernelFile(f"the reference cannot be called {self.name}; give it another name")

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
    allowed: Tolerance = field(default_factory=Tolerance)
    """Errors beyond the measure that are right too."""

    @property
    def outputs(self) -> tuple[OutputSeen, ...]:
        """Tensors that the kernel returns or changes."""
        return self.outputs_in(0)

    def outputs_in(self, case: int) -> tuple[OutputSeen, ...]:
        """Return the outputs of a case. A kernel may give the reference's dtype, a wider one, or that of an input."""
        seen = self.seen[case]
        outputs = seen.kernel.outputs
        if seen.reference is None:
            return outputs
        dtypes = {tensor.dtype for tensor in self.design.tensors.values()} - {CASE_DTYPE}
        return tuple(
            output
            if output.dtype in {right.dtype, *dtypes, self.design.dtypes[case]}
            or is_exact(output.dtype)
            or ITEM_BYTES[output.dtype] > ITEM_BYTES[right.dtype]
            else msgspec.structs.replace(output, dtype=right.dtype)
            for output, right in zip(outputs, seen.reference.outputs, strict=True)
        )

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
    def tolerances(self) -> dict[str, str]:
        """Return the tolerance by dtype of an output, as `task.toml` writes it; without exact dtypes that stay exact."""
        dtypes = [output.dtype for case in self.seen for output in self.outputs_in(case)]
        return {dtype: self._tolerance(dtype) for dtype in dtypes if not is_exact(dtype) or self.allowed.ulps}

    def _tolerance(self, dtype: str) -> str:
        limit = unmeasured(dtype) if self.reference.is_kernel else self.allowed
        terms = ["measured = true"] * (not self.reference.is_kernel)
        names = ("rtol", "scale", "ulps", "cosine")
        terms += [f"{name} = {value:g}" for name in names if (value := float(getattr(limit, name)))]
        return ", ".join(terms)

    @property
    def multiplies(self) -> bool:
        """The kernels use `tl.dot`."""
        return _DOT.search(self.file.text) is not None

    def dtype_of(self, output: OutputSeen) -> str:
        """Return the dtype of an output in `task.toml`.

        `CASE_DTYPE` if it is that of the inputs in every case, else its own.
        """
        place = self.outputs.index(output)
        follows = all(
            self.outputs_in(case)[place].dtype
            in BY_TARGET.get(self.design.dtypes[case], (self.design.dtypes[case],))
            for case in self.seen
        )
        return CASE_DTYPE if follows else output.dtype

    def shape_of(self, place: int) -> tuple[Dim, ...] | None:
        """Return the shape of the output at this place of `outputs`, in named sizes; `None` if no sizes give it.

        A dimension gets a name only if it has this size in every first call. If it is always 1, it is the number 1.
        """
        output = self.outputs[place]
        if output.input:
            return self.design.tensors[output.input].shape
        calls = [(self.small[case], self.outputs_in(case)[place].shape) for case in self.seen]
        for name, tensor in self.design.tensors.items():
            if all(self.design.shape(name, sizes) == shape for sizes, shape in calls):
                return tensor.shape
        if len({len(shape) for _, shape in calls}) > 1:
            return None
        dims: list[Dim] = []
        for axis in range(len(output.shape)):
            if all(shape[axis] == 1 for _, shape in calls):
                dims.append(1)
                continue
            fitting = (
                name for name in self.small[0] if all(sizes[name] == shape[axis] for sizes, shape in calls)
            )
            name = next(fitting, "")
            if not name:
                return None
            dims.append(name)
        return tuple(dims)


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
    if len(seen.kernel.outputs) != len(seen.reference.outputs):
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


def without_gpu(text: str) -> str:
    """Return a kernel's text in which `torch.cuda.device(x.device)` also accepts tensors in the CPU's memory."""
    replaced, count = _SELECT.subn("_wavedeck_device(", text)
    return replaced.rstrip() + _HELPER if count else text
