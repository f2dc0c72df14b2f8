"""Cost model of `matmul`."""

from suites import Cost, item_bytes


def cost(sizes: dict[str, int], dtype: str) -> Cost:
    """A multiply-add for each of m, n, k; both matrices read, one written."""
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    return Cost(
        flops=2 * m * n * k,
        minimal_bytes=(m * k + k * n + m * n) * item_bytes(dtype),
        dot_dtype=dtype,
    )
