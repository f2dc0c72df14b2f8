"""Protects the launch hooks and the policy for autotuned kernels, with a fake kernel. Needs no GPU."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import triton
from triton.compiler.compiler import CompiledKernel
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from harness import DevicePool
from harness.wire.messages.timer import MOST_LAUNCHES
from harness.worker.kit.call_graph import NotCaptured
from harness.worker.triton_hooks import config_race
from harness.worker.triton_hooks.autotuning import Mode, Policy
from harness.worker.triton_hooks.launches import Launch, handle_compiled_launches, handle_launches

pytestmark = pytest.mark.judge
SMALL, LARGE = triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})


def kernel_body(x: Any, n: Any, BLOCK: Any) -> None:
    """The text of a kernel."""


class FakeKernel:
    """Notes the block of each launch, and whether it was a trial."""

    fn = staticmethod(kernel_body)

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.launches: list[tuple[int, bool]] = []
        self.too_large: set[int] = set()

    def run(self, *args: Any, BLOCK: int, **named: Any) -> int:
        if BLOCK in self.too_large:
            raise triton.OutOfResources(BLOCK, 64, "shared memory")
        self.launches.append((BLOCK, self.policy.trying))
        return BLOCK


@pytest.fixture
def policy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Policy]:
    for name in ("run", "_bench"):
        monkeypatch.setattr(Autotuner, name, getattr(Autotuner, name))
    policy = Policy()
    policy.install()
    return policy


def tuner_of(policy: Policy) -> tuple[Any, FakeKernel]:
    kernel = FakeKernel(policy)

    def time_large_as_fastest(call: Any, quantiles: Any) -> list[float]:
        call()
        return [1.0 / kernel.launches[-1][0]] * 3

    tuner = Autotuner(
        kernel, ["x", "n", "BLOCK"], [SMALL, LARGE], ["n"], None, None, do_bench=time_large_as_fastest
    )
    return tuner, kernel


def call(tuner: Any, n: int = 8) -> Any:
    return tuner.run(None, n, grid=(1,), warmup=False)


@pytest.mark.parametrize("mode", [Mode.FIRST, Mode.ALL])
def test_tuner_keeps_no_arguments_of_a_call_that_failed(policy: Policy, mode: Mode) -> None:
    policy.mode = mode
    tuner, kernel = tuner_of(policy)
    kernel.too_large = {64, 128}
    with pytest.raises(triton.OutOfResources):
        call(tuner)
    assert tuner.nargs is None


def test_tuning_counts_as_trials_until_a_config_is_chosen(policy: Policy) -> None:
    tuner, kernel = tuner_of(policy)
    assert call(tuner) == 128
    assert kernel.launches == [(64, True), (128, True), (128, False)]
    assert policy.chosen == {"kernel_body": str(LARGE)}


def test_fixed_config_runs_without_tuning(policy: Policy) -> None:
    tuner, kernel = tuner_of(policy)
    policy.mode = Mode.FIXED
    policy.begin({"kernel_body": str(SMALL)})
    assert call(tuner) == 64
    assert kernel.launches == [(64, False)]
    assert policy.chosen == {"kernel_body": str(SMALL)}
    assert tuner.configs == [SMALL, LARGE]


def test_kernel_without_fixed_config_is_tuned(policy: Policy) -> None:
    tuner, _ = tuner_of(policy)
    policy.mode = Mode.FIXED
    policy.begin({"other": str(SMALL)})
    assert call(tuner) == 128


def test_every_config_is_launched_while_only_compiling(policy: Policy) -> None:
    tuner, kernel = tuner_of(policy)
    policy.mode = Mode.FIXED
    with policy.compiling():
        call(tuner)
        call(tuner)
    assert [block for block, _ in kernel.launches] == [64, 128] * 2
    assert policy.mode is Mode.FIXED


def test_config_that_does_not_fit_is_dropped(policy: Policy) -> None:
    for policy.mode in (Mode.FIRST, Mode.ALL):
        tuner, kernel = tuner_of(policy)
        kernel.too_large = {64}
        assert call(tuner) == 128


def test_launch_fails_with_first_error_if_no_config_fits(policy: Policy) -> None:
    for policy.mode in (Mode.FIRST, Mode.ALL):
        tuner, kernel = tuner_of(policy)
        kernel.too_large = {64, 128}
        with pytest.raises(triton.OutOfResources, match="64"):
            call(tuner)


def test_first_config_is_tried_once_for_each_key(policy: Policy) -> None:
    tuner, kernel = tuner_of(policy)
    policy.mode, policy.rehearses = Mode.FIRST, True
    for n in (8, 8, 9):
        assert call(tuner, n) == 64
    assert [trial for _, trial in kernel.launches] == [True, False, False, True, False]


def test_handler_sees_a_launch_and_may_change_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(triton.knobs.runtime, "interpret", False)
    monkeypatch.setattr(JITFunction, "run", lambda kernel, *args, **named: made.append((args, named)))
    seen: list[Launch] = []

    def handle(launch: Launch) -> Any:
        seen.append(launch)
        return launch.go_on(warmup=True)

    handle_launches(handle)
    triton.jit(kernel_body)[(2,)]("x", n=3, BLOCK=4, num_warps=8)
    assert made == [(("x",), {"n": 3, "BLOCK": 4, "num_warps": 8, "grid": (2,), "warmup": True})]
    assert seen[0].arguments == {"x": "x", "n": 3, "BLOCK": 4, "num_warps": 8}
    assert seen[0].options == {"num_warps": 8}
    assert seen[0].bind() == {"x": "x", "n": 3, "BLOCK": 4}


def test_handler_of_compiled_launches_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    own = lambda kernel, grid, stream, *values: "metadata"  # noqa: E731
    monkeypatch.setattr(CompiledKernel, "launch_metadata", own)
    seen: list[Any] = []
    end = handle_compiled_launches(lambda kernel, grid, values: seen.append((kernel, grid, values)))
    kernel = SimpleNamespace()
    assert CompiledKernel.launch_metadata(kernel, (1, 2, 3), 0, "x", 5) == "metadata"
    assert seen == [(kernel, (1, 2, 3), ("x", 5))]
    end()
    assert CompiledKernel.launch_metadata is own


@pytest.mark.asyncio(loop_scope="session")
async def test_the_pool_says_what_the_installed_triton_offers(pool: DevicePool) -> None:
    language = pool.language
    assert language is not None
    assert language.version == triton.__version__ == pool.software.triton
    assert {"exp", "sqrt", "erf"} <= {*language.functions}
    assert all(hasattr(triton.language, name) for name in language.functions)
    assert not [name for name in language.absent if hasattr(triton.language, name)]
    assert "tanh" in language.libdevice["cuda"]
    assert "tanh" in language.libdevice["hip"]


class FakeRace:
    """A tuner of two configs with a race that reads its milliseconds from tables by block: between events, and in graphs."""

    def __init__(self, policy: Policy, monkeypatch: pytest.MonkeyPatch, *, events: Any, graphs: Any) -> None:
        self.small, self.large = SMALL.kwargs["BLOCK"], LARGE.kwargs["BLOCK"]
        self.tuner, kernel = tuner_of(policy)
        self.timed: list[tuple[int, int]] = []
        """Block, and how long it ran between events, or into graphs of how many calls it was captured."""
        self.race = policy.race = config_race.ConfigRace()
        self.tuner._do_bench = None

        def do_bench(call: Any, warmup: int, rep: int, quantiles: Any) -> list[float]:
            call()
            self.timed.append((kernel.launches[-1][0], rep))
            return [events[self.timed[-1][0]]] * 3

        def time_in_graph(call: Any, nodes: int) -> float:
            call()
            self.timed.append((kernel.launches[-1][0], nodes))
            if self.timed[-1][0] not in graphs:
                raise NotCaptured("a hook reads a tensor")
            return float(graphs[self.timed[-1][0]])

        monkeypatch.setattr(config_race, "do_bench", do_bench)
        monkeypatch.setattr(config_race, "_time_in_graph", time_in_graph)
        monkeypatch.setattr(torch.version, "hip", None)


def test_only_configs_that_may_be_fastest_are_timed_for_long(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = FakeRace(policy, monkeypatch, events={64: 1.0, 128: 2.0}, graphs={})
    for n in (8, 16):
        made.timed.clear()
        assert call(made.tuner, n) == made.small
        assert made.timed == [
            (made.small, config_race.LOOK_MS),
            (made.small, config_race.TUNED_MS),
            (made.large, config_race.LOOK_MS),
        ]


def test_short_config_behind_a_long_one_is_timed_in_graphs(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = FakeRace(policy, monkeypatch, events={64: 0.04, 128: 0.02}, graphs={128: 0.018})
    assert call(made.tuner) == made.large
    assert made.timed[-1] == (made.large, MOST_LAUNCHES)


def test_configs_are_compared_in_graphs_that_are_trusted(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = FakeRace(policy, monkeypatch, events={64: 0.005, 128: 0.0051}, graphs={64: 0.003, 128: 0.002})
    for n, nodes, chosen in ((8, 32, made.large), (9, 0, made.small)):
        made.timed.clear()
        made.race.nodes = nodes
        assert call(made.tuner, n) == chosen
        assert made.timed[1] == (made.small, nodes or config_race.TUNED_MS)


def test_all_configs_are_timed_between_events_if_one_is_not_captured(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a graph the first config would win only because events add to the time of the second."""
    made = FakeRace(policy, monkeypatch, events={64: 0.006, 128: 0.005}, graphs={64: 0.004})
    assert call(made.tuner) == made.large
    assert made.timed[-3:] == [
        (made.small, config_race.TUNED_MS),
        (made.large, config_race.LOOK_MS),
        (made.large, config_race.TUNED_MS),
    ]
    made.timed.clear()
    assert call(made.tuner, 9) == made.large
    assert made.timed[1] == (made.small, MOST_LAUNCHES), "the next launch tries graphs again"
