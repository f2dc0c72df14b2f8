"""Protects the race of configs on a real GPU: which clock decides, and that a failed capture leaves the process usable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from harness.worker.triton_hooks import autotuning, config_race
from harness.worker.triton_hooks.autotuning import Policy
from tests.support.judge.gpu import needs_gpu

pytestmark = [pytest.mark.gpu, pytest.mark.judge, needs_gpu]
LONG, SHORT, MIDDLE = (triton.Config({"ROUNDS": rounds}) for rounds in (20_000, 10, 1_000))


@triton.jit  # type: ignore[untyped-decorator]
def wait_kernel(x, N, ROUNDS: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803 -- triton's way
    value = tl.load(x + tl.arange(0, 128))
    for _ in range(ROUNDS):
        value = value * 0.999 + 0.001
    tl.store(x + tl.arange(0, 128), value)


@pytest.fixture
def race(monkeypatch: pytest.MonkeyPatch) -> Iterator[config_race.ConfigRace]:
    """The race of a policy that is installed."""
    for name in ("run", "_bench"):
        monkeypatch.setattr(autotuning.Autotuner, name, getattr(autotuning.Autotuner, name))
    policy = Policy(race=config_race.ConfigRace())
    policy.install()
    assert policy.race is not None
    return policy.race


def tune(*configs: triton.Config) -> tuple[triton.Config, dict[str, float]]:
    """Return the config that a first call chooses, and the milliseconds of each config."""
    tuner: Any = triton.autotune(configs=list(configs), key=["N"])(wait_kernel)
    x = torch.ones(128, device="cuda")
    tuner[(1,)](x, 128)
    torch.cuda.synchronize()
    assert bool(x.isfinite().all())
    return tuner.best_config, {str(config): timed[0] for config, timed in tuner.configs_timings.items()}


def asks_stream(config: triton.Config) -> triton.Config:
    """The config with a quick hook that ends a capture: a stream that is captured cannot be queried."""
    return triton.Config(config.kwargs, pre_hook=lambda _: torch.cuda.current_stream().query())


def test_short_configs_behind_a_long_one_are_compared_in_graphs(race: config_race.ConfigRace) -> None:
    chosen, in_graphs_ms = tune(LONG, MIDDLE, SHORT)
    assert chosen is SHORT
    race.nodes = 0
    chosen, between_events_ms = tune(LONG, MIDDLE, SHORT)
    assert chosen is SHORT
    assert in_graphs_ms[str(SHORT)] < 0.9 * between_events_ms[str(SHORT)], "events add to a short call"
    race.nodes = 8
    assert tune(LONG, MIDDLE, SHORT)[1][str(SHORT)] < between_events_ms[str(SHORT)]


def test_failed_capture_lets_events_decide_for_all(race: config_race.ConfigRace) -> None:
    after_failure_ms = tune(MIDDLE, asks_stream(SHORT))[1][str(MIDDLE)]
    in_graph_ms = tune(MIDDLE, SHORT)[1][str(MIDDLE)]
    race.nodes = 0
    between_events_ms = tune(MIDDLE, SHORT)[1][str(MIDDLE)]
    assert abs(after_failure_ms - between_events_ms) < abs(after_failure_ms - in_graph_ms)
    race.nodes = 64
    assert tune(SHORT, MIDDLE)[0] is SHORT, "later launches are captured again"
