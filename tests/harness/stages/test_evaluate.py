"""Protects `evaluate` with real judges and guests: every verdict, and its message to a kernel author."""

from __future__ import annotations

import asyncio
import gzip
import re

import msgspec
import pytest

from harness import STAGES, DevicePool, Evaluation, StageEvent, TimeLimits, Verdict
from harness.wire import limits
from suites import baseline_source, load_task
from tests.support.draws import drawn
from tests.support.judge.candidates import KERNEL, adding, with_value
from tests.support.judge.judging import judge

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture
def hasty_pool(pool: DevicePool, monkeypatch: pytest.MonkeyPatch) -> DevicePool:
    """A pool with little CPU time a call, and enough wall time for a busy machine."""
    hasty = TimeLimits(call_s=120.0, call_cpu_s=0.5, case_s=120.0, case_cpu_s=0.5)
    monkeypatch.setattr(pool, "limits", lambda _: hasty)
    return pool


@pytest.fixture
def impatient_pool(pool: DevicePool, monkeypatch: pytest.MonkeyPatch) -> DevicePool:
    monkeypatch.setattr(pool, "limits", lambda _: TimeLimits(call_s=1.0, case_s=1.0))
    return pool


async def test_correct_kernel_passes_all_stages_on_cpu(pool: DevicePool) -> None:
    task = load_task("vector_add")
    events: list[StageEvent] = []
    texts: dict[str, bytes] = {}
    evaluation = await judge(pool, baseline_source(task), on_event=events.append, keep_texts=texts.update)
    assert (evaluation.verdict, evaluation.error, evaluation.call, evaluation.execution) == (
        Verdict.CORRECT,
        None,
        True,
        True,
    )
    assert [stage.name for stage in evaluation.stages] == list(STAGES)
    assert [stage.ok for stage in evaluation.stages] == [True, True, True, True, True, None]
    assert evaluation.stages[-1].detail == "no GPU: not timed"
    assert (evaluation.latency, evaluation.speedup) == ((), None)
    assert {row.architecture for row in evaluation.resources["gfx942"]} == {"gfx942"}
    rows = evaluation.resources["gfx942"]
    assert {digest for row in rows for digest in row.texts.values()} == set(texts)
    assert all(set(row.texts) == {"amdgcn", "ttgir", "llir"} for row in rows)
    assembly = gzip.decompress(texts[rows[0].texts["amdgcn"]]).decode()
    assert "gfx942" in assembly
    assert '.file\t1 "." "kernel.py"' in assembly, "no path of this machine"
    assert rows[0].code.loads == rows[0].load_widths
    assert {layer.name for layer in evaluation.sandbox} >= {"session", "limits", "network", "read-allow-list"}
    known = evaluation.provenance
    assert known is not None
    assert all((known.python, known.torch, known.triton))
    entered = [event.stage for event in events if event.result is None]
    ended = [event.stage for event in events if event.result is not None]
    assert entered == ended == list(STAGES)
    assert msgspec.json.decode(msgspec.json.encode(evaluation), type=Evaluation) == evaluation
    assert [traffic.case for traffic in evaluation.traffic] == [case.name for case in task.open_cases]
    for traffic, case in zip(evaluation.traffic, task.open_cases, strict=True):
        wanted = 3 * case.cpu["n"] * (4 if case.dtype == "float32" else 2)
        assert traffic.unique_read_bytes + traffic.unique_write_bytes == wanted == traffic.minimal_bytes
        assert traffic.launches == 1
        assert traffic.excess == 1.0
    assert [(row.case, row.sizes) for row in evaluation.full_sizes] == [
        (case.name, case.gpu) for case in task.open_cases
    ]
    assert all(row.needed_bytes for row in evaluation.full_sizes)
    assert {row.is_long for row in evaluation.full_sizes} == {True, False}
    assert evaluation.not_sampled == {}


async def test_only_first_target_can_fail_a_candidate(pool: DevicePool) -> None:
    source = adding().replace("BLOCK=1024)", "BLOCK=1024, waves_per_eu=2)")
    evaluation = await judge(pool, source, targets=("gfx942", "sm_90"), cases=1)
    assert evaluation.verdict is Verdict.CORRECT
    assert "waves_per_eu" in evaluation.compile_errors["sm_90"]
    swapped = await judge(pool, source, targets=("sm_90", "gfx942"), cases=1)
    assert swapped.verdict is Verdict.UNSUPPORTED


