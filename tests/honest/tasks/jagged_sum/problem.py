import torch


def make_inputs(sizes, dtype, generator):
    rows, segments = sizes["rows"], sizes["segments"]
    values = torch.randn(rows, sizes["columns"], generator=generator)
    inner = torch.randint(rows + 1, (segments - 1,), generator=generator).sort().values
    offsets = torch.cat((torch.zeros(1, dtype=torch.int64), inner, torch.full((1,), rows)))
    return {"values": values.to(dtype), "offsets": offsets}


def oracle(values, offsets):
    before = torch.cat((torch.zeros_like(values[:1]).double(), values.double().cumsum(dim=0)))
    return before[offsets[1:]] - before[offsets[:-1]]
