"""Protects launch keywords: a different vendor's keyword is unsupported, a misspelled keyword is an error with a hint."""

from __future__ import annotations

import pytest

from harness import DevicePool, Verdict
from harness.worker.triton_hooks.launch_options import dropped, refusal, unknown
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
def test_option_of_one_vendor_is_refused_for_the_other(
    name: str, value: object, backend: str, *, refused: bool
) -> None:
    assert bool(refusal(name, value, backend)) is refused


def test_misspelled_keyword_error_names_the_nearest() -> None:
    assert "did you mean `num_warps`" in unknown("num_warp", "hip", ())
    assert "did you mean `BLOCK`" in unknown("BLOK", "cuda", ("BLOCK", "n"))
    assert "did you mean" not in unknown("zzz", "cuda", ("BLOCK", "n"))
    assert unknown("BLOCK", "hip", ("BLOCK",)) == unknown("num_warps", "hip", ()) == ""
    assert "ignored" in dropped("cluster_dims", "cuda")
    assert dropped("num_warps", "cuda") == ""


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    ("keyword", "target", "verdict", "message"),
    [
        ("waves_per_eu=2", "sm_90", Verdict.UNSUPPORTED, "`waves_per_eu` exists only for the other vendor"),
        ("num_ctas=2", "gfx942", Verdict.UNSUPPORTED, "have no clusters"),
        ("num_warp=4", "gfx942", Verdict.COMPILE_ERROR, "did you mean `num_warps`?"),
    ],
)
async def test_launch_with_bad_keyword_gets_its_verdict(
    pool: DevicePool, keyword: str, target: str, verdict: Verdict, message: str
) -> None:
    source = baseline_source(load_task("vector_add"))
    assert CALL in source
    evaluation = await judge(
        pool, source.replace(CALL, f"n, {keyword}, BLOCK=block)"), targets=(target,), cases=1
    )
    assert evaluation.verdict is verdict
    assert message in evaluation.error.message
