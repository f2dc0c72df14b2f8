from suites import Cost, item_bytes


def cost(sizes, dtype):
    return Cost(flops=4 * sizes["n"], minimal_bytes=sizes["n"] * (item_bytes(dtype) + 1))
