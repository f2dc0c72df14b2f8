"""Functions with several launches a call, five of them autotuned. Each calls kernels of `single_launch` in turn."""

from .single_launch import KERNELS as SINGLE

ROWS = ((16, 128), (8, 256), (4, 1000))


def _chain(name: str, parts: tuple[str, ...], steps: str) -> tuple[str, str]:
    """Return the kernels of `parts` with a function `name(x, w)` that calls them, and its test."""
    test = f"""
def test_{name}():
    results = {{}}
    for number, (rows, n) in enumerate({ROWS}):
        x = torch.randn((rows, n), device="cuda", dtype=torch.float32)
        results[f"test_case_{{number}}"] = {name}(x, torch.randn((n,), device="cuda", dtype=torch.float32))
    return results


result_gold = test_{name}()
"""
    kernels = "\n".join(SINGLE[part][0] for part in parts)
    return f"{kernels}\n\ndef {name}(x, w):\n{steps}\n", test


KERNELS = {
    name: _chain(name, parts, f"    {steps}")
    for name, parts, steps in (
        ("norm_twice", ("rms_norm", "layer_norm"), "return layer_norm(rms_norm(x, w), w)"),
        ("norm_then_softmax", ("layer_norm", "scaled_softmax"), "return scaled_softmax(layer_norm(x, w), w)"),
        ("gated_norm", ("rms_norm", "silu_and_mul"), "return silu_and_mul(rms_norm(x, w), x)"),
        ("residual_norm", ("smooth_difference", "rms_norm"), "return rms_norm(smooth_difference(x, x), w)"),
        (
            "softmax_of_gates",
            ("silu_and_mul", "scaled_softmax", "rms_norm"),
            "return rms_norm(scaled_softmax(silu_and_mul(x, x), w), w)",
        ),
        ("two_differences", ("smooth_difference",), "return smooth_difference(x, smooth_difference(x, x))"),
    )
}
