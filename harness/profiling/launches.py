"""Launches that a reader found, merged by kernel; and the errors of readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from harness.wire.errors import HarnessError
from harness.wire.messages.profiled import MARK
from harness.wire.results.kernel_counts import KernelProfile, ProfiledLaunch

_SHARES = ("l2_hit", "occupancy", "memory", "matrix", "vector", "conflicts")
_SUMS = ("us", "read_bytes", "written_bytes")
MOST_KERNELS, MOST_LAUNCHES, _MOST_NAME = 500, 500, 200


class ProfileFailed(HarnessError):
    """There is no profile; the message says why and what to do, in one line."""


def own_launches(launches: Sequence[KernelProfile]) -> list[KernelProfile]:
    """Return the launches of the call, without marks. Foreign code may choose a name, and prompts and journals have it."""
    return [
        msgspec.structs.replace(
            launch, name="".join(sign if sign.isprintable() else "?" for sign in launch.name[:_MOST_NAME])
        )
        for launch in launches
        if MARK not in launch.name
    ]


def list_launches(launches: Sequence[KernelProfile]) -> tuple[ProfiledLaunch, ...]:
    """Return the first `MOST_LAUNCHES` with their times; none if a time is of several launches together."""
    if any(launch.launches > 1 for launch in launches):
        return ()
    return tuple(ProfiledLaunch(launch.name, launch.us) for launch in launches[:MOST_LAUNCHES])


def merge_launches(launches: Sequence[KernelProfile]) -> tuple[KernelProfile, ...]:
    """Return one profile for each kernel, in the order of the first launches. A value that one launch lacks is `None`.

    Raises `ProfileFailed` if there are more than `MOST_KERNELS`.
    """
    groups: dict[str, list[KernelProfile]] = {}
    for launch in launches:
        groups.setdefault(launch.name, []).append(launch)
    if len(groups) > MOST_KERNELS:
        raise ProfileFailed(
            f"the call launched {len(groups)} different kernels; a profile has at most {MOST_KERNELS}"
        )
    return tuple(group[0] if len(group) == 1 else _merged(group) for group in groups.values())


def _merged(group: Sequence[KernelProfile]) -> KernelProfile:
    """Return launches of one kernel as one row: sums, and means weighted by the time of each launch.

    A sum or mean is `None` if any launch lacks the figure. Of registers the most count.
    """
    weights = [launch.us if launch.us is not None else 1.0 for launch in group]

    def mean(value_of: Callable[[KernelProfile], float | None]) -> float | None:
        """Return a figure's mean, weighted by time; `None` if a launch lacks it."""
        values = [value_of(launch) for launch in group]
        present = [value for value in values if value is not None]
        if len(present) < len(values) or not sum(weights):
            return None
        return sum(value * weight for value, weight in zip(present, weights, strict=True)) / sum(weights)

    sums = {name: [getattr(launch, name) for launch in group] for name in _SUMS}
    causes = dict.fromkeys(cause for launch in group for cause in launch.stalls)
    stalls = {cause: mean(lambda launch, cause=cause: launch.stalls.get(cause, 0.0)) for cause in causes}  # type: ignore[misc]
    return KernelProfile(
        name=group[0].name,
        launches=sum(launch.launches for launch in group),
        **{name: None if None in values else sum(values) for name, values in sums.items()},
        **{name: mean(lambda launch, name=name: getattr(launch, name)) for name in _SHARES},  # type: ignore[misc]
        stalls=ordered({cause: share for cause, share in stalls.items() if share is not None}),
        registers=max((launch.registers for launch in group if launch.registers is not None), default=None),
    )


def ordered(stalls: dict[str, float]) -> dict[str, float]:
    """Return the causes that took time, greatest share first."""
    return {cause: share for cause, share in sorted(stalls.items(), key=lambda item: -item[1]) if share > 0}
