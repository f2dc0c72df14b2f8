"""Protects results of the device library's functions in interpreted kernels, on AMD and NVIDIA."""

from __future__ import annotations

import json
import math

import pytest

from tests.support.judge.drivers import drive

pytestmark = pytest.mark.judge
INF, NAN = math.inf, math.nan

BOTH = {
    ("tanh", 0.5): math.tanh(0.5),
    ("erf", 0.3): math.erf(0.3),
    ("erfc", 2.0): math.erfc(2.0),
    ("rsqrt", 4.0): 0.5,
    ("exp2", 3.0): 8.0,
    ("log1p", 1e-3): math.log1p(1e-3),
    ("expm1", 1e-3): math.expm1(1e-3),
    ("sinh", 1.0): math.sinh(1.0),
    ("asin", 0.5): math.asin(0.5),
    ("atanh", 0.5): math.atanh(0.5),
    ("atan2", -1.0, -1.0): -2.356194490192345,
    ("rint", 2.5): 2.0,
    ("round", -2.5): -3.0,
    ("nearbyint", 3.5): 4.0,
    ("trunc", -1.7): -1.0,
    ("pow", 2.0, -1.5): 2.0**-1.5,
    ("fmod", -7.0, 3.0): -1.0,
    ("hypot", 3.0, 4.0): 5.0,
    ("copysign", 3.0, -0.0): -3.0,
    ("lgamma", 0.0): INF,
    ("lgamma", 4.5): math.lgamma(4.5),
}
"""Functions of float32 and float64 with their results, on AMD and NVIDIA."""

NVIDIA_ONLY = {
    ("exp10", "float32", "float32", 2.0): 100.0,
    ("cbrt", "float64", "float64", -27.0): -3.0,
    ("remainder", "float32", "float32", 5.0, 3.0): -1.0,
    ("fdim", "float32", "float32", 1.0, 3.0): 0.0,
    ("normcdf", "float64", "float64", 0.0): 0.5,
    ("tgamma", "float64", "float64", 5.0): 24.0,
    ("div_rn", "float32", "float32", 1.0, 3.0): 0.3333333432674408,
    ("fast_dividef", "float32", "float32", 1.0, 4.0): 0.25,
    ("fast_powf", "float32", "float32", 2.0, 3.0): 8.0,
    ("clz", "int32", "int32", 1): 31,
    ("clz", "int64", "int32", 1): 63,
    ("ffs", "int32", "int32", 12): 3,
    ("popc", "int32", "int32", -1): 32,
    ("mulhi", "int32", "int32", -(2**31), 2): -1,
    ("finitef", "float32", "int32", INF): 0,
}

PREDICATES = {("isnan", NAN): 1, ("isinf", -INF): 1, ("signbit", -1.0): 1, ("isnan", 1.0): 0}


def call(target: str, calls: list[list[object]]) -> list[object]:
    results: list[object] = drive("call_libdevice.py", target, json.dumps(calls))
    return results


def calls_of_both(dtype: str) -> list[list[object]]:
    return [[name, dtype, dtype, *arguments] for name, *arguments in BOTH]


REFUSED: dict[str, list[tuple[list[object], str]]] = {
    "gfx942": [
        (["j0", "float32", "float32", 1.0], "unsupported: Triton's interpreter has no `__ocml_j0_f32`")
    ],
    "sm_90": [
        (["yn", "int32", "float32", 1], "TypeError"),
        (
            ["div_rz", "float32", "float32", 1.0, 3.0],
            "unsupported: Triton's interpreter has no `__nv_fdiv_rz`",
        ),
        (
            ["tanh", "float16", "float16", 1.0],
            "TypeError: libdevice.tanh takes no (fp16); cast to float32 first",
        ),
    ],
}


@pytest.mark.parametrize("target", ["gfx942", pytest.param("sm_90", marks=pytest.mark.soak)])
def test_library_functions_return_device_results(target: str) -> None:
    """A function that the interpreter lacks is unsupported by name; a type that the library lacks is an error."""
    single, double = calls_of_both("float32"), calls_of_both("float64")
    predicates: list[list[object]] = [[name, "float32", "int32", x] for name, x in PREDICATES]
    nvidia: list[list[object]] = [list(key) for key in NVIDIA_ONLY] if target == "sm_90" else []
    refused = [arguments for arguments, _ in REFUSED[target]]
    results = iter(call(target, [*single, *double, *predicates, *nvidia, *refused]))
    assert [next(results) for _ in single] == pytest.approx(list(BOTH.values()), rel=1e-6)
    assert [next(results) for _ in double] == pytest.approx(list(BOTH.values()), rel=1e-14)
    assert [next(results) for _ in predicates] == list(PREDICATES.values())
    assert [next(results) for _ in nvidia] == pytest.approx(
        list(NVIDIA_ONLY.values())[: len(nvidia)], rel=1e-6
    )
    for _, message in REFUSED[target]:
        assert str(next(results)).startswith(message)
