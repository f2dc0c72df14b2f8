from suites import Cost, item_bytes


def cost(sizes, dtype):
    return Cost(flops=sizes["n"], minimal_bytes=3 * sizes["n"] * item_bytes(dtype))
