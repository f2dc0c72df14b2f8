"""Kernels and evaluations of the generated session in `eighty_instances`. No figure here was measured."""

from __future__ import annotations

import math
from typing import NamedTuple

from harness import (
    STAGES,
    Basis,
    ErrorReport,
    Evaluation,
    Fact,
    Finding,
    KernelResources,
    Latency,
    Layer,
    Margin,
    Mismatch,
    Outcome,
    Stage,
    Traffic,
    Verdict,
)
from harness.wire.results.evaluation import FullSize
from harness.wire.results.latency import Bound, Efficiency, Timed, Window
from harness.wire.results.provenance import Provenance

AGAINST = "triton"
FLOOR_MS = 0.0041
SHORTEST_MS = 0.018
"""Times below are bounds: the launch hides the rest."""
COPY_BYTES_PER_S = 4.25e12
PEAK_BYTES_PER_S = 5.3e12
PROVENANCE = Provenance(
    product="MI300X",
    driver="6.12.12",
    runtime="ROCm 7.0",
    torch="2.13.0+rocm7.0",
    triton="3.7.1",
    python="3.11.9",
)


class Shape(NamedTuple):
    """One case: its name, its sizes, the baseline's time and the speedup relative to the attempt's."""

    case: str
    rows: int
    columns: int
    baseline_ms: float
    gain: float

    @property
    def bytes(self) -> int:
        """Bytes that a kernel must move: each element is read once and written once."""
        return (4 if self.case == "fp16" else 8) * self.rows * self.columns


SHAPES = (
    Shape("fp32", 8192, 8192, 0.2510, 1.05),
    Shape("ragged", 8192, 4097, 0.1320, 1.01),
    Shape("fp16", 8192, 8192, 0.1274, 0.99),
    Shape("outliers", 4096, 4096, 0.0661, 0.95),
    Shape("narrow", 1048576, 2, 0.2190, 1.0),
    Shape("one row", 1, 131072, 0.0171, 1.0),
)

BASE_SOURCE = '''\
import torch
import triton
import triton.language as tl


@triton.jit
def NAME_rows(x_ptr, out_ptr, columns, stride, BLOCK: tl.constexpr):
    """One program handles one row in two passes."""
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, columns, BLOCK):
        mask = start + offsets < columns
        x = tl.load(x_ptr + row * stride + start + offsets, mask=mask, other=-float("inf"))
        largest = tl.maximum(largest, x.to(tl.float32))
    top = tl.max(largest, axis=0)
    total = 0.0
    for start in range(0, columns, BLOCK):
        mask = start + offsets < columns
        x = tl.load(x_ptr + row * stride + start + offsets, mask=mask, other=-float("inf"))
        total += tl.sum(tl.exp(x.to(tl.float32) - top), axis=0)
    for start in range(0, columns, BLOCK):
        mask = start + offsets < columns
        x = tl.load(x_ptr + row * stride + start + offsets, mask=mask, other=-float("inf"))
        y = tl.exp(x.to(tl.float32) - top) / total
        tl.store(out_ptr + row * stride + start + offsets, y, mask=mask)


def NAME(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    rows, columns = x.shape
    NAME_rows[(rows,)](x, out, columns, x.stride(0), BLOCK=1024)
    return out
'''
_BODY_START = BASE_SOURCE.index('    """One program handles')
_BODY_END = BASE_SOURCE.index("\n\ndef NAME(")
ONE_PASS = """\
    # The whole row stays in registers: one read, one write.
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * stride + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride + offsets, x / tl.sum(x, axis=0), mask=mask)
"""
STRATEGIES = (
    "Two passes over the row in blocks of 1024 columns.",
    "Cast before the maximum, and mask the tail of the last block.",
    "One pass with the whole row in registers, so that each element is read once.",
    "Eight waves a row, so that more loads are in flight.",
    "An aligned stride, so that loads are 128 bits wide.",
    "Keep the output in the cache for the next kernel.",
)


def kernel(task: str, version: int, *, variant: int = 0) -> str:
    """Return the source of an attempt; neighbouring versions differ as a model's attempts do."""
    step, source = version % 6, BASE_SOURCE
    if step >= 1:
        source = source.replace("BLOCK=1024", f"BLOCK={2048 + 1024 * (variant % 3)}")
    if step >= 2:
        source = source[:_BODY_START] + ONE_PASS + source[_BODY_END:]
        block = "triton.next_power_of_2(columns)"
        source = source.replace(f"BLOCK={2048 + 1024 * (variant % 3)}", f"BLOCK={block}")
    if step >= 3:
        source = source.replace("next_power_of_2(columns))", "next_power_of_2(columns), num_warps=8)")
    if step >= 4:
        source = source.replace(
            "    row = tl.program_id(0)\n", "    tl.assume(stride % 16 == 0)\n    row = tl.program_id(0)\n"
        )
    if step >= 5:
        source = source.replace("mask=mask)\n\n\n", 'mask=mask, cache_modifier=".cg")\n\n\n')
    if version >= 6:
        source = source.replace("import torch\n", f"# Round {version // 6 + 1}.\nimport torch\n", 1)
    return source.replace("NAME", task.rpartition("/")[2])


