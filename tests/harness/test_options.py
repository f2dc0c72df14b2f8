"""Launch keywords: another vendor's are `unsupported`, misspelled ones an error that names the right one."""

from __future__ import annotations

import pytest

from harness import DevicePool, Verdict
from harness.worker.kit.launch_options import dropped, refusal, unknown
from suites import baseline_source, load_task
from tests.support.judging import judge

pytestmark = [pytest.mark.judge]
CALL = "n, BLOCK=block)"


@pytest.mark.parametrize(
    ("name", "value", "backend", "refused"),
    [
        ("kpack", 2, "cuda", True),
        ("waves_per_eu", 2, "hip", False),
        ("maxnreg", 64, "hip", True),
        ("maxnreg", 64, "cuda", False),
        ("num_ctas", 1, "hip", False),
        ("num_ctas", 2, "cuda", False),
        ("cluster_dims", (2, 1, 1), "hip", True),
        ("cluster_dims", (2, 1, 1), "cuda", False),
        ("num_warps", 4, "hip", False),
    ],
)
def test_options_of_one_vendor(name: str, value: object, backend: str, refused: bool) -> None:  # noqa: FBT001
    assert bool(refusal(name, value, backend)) is refused


def test_a_misspelled_keyword_is_told_with_the_nearest() -> None:
    assert "did you mean `num_warps`" in unknown("num_warp", "hip", ())
    assert "did you mean `BLOCK`" in unknown("BLOK", "cuda", ("BLOCK", "n"))
    assert "did you mean" not in unknown("zzz", "cuda", ("BLOCK", "n"))
    assert unknown("BLOCK", "hip", ("BLOCK",)) == unknown("num_warps", "hip", ()) == ""
    assert "ignored" in dropped("cluster_dims", "cuda")
    assert dropped("num_warps", "cuda") == ""


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    ("keyword", "on", "verdict", "told"),
    [
        ("waves_per_eu=2", "sm_90", Verdict.UNSUPPORTED, "`waves_per_eu` exists only for the other vendor"),
        ("num_ctas=2", "gfx942", Verdict.UNSUPPORTED, "have no clusters"),
        ("num_warp=4", "gfx942", Verdict.COMPILE_ERROR, "did you mean `num_warps`?"),
    ],
)
async def test_a_launch_with_such_a_keyword(
    pool: DevicePool, keyword: str, on: str, verdict: Verdict, told: str
) -> None:
    source = baseline_source(load_task("vector_add"))
    assert CALL in source
    found = await judge(pool, source.replace(CALL, f"n, {keyword}, BLOCK=block)"), targets=(on,))
    assert found.verdict is verdict
    assert found.error is not None
    assert told in found.error.message
