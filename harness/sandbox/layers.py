"""The layers of a guest's sandbox by name: the risk for the user if a layer is absent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.wire.results.evaluation import Layer

COMPILING = "compiling: "
"""Prefix for a layer that differs between compiling worker and guest."""

WITHOUT = {
    "session": "a candidate shares the terminal and the signals of the judge",
    "parent-death-signal": "a candidate may outlive a judge that is killed",
    "streams": "what a candidate prints may reach your terminal",
    "descriptors": "a candidate holds files that are not its own",
    "environment": "a candidate sees variables that are not meant for it",
    "scratch": "a candidate writes where it was started",
    "network": "a candidate may reach this machine's network: let no service on it answer without a password",
    "ipc": "a candidate may use shared memory of your other programs",
    "user": "a candidate runs as you; only Landlock and the filter of system calls protect your files",
    "limits": "a candidate may take this machine's memory and time",
    "processes": "a candidate may start processes without number",
    "core-dumps": "a candidate's memory may be written to disk when it crashes",
    "capabilities": "a candidate may do what root may do",
    "no-new-privileges": "a candidate may start programs that become another user",
    "read-allow-list": "a candidate may read your files, this project's tasks and answers among them: judge only what you trust, or in a container of its own",
    "signal-scope": "a candidate may end your other programs",
    "system-calls": "more of the kernel is open to a candidate; the other layers hold",
    "other-processes": "a candidate may read other programs' memory, and the keys in it: start the engine from a shell without keys but the one it needs",
}

GRAVE = frozenset(
    {"read-allow-list", "network", "capabilities", "other-processes", "environment", "descriptors"}
)
"""Without these layers a key or an answer can leave."""


def find_different_layers(compiling: Iterable[Layer], guest: Iterable[Layer]) -> Iterator[Layer]:
    """Yield the compiling worker's layers that differ from the guest's, with the prefix `COMPILING`."""
    same = {(layer.name, layer.state) for layer in guest}
    for layer in compiling:
        if (layer.name, layer.state) not in same or layer.name in ("processes", "limits"):
            yield Layer(COMPILING + layer.name, layer.state, layer.why)
