"""Protects the facts that serving needs: how they are found, what a task may require, and what was not measured."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import torch

from harness import DevicePool, Verdict
from harness.cases.call_plan import Step
from harness.cases.judged_case import JudgedCase
from harness.stages.timing.conclusions import Timing, require_serving
from harness.wire.findings import batch_error
from harness.wire.messages.clock import CANDIDATE
from harness.wire.messages.guest import Ask
from harness.wire.messages.timer import TapedCall
from harness.wire.results.served_calls import REPEATS, BatchRows, ServedCall
from harness.wire.results.serving_facts import serving_facts
from harness.worker.judge.batch_rows import compare_batch_rows
from harness.worker.oracle.problem import Problem
from harness.worker.oracle.vault import Given, Vault
from harness.worker.timer import served_call
from suites import baseline_source, load_task
from suites.task import REQUIREMENTS, Axis
from tests.support.judge.evaluations import judged
from tests.support.judge.judging import judge_task
from tests.support.timing.fake_timers import bench, on

FINE = ServedCall(case="fp32", host_us=20.0, no_graph="", host_waits=False, same_bits=True)
CHANGES: dict[str, dict[str, Any]] = {
    "no_graph": {"no_graph": "operation not permitted when stream is capturing"},
    "host_waits": {"host_waits": True},
    "not_deterministic": {"same_bits": False},
}


class IdleWatch:
    """A stopwatch without a device."""

    def host_waits(self, call: Callable[[], object], host_ms: float) -> bool | None:
        with contextlib.suppress(torch.OutOfMemoryError):
            call()
            return host_ms > 1
        return None


class Graph:
    """A graph on the CPU: a replay makes the captured call again, into the same output."""

    def __init__(self, call: Callable[[int], torch.Tensor], launches: int) -> None:
        self._call = call
        self.outputs = [call(number) for number in range(launches)]

    def replay(self) -> None:
        self.outputs[0].copy_(self._call(0))


class StaleGraph(Graph):
    """A graph that keeps the values of the capture in each replay."""

    def replay(self) -> None:
        pass


def try_serving(call: Callable[[torch.Tensor], torch.Tensor], graph: type[Graph] = Graph) -> ServedCall:
    memory, new_inputs = torch.arange(8, dtype=torch.uint8), torch.ones(8, dtype=torch.uint8)
    watch: Any = IdleWatch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(served_call, "CallGraph", graph)
        return served_call.try_serving(lambda: call(memory), memory, new_inputs, watch, host_ms=0.02)


def out_of_memory(_: torch.Tensor) -> torch.Tensor:
    raise torch.OutOfMemoryError


def changing() -> Callable[[torch.Tensor], torch.Tensor]:
    """A call whose last repeat gives other bits."""
    numbers = itertools.count()
    return lambda memory: memory + (next(numbers) == REPEATS)


@pytest.mark.parametrize(
    ("call", "graph", "no_graph", "host_waits", "same_bits"),
    [
        (lambda memory: memory.add_(1), Graph, "", False, True),  # repeats start from equal inputs, though it changes them
        (changing(), Graph, "", False, False),
        (out_of_memory, Graph, None, None, None),  # no obstacle
        (lambda memory: memory * 2, StaleGraph, served_call.OTHER_BITS, False, True),
    ],
    ids=["in place", "other bits", "out of memory", "stale graph"],
)  # fmt: skip
def test_call_is_tried_for_what_serving_needs(
    call: Callable[[torch.Tensor], torch.Tensor],
    graph: type[Graph],
    no_graph: str | None,
    *,
    host_waits: bool | None,
    same_bits: bool | None,
) -> None:
    served = try_serving(call, graph)
    assert (served.no_graph, served.host_waits, served.same_bits) == (no_graph, host_waits, same_bits)
    values = [fact.value for fact in serving_facts(judged(serving=(served,)))]
    assert sum(value.startswith("not measured") for value in values) == 3 * (call is out_of_memory)


def test_candidate_is_tried_in_each_case_and_cannot_choose_the_name() -> None:
    forged = TapedCall(served=msgspec.structs.replace(FINE, case="other", no_graph="x\n" * 10_000))
    on_bench = bench("fp32", "fp16-ragged", behaviours={CANDIDATE: on(Ask.SERVE, lambda *_: forged)})
    measured = on_bench.measure()
    assert sorted(call.case for call in measured.served) == ["fp16-ragged", "fp32"]
    assert len(measured.served[0].no_graph) < 1000
    assert "\n" not in measured.served[0].no_graph, "it could write lines of a pull request"
    assert on_bench.requests("baseline", Ask.SERVE) == []


@pytest.mark.parametrize("host_us", [math.nan, -1.0])
def test_impossible_host_time_is_refused(host_us: float) -> None:
    forged = TapedCall(served=msgspec.structs.replace(FINE, host_us=host_us))
    measured = bench(behaviours={CANDIDATE: on(Ask.SERVE, lambda *_: forged)}).measure()
    assert measured.error is not None
    assert "no times of a call" in measured.error.message


@pytest.mark.parametrize("kind", CHANGES)
def test_strict_task_refuses_what_serving_cannot_use(kind: str) -> None:
    lenient = load_task("vector_add")
    timing = Timing((), "timed", served=(FINE, msgspec.structs.replace(FINE, **CHANGES[kind])))
    assert require_serving(timing, lenient) is timing
    refused = require_serving(timing, msgspec.structs.replace(lenient, strict=(kind,)))
    assert refused.error is not None
    assert (refused.error.kind, refused.ok, refused.served) == (kind, False, timing.served)


def test_limit_of_host_time_refuses_a_slower_call() -> None:
    task = msgspec.structs.replace(load_task("vector_add"), max_host_us=15.0)
    error = require_serving(Timing((), "timed", served=(FINE,)), task).error
    assert error is not None
    assert error.message == "case fp32: the host needs 20 us for a call, the task allows 15 us"
    assert (
        require_serving(
            Timing((), "timed", served=(FINE,)), msgspec.structs.replace(task, max_host_us=20.0)
        ).ok
        is None
    )


@pytest.mark.judge
@pytest.mark.asyncio(loop_scope="session")
async def test_requirement_that_was_not_measured_is_a_note(pool: DevicePool) -> None:
    task = load_task("vector_add")
    strict = msgspec.structs.replace(task, cases=task.cases[:1], strict=tuple(REQUIREMENTS), max_host_us=1.0)
    evaluation = await judge_task(pool, baseline_source(task), strict)
    assert evaluation.verdict is Verdict.CORRECT
    assert (
        "required by the task, but not measured here: no_graph, host_waits, batch_dependent, max_host_us"
        in evaluation.notes
    )
    assert serving_facts(evaluation)[0].value == "not measured: no GPU timed the kernel"


# Rows alone and in a batch: the task's own code decides what a batch is.


def compare(
    task_name: str,
    kernel: Callable[..., torch.Tensor],
    problem_type: type[Problem] = Problem,
    **changes: object,
) -> tuple[BatchRows, ...]:
    """Return the comparison of a kernel that torch computes, on the sizes of the interpreter."""
    task = msgspec.structs.replace(load_task(task_name), **changes)
    problem, vault = problem_type(task), Vault()

    def call(_step: Step, values: Given) -> Any:
        output = kernel(**values.inputs)
        return SimpleNamespace(output=lambda _number: output)

    steps = [Step(JudgedCase(case), 0) for case in task.open_cases]
    return compare_batch_rows(
        task, problem, steps, lambda step: vault.given(problem, step.case, 1, step.place), call
    )


def test_rows_alone_with_equal_bits_are_independent_of_the_batch() -> None:
    compared = compare(
        "softmax", lambda x: torch.stack([torch.softmax(row.float(), 0).to(x.dtype) for row in x])
    )
    assert {(batch.axis, batch.rows, batch.same_bits) for batch in compared} == {("rows", 1, True)}
    assert len(compared) == len({case.dtype for case in load_task("softmax").open_cases})
    assert batch_error(compared) is None


def test_axis_that_keeps_its_sizes_is_split_to_the_size_of_a_case_with_the_same_other_sizes() -> None:
    case, *_ = load_task("softmax").open_cases
    kept, sizes = {axis: Axis(vary=False) for axis in case.cpu}, case.cpu
    fewer = msgspec.structs.replace(case, name="fewer", cpu=sizes | {"rows": 2})
    unlike = msgspec.structs.replace(case, name="unlike", cpu=dict.fromkeys(sizes, 1))
    [compared] = compare("softmax", lambda x: torch.softmax(x, -1), axes=kept, cases=(case, fewer, unlike))
    assert (compared.rows, compared.of, compared.same_bits) == (2, sizes["rows"], True)
    [alone] = compare("softmax", lambda x: torch.softmax(x, -1), axes=kept, cases=(case, unlike))
    assert alone.same_bits is None


def test_bits_that_depend_on_the_batch_are_found() -> None:
    def softmax(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x.double(), -1).to(x.dtype) * (1 + 2e-3 * (len(x) > 1))

    error = batch_error(compare("softmax", softmax))
    assert error is not None
    assert (error.kind, "rows=1 alone and in rows=" in error.message) == ("batch_dependent", True)


class OverAllRows(Problem):
    """A problem that scales its outputs by the number of rows."""

    def oracle(self, case: Any, inputs: Any) -> tuple[torch.Tensor, ...]:
        return tuple(output / inputs["x"].numel() for output in super().oracle(case, inputs))


def test_axis_whose_rows_depend_on_each_other_is_no_batch() -> None:
    (batch,) = compare("softmax", lambda x: x, OverAllRows)
    assert batch.same_bits is None
    assert "no size of the task's cases is a batch" in batch.why_not


# Words.


def test_facts_name_the_cases_with_an_obstacle() -> None:
    calls = (
        FINE,
        msgspec.structs.replace(FINE, case="fp16", host_us=31.0, host_waits=True, no_graph="`.item()`"),
    )
    batches = (BatchRows("fp32", "rows", 1, 64, same_bits=True),)
    facts = {
        fact.name: (fact.value, fact.is_obstacle)
        for fact in serving_facts(judged(serving=calls, batch_rows=batches))
    }
    assert facts["captured in a graph"] == ("no, in 1 of 2 cases (fp16): `.item()`", True)
    assert facts["host waits for the device"] == ("yes, in 1 of 2 cases (fp16)", True)
    assert facts["host time a call"] == ("20 us (fp32) to 31 us (fp16)", False)
    assert facts["same bits"] == ("yes, 4 calls on equal inputs, in all 2 cases", False)
    assert facts["same bits in any batch"] == ("yes, rows=1 alone and in rows=64, case fp32", False)
