"""State of the process that a call of the entry point must leave as it was: what the next caller computes depends on it."""

from __future__ import annotations

import os
from collections.abc import Mapping

import torch

SET_BY_TORCH = frozenset({"CUDA_MODULE_LOADING"})
"""Variables that torch sets where a GPU is used for the first time."""

GPU_SEED = "the seed of a GPU's default generator"

State = Mapping[str, object]


def read() -> State:
    """Each setting's value now, by the name under which people know it. Taken before and after each call, so it is cheap."""
    settings: dict[str, object] = {
        # The seed and not the state: drawing numbers is no change of the caller's, setting a seed is.
        "the seed of torch's default generator": torch.default_generator.initial_seed(),
        "torch's default dtype": torch.get_default_dtype(),
        "torch's default device": str(torch.get_default_device()),
        "torch's number of threads": torch.get_num_threads(),
        "torch's deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "cudnn.deterministic": torch.backends.cudnn.deterministic,
        "torch's gradient mode": torch.is_grad_enabled(),
    }
    if torch.cuda.default_generators:  # none before a GPU is used for the first time
        settings[GPU_SEED] = tuple(one.initial_seed() for one in torch.cuda.default_generators)
    variables = {
        f"the environment variable {name}": value
        for name, value in os.environ.items()
        if name not in SET_BY_TORCH
    }
    return settings | variables


def changed(before: State) -> tuple[str, ...]:
    """Names of the settings that are others than before; a GPU that was not used before has no seed."""
    now = read()
    names = before.keys() | now.keys() if GPU_SEED in before else (before.keys() | now.keys()) - {GPU_SEED}
    return tuple(sorted(name for name in names if before.get(name) != now.get(name)))
