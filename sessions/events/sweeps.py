"""Sweeps over the launch parameters of an attempt."""

from __future__ import annotations

import msgspec

from sessions.names import AttemptKey

from .base import DurableEvent, Event


class SweepStarted(Event, frozen=True, kw_only=True, tag="sweep_started"):
    """A sweep of an attempt's launch parameters began: variants are compiled or timed with few samples, not judged."""

    attempt: AttemptKey


class SweptVariant(msgspec.Struct, frozen=True):
    """A variant that a sweep proposes for judging."""

    changes: tuple[str, ...]
    """One entry for each difference to the attempt's candidate, for example `num_warps 4 to 8`."""
    source: str
    better: bool
    """True if it ranks above the attempt's candidate by `AttemptSwept.ranked_by`, and needs each of its changes for
    that."""


class AttemptSwept(DurableEvent, frozen=True, kw_only=True, tag="attempt_swept"):
    """A sweep of an attempt's launch parameters ended. It is not repeated."""

    attempt: AttemptKey
    target: str
    """The compile target."""
    tried: int
    """Number of compiled variants."""
    pruned: dict[str, int] = msgspec.field(default_factory=dict)
    """Number of dropped variants by reason in words."""
    ranked_by: str = ""
    """The ranking in words; says if any of it was measured."""
    variants: tuple[SweptVariant, ...] = ()
    """At most as many variants as may be judged. Variants that look better come first; each group is best first."""
    seconds: float = 0.0


class RungEntry(msgspec.Struct, frozen=True):
    """The result of a rung for one variant."""

    changes: tuple[str, ...]
    """Identifies the variant; see `SweptVariant`."""
    verdict: str
    """Verdict of the interpreter, and of the outputs that were compared while timing."""
    estimate: float | None = None
    """Time of the attempt's candidate over the variant's time, from few samples: an estimate, not a latency. `None`:
    unknown."""
    samples: int = 0
    by_case: dict[str, float] = {}
    """The same estimate of each case that has one, with `--by case`."""
    why: str = ""
    """Why it is not correct, or why there is no verdict."""
    kept: bool = False
    """True if it continues to the next rung or to the judge."""


class SweepRung(DurableEvent, frozen=True, kw_only=True, tag="sweep_rung"):
    """A rung of a sweep ended: the times of its variants were estimated, and the better ones continue."""

    attempt: AttemptKey
    """The attempt that was swept; the ratios are relative to its time."""
    rung: int
    """1, 2, ...; each rung takes several times the samples of the last one."""
    pairs: int
    """Processes on each side."""
    entries: tuple[RungEntry, ...]
    """Best first."""
    seconds: float = 0.0
    device_s: float = 0.0
    """Seconds in which the judge held devices for its variants."""
