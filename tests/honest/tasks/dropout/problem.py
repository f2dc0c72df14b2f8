import torch


LOW = 0xFFFFFFFF


def make_inputs(sizes, dtype, generator):
    return {"x": torch.randn(sizes["n"], generator=generator).to(dtype), "seed": 2024 + sizes["n"]}


def uniform(seed, n, device):
    """`tl.rand(seed, offsets)`: Philox 4x32 of ten rounds, its first word as a float32 from 0 to 1."""
    words = [
        torch.arange(n, device=device),
        *(torch.zeros(n, dtype=torch.int64, device=device) for _ in range(3)),
    ]
    key = [seed & LOW, seed >> 32 & LOW]
    for _ in range(10):
        high_a, low_a = product(words[0], 0xD2511F53)
        high_b, low_b = product(words[2], 0xCD9E8D57)
        words = [high_b ^ words[1] ^ key[0], low_b, high_a ^ words[3] ^ key[1], low_a]
        key = [key[0] + 0x9E3779B9 & LOW, key[1] + 0xBB67AE85 & LOW]
    signed = torch.where(words[0] >= 1 << 31, LOW - words[0], words[0])
    return signed.to(torch.float32) * torch.tensor(4.6566127342e-10, dtype=torch.float32, device=device)


def product(word, factor):
    """High and low 32 bits of a product of 32-bit words, within int64."""
    low, high = word * (factor & 0xFFFF), word * (factor >> 16)
    total = low + ((high & 0xFFFF) << 16)
    return (high >> 16) + (total >> 32), total & LOW


def oracle(x, seed, p=0.25):
    kept = uniform(seed, x.numel(), x.device) > torch.tensor(p, dtype=torch.float32, device=x.device)
    return torch.where(kept, x.double() / (1 - p), 0.0)
