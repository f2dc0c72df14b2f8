"""Describes a variant for an attempt's strategy: its changes, how much was tried, and the reason for the choice."""

from __future__ import annotations

from collections.abc import Sequence

from sessions.events import AttemptSwept, SweepRung, SweptVariant


def strategy_of_start(name: str) -> str:
    """Returns the strategy of the first attempt of a sweep."""
    return f"The start of the sweep, unchanged: {name}."


def strategy_of_variant(swept: AttemptSwept, variant: SweptVariant, rungs: Sequence[SweepRung] = ()) -> str:
    """Returns the strategy of a variant; claims only what was compiled, sampled or estimated."""
    dropped = ", ".join(f"{count} {why}" for why, count in swept.pruned.items())
    return (
        f"{'; '.join(variant.changes)}. A sweep without a model: {swept.tried} variants of {swept.attempt} were compiled "
        f"for {swept.target}"
        + (f", of which {dropped}" if dropped else "")
        + (f". Named by {swept.ranked_by}." if rungs else f". Chosen by {swept.ranked_by}.")
        + "".join(f" {_rung_words(rung, variant)}" for rung in rungs)
    )


def _rung_words(rung: SweepRung, variant: SweptVariant) -> str:
    """The variant's result in a rung, and how many variants the rung had."""
    entry = next(entry for entry in rung.entries if entry.changes == variant.changes)
    words = f"Rung {rung.rung} kept {sum(entry.kept for entry in rung.entries)} of {len(rung.entries)}"
    if entry.estimate is None:
        return f"{words}, this one without an estimate."
    return f"{words}, this one at about {entry.estimate:.2f}x of {rung.attempt}: an estimate from {entry.samples} samples."
