"""Requests to workers with a candidate, and their answers. Torch-free.

A guest's answers are evidence only: foreign code runs in its process.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from harness.wire.calls.signatures import Parameter
from harness.wire.calls.tensors import Arguments
from harness.wire.results.evaluation import Finding, Layer, Traffic
from suites.task import TextEnum


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """A guest's first message, sent before any foreign code ran."""

    sandbox: tuple[Layer, ...]


class Alive(msgspec.Struct, frozen=True, tag="alive"):
    """The process works. A judge that is silent for longer than a case and its oracle may take is replaced.

    A compiler sends it after each config of an autotuned kernel; it extends the time limit by a bounded time.
    """


class Ask(TextEnum):
    """A request without fields."""

    FAREWELL = "farewell"
    """Report the threads, processes and patches that the candidate left behind."""
    RECORD = "record"
    """Make a tape of one call of the prepared case. The answer is `TapedCall`."""
    SERVE = "serve"
    """Make calls of the prepared case, with the source's own host code, as a server makes them. The answer is `TapedCall`."""
    CLEAR = "clear"
    """Drop all seats of a timer, with their kernels and memory."""


class SharedAt(msgspec.Struct, frozen=True, tag="shared_at"):
    """Device memory of the judge that other processes can open; as a request to a timer: try to open it."""

    handle: bytes
    size_bytes: int


class Load(msgspec.Struct, frozen=True, tag="load"):
    """Import the candidate."""

    source: str
    target: str
    entry_points: tuple[str, ...] = ()
    reach: SharedAt | None = None
    """Memory to open before anything is imported; `Loaded` reports whether that worked."""


Plain = bool | int | float | None
"""A part of a result that is no tensor."""


class Call(msgspec.Struct, frozen=True, tag="call"):
    """Run the entry point. The inputs are in `memory`, or in an arena whose descriptor comes with the message."""

    entry_point: str
    case: str
    arguments: Arguments
    arena_bytes: int
    hold: bool = False
    """Keep the tensors; the next call may use the same ones."""
    changed_inputs: tuple[str, ...] = ()
    """For each output the input that becomes it, or an empty string. A call need not return such outputs."""
    returns: tuple[str, ...] = ()
    """See `Task.returns`."""
    again: bool = False
    """Use the tensors of the call before, which were held. Their memory has new values."""
    parameters: tuple[str, ...] = ()
    """Arguments to pass as `torch.nn.Parameter`."""
    positional: tuple[str, ...] = ()
    """Arguments to pass by position, in order; all others by name."""
    no_gradients: bool = False
    poison: int = 0
    """Index into `poison.KINDS`: the content of memory that the call allocates."""
    config: int = 0
    """Index of the config that autotuned kernels run with, among those that pruning leaves; wraps around."""
    memory: SharedAt | None = None
    answers_at: int = 0
    """Offset in `memory` from which outputs may be written."""
    zero_lanes: bool = False
    """Lanes that a masked load without `other` leaves out hold 0, not NaN."""
    order: int = 0
    """Order of the programs in the interpreter: 0 from the first, 1 from the last, else a shuffled one of this number."""


EXCEPTION: Final = "exception"
"""Kind of `Failed` for an exception that no other kind describes."""
GPU_FAULT: Final = "gpu_fault"
OUT_OF_MEMORY: Final = "out_of_memory"
NOT_COMPILED: Final = "compile"
"""Kinds of `Failed` on a GPU only: it lost the process's work, is out of memory, or Triton does not compile the kernel for it."""
FailedKind = Literal[
    "exception", "missing_entry_point", "files", "gpu_fault", "out_of_memory", "compile", "waits"
]
"""All kinds of `Failed`. A verdict follows from the kind, so foreign code can choose no other."""


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The candidate raised."""

    kind: FailedKind
    message: str
    trace: str
    line: int | None


class Broken(msgspec.Struct, frozen=True, tag="broken"):
    """The guest's own code raised, not the candidate; the guest's last message."""

    message: str
    imported: bool = False
    """The import of the candidate had begun: the candidate may have caused it, by using up memory or processes."""


class Loaded(msgspec.Struct, frozen=True, tag="loaded"):
    """The candidate is imported."""

    parameters: dict[str, tuple[Parameter, ...]]
    """Parameters of each entry point, as `inspect` reports them."""
    not_reached: str = ""
    """Why the judge's memory cannot be opened; empty if it can, or if `Load` names none."""


class OutputData(msgspec.Struct, frozen=True):
    """One output. Its bytes in C order are judged; all other fields are evidence."""

    type: str
    """`torch.Tensor` only for exactly that type."""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    data: bytes = b""
    at: int | None = None
    """Offset of the bytes in the judge's shared memory; then `data` is empty."""
    problem: str = ""
    """Why the output is not a plain, dense tensor; empty if it is."""
    aliases: str = ""
    """Name of the tensor whose memory it overlaps; empty if it has memory of its own."""
    copied: int = 0
    """Elements that the host copied from memory that no kernel of the call stored to; 0 on a GPU, where it is not known."""
    from_kernel: bool = False
    """A kernel stored into its memory, or into the memory it was copied from."""


class Operator(msgspec.Struct, frozen=True):
    """A tensor operator dispatched outside the candidate's kernels."""

    name: str
    """As `aten::add`, without the prefix."""
    line: int | None
    count: int


class Returned(msgspec.Struct, frozen=True, tag="returned"):
    """The entry point returned."""

    structure: str
    """`tensor`, `tuple`, `list`, or the name of any other returned type."""
    outputs: tuple[OutputData, ...]
    operators: tuple[Operator, ...]
    host_elements: int
    """Elements moved between tensors and Python (`.item()`, `.tolist()`, `.numpy()`, `torch.tensor()`)."""
    kernels: tuple[str, ...]
    traffic: Traffic
    unsupported: str
    changed_output: bool
    changed_state: tuple[str, ...] = ()
    """Global settings that the call left changed, by their names in `candidate/patches.py`."""
    unfinished: str = ""
    """Work of the call that still ran when it returned, in words; empty: none."""
    copies: int = 0
    """Copies and fills that write a part of a tensor."""
    copying_line: int | None = None
    plain: tuple[Plain, ...] | None = ()
    """Parts of the result that are no tensors, where `Task.returns` wants them; `None`: the result has other parts."""
    foreign_kernels: tuple[str, ...] = ()
    """Launched kernels that the candidate does not define, with their modules."""
    stored_inputs: tuple[str, ...] = ()
    """Inputs that kernels stored to, even if they restored them; not known on a GPU."""
    unwatched: str = ""
    """What first read bytes that neither an input, a watched operator nor a kernel wrote, in words; empty: nothing."""
    missed_stores: tuple[str, ...] = ()
    """The first few stores outside every tensor, one line each."""
    undefined_lanes: tuple[int, ...] = ()
    """Source lines of masked loads without `other`. Here their masked-off lanes hold NaN or a large integer."""
    race: str = ""
    """The first load of what another program of the same launch stored, in one line; empty: none."""
    findings: tuple[Finding, ...] = ()
    """The interpreter's findings in this call."""


class LeftBehind(msgspec.Struct, frozen=True, tag="left_behind"):
    """The threads, processes and patches that the candidate left behind."""

    patched: tuple[str, ...]
    threads: int
    children: int
    foreign_kernels: tuple[str, ...] = ()
    """Kernels that a timer saw launched and that the candidate does not define."""
