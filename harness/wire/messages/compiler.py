"""Requests to the workers that compile a candidate and run it at `gpu` sizes, and their reports. Torch-free."""

from __future__ import annotations

import msgspec

from harness.wire.results.evaluation import KernelResources

KEPT_BYTES = 300_000
"""Compressed bytes of compiler texts that a session keeps of one candidate."""
MOST_IR = 4 << 20
"""Characters of a kernel's Triton IR; a longer one is compiled in the candidate's process."""


class Compile(msgspec.Struct, frozen=True, tag="compile"):
    """Compile every launch of these cases for one target."""

    source: str
    entry_point: str
    cases: msgspec.Raw
    target: str
    allowed: tuple[str, ...]
    ahead: msgspec.Raw
    """Further cases: their launches are compiled too, but are not in the report."""
    ahead_configs: dict[str, int]
    """Number of the config of autotuned kernels that the judge runs, by further case."""
    host_cpu_s: float
    """CPU seconds for the host code of one case, compiling not counted."""
    keep_texts: bool = False
    """The report has the compiler's texts."""


class KernelIr(msgspec.Struct, frozen=True):
    """All that decides on a kernel's binary, beside the version of Triton."""

    ttir: str
    """The text of its Triton IR, after the passes on it."""
    target: str
    options: str
    """The compiler's options by name, as JSON."""


class KernelWanted(msgspec.Struct, frozen=True, tag="wanted"):
    """A compiling worker asks the engine for a binary. It may ask for further ones before the answer."""

    number: int
    """Names the answer."""
    kernel: KernelIr


class Binary(msgspec.Struct, frozen=True):
    """A compiled kernel; without files if it was not compiled."""

    files: dict[str, bytes] = {}
    """The content of each stage, by Triton's name of the stage."""
    metadata: str = "{}"
    """The options that the stages added or changed, as JSON."""
    log: str = ""
    seconds: float = 0.0

    @property
    def size(self) -> int:
        """Bytes of all contents."""
        return sum(map(len, self.files.values()))


KERNEL_IRS: msgspec.msgpack.Decoder[KernelIr] = msgspec.msgpack.Decoder(KernelIr)
BINARIES: msgspec.msgpack.Decoder[Binary] = msgspec.msgpack.Decoder(Binary)
NUMBERED_BINARIES: msgspec.msgpack.Decoder[tuple[int, Binary]] = msgspec.msgpack.Decoder(tuple[int, Binary])
"""The engine's answers to `KernelWanted`: its number and the binary."""


class HostWorkFound(msgspec.Struct, frozen=True):
    """A call at `gpu` sizes that the host computed."""

    case: str
    operator: str = ""
    """The operator that computed on the host; empty if no kernel was launched."""
    line: int | None = None
    moves: bool = False
    """The host made more copies into parts of tensors than the judge allows; `operator` is the last of them."""
    reads: bool = False
    """Python read elements of tensors in that call. Tensors have no real values here, so the result may mean nothing."""
    kernel: str = ""
    """A launched kernel that the candidate does not define, with its module."""


class CompileReport(msgspec.Struct, frozen=True, tag="compiled"):
    """The result of compiling. At most one of `error` and `unsupported` is set."""

    resources: tuple[KernelResources, ...] = ()
    """One for each distinct binary and config in launch order, including configs that do not compile or do not fit."""
    error: str | None = None
    line: int | None = None
    timed_out: bool = False
    """Whether `error` says that a time limit passed."""
    in_host: bool = False
    """Host code failed, or the process: the error of a call says more than `error`."""
    unsupported: str | None = None
    """Why there is no result for this target; not the candidate's fault."""
    notes: tuple[str, ...] = ()
    patched: str = ""
    """Parts of Triton or compiler settings that the candidate changed; nothing was compiled after that."""
    host_work: HostWorkFound | None = None
    argument_types: tuple[tuple[str, ...], ...] = ()
    """Argument types of the kernels, each sequence once, if all are plain."""
    texts: dict[str, bytes] = {}
    """The compiler's texts that `resources` name, as gzip by their SHA-256; empty if the request keeps none."""


class RunAtFullSizes(msgspec.Struct, frozen=True, tag="run_at_full_sizes"):
    """Run the first, the last and one drawn program of every launch that the entry point makes in each case."""

    source: str
    entry_point: str
    cases: msgspec.Raw
    target: str
    seed: int
    """Draws the programs."""


class RanAtFullSizes(msgspec.Struct, frozen=True, tag="ran_at_full_sizes"):
    """The accesses of one case's programs; the reports come in the order of the cases."""

    case: str
    why: str = ""
    """Why nothing is known of this case; empty if the fields below hold."""
    raised: bool = False
    """Whether `why` is an exception of the host code."""
    missed_stores: tuple[str, ...] = ()
    missed_loads: tuple[str, ...] = ()
    """Accesses outside their tensor, one line each; none at addresses that depend on loaded values."""
    touched_bytes: int | None = None
    """The most distinct bytes that the launches and copies of the host can touch; `None` if the programs differ too much."""
