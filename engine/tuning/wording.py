"""A sweep in words, for an attempt's strategy: what was changed, how much was tried, and what the choice rests on."""

from __future__ import annotations

from sessions.events import AttemptSwept, SweptVariant


def strategy_of_start(name: str) -> str:
    """Of the attempt that a sweep begins with."""
    return f"The start of the sweep, unchanged: {name}."


def strategy_of_variant(swept: AttemptSwept, variant: SweptVariant) -> str:
    """Of a variant that is to be judged. Claims nothing that was not compiled or sampled."""
    dropped = ", ".join(f"{count} {why}" for why, count in swept.pruned.items())
    return (
        f"{'; '.join(variant.changes)}. A sweep without a model: {swept.tried} variants of {swept.attempt} were compiled "
        f"for {swept.target}"
        + (f", of which {dropped}" if dropped else "")
        + f". Chosen by {swept.ranked_by}."
    )
