from suites import Cost, item_bytes


def cost(sizes, dtype):
    heads, tokens, dim = sizes["heads"], sizes["tokens"], sizes["dim"]
    flops = 2 * heads * tokens * (tokens + 1) * dim
    return Cost(flops=flops, minimal_bytes=4 * heads * tokens * dim * item_bytes(dtype), dot_dtype=dtype)
