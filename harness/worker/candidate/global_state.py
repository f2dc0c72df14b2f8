"""Global settings that a call of the entry point must leave unchanged, because the next caller computes with them."""

from __future__ import annotations

import os
from collections.abc import Mapping

import torch

SET_BY_TORCH = frozenset({"CUDA_MODULE_LOADING"})
"""Variables that torch sets at the first use of a GPU."""
GPU_SEED = "the seed of a GPU's default generator"

State = Mapping[str, object]


def read() -> State:
    """Each setting's value, by its name in error messages. Runs before and after each call, so it is cheap."""
    settings: dict[str, object] = {
        # The seed, not the state: a call may draw random numbers, but not set a seed.
        "the seed of torch's default generator": torch.default_generator.initial_seed(),
        "cudnn.deterministic": torch.backends.cudnn.deterministic,
    } | torch_settings()
    generators: tuple[object, ...] = torch.cuda.default_generators  # none before the first use of a GPU
    if generators and isinstance(generators[0], torch._C.Generator):  # the interpreter has a replacement
        settings[GPU_SEED] = tuple(generator.initial_seed() for generator in torch.cuda.default_generators)
    for name in os.environ.keys() - SET_BY_TORCH:
        settings[f"the environment variable {name}"] = os.environ[name]
    return settings


def torch_settings() -> dict[str, object]:
    """Defaults and modes of torch that change how later calls compute.

    Precision of matrix products is left out: authors of kernels set it for their own trials, and neither judge nor timing
    baseline runs in this process.
    """
    return {
        "torch's default dtype": torch.get_default_dtype(),
        "torch's default device": str(torch.get_default_device()),
        "torch's number of threads": torch.get_num_threads(),
        "torch's deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "torch's gradient mode": torch.is_grad_enabled(),
    }


def changed(before: State) -> tuple[str, ...]:
    """Names of the settings that differ from `before`. A GPU's seed counts only if the GPU was in use before."""
    now = read()
    names = (before.keys() | now.keys()) - ({GPU_SEED} - before.keys())
    return tuple(sorted(name for name in names if before.get(name) != now.get(name)))
