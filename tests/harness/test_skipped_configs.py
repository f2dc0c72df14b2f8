"""Configs of autotuned kernels that do not compile or do not fit: skipped as long as another one does."""

from __future__ import annotations

import pytest

from harness import DevicePool, Verdict

from .additions import addition, judge_addition

pytestmark = [pytest.mark.judge, pytest.mark.timeout(120), pytest.mark.asyncio(loop_scope="session")]

TUNED = "@triton.autotune(configs=[{configs}], key=['n'])"
ASSERTED = "tl.static_assert(BLOCK <= 1024, 'a block is too large')"


def config(block: int, warps: int = 4) -> str:
    return f"triton.Config({{'BLOCK': {block}}}, num_warps={warps})"


def tuned(*configs: str, kernel: str = "") -> str:
    return addition(arguments="", kernel=kernel, decorators=TUNED.format(configs=", ".join(configs)))


async def test_a_first_config_that_does_not_fit_is_skipped_in_every_case(pool: DevicePool) -> None:
    """It is compiled in the first case alone, and the later cases have others to stand for it."""
    source = tuned(config(1024, warps=64), config(1024))
    evaluation = await judge_addition(pool, source, cases=("fp32-ragged", "fp16-ragged"))
    assert evaluation.verdict is Verdict.CORRECT, evaluation.error


async def test_a_config_whose_static_assertion_fails_is_skipped(pool: DevicePool) -> None:
    source = tuned(config(1024), config(512), config(4096), kernel=ASSERTED)
    evaluation = await judge_addition(pool, source)
    assert evaluation.verdict is Verdict.CORRECT, evaluation.error


async def test_the_first_configs_error_is_told_where_none_compiles(pool: DevicePool) -> None:
    evaluation = await judge_addition(pool, tuned(config(2048), config(4096), kernel=ASSERTED))
    assert evaluation.verdict in (Verdict.CALL_ERROR, Verdict.COMPILE_ERROR)
    assert evaluation.error is not None
    assert "a block is too large" in evaluation.error.message
