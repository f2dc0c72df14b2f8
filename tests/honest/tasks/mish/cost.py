from suites import Cost, item_bytes


def cost(sizes, dtype):
    return Cost(flops=10 * sizes["n"], minimal_bytes=2 * sizes["n"] * item_bytes(dtype))
