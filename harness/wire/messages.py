"""What crosses between engine, fork server, judge and guest: msgpack of these tagged structs. Torch-free."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from harness.cases.call_plan import Plan
from suites.task import Case, Task

from .device import Device
from .evaluation import ErrorReport, Fact, Finding, Layer, Margin, Weakness
from .limits import TimeLimits
from .records import Record
from .signatures import Parameter

# Engine and nursery ------------------------------------------------------------------------------------------------


class Bear(msgspec.Struct, frozen=True, tag="bear"):
    """Start one fork server. Descriptors beside it: its control socket, then the pipe for what it complains of."""

    number: int
    """Chosen by the engine, never used twice on one nursery."""
    interpret: bool
    forks: bool
    """Whether its workers are to be forked; else they are fresh interpreters, and so is it."""


class Kill(msgspec.Struct, frozen=True, tag="kill"):
    """End a server that does not end by itself."""

    number: int


NURSERY_REQUESTS: msgspec.msgpack.Decoder[Bear | Kill] = msgspec.msgpack.Decoder(Bear | Kill)

# Engine and fork server --------------------------------------------------------------------------------------------


class Spawn(msgspec.Struct, frozen=True, tag="spawn"):
    """Start one process. Descriptors beside it: its channel, then the pipe for what it prints."""

    worker: int
    """Chosen by the engine, never used twice on one server."""
    role: str
    """A key of `harness.worker.server.roles.ROLES`."""
    scratch: str
    """Folder that is the process's own; empty for processes of ours."""
    cpu_limit_s: int
    """Backstop of the kernel (SIGXCPU); the judge holds the finer limits."""
    device: Device | None = None
    """The GPU that the process works on, and the only one it sees; `None` for none."""


class End(msgspec.Struct, frozen=True, tag="end"):
    """Kill a worker with its whole tree."""

    worker: int


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The server has imported all and may fork."""

    versions: dict[str, str]
    threads: int
    """Of the server; more than one would make a fork unsafe."""
    problem: str = ""
    """Why forking is not safe here; empty when it is."""
    pid: int = 0


class Started(msgspec.Struct, frozen=True, tag="started"):
    """A worker runs."""

    worker: int
    pid: int


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """A worker and its whole tree are gone."""

    worker: int
    status: int
    """As `os.waitpid` gives it."""
    leftover: int
    """Processes of its tree that still ran when it ended by itself."""
    killed: bool
    """Whether `End` was asked for before it ended."""
    why: str = ""
    """Of which it had too much, so that its warden ended it: processes, files, bytes. Empty when that is not so."""


ServerRequest = Spawn | End
ServerReport = Ready | Started | Ended
SERVER_REQUESTS: msgspec.msgpack.Decoder[ServerRequest] = msgspec.msgpack.Decoder(ServerRequest)
SERVER_REPORTS: msgspec.msgpack.Decoder[ServerReport] = msgspec.msgpack.Decoder(ServerReport)

# Engine and judge --------------------------------------------------------------------------------------------------


class Begin(msgspec.Struct, frozen=True, tag="begin"):
    """Judge one candidate. Descriptors beside it: the judge's ends of the guest's channel and of the verifier's."""

    task: Task
    source: str
    seed: int
    guest_pid: int
    verifier_pid: int | None
    """`None` where calls are not replayed."""
    target: str
    """Name of the target that the device shim answers as."""
    limits: TimeLimits
    exam: bool
    """The plan is an exam's: every call is replayed, and races are searched for."""
    plan: Plan
    """The calls to make, in order."""
    further_cases: tuple[Case, ...]
    """Hidden cases at `gpu` sizes: their kernels are compiled beside those of the plan, for the GPU that judges next."""


class Proceed(msgspec.Struct, frozen=True, tag="proceed"):
    """The candidate compiled: go on with the execution."""


class Weigh(msgspec.Struct, frozen=True, tag="weigh"):
    """Try wrong answers on a task's oracle, with no candidate."""

    task: Task
    seed: int