def correct(
    task: str,
    device: str,
    speedup: float | None,
    *,
    half_width: float = 0.025,
    bounded: bool = False,
    throttled: bool = False,
    version: int = 0,
) -> Evaluation:
    """Return the evaluation of a correct candidate; without `speedup` nothing was timed.

    With `bounded`, the narrow case is too short for the candidate, so the whole speedup is a lower bound.
    """
    shapes = SHAPES if bounded else SHAPES[:4]
    name = task.rpartition("/")[2]
    rows = () if speedup is None else shapes
    latency = tuple(
        _latency(shape, device, speedup or 1.0, half_width, throttled=throttled) for shape in rows
    )
    ratios = [row.speedup for row in latency if row.speedup is not None]
    return Evaluation(
        schema=1,
        task=task,
        device=device,
        verdict=Verdict.CORRECT,
        call=True,
        execution=True,
        stages=stages(
            6 if latency else 5,
            untimed="no latency on device cpu" if device == "cpu" else "the timing baseline does not compile",
        ),
        latency=latency,
        speedup=sum(ratios) / len(ratios) if ratios else None,
        speedup_geomean=math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None,
        resources={"gfx942": tuple(_resources(name, shape, version) for shape in shapes[:2])},
        traffic=tuple(_traffic(shape, version) for shape in shapes[:4]),
        full_sizes=tuple(map(_full_size, shapes[:4])),
        sandbox=(Layer("landlock", "active"), Layer("seccomp", "active")),
        provenance=PROVENANCE,
        facts=(
            Fact("outputs compared", f"{len(shapes)} cases, 168 million elements", Basis.PROOF),
            Fact("launches", f"{name}_rows {len(shapes)}", Basis.EVIDENCE),
        ),
        margins=tuple(
            Margin(shape.case, "out", "elementwise", 0.11 + 0.23 * place, (0, 31))
            for place, shape in enumerate(shapes[:4])
        ),
        findings=(Finding("narrow_guard", "line 12 refuses columns > 8192; no case goes there", line=12),)
        if version % 3 == 2
        else (),
        notes=("timings were repeated: the clock had dropped",) if throttled else (),
    )


def refused(task: str, device: str, verdict: Verdict, *, case: str = "ragged") -> Evaluation:
    """Return the evaluation of a candidate with any verdict but `correct`."""
    passed, kind, message, line = {
        Verdict.WRONG: (3, "mismatch", f"output out of case {case} is nan where 0.000244 was expected", 14),
        Verdict.COMPILE_ERROR: (2, "compile", "gfx942: out of resource: shared memory, 81920 > 65536", 9),
        Verdict.CALL_ERROR: (1, "exception", "TypeError: maximum() got an unexpected argument 'axis'", 15),
        Verdict.REJECTED: (0, "static", "line 31 calls torch.softmax: the kernel must do the work", 31),
        Verdict.TIMEOUT: (3, "timeout", f"case {case} did not end within 60 s", None),
        Verdict.CRASH: (3, "memory_fault", f"case {case}: memory access fault by GPU {device}", None),
        Verdict.NO_CODE: (0, "no_code", "the reply has no code block", None),
        Verdict.UNSUPPORTED: (2, "unsupported", "fp8 inputs need gfx950; this device is gfx942", None),
        Verdict.CANCELLED: (3, "cancelled", "a person stopped the instance", None),
        Verdict.INFRA_ERROR: (3, "infra_error", f"GPU {device} was lost: HSA_STATUS_ERROR, no reset", None),
    }[verdict]
    failed = Mismatch(
        case, "out", (0, 4096), "0.000244", "nan", 0.0, 0.000244, 8192, 0, 0, 0,
        (8192, 4097), (8192, 4097), "float32", "float32", used=0.0,
        pattern=("All wrong elements are in the last column.",),
    )  # fmt: skip
    name = task.rpartition("/")[2]
    trace = f'File "kernel.py", line {line}, in {name}_rows\n{message}\n' if kind == "exception" else ""
    return Evaluation(
        schema=1,
        task=task,
        device=device,
        verdict=verdict,
        call=passed > 1,
        execution=False,
        stages=stages(passed, failed=verdict is not Verdict.NO_CODE, detail=message),
        error=ErrorReport(
            kind,
            message,
            trace=trace,
            line=line,
            mismatch=failed if verdict is Verdict.WRONG else None,
            cases=f"fails: {case}; passes: 5 cases, columns 1024*k" if verdict is Verdict.WRONG else "",
        ),
        provenance=PROVENANCE,
    )


