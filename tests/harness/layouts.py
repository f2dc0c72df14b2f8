"""Prints, as one JSON document, what layouts, special values and the vault do: torch loads here, not in the test's process."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import torch

from harness.worker.judge.cases import JudgedCase, Layout
from harness.worker.judge.distributions import inject_special
from harness.worker.judge.layouts import laid_out
from harness.worker.judge.problem import Inputs, Problem
from harness.worker.judge.vault import Vault
from harness.worker.serving import place
from harness.worker.serving.arena import Arena, open_arguments
from tests.harness.doubling import PROBLEM, write_doubled

SHAPES = ((5,), (4, 6), (1, 1), (2, 3, 4), (0, 3), ())
DTYPES = (torch.float32, torch.float16, torch.int8, torch.int64)


def layouts() -> list[dict[str, Any]]:
    """Each layout of each shape and dtype, as the judge has it and as the guest gets it."""
    rows = []
    for layout in Layout:
        for shape in SHAPES:
            for dtype in DTYPES:
                tensor = torch.arange(torch.Size(shape).numel(), dtype=dtype).reshape(shape)
                made = laid_out(tensor, layout)
                arena = Arena({"x": made})
                given = open_arguments(arena.descriptor, arena.size_bytes, arena.arguments)["x"]
                rows.append(
                    {
                        "layout": layout,
                        "dim": len(shape),
                        "elements": made.numel(),
                        "equal": torch.equal(made, tensor) and torch.equal(given, tensor),
                        "contiguous": made.is_contiguous(),
                        "same strides": given.stride() == made.stride(),
                        "offset": given.storage_offset(),
                        "aligned": given.data_ptr() % 16 == 0,
                        "unused": unused(given),
                    }
                )
                del given
                arena.close()
    return rows


def unused(tensor: torch.Tensor) -> bool:
    """Whether all bytes of the storage that are no element are 0xFF."""
    if tensor.numel() == 0:
        return True
    storage = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
    rest = torch.ones(storage.numel(), dtype=torch.bool)
    rest.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).fill_(0)
    return bool((storage[rest].view(torch.uint8) == 0xFF).all())


def special() -> list[dict[str, int]]:
    rows = []
    for shape in ((7,), (1, 5), (6, 4), (2, 3, 4), (3,)):
        for seed in range(20):
            x = torch.zeros(shape)
            inject_special({"x": x, "n": 3}, ("x", "n"), torch.Generator().manual_seed(seed))
            low = x.reshape(-1, shape[-1]) == -torch.inf
            whole = low.all(dim=1)
            rows.append(
                {
                    "rows": len(low) if len(shape) > 1 else 0,
                    "nan": int(x.isnan().sum()),
                    "inf": int((x == torch.inf).sum()),
                    "low": int(low[~whole].sum()),
                    "whole": int(whole.sum()),
                }
            )
    return rows


def refilled() -> dict[str, bool]:
    """The same tensors with other values in them, without their version changing."""
    first, second = torch.arange(6.0).reshape(2, 3), torch.arange(6.0, 12.0).reshape(2, 3)
    arena = Arena({"x": first})
    given = open_arguments(arena.descriptor, arena.size_bytes, arena.arguments)["x"]
    version = given._version
    told = {
        "taken": arena.refilled({"x": second}),
        "seen": torch.equal(given, second) and given._version == version,
        "unchanged": arena.changed() == (),
        "other shape": arena.refilled({"x": torch.zeros(3, 3)}),
        "other dtype": arena.refilled({"x": second.double()}),
    }
    given[0, 0] = 7
    told["change seen"] = arena.changed() == ("x",)
    del given
    arena.close()
    return told


def tensor_of(inputs: Inputs) -> torch.Tensor:
    x = inputs["x"]
    assert isinstance(x, torch.Tensor)
    return x


def vault() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        counting = PROBLEM.replace("def oracle(x):", "calls = []\n\n\ndef oracle(x):\n    calls.append(1)")
        task = write_doubled(Path(folder), problem=counting)
        problem = Problem(task)
        case = JudgedCase(task.cases[0])
        kept = Vault()
        for _ in range(3):
            for at in range(4):
                _ = kept.given(problem, case, 1, at).expected
        draws = [
            tensor_of(kept.given(problem, case, seed, at).inputs) for seed, at in ((1, 0), (1, 1), (2, 0))
        ]
        bytes_of_one = kept.given(problem, case, 1, 0).size_bytes
        small = Vault(capacity_bytes=3 * bytes_of_one)
        for at in range(4):
            _ = small.given(problem, case, 1, at).expected
        newest = small.given(problem, case, 1, 3)
        again = small.given(problem, case, 1, 0)
        drawn = Vault()
        own, hidden = drawn.given(problem, case, 1, 0), JudgedCase(task.cases[0], hidden=True)
        before = drawn.given(problem, hidden, 1, 1)
        drawn.forget_drawn()
        return {
            "own kept": drawn.given(problem, case, 1, 0) is own,
            "drawn forgotten": drawn.given(problem, hidden, 1, 1) is not before,
            "oracle calls": len(problem._oracle.__globals__["calls"]),
            "same": kept.given(problem, case, 1, 0) is kept.given(problem, case, 1, 0),
            "different": not any(torch.equal(a, b) for n, a in enumerate(draws) for b in draws[:n]),
            "two judges leave a small GPU to its guests": 2
            * (place.vault_bytes_of(24 << 30) + place.kept_bytes(24 << 30))
            < (24 << 30) / 3,
            "a large GPU keeps whole cases": place.vault_bytes_of(140 << 30) > 8 << 30,
            "within": small.size_bytes <= 3 * bytes_of_one,
            "newest kept": small.given(problem, case, 1, 3) is newest,
            "made again alike": torch.equal(tensor_of(again.inputs), draws[0]),
            "exam differs": not torch.equal(
                tensor_of(problem.given(JudgedCase(exam_of(case)), 1, 0)), draws[0]
            ),
        }


def exam_of(case: JudgedCase) -> Any:
    return msgspec.structs.replace(case.case, exam=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    json.dump(
        {"layouts": layouts(), "special": special(), "refilled": refilled(), "vault": vault()}, sys.stdout
    )
