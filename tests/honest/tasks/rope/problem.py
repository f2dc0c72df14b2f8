import torch


def make_inputs(sizes, dtype, generator):
    x = torch.randn(*(sizes[axis] for axis in ("batch", "heads", "tokens", "dim")), generator=generator)
    cos, sin = tables(sizes, generator)
    return {"x": x.to(dtype), "cos": cos, "sin": sin}


def tables(sizes, generator):
    """Cosines and sines of the angles, shape (tokens, dim / 2)."""
    angles = 6.2831853 * torch.rand(sizes["tokens"], sizes["dim"] // 2, generator=generator)
    return angles.cos(), angles.sin()


def turned(x, cos, sin):
    """`x` with its last dimension's halves turned, in float64."""
    first, second = x.double().chunk(2, dim=-1)
    cos, sin = cos.double(), sin.double()
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def oracle(x, cos, sin):
    return turned(x, cos, sin)