class Weighed(msgspec.Struct, frozen=True, tag="weighed"):
    """How strong a task's oracle is."""

    tried: int
    weaknesses: tuple[Weakness, ...]
    problem: str = ""
    """Why nothing can be judged by the task's own code; empty when something can."""


class Specify(msgspec.Struct, frozen=True, tag="specify"):
    """Tell the arguments of a task's open cases at `gpu` sizes, with no candidate."""

    task: Task


class Specified(msgspec.Struct, frozen=True, tag="specified"):
    """The arguments of a task's open cases."""

    cases: msgspec.Raw
    problem: str = ""
    """Why the task's own code does not tell them; empty when it does."""


class Entered(msgspec.Struct, frozen=True, tag="entered"):
    """The judge begins a stage."""

    stage: str
    at_s: float
    """By `time.monotonic`, which all processes of a machine share."""


class Left(msgspec.Struct, frozen=True, tag="left"):
    """The judge is done with a stage."""

    stage: str
    at_s: float
    ok: bool | None
    """`None`: this device cannot say."""
    detail: str


class Alive(msgspec.Struct, frozen=True, tag="alive"):
    """The judge works; silence longer than a case and its oracle may take means that it does not."""


class FirstCallPassed(msgspec.Struct, frozen=True, tag="first_call_passed"):
    """The first case ran; the compile stage is next, then `Proceed`."""

    cases: msgspec.Raw
    """Argument specifications of every case at `gpu` sizes (`tuple[CaseSpec, ...]`), for the compiling guest."""
    ahead: msgspec.Raw
    """Of hidden cases, where a GPU is to run them next: their kernels are compiled beside the others, if that costs no time."""


class FirstCaseRight(msgspec.Struct, frozen=True, tag="first_case_right"):
    """The first case matches the oracle, and nothing that shows at once is wrong with what it did: no access missed its tensor."""


class CaseTraffic(msgspec.Struct, frozen=True):
    """What the interpreter counted over one case; evidence."""

    case: str
    requested_read_bytes: int
    requested_write_bytes: int
    unique_read_bytes: int
    unique_write_bytes: int
    dot_flops: int
    launches: int
    programs: int
    missed_stores: tuple[str, ...] = ()
    """The first few stores outside every tensor, each in a line."""
    undefined_lanes: tuple[int, ...] = ()
    """Lines of masked loads without `other`, whose lanes that the mask leaves out hold NaN or a large integer here."""
    findings: tuple[Finding, ...] = ()


class Judged(msgspec.Struct, frozen=True, tag="judged"):
    """The judge's last word on a candidate."""

    verdict: str
    error: ErrorReport | None
    traffic: tuple[CaseTraffic, ...]
    sandbox: tuple[Layer, ...]
    facts: tuple[Fact, ...]
    margins: tuple[Margin, ...] = ()
    findings: tuple[Finding, ...] = ()
    kernels: tuple[str, ...] = ()
    guest_ended: bool = False
    """The guest ended when it should have answered: how is for the engine to say, who hears it from the server."""


JudgeRequest = Begin | Proceed | Weigh | Specify
JudgeReport = Entered | Left | Alive | FirstCallPassed | FirstCaseRight | Judged | Weighed | Specified

# Judge and guest ---------------------------------------------------------------------------------------------------


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """A guest's first words, said before any foreign code ran."""

    sandbox: tuple[Layer, ...]


class SharedAt(msgspec.Struct, frozen=True):
    """Device memory of the judge's that others can open."""

    handle: bytes
    size_bytes: int


class Load(msgspec.Struct, frozen=True, tag="load"):
    """Import the candidate."""

    nonce: str
    source: str
    entry_points: tuple[str, ...]
    target: str
    reach: SharedAt | None = None
    """Say whether this can be opened, before anything is imported."""


class Argument(msgspec.Struct, frozen=True):
    """One argument: a scalar, or a tensor and its place in the arena."""

    name: str
    scalar: int | float | bool | None = None
    dtype: str = ""
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    offset_bytes: int = 0
    """Of its storage in the arena."""
    storage_bytes: int = 0
    tail_bytes: int = 0
    """Of them, behind the tensor's last element."""
    storage_offset: int = 0
    """Elements of the storage before the tensor's first."""

    @property
    def is_tensor(self) -> bool:
        """Whether it lies in the arena."""
        return self.dtype != ""


