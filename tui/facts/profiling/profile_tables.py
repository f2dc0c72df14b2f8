"""The page of a profile: each kernel's figures, what limits it, and what the roofline says; two profiles beside each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.profiling.bottleneck import bytes_words, limit_of, roofline_words, total
from harness.wire.results.kernel_counts import KernelProfile, Profile
from sessions.names import split_attempt
from sessions.state.figure_words import us_words
from sessions.state.state import AttemptState, SessionState
from tui.facts.tables import Cell, Column, Number, Row, Table
from tui.facts.vocabulary import UNKNOWN, counted, percent

MOST_KERNELS = 4
"""Columns of one profile: its longest kernels."""
MOST_STALLS = 3
BASELINE = "baseline"


class _Shown(NamedTuple):
    subject: str
    kernel: KernelProfile
    share: float | None
    """Share of the call's time."""


Figure = Callable[[_Shown], str]
_FIGURES: tuple[tuple[str, Figure], ...] = (
    ("launches", lambda shown: str(shown.kernel.launches)),
    ("time, us", lambda shown: _us(shown.kernel.us)),
    ("of the call's time", lambda shown: percent(shown.share)),
    ("read from memory", lambda shown: _megabytes(shown.kernel.read_bytes)),
    ("written to memory", lambda shown: _megabytes(shown.kernel.written_bytes)),
    ("L2 hits", lambda shown: percent(shown.kernel.l2_hit)),
    ("occupancy reached", lambda shown: percent(shown.kernel.occupancy)),
    ("memory, of its peak", lambda shown: percent(shown.kernel.memory)),
    ("matrix units, of the time", lambda shown: percent(shown.kernel.matrix)),
    ("vector units, of the time", lambda shown: percent(shown.kernel.vector)),
    *(
        (f"stall {place + 1}", lambda shown, place=place: _stall(shown.kernel, place))
        for place in range(MOST_STALLS)
    ),
    ("bank conflicts", lambda shown: percent(shown.kernel.conflicts)),
    (
        "registers a thread",
        lambda shown: UNKNOWN if shown.kernel.registers is None else str(shown.kernel.registers),
    ),
)


def shown_profiles(state: SessionState, attempt: AttemptState) -> dict[str, Profile]:
    """Return the latest profile of an attempt by its name, and beside it the baseline's in the same case; empty if none."""
    latest = next(reversed(attempt.profiles.values()), None)
    if latest is None:
        return {}
    task = state.instances[split_attempt(attempt.attempt).instance].task
    baseline = state.baseline_profiles.get(task, {}).get(latest.case)
    return {attempt.attempt: latest} | ({BASELINE: baseline} if baseline is not None else {})


def profile_tables(profiles: Mapping[str, Profile]) -> Iterator[Table]:
    """Yield the page of one profile, or of two beside each other, by the name of the attempt or `baseline`."""
    shown = [column for subject, profile in profiles.items() for column in _columns(subject, profile)]
    names = [_title(column, beside=len(profiles) > 1) for column in shown]
    columns = (Column("", keep=True), *(Number(name) for name in names))
    figures = [(name, [figure(column) for column in shown]) for name, figure in _FIGURES]
    rows = tuple(
        Row("", (Cell(name, "dim"), *map(Cell, values)))
        for name, values in figures
        if any(value != UNKNOWN for value in values)
    )
    first = next(iter(profiles.values()))
    yield Table(f"profile, case {first.case}", columns, rows)
    yield _launches_table(profiles)
    for subject, profile in profiles.items():
        yield Table(subject).with_sentences(
            f"{profile.tool} on {profile.product} (GPU {profile.device}): {profile.how}; one call, after calls that warm up.",
            *(f"{note}." for note in profile.notes),
            *_limits(profile),
            *(f"{_capital(text)}." for text in (bytes_words(profile), roofline_words(profile)) if text),
            _opened(profile),
        )


def _launches_table(profiles: Mapping[str, Profile]) -> Table:
    """Return the time of each launch in the order of the call; empty if no call makes several."""
    is_shown = any(len(profile.launches) > 1 for profile in profiles.values())
    columns = (
        Column("of", keep=True),
        Number("#", drop=2),
        Column("launch"),
        Number("us"),
        Number("share", drop=1),
    )
    rows = [
        row for subject, profile in profiles.items() if is_shown for row in _launch_rows(subject, profile)
    ]
    return Table("launches of the call", columns, tuple(rows))


def _launch_rows(subject: str, profile: Profile) -> Iterator[Row]:
    call_us = total([launch.us for launch in profile.launches])
    for number, launch in enumerate(profile.launches, start=1):
        share = launch.us / call_us if launch.us is not None and call_us else None
        cells = (subject, str(number), launch.kernel, _us(launch.us), percent(share))
        yield Row("", tuple(Cell(text) for text in cells))


def _columns(subject: str, profile: Profile) -> Sequence[_Shown]:
    us = total([kernel.us for kernel in profile.kernels])
    kernels = sorted(profile.kernels, key=lambda kernel: -(kernel.us or 0.0))[:MOST_KERNELS]
    return [
        _Shown(subject, kernel, kernel.us / us if kernel.us is not None and us else None)
        for kernel in kernels
    ]


def _title(shown: _Shown, *, beside: bool) -> str:
    return f"{shown.subject}: {shown.kernel.name}" if beside else shown.kernel.name


def _stall(kernel: KernelProfile, place: int) -> str:
    stalls = list(kernel.stalls.items())
    return f"{percent(stalls[place][1])} {stalls[place][0]}" if place < len(stalls) else UNKNOWN


def _megabytes(count: float | None) -> str:
    return UNKNOWN if count is None else f"{count / 1e6:.4g} MB"


def _us(us: float | None) -> str:
    return us_words(None if us is None else us / 1e3)


def _limits(profile: Profile) -> Iterator[str]:
    columns = _columns("", profile)
    for shown in columns:
        yield f"{shown.kernel.name}: {limit_of(shown.kernel).words}."
    if further := len(profile.kernels) - len(columns):
        yield f"{counted(further, 'further kernel')} with less time: in --json."


def _opened(profile: Profile) -> str:
    if not profile.opened:
        return ""
    return f"The source ran in a sandbox without these layers of a guest's, which the tool needs open: {', '.join(profile.opened)}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
