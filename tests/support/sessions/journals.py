"""Events of a realistic session: two tasks, three instances, failures, a repair, an optimisation and decisions.

Times, names and numbers are fixed, so that tests can compare screens as pictures. No figure here was measured.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from harness import (
    STAGES,
    Basis,
    ErrorReport,
    Evaluation,
    Fact,
    KernelResources,
    Latency,
    Layer,
    Margin,
    Mismatch,
    Outcome,
    Stage,
    Verdict,
)
from harness.wire.results.evaluation import FullSize
from harness.wire.results.latency import Efficiency, Timed, Window
from harness.wire.results.provenance import Provenance
from sessions import events as ev
from sessions.home import Home
from sessions.journal.codec import encode
from tests.support.judge.evaluations import judged, traffic
from tests.support.sessions import story

SESSION = "20261120-140300-geak-5f0a"
STARTED_WALL = 1_795_183_380.0
MODEL = "recorded:starter"

WRONG_SOURCE = '''\
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, n_cols, stride, BLOCK: tl.constexpr):
    """One program a row."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols, mask=cols < n_cols, other=0.0)
    e = tl.exp(x)
    y = e / tl.sum(e, axis=0)
    tl.store(y_ptr + row * stride + cols, y, mask=cols < n_cols)


def softmax(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    rows, n_cols = x.shape
    BLOCK = triton.next_power_of_2(n_cols)
    softmax_kernel[(rows,)](x, y, n_cols, x.stride(0), BLOCK=BLOCK)
    return y
'''
RIGHT_SOURCE = WRONG_SOURCE.replace("other=0.0)\n", 'other=-float("inf"))\n').replace(
    "    e = tl.exp(x)\n",
    "    # Subtract the row's maximum: exp overflows without it.\n    x = x.to(tl.float32)\n    e = tl.exp(x - tl.max(x, axis=0))\n",
)
FAST_SOURCE = RIGHT_SOURCE.replace("BLOCK=BLOCK)", "BLOCK=BLOCK, num_warps=8)").replace(
    '    """One program a row."""\n',
    '    """One program a row, eight waves."""\n    tl.assume(stride % 16 == 0)\n',
)
BROKEN_SOURCE = RIGHT_SOURCE.replace("tl.max(x, axis=0)", "tl.maximum(x, axis=0)")

REASONING = (
    "The row fits into one block when n_cols is at most 4096, so one program a row is enough.\n"
    "I have to subtract the row maximum before exp, otherwise fp16 inputs with outliers overflow to inf and the division "
    "gives NaN. Masked lanes must load -inf so that they do not count in the maximum and become 0 in the sum.\n"
)
REPLY = "The kernel below handles one row a program; masked lanes load `-inf`.\n\n```python\n{source}```\n"
TRACE = """\
Traceback (most recent call last):
  File "kernel.py", line 23, in softmax
    softmax_kernel[(rows,)](x, y, n_cols, x.stride(0), BLOCK=BLOCK)
  File "kernel.py", line 14, in softmax_kernel
    e = tl.exp(x - tl.maximum(x, axis=0))
TypeError: maximum() got an unexpected keyword argument 'axis'
"""


def stages(passed: int, *, failed: bool, detail: str = "") -> tuple[Stage, ...]:
    """Return six stages: `passed` stages passed; the next stage failed or was not reached."""
    details = (
        "entry point softmax(x)", "3 launches captured", "gfx942: 4 kernels", "2 cases match", "nothing odd",
        "",
    )  # fmt: skip
    result = []
    for index, name in enumerate(STAGES):
        if index < passed:
            result.append(Stage(name, True, 0.012 * 6**index % 9, details[index]))
        elif index == passed and failed:
            result.append(Stage(name, False, 1.31, detail))
        else:
            result.append(
                Stage(
                    name,
                    None,
                    0.0,
                    "no latency on device cpu" if name == "performance" and not failed else "",
                )
            )
    return tuple(result)


def resources(
    *, waves: float = 8, vgprs: int = 38, spills: int = 0
) -> dict[str, tuple[KernelResources, ...]]:
    """Return the resources of two kernels for one target."""
    shared = {
        "kernel": "softmax_kernel", "autotune_index": None, "architecture": "gfx942", "binary_sha256": "0" * 64,
        "grid": (4096, 1, 1), "agprs": 0, "sgprs": 24, "vgpr_spills": spills, "sgpr_spills": 0,
        "scratch_bytes": 0, "lds_bytes": 256, "occupancy_limit": "waves", "matrix_instructions": 0,
        "compile_seconds": 0.4,
    }  # fmt: skip
    first = KernelResources(
        case="fp32", config={"BLOCK": "4096", "num_warps": "4"}, vgprs=vgprs, occupancy=waves,
        load_widths={"128": 8}, **shared,
    )  # fmt: skip
    second = KernelResources(
        case="fp16 outliers", config={"BLOCK": "2048", "num_warps": "4"}, vgprs=vgprs - 14, occupancy=waves,
        load_widths={"128": 4, "16": 1}, **shared,
    )  # fmt: skip
    return {"gfx942": (first, second)}


def correct(
    *, speed: tuple[Latency, ...] = (), waste: float = 1.0, task: str = "starter/softmax"
) -> Evaluation:
    """Return the evaluation of a correct candidate; it requests `waste` + 0.5 times the needed bytes."""
    minimal = 131_072
    counts = tuple(
        traffic(
            case, int(minimal * waste), minimal // 2, unique=minimal // 2, minimal=minimal,
            sizes={"rows": 16, "cols": 1000}, flops=80_000, programs=16,
        )
        for case in ("fp32", "fp16 outliers")
    )  # fmt: skip
    full_sizes = tuple(
        FullSize(entry.case, {"rows": 4096, "cols": 4096}, 134_217_728, is_long=True) for entry in counts
    )
    ratios = [latency.speedup for latency in speed]
    return judged(
        task=task,
        device="0" if speed else "cpu",
        stages=stages(6 if speed else 5, failed=False),
        latency=speed,
        speedup=sum(ratios) / len(ratios) if ratios else None,
        speedup_geomean=sum(ratios) / len(ratios) if ratios else None,
        resources=resources(),
        traffic=counts,
        full_sizes=full_sizes,
        sandbox=(Layer("landlock", "active"), Layer("seccomp", "absent", "not built into this kernel")),
        provenance=Provenance(python="3.11.9", torch="2.13.0", triton="3.7.1"),
        facts=(
            Fact("outputs compared", "2 cases, 32,000 elements", Basis.PROOF),
            Fact("launches", "softmax_kernel 6", Basis.EVIDENCE),
        ),
        margins=(
            Margin("fp32", "y", "elementwise", 0.115, (4, 211)),
            Margin("fp16 outliers", "y", "elementwise", 0.374, (3, 999)),
        ),
    )


def examined(verdict: Verdict = Verdict.CORRECT) -> Evaluation:
    """Return the evaluation of a winner's exam."""
    if verdict is Verdict.CORRECT:
        margins = (
            Margin("fp32 one column", "y", "elementwise", 0.0, (0, 0)),
            Margin("fp16 wide", "y", "elementwise", 0.581, (0, 16384)),
        )
        return msgspec.structs.replace(correct(), exam=True, margins=margins)
    failed = msgspec.structs.replace(wrong(), exam=True, verdict=verdict)
    message = "output y of case fp16 wide is 0.0 where 0.00006104 was expected"
    if verdict is Verdict.INFRA_ERROR:
        message = "the judge is gone: it was killed"
    return msgspec.structs.replace(failed, error=ErrorReport("mismatch", message))


def wrong(task: str = "starter/softmax") -> Evaluation:
    """Return the evaluation of a wrong candidate with all details."""
    mismatch = Mismatch(
        case="fp16 outliers", output="y", index=(3, 517), expected="0.0009765625", got="nan", max_abs=0.98211,
        used=981.0, wrong_share=0.0625, nan_got=1000, nan_expected=0, inf_got=0, inf_expected=0,
        shape=(16, 1000), expected_shape=(16, 1000), dtype="float16", expected_dtype="float16",
    )  # fmt: skip
    return judged(
        Verdict.WRONG,
        task=task,
        stages=stages(3, failed=True, detail="fp16 outliers: y differs in 6.25 % of its elements"),
        error=ErrorReport(
            "mismatch",
            "output y of case fp16 outliers is NaN where 0.0009765625 was expected",
            mismatch=mismatch,
        ),
        resources=resources(),
        provenance=Provenance(python="3.11.9", torch="2.13.0", triton="3.7.1"),
        notes=("the mask's other value is 0.0: masked lanes count in the sum",),
    )


def call_error() -> Evaluation:
    """Return the evaluation of a kernel that raises, with stack frames of the kernel."""
    return judged(
        Verdict.CALL_ERROR,
        1,
        task="starter/softmax",
        stages=stages(1, failed=True, detail="TypeError at kernel.py line 14"),
        error=ErrorReport(
            "exception",
            "TypeError: maximum() got an unexpected keyword argument 'axis'",
            trace=TRACE,
            line=14,
        ),
        provenance=Provenance(python="3.11.9", torch="2.13.0", triton="3.7.1"),
    )


def latencies() -> tuple[Latency, ...]:
    """Return two timed cases of one device, with all telemetry that a device can report."""
    window = Window(
        source="nvml", seconds=0.61, clock_mhz=1755, clock_usual_mhz=1980, hotspot_c=61.0, memory_c=54.0,
        power_w=512.0, throttled={"power cap": 0.12}, other_processes=0,
    )  # fmt: skip
    calm = msgspec.structs.replace(window, clock_mhz=1980, throttled={}, other_processes=None)
    peaks = {"product": "H200 SXM", "bytes": 134217728, "flops": 67108864, "dtype": "fp32"}
    return (
        Latency(
            "0", "fp32", 0.0412, 0.0288, 1.43, (1.39, 1.47), "tape", Outcome.FASTER,
            against="triton", pairs=5, floor_ms=0.0041,
            baseline=Timed(0.0412, 0.0409, 0.0421, 640, left_out=12),
            candidate=Timed(0.0288, 0.0285, 0.0296, 655, left_out=9, processes=5, plain_ms=0.0313, peak_bytes=8 << 20, sustained_ms=0.0307),
            efficiency=Efficiency(**peaks, bytes_per_s=4.1e12, flops_per_s=2.3e12, io_utilisation=0.85, mfu=0.03),
            window=window,
        ),
        Latency(
            "0", "fp16 outliers", 0.0251, 0.0248, 1.01, (0.98, 1.04), "bound", Outcome.NOT_RESOLVED,
            against="triton", pairs=8, floor_ms=0.0041,
            baseline=Timed(0.0251, 0.0249, 0.0262, 980),
            candidate=Timed(0.0248, 0.0247, 0.0259, 1012, processes=8, plain_ms=0.0293),
            efficiency=Efficiency(**peaks, bytes_per_s=2.4e12, flops_per_s=1.3e12, io_utilisation=0.49, mfu=0.02),
            window=calm,
        ),
    )  # fmt: skip


@dataclass(slots=True)
class EventLog:
    """List of events that numbers and timestamps each event, as a journal does."""

    wall: float = STARTED_WALL
    events: list[ev.AnyEvent] = field(default_factory=list)

    def add(self, event: ev.AnyEvent, *, after_s: float = 0.0) -> None:
        """Append an event, `after_s` seconds after the last event."""
        self.wall += after_s
        number = len(self.events) + 1
        self.events.append(
            msgspec.structs.replace(event, seq=number, wall=self.wall, mono=self.wall - STARTED_WALL)
        )

    def open(
        self,
        *,
        review: str = "auto",
        devices: tuple[str, ...] = ("cpu",),
        iterations: int = 5,
        method: str = "geak",
    ) -> None:
        """Append the first events of the session."""
        self.add(
            story.started(
                SESSION, method=method, tasks=("starter/softmax", "starter/vector_add"),
                iterations=iterations, seed=7, devices=devices, review=review, versions={}, templates={},
            )
        )  # fmt: skip
        self.add(ev.EngineStarted(host="node17", pid=4242), after_s=0.2)

    def device(self, name: str, *busy: str, share: float | None = None) -> None:
        """Append a sample of a device."""
        gpu = name != "cpu"
        self.add(
            ev.DeviceSampled(
                device=name, description="MI300X gfx942" if gpu else "Triton's interpreter", busy_with=busy,
                utilisation=share, memory_used_bytes=(12 << 30) if gpu else None,
                memory_total_bytes=(192 << 30) if gpu else None, temperature_c=54.0 if gpu else None,
                power_w=312.0 if gpu else None, clock_mhz=2100.0 if gpu else None,
            ),
            after_s=0.3,
        )  # fmt: skip

    def ask(
        self,
        attempt: str,
        role: ev.Role,
        *,
        text: str | None,
        reasoning: str = REASONING,
        stream_s: float = 6.0,
        price: float | None = None,
    ) -> None:
        """Append a call and its streamed reply; without `text` the reply is not finished."""
        call = f"{attempt}/{role.value}/1"
        messages = (
            ev.Message("system", "You write Triton kernels."),
            ev.Message("user", f"Solve {attempt.partition('#')[0]}."),
        )
        self.add(
            ev.CallStarted(call=call, attempt=attempt, role=role, model=MODEL, messages=messages), after_s=0.4
        )
        whole = text or "Masked lanes load -inf, so that they vanish in"
        for kind, words in (("reasoning", reasoning), ("text", whole)):
            size = max(1, len(words) // 4 + 1)
            for start in range(0, len(words), size):
                self.add(
                    ev.ReplyPiece(call=call, kind=kind, text=words[start : start + size]),
                    after_s=stream_s / 8,
                )
        if text is not None:
            usage = ev.Usage(input_tokens=1840, output_tokens=612, cached_tokens=1024)
            self.add(
                ev.CallFinished(
                    call=call, text=text, reasoning=reasoning, stop_reason="end", usage=usage, cost_usd=price,
                    seconds=stream_s, temperature=1.0,
                ),
                after_s=0.1,
            )  # fmt: skip

    def attempt(
        self,
        name: str,
        source: str,
        evaluation: Evaluation,
        *,
        origin: ev.Origin = ev.Origin.FRESH,
        base: str | None = None,
        strategy: str = "",
        price: float | None = None,
    ) -> None:
        """Append a whole attempt, from the call to the commit."""
        role = ev.Role.OPTIMIZER if origin is ev.Origin.OPTIMIZE else ev.Role.GENERATOR
        self.add(ev.AttemptStarted(attempt=name, origin=origin, base=base), after_s=0.2)
        self.ask(name, role, text=REPLY.format(source=source), price=price)
        self.add(ev.CandidateProposed(attempt=name, source=source, strategy=strategy), after_s=0.1)
        for stage in evaluation.stages:
            if stage.ok is not None:
                self.add(
                    ev.StageStarted(attempt=name, stage=stage.name, device=evaluation.device), after_s=0.05
                )
                self.add(ev.StageFinished(attempt=name, stage=stage), after_s=stage.seconds)
        self.add(ev.AttemptJudged(attempt=name, evaluation=evaluation), after_s=0.1)
        commit = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()
        self.add(ev.AttemptCommitted(attempt=name, commit=commit, branch=f"{SESSION}/starter/x"), after_s=0.1)

    def exam(self, name: str, evaluation: Evaluation) -> None:
        """Append the exam of a winner."""
        self.add(ev.StageStarted(attempt=name, stage="execution", device="cpu", exam=True), after_s=0.1)
        self.add(ev.WinnerExamined(attempt=name, evaluation=evaluation), after_s=2.0)


def softmax_log(**options: Any) -> EventLog:
    """Return the first events of a session with one instance of softmax; `options` are those of `EventLog.open`."""
    log = EventLog()
    log.open(**options)
    log.add(ev.InstanceStarted(task="starter/softmax", instance=1), after_s=0.1)
    return log


def running() -> list[ev.AnyEvent]:
    """Return the events of three instances: the first is repaired and optimised, the second fails, the third streams a reply."""
    log = EventLog()
    log.open()
    for task, instance in (("starter/softmax", 1), ("starter/softmax", 2), ("starter/vector_add", 1)):
        log.add(ev.InstanceStarted(task=task, instance=instance), after_s=0.1)
    log.device("cpu", share=0.12)
    log.attempt("softmax#1/1", WRONG_SOURCE, wrong())
    log.attempt("softmax#1/2", RIGHT_SOURCE, correct(waste=2.1), origin=ev.Origin.REPAIR, base="softmax#1/1")
    log.attempt("softmax#2/1", BROKEN_SOURCE, call_error())
    log.attempt(
        "softmax#1/3",
        FAST_SOURCE,
        correct(waste=1.2),
        origin=ev.Origin.OPTIMIZE,
        base="softmax#1/2",
        strategy="Eight waves a row and an aligned stride, so that loads are 128 bits wide.",
    )
    log.add(
        ev.DecisionMade(attempt="softmax#1/2", accepted=True, why="clean and right", by="ada"), after_s=9.0
    )
    log.add(ev.AttemptStarted(attempt="vector_add#1/1", origin=ev.Origin.FRESH), after_s=0.2)
    log.ask("vector_add#1/1", ev.Role.GENERATOR, text=None)
    log.add(
        ev.AttemptStarted(attempt="softmax#2/2", origin=ev.Origin.REPAIR, base="softmax#2/1"), after_s=0.2
    )
    log.ask(
        "softmax#2/2", ev.Role.REFLECTOR, text=None, reasoning="tl.maximum is element-wise; tl.max reduces."
    )
    log.device("cpu", "softmax#1/4", share=0.87)
    return log.events


def at_once() -> list[ev.AnyEvent]:
    """Return the events of one instance with four attempts: 1 and 3 stream, 2 is in the judge, 4 is wrong."""
    log = softmax_log(method="kernelagent")
    names = [f"softmax#1/{number}" for number in range(1, 5)]
    for name in names:
        log.add(ev.AttemptStarted(attempt=name, origin=ev.Origin.FRESH), after_s=0.1)
    log.ask(names[1], ev.Role.GENERATOR, text=REPLY.format(source=BROKEN_SOURCE))
    log.ask(names[3], ev.Role.GENERATOR, text=REPLY.format(source=WRONG_SOURCE))
    for name, source in ((names[1], BROKEN_SOURCE), (names[3], WRONG_SOURCE)):
        log.add(ev.CandidateProposed(attempt=name, source=source), after_s=0.1)
    log.add(ev.StageStarted(attempt=names[1], stage="call", device="cpu"), after_s=0.1)
    log.add(ev.AttemptJudged(attempt=names[3], evaluation=wrong()), after_s=0.5)
    for name in (names[0], names[2]):
        log.ask(name, ev.Role.GENERATOR, text=None)
    return log.events


def finished() -> list[ev.AnyEvent]:
    """Return the events of `running` up to the end, with measured speed on one device and one undone decision."""
    log = EventLog()
    log.events = running()
    log.wall = log.events[-1].wall
    call = "vector_add#1/1/generator/1"
    source = RIGHT_SOURCE.replace("softmax", "vector_add")
    log.add(
        ev.CallFinished(
            call=call, text=REPLY.format(source=source), reasoning=REASONING, stop_reason="end", seconds=7.5
        )
    )
    log.add(ev.CandidateProposed(attempt="vector_add#1/1", source=source))
    log.add(
        ev.AttemptJudged(
            attempt="vector_add#1/1", evaluation=correct(speed=latencies(), task="starter/vector_add")
        ),
        after_s=4.0,
    )
    log.add(
        ev.DecisionMade(attempt="softmax#1/3", accepted=False, why="the assume is not checked", by="ada"),
        after_s=5.0,
    )
    log.add(ev.DecisionUndone(attempt="softmax#1/3", by="ada"), after_s=3.0)
    log.add(
        ev.CallFailed(
            call="softmax#2/2/reflector/1", reason="recording_exhausted", message="no more replies"
        ),
        after_s=1.0,
    )
    log.exam("softmax#1/3", examined())
    log.exam("vector_add#1/1", examined(Verdict.WRONG))
    for task, instance, best, reason in (
        ("starter/softmax", 1, "softmax#1/3", "iterations"),
        ("starter/softmax", 2, None, "recording_exhausted"),
        ("starter/vector_add", 1, "vector_add#1/1", "iterations"),
    ):
        log.add(ev.InstanceFinished(task=task, instance=instance, reason=reason, best=best), after_s=0.2)
    log.add(ev.SessionFinished(solved=("starter/softmax", "starter/vector_add")), after_s=0.5)
    return log.events


def write_live(home: Home, events: Iterable[ev.AnyEvent], *, session: str = SESSION) -> Path:
    """Write events as the journal of a live session and return the path of the journal."""
    journal = home.files(session).journal
    journal.parent.mkdir(parents=True, exist_ok=True)
    append(journal, list(events))
    return journal


def append(journal: Path, events: Sequence[ev.AnyEvent]) -> None:
    """Append events to a journal."""
    with journal.open("ab") as file:
        for event in events:
            file.write(encode(event) + b"\n")


def timed_again() -> list[ev.AnyEvent]:
    """Return `finished` with one winner whose exam timed it again and measured a smaller speedup."""
    first, second = latencies()
    slower = msgspec.structs.replace(first, candidate_ms=0.0322, speedup=1.28, ci=(1.25, 1.31))
    exam = msgspec.structs.replace(examined(), speedup=1.14, speedup_geomean=1.13, latency=(slower, second))
    return [
        msgspec.structs.replace(event, evaluation=exam)
        if isinstance(event, ev.WinnerExamined) and event.attempt == "vector_add#1/1"
        else event
        for event in finished()
    ]
