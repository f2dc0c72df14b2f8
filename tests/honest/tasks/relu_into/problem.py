import torch


def make_inputs(sizes, dtype, generator):
    return {"x": torch.randn(sizes["rows"], sizes["columns"], generator=generator).to(dtype)}


def oracle(x):
    return x.double().clamp(min=0)
