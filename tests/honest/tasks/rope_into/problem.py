import torch


def make_inputs(sizes, dtype, generator):
    batch, tokens, heads, dim = (sizes[axis] for axis in ("batch", "tokens", "heads", "dim"))
    q = torch.randn(batch, tokens, heads, dim, generator=generator)
    k = torch.randn(batch, tokens, 2, dim, generator=generator)
    cos, sin = tables(sizes, generator)
    return {"q": q.to(dtype), "k": k.to(dtype), "cos": cos, "sin": sin}


def tables(sizes, generator):
    """Cosines and sines of the angles, shape (tokens, dim / 2)."""
    angles = 6.2831853 * torch.rand(sizes["tokens"], sizes["dim"] // 2, generator=generator)
    return angles.cos(), angles.sin()


def turned(x, cos, sin):
    """`x` with its last dimension's halves turned, in float64."""
    first, second = x.double().chunk(2, dim=-1)
    cos, sin = cos.double(), sin.double()
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def oracle(q, k, cos, sin):
    cos, sin = cos[:, None, :], sin[:, None, :]
    return turned(q, cos, sin), turned(k, cos, sin)