class Call(msgspec.Struct, frozen=True, tag="call"):
    """Run the entry point. The inputs lie in `memory`, or in the arena of a descriptor beside the call."""

    nonce: str
    entry_point: str
    case: str
    arguments: tuple[Argument, ...]
    arena_bytes: int
    hold: bool = False
    """The next call may be given the very same tensors."""
    again: bool = False
    """Give the tensors of the call before, which were held: other values stand in their memory now."""
    parameters: tuple[str, ...] = ()
    """Arguments that are given as a module's parameters."""
    positional: tuple[str, ...] = ()
    """Arguments that are given by their place, in order; the others are by their name."""
    no_gradients: bool = False
    """Make the call where torch keeps no gradients."""
    poison: int = 0
    """Which of `poison.KINDS` memory holds that the call allocates."""
    config: int = 0
    """Which config autotuned kernels run with, of those that their pruning leaves, beginning anew beyond the last."""
    memory: SharedAt | None = None
    answers_at: int = 0
    """From here on outputs may be put into `memory`."""
    record: bool = False
    """Record the call, so that it can be replayed."""


class Farewell(msgspec.Struct, frozen=True, tag="farewell"):
    """Say what the candidate left behind."""

    nonce: str


class Compile(msgspec.Struct, frozen=True, tag="compile"):
    """Compile every launch for one target, at the specifications given."""

    nonce: str
    source: str
    entry_point: str
    cases: msgspec.Raw
    target: str
    allowed: tuple[str, ...]
    ahead: msgspec.Raw
    """Of further cases, which nobody reports of: what they launch is compiled where there are cores for it."""
    side_by_side: bool = True
    """Kernels are compiled side by side; not so where many sources are."""


GPU_FAULT = "gpu_fault"
OUT_OF_MEMORY = "out_of_memory"
NOT_COMPILED = "compile"
"""Kinds of `Failed` that only a GPU has: it lost the process's work, has no room for it, or Triton does not compile the kernel for it."""


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The candidate raised."""

    nonce: str
    kind: str
    message: str
    trace: str
    line: int | None


class Broken(msgspec.Struct, frozen=True, tag="broken"):
    """The guest's own code raised: our fault, and the guest's last word."""

    nonce: str
    message: str


class Loaded(msgspec.Struct, frozen=True, tag="loaded"):
    """The candidate is imported; `parameters` are what Python says of its entry points."""

    nonce: str
    parameters: dict[str, tuple[Parameter, ...]]
    not_reached: str = ""
    """Why the judge's memory cannot be opened; empty when it can, or when that was not asked."""


class OutputData(msgspec.Struct, frozen=True):
    """One output: its bytes in C order are what is judged, the rest is evidence."""

    type: str
    """`torch.Tensor` when it is exactly that."""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    data: bytes = b""
    at: int | None = None
    """Where in the judge's shared memory the bytes stand instead."""
    problem: str = ""
    """Why it is not a plain, dense tensor; empty when it is."""
    aliases: str = ""
    """Name of what its memory overlaps with; empty for memory of its own."""
    from_kernel: bool = False
    """A kernel stored into its memory, or into what it was copied from."""


class Operator(msgspec.Struct, frozen=True):
    """A tensor operator dispatched outside the candidate's kernels."""

    name: str
    """As `aten::add`, without the prefix."""
    line: int | None
    count: int


