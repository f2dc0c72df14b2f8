"""Protects the error of an autotuned kernel of which no config compiles; kernels with a good config are in `tests/honest`."""

from __future__ import annotations

import pytest

from harness import DevicePool, Verdict
from tests.support.judge.candidates import KERNEL, adding
from tests.support.judge.judging import judge

pytestmark = [pytest.mark.judge, pytest.mark.timeout(120), pytest.mark.asyncio(loop_scope="session")]


def tuned(*configs: tuple[int, int]) -> str:
    """Source with configs of these blocks and warps; a block above 1024 fails a static assertion."""
    listed = ", ".join(f"triton.Config({{'BLOCK': {block}}}, num_warps={warps})" for block, warps in configs)
    kernel = KERNEL.replace("@triton.jit", f"@triton.autotune(configs=[{listed}], key=['n'])\n@triton.jit")
    asserted = "    tl.static_assert(BLOCK <= 1024, 'a block is too large')\n    offsets ="
    return adding(kernel=kernel.replace("    offsets =", asserted)).replace(", BLOCK=1024)", ")")


async def test_first_error_is_reported_if_no_config_compiles(pool: DevicePool) -> None:
    evaluation = await judge(pool, tuned((2048, 4), (4096, 4)), cases=("fp32-ragged",), hidden=True)
    assert evaluation.verdict in (Verdict.CALL_ERROR, Verdict.COMPILE_ERROR)
    assert "a block is too large" in evaluation.error.message
