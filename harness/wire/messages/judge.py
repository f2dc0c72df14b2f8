"""Messages between the engine and the judge, which compares a candidate's outputs with the oracle. Torch-free."""

from __future__ import annotations

import msgspec

from harness.cases.call_plan import Plan
from harness.wire.calls.tensors import NO_CASES
from harness.wire.limits import TimeLimits
from harness.wire.results.evaluation import ErrorReport, Fact, Finding, Layer, Margin, Traffic, Weakness
from harness.wire.results.served_calls import BatchRows
from suites.task import Task, TextEnum

from .guest import Alive


class Begin(msgspec.Struct, frozen=True, tag="begin"):
    """Judge one candidate. Descriptor: the judge's end of the guest's channel."""

    task: Task
    source: str
    seed: int
    guest_pid: int
    target: str
    limits: TimeLimits
    exam: bool
    plan: Plan
    asks: bool = False
    """The judge sends `TurnWanted` before the import and before each call, and waits for `Proceed`."""


class Attach(msgspec.Struct, frozen=True, tag="attach"):
    """A script worker for the next requests; the judge's end of its channel comes as a descriptor.

    Only for tasks that have calls of a script as cases. It replaces the script worker of earlier requests.
    """

    target: str


class Proceed(msgspec.Struct, frozen=True, tag="proceed"):
    """The answer to `TurnWanted`."""

    go: bool = True
    """False: end the calls as cancelled; their result is not needed."""


class Weigh(msgspec.Struct, frozen=True, tag="weigh"):
    """Try wrong answers on a task's oracle; there is no candidate."""

    task: Task
    seed: int


class Weighed(msgspec.Struct, frozen=True, tag="weighed"):
    """How strong a task's oracle is."""

    tried: int
    weaknesses: tuple[Weakness, ...]
    problem: str = ""
    """Why the task's own code can judge nothing; empty if it can."""
    unsupported: bool = False
    """The problem is this device: the task's own code is too slow on it."""


class Specify(msgspec.Struct, frozen=True, tag="specify"):
    """Report the arguments of a task's open cases at `gpu` sizes; there is no candidate."""

    task: Task


class Specified(msgspec.Struct, frozen=True, tag="specified"):
    """The arguments of cases at `gpu` sizes (`CaseSpecs`): the answer to `Specify`, the first report after `Begin`."""

    cases: msgspec.Raw
    """The task's open cases, after `Begin` the declared cases of the plan."""
    ahead: msgspec.Raw = NO_CASES
    """Hidden cases that a GPU runs next; their kernels are compiled on cores that are free."""
    configs: dict[str, int] = {}
    """Number of the config of autotuned kernels that the judge runs, by hidden case."""
    problem: str = ""


class AtStage(msgspec.Struct, frozen=True, tag="at_stage"):
    """The judge begins or ends a stage; `at_s` by `time.monotonic`, which all processes of a machine share."""

    stage: str
    at_s: float
    ended: bool = False
    ok: bool | None = None
    """Result of a stage that ended. `None`: not applicable on this device."""
    detail: str = ""
    cases: tuple[int, int] | None = None
    """The cases that passed, and all cases, of a stage that counts them."""


class TurnWanted(msgspec.Struct, frozen=True, tag="turn_wanted"):
    """Nothing runs on the GPU for this candidate; the judge waits for `Proceed` before the next call."""

    alone: bool = False
    """Everything is compiled, and the clock needs the GPU to itself."""


class Failure(TextEnum):
    """A failure of one of the candidate's processes. The engine knows how the process ended, and decides what it means."""

    GUEST_ENDED = "guest_ended"
    GUEST_FAILED = "guest_failed"
    """The judge's own code raised in the guest, after the import of the candidate had begun."""


class Judged(msgspec.Struct, frozen=True, tag="judged"):
    """The judge's result for a candidate, and its last message."""

    error: ErrorReport | None
    traffic: tuple[Traffic, ...] = ()
    sandbox: tuple[Layer, ...] = ()
    facts: tuple[Fact, ...] = ()
    weak_oracle: str = ""
    """See `Evaluation`."""
    margins: tuple[Margin, ...] = ()
    findings: tuple[Finding, ...] = ()
    kernels: tuple[str, ...] = ()
    batch_rows: tuple[BatchRows, ...] = ()
    failure: Failure | None = None


JudgeRequest = Attach | Begin | Proceed | Weigh | Specify
JudgeReport = AtStage | Alive | TurnWanted | Judged | Weighed | Specified
JUDGE_REPORTS: msgspec.msgpack.Decoder[JudgeReport] = msgspec.msgpack.Decoder(JudgeReport)
