"""The request to a worker that runs three programs of each launch at `gpu` sizes, and its answer. Torch-free."""

from __future__ import annotations

import msgspec


class RunAtFullSizes(msgspec.Struct, frozen=True, tag="run_at_full_sizes"):
    """Run the first, the last and one drawn program of every launch that the entry point makes in each case."""

    source: str
    entry_point: str
    cases: msgspec.Raw
    target: str
    seed: int
    """Draws the programs."""


class RanAtFullSizes(msgspec.Struct, frozen=True, tag="ran_at_full_sizes"):
    """The accesses of one case's programs; the reports come in the order of the cases."""

    case: str
    why: str = ""
    """Why nothing is known of this case; empty if the fields below hold."""
    missed_stores: tuple[str, ...] = ()
    missed_loads: tuple[str, ...] = ()
    """Accesses outside their tensor, one line each; none at addresses that depend on loaded values."""
    touched_bytes: int | None = None
    """The most distinct bytes that the launches and copies of the host can touch; `None` if the programs differ too much."""