class Returned(msgspec.Struct, frozen=True, tag="returned"):
    """The entry point returned."""

    nonce: str
    structure: str
    """`tensor`, `tuple` or the name of the type that was returned instead."""
    outputs: tuple[OutputData, ...]
    operators: tuple[Operator, ...]
    host_elements: int
    """Elements that went between tensors and Python (`.item()`, `.tolist()`, `.numpy()`, `torch.tensor()`)."""
    kernels: tuple[str, ...]
    """Names of the Triton kernels launched, in order, each once."""
    traffic: CaseTraffic
    unsupported: str
    changed_output: bool
    """Whether this call wrote into what the call before had returned."""
    changed_state: tuple[str, ...] = ()
    """Global settings that the call left changed, as `global_state.py` names them."""
    unfinished: str = ""
    """What of the call's work still ran when it returned, in words; empty when nothing did."""
    copies: int = 0
    """Copies that the host made into parts of tensors."""
    record: Record | None = None
    """What the call did to memory, for a clean process to do again; `None` where that was not asked for."""
    unrecorded: str = ""
    """Why there is no record; empty where none was asked for."""


class LeftBehind(msgspec.Struct, frozen=True, tag="left_behind"):
    """What the candidate left behind."""

    nonce: str
    patched: tuple[str, ...]
    threads: int
    children: int


class Compiling(msgspec.Struct, frozen=True, tag="compiling"):
    """The compiling worker got on: one more config of an autotuned kernel. Evidence, so it buys a bounded time."""

    nonce: str


class Compiled(msgspec.Struct, frozen=True, tag="compiled"):
    """The compile report of one target (`harness.wire.compile_report.CompileReport`)."""

    nonce: str
    report: msgspec.Raw


# Judge and verifier ------------------------------------------------------------------------------------------------


class Study(msgspec.Struct, frozen=True, tag="study"):
    """The candidate whose records follow; its host code never runs."""

    source: str
    target: str
    allowed: tuple[str, ...]


class Replay(msgspec.Struct, frozen=True, tag="replay"):
    """Run one record. Descriptor beside it: the arena that holds the inputs."""

    case: str
    record: Record
    arguments: tuple[Argument, ...]
    arena_bytes: int
    backwards: bool = False
    """The programs of each launch run from the last to the first."""
    find_races: bool = False


class ReplayedOutput(msgspec.Struct, frozen=True):
    """One output of a replay."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes
    origins: dict[str, int]
    """Elements by where they came from; see `shadow`."""
    storage: int
    first_byte: int
    end_byte: int


class Replayed(msgspec.Struct, frozen=True, tag="replayed"):
    """The record ran. Proof: no code of the candidate's but its kernels took part."""

    outputs: tuple[ReplayedOutput, ...]
    kernels: tuple[str, ...]
    traffic: CaseTraffic
    unsupported: str
    touched: tuple[str, ...]
    """Inputs that anything was written to, be it what stood there before."""


class NotReplayed(msgspec.Struct, frozen=True, tag="not_replayed"):
    """The record did not run to its end."""

    kind: str
    """`refused` (no honest call makes such a record), `diverged` (Python had read other values), `unable` (the verifier cannot run it),
    `waits` (not backwards, as programs wait for others)."""
    message: str
    error_kind: str = ""
    """Of a refused record, the kind of the error report."""
    line: int | None = None


VerifierRequest = Study | Replay
VerifierReport = Hello | Replayed | NotReplayed
VERIFIER_REQUESTS: msgspec.msgpack.Decoder[VerifierRequest] = msgspec.msgpack.Decoder(VerifierRequest)
VERIFIER_REPORTS: msgspec.msgpack.Decoder[VerifierReport] = msgspec.msgpack.Decoder(VerifierReport)

GuestRequest = Load | Call | Farewell | Compile
GuestReport = Hello | Failed | Broken | Loaded | Returned | LeftBehind | Compiling | Compiled
GUEST_REQUESTS: msgspec.msgpack.Decoder[GuestRequest] = msgspec.msgpack.Decoder(GuestRequest)
GUEST_REPORTS: msgspec.msgpack.Decoder[GuestReport] = msgspec.msgpack.Decoder(GuestReport)


def _path_to_text(value: Any) -> str:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} does not cross a process")


def text_to_path(kind: type, value: Any) -> Path:
    """For decoders of what holds a task."""
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError(f"{kind.__name__} does not cross a process")


JUDGE_REPORTS: msgspec.msgpack.Decoder[JudgeReport] = msgspec.msgpack.Decoder(JudgeReport)
ENCODER = msgspec.msgpack.Encoder(enc_hook=_path_to_text)