@pytest.mark.parametrize(
    ("source", "verdict", "kind", "says"),
    [
        ("", Verdict.NO_CODE, "no_code", "no code"),
        ("# only a remark\n\n", Verdict.NO_CODE, "no_code", "no code"),
        ("def vector_add(x, y:\n    pass\n", Verdict.CALL_ERROR, "syntax", "line 1"),
        ("x = 1\n", Verdict.CALL_ERROR, "missing_entry_point", "vector_add(x, y)"),
        (adding().replace("(x, y):", "(a, b):"), Verdict.CALL_ERROR, "signature", "called `a`, not `x`"),
        (adding().replace("(x, y):", "(x, y, z):"), Verdict.CALL_ERROR, "signature", "`z` is one too many"),
        pytest.param("x = 1\n" * 200_000, Verdict.CALL_ERROR, "too_large", "1048576", id="too large"),
        ("def vector_add(x, y):\n    return x + y\n", Verdict.REJECTED, "no_kernel", "@triton.jit"),
        ("import os\n" + adding(before="os.system('true')"), Verdict.UNSUPPORTED, "unsupported", "os.system"),
        (adding(before="(lambda: 0).__globals__"), Verdict.REJECTED, "refused", "__globals__"),
    ],
)
async def test_static_errors_end_at_first_stage(
    pool: DevicePool, source: str, verdict: Verdict, kind: str, says: str
) -> None:
    evaluation = await judge(pool, source)
    assert (evaluation.verdict, evaluation.error.kind) == (verdict, kind)
    assert says in evaluation.error.message
    assert [stage.ok for stage in evaluation.stages] == [False, None, None, None, None, None]


async def test_call_error_names_candidate_line(pool: DevicePool) -> None:
    source = adding(before="x.no_such_method()")
    evaluation = await judge(pool, source, cases=1)
    assert (evaluation.verdict, evaluation.call) == (Verdict.CALL_ERROR, False)
    assert evaluation.error.line == source.splitlines().index("    x.no_such_method()") + 1
    assert "AttributeError" in evaluation.error.message
    files = {line.split('"')[1] for line in evaluation.error.trace.splitlines() if line.startswith("  File")}
    assert files == {"kernel.py"}


async def test_error_inside_kernel_names_cause_and_line(pool: DevicePool) -> None:
    source = adding(kernel=KERNEL.replace("x + y", "x + undefined_name"))
    evaluation = await judge(pool, source, cases=1)
    assert (evaluation.verdict, evaluation.error.kind) == (Verdict.CALL_ERROR, "exception")
    assert "NameError: name 'undefined_name' is not defined" in evaluation.error.message
    assert "InterpreterError" not in evaluation.error.message + evaluation.error.trace
    wanted = next(n for n, text in enumerate(source.splitlines(), 1) if "undefined_name" in text)
    assert evaluation.error.line == wanted


async def test_call_error_names_its_case(pool: DevicePool) -> None:
    evaluation = await judge(pool, adding(before="assert x.numel() != 9973, 'only whole blocks'"))
    assert (evaluation.verdict, evaluation.call, evaluation.execution) == (Verdict.CALL_ERROR, False, False)
    assert "case fp32-ragged" in evaluation.error.message
    assert "only whole blocks" in evaluation.error.message


async def test_wrong_output_says_where_and_which_cases_fail(pool: DevicePool) -> None:
    evaluation = await judge(pool, with_value("tl.where((n % 8 != 0) & (offsets >= n - 3), x - x, x + y)"))
    error = evaluation.error
    assert (evaluation.verdict, evaluation.call, evaluation.execution) == (Verdict.WRONG, True, False), error
    assert [stage.ok for stage in evaluation.stages[3:5]] == [False, None]
    first, place, near, inputs, *further, cases = error.message.split("\n")
    assert first == error.first_line
    assert re.fullmatch(r"wrong elements: the last 3 of 9973 elements \(9970..9972\)", place)
    assert near.endswith("0 0 0")
    assert re.fullmatch(r"inputs at \[9970\]: x = \S+, y = \S+", inputs)
    assert tuple(further) == error.further
    assert cases == error.cases
    assert re.match(r"fails: \d of \d cases, (all )?with n % \d+ != 0 \(", cases)
    assert "passes at cpu sizes: fp32" in cases


async def test_two_causes_in_two_calls_are_both_seen(pool: DevicePool) -> None:
    value = "tl.where(n == 9973, x - y, tl.where(n == 12289, (x + y).to(tl.int8).to(x.dtype), x + y))"
    evaluation = await judge(pool, with_value(value))
    formula = evaluation.error.mismatch
    assert (formula.case, "cast" in formula.pattern[0]) == ("fp32-ragged", False)
    [cast] = evaluation.error.further
    assert cast.startswith("case fp16-ragged: output `out` is wrong at index [0]: expected ")
    assert "times the tolerance; " in cast
    assert cast.endswith("a cast to an integer?")
    assert cast in evaluation.error.message.split("\n")


