"""Protects launch keywords: a different vendor's keyword is unsupported, a misspelled keyword is an error with a hint."""

from __future__ import annotations

import pytest

from harness.worker.triton_hooks.compiler_options import dropped, refusal, unknown

pytestmark = [pytest.mark.judge]


@pytest.mark.parametrize(
    ("name", "value", "backend", "refused"),
    [
        ("kpack", 2, "cuda", True),
        ("waves_per_eu", 2, "hip", False),
        ("maxnreg", 64, "hip", True),
        ("maxnreg", 64, "cuda", False),
        ("num_ctas", 1, "hip", False),
        ("num_ctas", 2, "hip", True),
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
