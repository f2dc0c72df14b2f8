"""Facts of this node for a run: GPUs and their use, versions, and keys by name."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from harness import Device, HarnessError, product_of
from harness.linux.installed import installed_version
from harness.wire.results.provenance import runtime_of


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU of this node."""

    name: str
    """Index, as in `--devices`."""
    model: str
    busy: str = ""
    """Who or what uses it; empty if it is idle."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The node of this process."""

    host: str = ""
    version: str = ""
    """Version of Wavedeck."""
    gpus: tuple[Gpu, ...] = ()
    runtime: str = ""
    """`ROCm 7.0`; empty without a GPU runtime."""
    triton: str = ""
    """Installed version; empty if it is not installed."""
    keys: tuple[str, ...] = ()
    """Providers with a key in the environment."""
    problem: str = ""
    """Why the GPUs are not known."""


def read_node(environ: Mapping[str, str]) -> NodeFacts:
    """Return the facts of this node. Asks drivers, so it blocks; loads no torch, and keeps no key."""
    # Imported here: the first frame needs neither devices nor models.
    from harness.node.selection import standings

    problem = ""
    gpus: tuple[Gpu, ...] = ()
    try:
        gpus = tuple(
            Gpu(usage.device.name, model_name(usage.device), usage.busy)
            for usage in standings(environ=environ)
        )
    except HarnessError as error:
        problem = str(error)
    return NodeFacts(
        host=platform.node().partition(".")[0],
        version=installed_version("wavedeck"),
        gpus=gpus,
        runtime=runtime_of(installed_version("torch")) if gpus else "",
        triton=installed_version("triton").partition("+")[0],
        keys=key_names(environ),
        problem=problem,
    )


def key_names(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the providers with a key in the environment; `own server` for `WAVEDECK_MODEL_KEY`."""
    from engine.models.access import KEY_VARIABLE, PROVIDERS

    names = [name for name, provider in PROVIDERS.items() if environ.get(provider.key_variable, "").strip()]
    return (*names, "own server") if environ.get(KEY_VARIABLE, "").strip() else tuple(names)


def model_name(device: Device) -> str:
    """Return the short name of a GPU: `MI300X`."""
    product = product_of(device).product
    if product is not None:
        return product.name
    name = device.identity.model if device.identity is not None else device.description
    return name.removeprefix("AMD ").removeprefix("NVIDIA ").removeprefix("Instinct ") or "GPU"


def gpu_words(node: NodeFacts) -> str:
    """Return `8x MI300X idle`, `8x MI300X, 3 in use`, or `no GPU`."""
    if node.problem:
        return "GPUs not known"
    if not node.gpus:
        return "no GPU"
    counts = Counter(gpu.model for gpu in node.gpus)
    models = " + ".join(f"{number}x {model}" for model, number in counts.items())
    busy = sum(bool(gpu.busy) for gpu in node.gpus)
    return f"{models}, {busy} in use" if busy else f"{models} idle"


def node_words(node: NodeFacts) -> str:
    """Return the node in one line: `8x MI300X idle · ROCm 7.0 · triton 3.7 · key: anthropic`."""
    keys = f"{'key' if len(node.keys) == 1 else 'keys'}: {', '.join(node.keys)}" if node.keys else "no key"
    triton = f"triton {node.triton}" if node.triton else "no triton"
    parts = (node.host, gpu_words(node), node.runtime, triton, keys)
    return " · ".join(part for part in parts if part)


def blocked_words(node: NodeFacts | None) -> str:
    """Return why no run can be judged on this node; empty if runs can be judged, or the node is not read yet."""
    return "triton is not installed: nothing can be judged" if node is not None and not node.triton else ""
