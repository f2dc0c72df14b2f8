"""Runs the candidates of `kernels.py` in the interpreter and prints the observations as JSON."""

import json
import os
import sys
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, str(Path(__file__).parent))

import torch
import triton.language as tl

from harness.hardware.targets import target
from harness.worker.interpreter.interpreter import observe, prepare

torch.set_num_threads(1)
prepare(target(sys.argv[1]))

import kernels  # noqa: E402 -- after the process is prepared, as a guest does it
import round_bfloat16  # noqa: E402

LANGUAGE = (tl, tl.core, tl.math, tl.standard, tl.tensor)


def language() -> dict:
    return {(module.__name__, name): member for module in LANGUAGE for name, member in vars(module).items()}


def call(name: str, right, **inputs) -> dict:
    before = language()
    out, raised = None, None
    with observe(inputs) as seen:
        try:
            out = getattr(kernels, name)(**inputs)
        except Exception as error:  # noqa: BLE001
            raised = f"{type(error).__name__}: {error}"
    after = language()
    return {
        "right": None if out is None else bool(right(out)),
        "raised": raised,
        "launches": [list(launch[:3]) for launch in seen.launches],
        "requested": [seen.requested_read_bytes, seen.requested_write_bytes],
        "unique": [seen.unique_read_bytes, seen.unique_write_bytes],
        "dot_flops": seen.dot_flops,
        "missed": seen.missed_stores + seen.missed_loads,
        "unsupported": seen.unsupported,
        "wrote_output": isinstance(out, torch.Tensor) and seen.wrote(out),
        "wrote_inputs": [n for n, v in inputs.items() if isinstance(v, torch.Tensor) and seen.wrote(v)],
        "left_patched": [key for key, value in before.items() if after.get(key) is not value],
    }


def eight_bits(x: torch.Tensor) -> torch.Tensor:
    """Rounds to AMD's 8-bit format and saturates."""
    return x.clamp(-240, 240).to(torch.float8_e4m3fnuz).float()


def any_output(_: torch.Tensor) -> bool:
    return True


def main() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(1000), torch.randn(1000)
    rows = torch.randn(50, 1000)
    a, b = torch.randn(100, 70).half(), torch.randn(70, 90).half()
    product = a.float() @ b.float()
    tile = torch.randn(40, 100)
    keys = torch.randint(0, 16, (1000,))
    wrong_keys = keys.clone()
    wrong_keys[5] = 16
    locks = torch.zeros(4, dtype=torch.int32)
    guarded = torch.full((3000,), float("nan"))
    guarded[1000:2000] = x

    wide = torch.randn(16, 1024)
    u, v = torch.rand(256), torch.randn(256)

    def expected_recurrence(factors, terms):
        states = [torch.tensor(0.0)]
        for factor, term in zip(factors, terms, strict=True):
            states.append(states[-1] * factor + term)
        return torch.stack(states[1:])

    def near_product(out):
        return torch.allclose(out.float(), product, atol=1e-2, rtol=1e-2)

    print(  # noqa: T201
        json.dumps(
            {
                "vector_add": call("vector_add", lambda out: torch.equal(out, x + y), x=x, y=y),
                "past_the_end": call(
                    "past_the_end", lambda out: torch.equal(out[:999], (x + y)[1:]), x=x, y=y
                ),
                "guarded": call(
                    "past_the_end", lambda out: not out[:999].isnan().any(), x=guarded[1000:2000], y=y
                ),
                "softmax": call("softmax", lambda out: torch.allclose(out, torch.softmax(rows, 1)), x=rows),
                "matmul": call("matmul", near_product, a=a, b=b),
                "tuned_matmul": call("tuned_matmul", near_product, a=a, b=b),
                "doubled": call("doubled", lambda out: torch.equal(out, tile * 2), x=tile),
                "doubled_unchecked": call("doubled", any_output, x=tile, check=False),
                "histogram": call(
                    "histogram",
                    lambda out: torch.equal(out.long(), torch.bincount(keys, minlength=16)),
                    x=keys,
                    bins=16,
                ),
                "histogram_out": call("histogram", lambda out: int(out.sum()) == 999, x=wrong_keys, bins=16),
                "locked": call("locked", lambda out: out.tolist() == [0, 0, 7, 0], x=locks, index=2),
                "locked_out": call("locked", lambda out: out.tolist() == [0, 0, 7, 0], x=locks, index=5),
                "bfloat16": call(
                    "vector_add",
                    lambda out: torch.equal(out, x.bfloat16() + y.bfloat16()),
                    x=x.bfloat16(),
                    y=y.bfloat16(),
                ),
                "float8": call(
                    "vector_add",
                    lambda out: torch.equal(out.float(), eight_bits(eight_bits(x) + y)),
                    x=x.to(torch.float8_e4m3fnuz),
                    y=y,
                ),
                "through_float8": call(
                    "through_float8", lambda out: torch.equal(out, eight_bits(wide[0])), x=wide[0]
                ),
                "with_assembly": call("with_assembly", any_output, x=wide[0]),
                "scaled_dot": call(
                    "scaled_dot",
                    any_output,
                    x=torch.zeros(64, 64, dtype=torch.uint8),
                    scale=torch.zeros(64, 2, dtype=torch.uint8),
                ),
                "persistent": call("persistent", lambda out: torch.equal(out, x + y), x=x, y=y),
                "amd_options": call("amd_options", lambda out: torch.equal(out, x + y), x=x, y=y),
                "broken": call("broken", any_output, x=x),
                "flipped": call("flipped", lambda out: torch.equal(out, wide.flip(1)), x=wide),
                "sorted_rows": call("sorted_rows", lambda out: torch.equal(out, wide.sort(1).values), x=wide),
                "recurrence_back": call(
                    "recurrence_back",
                    lambda out: torch.allclose(
                        out, expected_recurrence(u.flip(0), v.flip(0)).flip(0), atol=1e-5
                    ),
                    x=u,
                    y=v,
                ),
                "device": kernels.tensors_of_device(x),
                "numbers": x.numpy().tolist(),
                "rounding": round_bfloat16.report(),
            }
        )
    )


main()