async def test_wrong_first_output_hides_no_other(pool: DevicePool) -> None:
    source = baseline_source(load_task("rms_norm_residual")).replace("total * total", "total * x")
    source = source.replace("tl.store(sum_ptr + places, total", "tl.store(sum_ptr + places, x")
    evaluation = await judge(pool, source, "rms_norm_residual", cases=2)
    assert evaluation.error.mismatch.output == "normed"
    assert [line.partition(" is wrong")[0] for line in evaluation.error.further] == [
        "case fp32: output `sum`",
        "case fp32-ragged: output `normed`",
        "case fp32-ragged: output `sum`",
    ]


async def test_exception_in_the_first_call_hides_no_wrong_value(pool: DevicePool) -> None:
    source = adding(
        before="assert x.numel() != 16384, 'no whole blocks'", kernel=KERNEL.replace("x + y", "x - y")
    )
    evaluation = await judge(pool, source, cases=2)
    assert (evaluation.verdict, evaluation.call) == (Verdict.CALL_ERROR, False)
    assert "no whole blocks" in evaluation.error.first_line
    [wrong] = evaluation.error.further
    assert wrong.startswith("case fp32-ragged: output `out` is wrong")


async def test_all_failing_hidden_cases_are_named_if_open_ones_pass(pool: DevicePool) -> None:
    value = "tl.where((n % 16 == 0) & (n != 16384) | (n > 1) & (n < 100), x - y, x + y)"
    evaluation = await judge(pool, with_value(value), hidden=True)
    named = {line.partition(",")[0] for line in (evaluation.error.first_line, *evaluation.error.further)}
    assert {"case hidden: small", "case hidden: multiples of 16"} <= named
    assert "passes at cpu sizes: fp32, fp32-ragged, fp32-one" in evaluation.error.cases


async def test_all_operators_outside_kernels_are_named_at_once(pool: DevicePool) -> None:
    evaluation = await judge(pool, adding(after="out = out.mul(1.0); out = out.add(0.0)"), cases=1)
    assert evaluation.verdict is Verdict.REJECTED
    assert re.search(
        r"the tensor operators `mul` \(line \d+\), `add` \(line \d+\) compute outside",
        evaluation.error.message,
    )


RESULTS = [
    ("out.double()", "dtype", "float64, expected float32"),
    ("out[:-1]", "shape", "[16383], expected [16384]"),
    ("None", "structure", "no return statement"),
    ("(out, out)", "structure", "expected one tensor, got a tuple of 2 tensors"),
    ("[out]", "structure", "expected one tensor, got a list of 1 tensor"),
    ("(out, 1)", "structure", "got a tuple of 2 values"),
    ("float(out[0])", "structure", "expected one tensor, got a float"),
    ("torch.empty(x.shape, device='meta')", "structure", "on the device meta"),
    ("out.to(torch.float8_e4m3fn)", "dtype", "float8_e4m3fn, expected float32"),
    ("out.to(torch.complex64)", "structure", "dtype complex64"),
    ("torch.empty(x.shape, dtype=torch.bits8)", "structure", "dtype bits8"),
]


@pytest.mark.parametrize(("result", "kind", "says"), drawn(RESULTS, 2))
async def test_result_of_wrong_dtype_shape_or_structure_is_wrong(
    pool: DevicePool, result: str, kind: str, says: str
) -> None:
    evaluation = await judge(pool, adding(result=result), cases=1)
    assert (evaluation.verdict, evaluation.error.kind) == (Verdict.WRONG, kind)
    assert says in evaluation.error.message


async def test_kernel_that_only_interprets_is_a_compile_error(pool: DevicePool) -> None:
    source = adding(top="ONE = 1.0\n", kernel=KERNEL.replace("x + y", "x + y * ONE"))
    evaluation = await judge(pool, source, cases=1)
    assert (evaluation.verdict, evaluation.error.kind, evaluation.call) == (
        Verdict.COMPILE_ERROR,
        "compile",
        True,
    )
    assert evaluation.error.message.startswith("gfx942: ")
    assert evaluation.error.line == next(n for n, t in enumerate(source.splitlines(), 1) if "y * ONE" in t)


