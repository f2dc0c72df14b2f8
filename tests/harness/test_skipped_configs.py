"""Protects autotuning with bad configs: a config that does not compile or fit is skipped while a good config remains."""

from __future__ import annotations

import pytest

from harness import DevicePool, Verdict
from tests.support.additions import addition
from tests.support.judging import judge

pytestmark = [pytest.mark.judge, pytest.mark.timeout(120), pytest.mark.asyncio(loop_scope="session")]

TUNED = "@triton.autotune(configs=[{configs}], key=['n'])"
ASSERTED = "tl.static_assert(BLOCK <= 1024, 'a block is too large')"


def config(block: int, warps: int = 4) -> str:
    return f"triton.Config({{'BLOCK': {block}}}, num_warps={warps})"


def tuned(*configs: str, kernel: str = "") -> str:
    return addition(arguments="", kernel=kernel, decorators=TUNED.format(configs=", ".join(configs)))


async def test_config_that_is_too_large_or_fails_an_assertion_is_skipped_in_every_case(
    pool: DevicePool,
) -> None:
    """The bad configs are compiled only in the first case; later cases use a different config."""
    source = tuned(config(1024, warps=64), config(4096), config(1024), kernel=ASSERTED)
    evaluation = await judge(pool, source, cases=("fp32-ragged", "fp16-ragged"), hidden=True)
    assert evaluation.verdict is Verdict.CORRECT, evaluation.error


async def test_first_error_is_reported_if_no_config_compiles(pool: DevicePool) -> None:
    evaluation = await judge(
        pool, tuned(config(2048), config(4096), kernel=ASSERTED), cases=("fp32-ragged",), hidden=True
    )
    assert evaluation.verdict in (Verdict.CALL_ERROR, Verdict.COMPILE_ERROR)
    assert "a block is too large" in evaluation.error.message
