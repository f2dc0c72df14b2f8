"""A sweep in words, for an attempt's strategy: what was changed, how much was tried, and what the choice rests on."""

from __future__ import annotations

from collections.abc import Sequence

from sessions.events import AttemptSwept, SweepRung, SweptVariant


def strategy_of_start(name: str) -> str:
    """Of the attempt that a sweep begins with."""
    return f"The start of the sweep, unchanged: {name}."


def strategy_of_variant(swept: AttemptSwept, variant: SweptVariant, told: Sequence[SweepRung] = ()) -> str:
    """Of a variant that is to be judged. Claims nothing that was not compiled, sampled or estimated."""
    dropped = ", ".join(f"{count} {why}" for why, count in swept.pruned.items())
    return (
        f"{'; '.join(variant.changes)}. A sweep without a model: {swept.tried} variants of {swept.attempt} were compiled "
        f"for {swept.target}"
        + (f", of which {dropped}" if dropped else "")
        + (f". Named by {swept.ranked_by}." if told else f". Chosen by {swept.ranked_by}.")
        + "".join(f" {_rung_words(rung, variant)}" for rung in told)
    )


def _rung_words(rung: SweepRung, variant: SweptVariant) -> str:
    """What a rung said of the variant, and among how many."""
    found = next(entry for entry in rung.entries if entry.changes == variant.changes)
    many = f"Rung {rung.rung} kept {sum(entry.kept for entry in rung.entries)} of {len(rung.entries)}"
    if found.estimate is None:
        return f"{many}, this one without an estimate."
    return f"{many}, this one at about {found.estimate:.2f}x of {rung.attempt}: an estimate from {found.samples} samples."
