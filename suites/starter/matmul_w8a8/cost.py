"""Cost model of `matmul_w8a8`."""

from suites import Cost, item_bytes


def cost(sizes: dict[str, int], dtype: str) -> Cost:
    """An int8 multiply-add for each of m, n, k; activations, weights and scales read, the result written.

    Quantizing and scaling back are not counted: they grow only with m * k and m * n.
    """
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    read = m * k * item_bytes(dtype) + n * k * item_bytes("int8") + n * item_bytes("float32")
    return Cost(flops=2 * m * n * k, minimal_bytes=read + m * n * item_bytes(dtype), dot_dtype="int8")
