"""`evaluate` on real judges and guests: every verdict, and what it says to a kernel author."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio

from harness import EVALUATION_DECODER, STAGES, DevicePool, StageEntered, StageLeft, TimeLimits, Verdict
from suites import baseline_source, load_task
from tests.support.candidates import KERNEL, adding, with_value
from tests.support.judging import judge

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def hasty_pool() -> AsyncIterator[DevicePool]:
    """Little CPU, and wall time for it on the busiest machine."""
    limits = TimeLimits(call_s=120.0, call_cpu_s=1.5, case_s=120.0, case_cpu_s=1.5)
    async with DevicePool(slots=1, limits=limits) as started:
        yield started


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def impatient_pool() -> AsyncIterator[DevicePool]:
    async with DevicePool(slots=1, limits=TimeLimits(call_s=4.0, case_s=4.0)) as started:
        yield started


async def test_a_right_kernel_passes_all_that_cpu_can_say(pool: DevicePool) -> None:
    events: list[StageEntered | StageLeft] = []
    found = await judge(pool, baseline_source(load_task("vector_add")), on_event=events.append)
    assert (found.verdict, found.error, found.call, found.execution) == (Verdict.CORRECT, None, True, True)
    assert [stage.name for stage in found.stages] == list(STAGES)
    assert [stage.ok for stage in found.stages] == [True, True, True, True, True, None]
    assert found.stages[-1].detail == "no GPU: estimate only"
    assert (found.latency, found.speedup) == ((), None)
    assert {one.binary for one in found.resources["gfx942"]} == {"gfx942"}
    assert {layer.name for layer in found.sandbox} >= {"session", "limits", "network", "read-allow-list"}
    assert set(found.versions) >= {"python", "torch", "triton"}
    entered = [one.stage for one in events if isinstance(one, StageEntered)]
    left = [one.stage.name for one in events if isinstance(one, StageLeft)]
    assert entered == left == list(STAGES)
    assert EVALUATION_DECODER.decode(msgspec.json.encode(found)) == found


async def test_traffic_is_counted_exactly_and_bounds_are_ordered(pool: DevicePool) -> None:
    task = load_task("vector_add")
    found = await judge(pool, baseline_source(task))
    assert [one.case for one in found.traffic] == [case.name for case in task.open_cases]
    for traffic, case in zip(found.traffic, task.open_cases, strict=True):
        wanted = 3 * case.cpu["n"] * (4 if case.dtype == "float32" else 2)
        assert traffic.unique_read_bytes + traffic.unique_write_bytes == wanted == traffic.minimal_bytes
        assert traffic.launches == 1
    assert all(0 < one.low_us <= one.high_us for one in found.estimate)
    assert len(found.estimate) == len(task.open_cases)


async def test_only_the_first_target_can_fail_a_candidate(pool: DevicePool) -> None:
    source = adding().replace("BLOCK=1024)", "BLOCK=1024, waves_per_eu=2)")
    found = await judge(pool, source, targets=("gfx942", "sm_90"))
    assert found.verdict is Verdict.CORRECT
    assert "waves_per_eu" in found.compile_errors["sm_90"]
    turned = await judge(pool, source, targets=("sm_90", "gfx942"))
    assert turned.verdict is Verdict.UNSUPPORTED


@pytest.mark.parametrize(
    ("source", "verdict", "kind", "says"),
    [
        ("", Verdict.NO_CODE, "no_code", "no code"),
        ("# only a remark\n\n", Verdict.NO_CODE, "no_code", "no code"),
        ("def vector_add(x, y:\n    pass\n", Verdict.CALL_ERROR, "syntax", "line 1"),
        ("x = 1\n", Verdict.CALL_ERROR, "missing_entry_point", "vector_add(x, y)"),
        (adding().replace("(x, y):", "(a, b):"), Verdict.CALL_ERROR, "signature", "called `a`, not `x`"),
        (adding().replace("(x, y):", "(x, y, z):"), Verdict.CALL_ERROR, "signature", "`z` is one too many"),
        ("x = 1\n" * 200_000, Verdict.CALL_ERROR, "too_large", "1048576"),
        ("def vector_add(x, y):\n    return x + y\n", Verdict.REJECTED, "no_kernel", "@triton.jit"),
        ("import os\n" + adding(before="os.system('true')"), Verdict.REJECTED, "refused", "os.system"),
    ],
)
async def test_what_the_text_alone_shows(
    pool: DevicePool, source: str, verdict: Verdict, kind: str, says: str
) -> None:
    found = await judge(pool, source)
    assert found.error is not None
    assert (found.verdict, found.error.kind) == (verdict, kind)
    assert says in found.error.message
    assert [stage.ok for stage in found.stages] == [False, None, None, None, None, None]


async def test_a_failed_call_names_the_candidates_own_line(pool: DevicePool) -> None:
    source = adding(before="x.no_such_method()")
    found = await judge(pool, source)
    assert (found.verdict, found.call) == (Verdict.CALL_ERROR, False)
    assert found.error is not None
    assert found.error.line == source.splitlines().index("    x.no_such_method()") + 1
    assert "AttributeError" in found.error.message
    files = {line.split('"')[1] for line in found.error.trace.splitlines() if line.startswith("  File")}
    assert files == {"kernel.py"}


async def test_an_error_inside_a_kernel_is_told_with_its_true_cause_and_line(pool: DevicePool) -> None:
    source = adding(kernel=KERNEL.replace("x + y", "x + undefined_name"))
    found = await judge(pool, source)
    assert found.error is not None
    assert (found.verdict, found.error.kind) == (Verdict.CALL_ERROR, "exception")
    assert "NameError: name 'undefined_name' is not defined" in found.error.message
    assert "InterpreterError" not in found.error.message + found.error.trace
    wanted = next(n for n, text in enumerate(source.splitlines(), 1) if "undefined_name" in text)
    assert found.error.line == wanted


async def test_an_error_in_a_later_case_names_the_case(pool: DevicePool) -> None:
    found = await judge(pool, adding(before="assert x.numel() != 9973, 'only whole blocks'"))
    assert (found.verdict, found.call, found.execution) == (Verdict.CALL_ERROR, False, False)
    assert found.error is not None
    assert "case fp32-ragged" in found.error.message
    assert "only whole blocks" in found.error.message


async def test_a_wrong_answer_is_described_whole(pool: DevicePool) -> None:
    found = await judge(pool, with_value("tl.where(offsets == 5, x - y, x + y)"))
    assert (found.verdict, found.call, found.execution) == (Verdict.WRONG, True, False)
    assert found.error is not None
    assert found.error.mismatch is not None
    mismatch = found.error.mismatch
    assert (mismatch.case, mismatch.output, mismatch.index) == ("fp32", "out", (5,))
    assert mismatch.wrong_share == pytest.approx(1 / 16384)
    assert mismatch.max_abs == pytest.approx(abs(float(mismatch.expected) - float(mismatch.got)), rel=1e-3)
    assert (mismatch.shape, mismatch.dtype) == (mismatch.expected_shape, mismatch.expected_dtype)
    assert "index [5]" in found.error.message
    assert found.stages[3].ok is False
    assert found.stages[4].ok is None


async def test_nan_is_wrong_and_counted(pool: DevicePool) -> None:
    found = await judge(pool, with_value("tl.where(offsets % 2 == 0, float('nan'), x + y)"))
    assert found.error is not None
    assert found.error.mismatch is not None
    assert (found.error.mismatch.nan_got, found.error.mismatch.nan_expected) == (8192, 0)
    assert "8192 NaN where 0 are expected" in found.error.message


@pytest.mark.parametrize(
    ("result", "kind", "says"),
    [
        ("out.double()", "dtype", "float64, expected float32"),
        ("out[:-1]", "shape", "[16383], expected [16384]"),
        ("None", "structure", "no return statement"),
        ("(out, out)", "structure", "a tuple of 2"),
        ("float(out[0])", "structure", "returned a float"),
        ("torch.empty(x.shape, device='meta')", "structure", "on the device meta"),
        ("out.to(torch.float8_e4m3fn)", "dtype", "float8_e4m3fn, expected float32"),
        ("out.to(torch.complex64)", "structure", "dtype complex64"),
        ("torch.empty(x.shape, dtype=torch.bits8)", "structure", "dtype bits8"),
    ],
)
async def test_another_kind_of_result_is_wrong(pool: DevicePool, result: str, kind: str, says: str) -> None:
    found = await judge(pool, adding(result=result))
    assert found.error is not None
    assert (found.verdict, found.error.kind) == (Verdict.WRONG, kind)
    assert says in found.error.message


async def test_what_interprets_but_does_not_compile_fails_for_the_target(pool: DevicePool) -> None:
    source = adding(top="ONE = 1.0\n", kernel=KERNEL.replace("x + y", "x + y * ONE"))
    found = await judge(pool, source)
    assert found.error is not None
    assert (found.verdict, found.error.kind, found.call) == (Verdict.COMPILE_ERROR, "compile", True)
    assert found.error.message.startswith("gfx942: ")
    assert found.error.line == next(n for n, t in enumerate(source.splitlines(), 1) if "y * ONE" in t)


async def test_what_the_interpreter_computes_wrongly_is_unsupported_not_wrong(pool: DevicePool) -> None:
    found = await judge(pool, with_value("(x.to(tl.float8e4nv) + y.to(tl.float8e4nv)).to(x.dtype)"))
    assert found.verdict is Verdict.UNSUPPORTED
    assert not found.verdict.counted
    assert found.stages[1].ok is None
    assert found.error is not None
    assert "8e4nv" in found.error.message


async def test_an_endless_loop_times_out_and_says_what_may_be_wrong(hasty_pool: DevicePool) -> None:
    found = await judge(hasty_pool, adding(before="while True: pass"))
    assert found.error is not None
    assert (found.verdict, found.error.kind) == (Verdict.TIMEOUT, "timeout")
    assert "1.5 s of CPU time" in found.error.message


async def test_waiting_for_ever_times_out_by_the_wall(impatient_pool: DevicePool) -> None:
    found = await judge(impatient_pool, "import time\n" + adding(before="time.sleep(1000)"))
    assert found.verdict is Verdict.TIMEOUT
    assert found.error is not None
    assert "4 s of wall time" in found.error.message


async def test_a_slow_scan_of_the_interpreter_is_unsupported(hasty_pool: DevicePool) -> None:
    kernel = KERNEL.replace("x + y", "tl.sort(x) + y")
    found = await judge(hasty_pool, adding(kernel=kernel, before="while x.numel() < 1 << 30: pass"))
    assert found.verdict is Verdict.UNSUPPORTED
    assert found.error is not None
    assert "tl.sort" in found.error.message


@pytest.mark.parametrize(("number", "name"), [(11, "SIGSEGV"), (40, "signal 40")])
async def test_a_crash_names_the_signal(pool: DevicePool, number: int, name: str) -> None:
    source = adding(before=f"[torch][0].os.kill([torch][0].os.getpid(), {number})")
    found = await judge(pool, source)
    assert found.error is not None
    assert (found.verdict, found.error.kind) == (Verdict.CRASH, name)
    assert f"killed by {name}" in found.error.message
    assert "case fp32" in found.error.message


@pytest.mark.parametrize(
    ("before", "verdict", "says"),
    [
        ("raise KeyboardInterrupt", Verdict.CALL_ERROR, "KeyboardInterrupt"),
        ("raise GeneratorExit", Verdict.CALL_ERROR, "GeneratorExit"),
        ("raise type('Stop', (BaseException,), {})('enough')", Verdict.CALL_ERROR, "enough"),
        ("raise SystemExit(70)", Verdict.CRASH, "exit code 70"),
        ("[torch][0].os.closerange(3, 50)", Verdict.CRASH, "ended its process"),
        (
            "if 'Interpreted' not in type(add_kernel).__name__: raise SystemExit(70)",
            Verdict.COMPILE_ERROR,
            "70",
        ),
        (
            "if 'Interpreted' not in type(add_kernel).__name__: raise KeyboardInterrupt",
            Verdict.COMPILE_ERROR,
            "KeyboardInterrupt",
        ),
    ],
)
async def test_no_way_to_end_looks_like_our_own_fault(
    pool: DevicePool, before: str, verdict: Verdict, says: str
) -> None:
    found = await judge(pool, adding(before=before))
    assert found.error is not None
    assert found.verdict is verdict, found.error
    assert says in found.error.message


async def test_printed_text_is_kept_as_a_tail_and_decides_nothing(pool: DevicePool) -> None:
    source = adding(before="print('x' * 200_000); print('{\"verdict\": \"wrong\"}')")
    found = await judge(pool, source)
    assert found.verdict is Verdict.CORRECT
    assert len(found.printed) <= 64 << 10
    assert found.printed.endswith('{"verdict": "wrong"}\n')


async def test_the_same_seed_gives_the_same_evaluation(pool: DevicePool) -> None:
    source = with_value("x * y")
    first, again, other = [await judge(pool, source, seed=seed) for seed in (7, 7, 8)]
    assert first.error == again.error
    assert first.error is not None
    assert other.error is not None
    assert first.error.mismatch is not None
    assert other.error.mismatch is not None
    assert first.error.mismatch.expected != other.error.mismatch.expected


async def test_candidates_are_judged_side_by_side_up_to_the_slots(pool: DevicePool) -> None:
    running: set[int] = set()
    most = 0

    def watch(number: int, event: StageEntered | StageLeft) -> None:
        nonlocal most
        if isinstance(event, StageEntered) and event.stage == "call":
            running.add(number)
        elif isinstance(event, StageLeft) and event.stage.name == "performance":
            running.discard(number)
        most = max(most, len(running))

    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(judge(pool, adding(), seed=n, on_event=lambda event, n=n: watch(n, event)))
            for n in range(5)
        ]
    assert [task.result().verdict for task in tasks] == [Verdict.CORRECT] * 5
    assert most == 2
