import torch


def make_inputs(sizes, dtype, generator):
    return {"x": torch.randn(sizes["rows"], sizes["columns"], generator=generator).to(dtype)}


def oracle(x):
    values = x.double().amax(dim=-1)
    places = torch.arange(x.shape[1], device=x.device)
    return values, torch.where(x == values[:, None], places, x.shape[1]).amin(dim=-1)
