import torch


def make_inputs(sizes, dtype, generator):
    x = torch.round(80 * torch.randn(sizes["n"], generator=generator)) / 8  # many quotients are ties
    scale = torch.exp2(torch.randint(-5, 1, (1,), generator=generator).float())
    return {"x": x.to(dtype), "scale": scale}


def oracle(x, scale):
    return torch.round(x.double() / scale.double()).clamp(-128, 127).to(torch.int64)