def stages(passed: int, *, failed: bool = False, detail: str = "", untimed: str = "") -> tuple[Stage, ...]:
    """Return six stages: `passed` stages passed; the next stage failed or was not reached."""
    seconds = (0.02, 1.9, 6.3, 4.8, 3.1, 21.0)
    details = (
        "entry point found", "6 launches captured", "gfx942: 2 kernels",
        "27 of 27 checks match", "42 of 42 checks hold", "5 pairs of processes",
    )  # fmt: skip
    rows = []
    for place, name in enumerate(STAGES):
        if place < passed:
            rows.append(Stage(name, True, seconds[place], details[place]))
        elif place == passed and failed:
            rows.append(Stage(name, False, seconds[place], detail))
        else:
            rows.append(Stage(name, None, 0.0, "" if failed else untimed))
    return tuple(rows)


def _latency(shape: Shape, device: str, speedup: float, half_width: float, *, throttled: bool) -> Latency:
    baseline_ms = shape.baseline_ms * (1.13 if throttled else 1.0)
    ratio = speedup * shape.gain
    candidate_ms = baseline_ms / ratio
    bound, outcome = Bound.NONE, Outcome.NOT_RESOLVED
    measured: float | None = ratio
    interval: tuple[float, float] | None = (ratio - half_width, ratio + half_width)
    if shape.case == "narrow":
        candidate_ms = SHORTEST_MS
        measured, bound, outcome = baseline_ms / candidate_ms, Bound.AT_LEAST, Outcome.FASTER
        interval = (measured - half_width, measured + half_width)
    elif shape.case == "one row":
        measured, interval, outcome, candidate_ms = None, None, Outcome.TOO_SHORT, SHORTEST_MS * 0.9
    elif ratio - half_width > 1:
        outcome = Outcome.FASTER
    elif ratio + half_width < 1:
        outcome = Outcome.SLOWER
    rate = shape.bytes / (candidate_ms / 1000)
    return Latency(
        device, shape.case, baseline_ms, candidate_ms, measured, interval, "tape", outcome,
        against=AGAINST, pairs=5, floor_ms=FLOOR_MS, bound=bound,
        baseline=Timed(baseline_ms, baseline_ms * 0.994, baseline_ms * 1.006, 640, processes=5),
        candidate=Timed(
            candidate_ms, candidate_ms * 0.996, candidate_ms * 1.005, 655, left_out=41 if throttled else 2,
            processes=5, plain_ms=candidate_ms + 0.006, peak_bytes=shape.bytes,
        ),
        wall_ms=candidate_ms + 0.004,
        efficiency=Efficiency(
            "MI300X", shape.bytes, 5 * shape.rows * shape.columns, "fp32", rate, rate / 1.6,
            io_utilisation=min(0.8, rate / PEAK_BYTES_PER_S), mfu=0.02,
            io_measured=min(0.98, rate / COPY_BYTES_PER_S), mfu_measured=0.03,
        ),
        window=Window(
            "amdsmi", 0.61, clock_mhz=1610 if throttled else 2100, clock_usual_mhz=2100, hotspot_c=71.0,
            memory_c=58.0, power_w=750.0 if throttled else 640.0,
            throttled={"power cap": 0.42} if throttled else {}, other_processes=0,
        ),
    )  # fmt: skip


def _resources(name: str, shape: Shape, version: int) -> KernelResources:
    return KernelResources(
        kernel=f"{name}_rows", case=shape.case, config={"BLOCK": "4096", "num_warps": "8"}, autotune_index=None,
        architecture="gfx942", binary_sha256=f"{version:064x}", grid=(shape.rows, 1, 1), vgprs=56 + 8 * (version % 6),
        agprs=0, sgprs=24, vgpr_spills=0, sgpr_spills=0, scratch_bytes=0, lds_bytes=0, matrix_instructions=0,
        occupancy=max(4, 8 - version % 6), occupancy_limit="vgprs", load_widths={"128": 8}, compile_seconds=0.4,
    )  # fmt: skip


def _traffic(shape: Shape, version: int) -> Traffic:
    moved = 8 * 16 * 1000
    reads = 1 if version % 6 >= 2 else 3
    return Traffic(
        case=shape.case, sizes={"rows": 16, "columns": 1000}, requested_read_bytes=moved // 2 * reads,
        requested_write_bytes=moved // 2, unique_read_bytes=moved // 2, unique_write_bytes=moved // 2, minimal_bytes=moved,
        dot_flops=0, flops=80_000, launches=1, programs=16,
    )  # fmt: skip


def _full_size(shape: Shape) -> FullSize:
    sizes = {"rows": shape.rows, "columns": shape.columns}
    return FullSize(shape.case, sizes, shape.bytes, is_long=shape.bytes >= 1e-6 * PEAK_BYTES_PER_S)