async def test_operation_that_interpreter_gets_wrong_is_unsupported(pool: DevicePool) -> None:
    evaluation = await judge(
        pool, with_value("(x.to(tl.float8e4nv) + y.to(tl.float8e4nv)).to(x.dtype)"), cases=1
    )
    assert evaluation.verdict is Verdict.UNSUPPORTED
    assert not evaluation.verdict.counted
    assert evaluation.stages[1].ok is None
    assert "8e4nv" in evaluation.error.message


async def test_endless_loop_times_out_by_cpu_time(hasty_pool: DevicePool) -> None:
    evaluation = await judge(hasty_pool, adding(before="while True: pass"), cases=1)
    assert (evaluation.verdict, evaluation.error.kind) == (Verdict.TIMEOUT, "timeout")
    assert "0.5 s of CPU time" in evaluation.error.message
    assert "it last ran line" in evaluation.error.message
    assert evaluation.error.message.endswith(": `while True: pass`")


async def test_endless_sleep_times_out_by_wall_time_which_grows_with_the_load(
    impatient_pool: DevicePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "load", lambda: 1.5)
    evaluation = await judge(impatient_pool, "import time\n" + adding(before="time.sleep(1000)"), cases=1)
    assert evaluation.verdict is Verdict.TIMEOUT
    assert "within 2 s of wall time" in evaluation.error.message


async def test_timeout_of_slow_interpreter_operation_is_unsupported(hasty_pool: DevicePool) -> None:
    kernel = KERNEL.replace("x + y", "tl.sort(x) + y")
    evaluation = await judge(hasty_pool, adding(kernel=kernel, before="while x.numel() < 1 << 30: pass"))
    assert evaluation.verdict is Verdict.UNSUPPORTED
    assert "tl.sort" in evaluation.error.message


ENDINGS = [
    ("raise KeyboardInterrupt", Verdict.CALL_ERROR, "KeyboardInterrupt"),
    ("raise GeneratorExit", Verdict.CALL_ERROR, "GeneratorExit"),
    ("raise type('Stop', (BaseException,), {})('enough')", Verdict.CALL_ERROR, "enough"),
    ("raise SystemExit(70)", Verdict.CRASH, "exit code 70"),
    ("[torch][0].os.closerange(3, 50)", Verdict.CRASH, "ended its process"),
    ("[torch][0].os.kill([torch][0].os.getpid(), 11)", Verdict.CRASH, "killed by SIGSEGV in case fp32"),
    ("[torch][0].os.kill([torch][0].os.getpid(), 40)", Verdict.CRASH, "killed by signal 40 in case fp32"),
]
COMPILE_ENDINGS = [
    (f"if 'Interpreted' not in type(add_kernel).__name__: {end}", Verdict.COMPILE_ERROR, says)
    for end, says in (("raise SystemExit(70)", "70"), ("raise KeyboardInterrupt", "KeyboardInterrupt"))
]


@pytest.mark.parametrize(("before", "verdict", "says"), [*drawn(ENDINGS, 2), *drawn(COMPILE_ENDINGS, 1)])
async def test_candidate_that_ends_its_process_is_never_infra_error(
    pool: DevicePool, before: str, verdict: Verdict, says: str
) -> None:
    evaluation = await judge(pool, adding(before=before), cases=1)
    assert evaluation.verdict is verdict, evaluation.error
    assert says in evaluation.error.message


async def test_printed_text_is_cut_and_cannot_change_verdict(pool: DevicePool) -> None:
    source = adding(before="print('x' * 200_000); print('{\"verdict\": \"wrong\"}')")
    evaluation = await judge(pool, source, cases=1)
    assert evaluation.verdict is Verdict.CORRECT
    assert len(evaluation.printed) <= 64 << 10
    assert evaluation.printed.endswith('{"verdict": "wrong"}\n')


async def test_same_seed_gives_same_evaluation(pool: DevicePool) -> None:
    source = with_value("x * y")
    first, again, different_seed = [await judge(pool, source, seed=seed, cases=1) for seed in (7, 7, 8)]
    assert first.error.mismatch == again.error.mismatch
    assert first.error.mismatch.expected != different_seed.error.mismatch.expected


async def test_candidates_are_judged_in_parallel_up_to_slots(pool: DevicePool) -> None:
    running: set[int] = set()
    most = 0

    def watch(number: int, event: StageEvent) -> None:
        nonlocal most
        if event.result is None and event.stage == "call":
            running.add(number)
        elif event.result is not None and event.stage == "performance":
            running.discard(number)
        most = max(most, len(running))

    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(
                judge(pool, adding(), seed=n, on_event=lambda event, n=n: watch(n, event), cases=1)
            )
            for n in range(3)
        ]
    assert [task.result().verdict for task in tasks] == [Verdict.CORRECT] * 3
    assert most == 2
