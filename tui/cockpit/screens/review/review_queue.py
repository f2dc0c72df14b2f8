"""The queue of the Review screen: the attempts that a person may decide on, the last line, and decisions on their way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from rich.cells import cell_len

from harness import Verdict
from sessions.events import DecisionMade
from sessions.state.findings import findings_of
from sessions.state.state import AttemptState, Confirmation, InstanceState, SessionState
from tui.cockpit.draw.lines import Line, Span, clean, fit, shorten
from tui.facts import vocabulary
from tui.facts.attempt import accept_words, gain_words, reject_words, strategy_words
from tui.facts.tables import Cell, Column, Number, Row

LONGEST_NAME = 30
EXAM_WORDS = {Confirmation.CONFIRMED: "confirmed", Confirmation.NOT_CONFIRMED: "failed exam"}


class QueueKind(Enum):
    """Why an attempt is in the queue."""

    WAITS = "waits"
    """Its instance waits for the decision."""
    OPEN = "open"
    """The winner of an instance, or an attempt whose decision was undone: no instance waits for a decision about it."""
    DECIDED = "decided"


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """One attempt of the queue."""

    kind: QueueKind
    attempt: AttemptState
    instance: InstanceState

    @property
    def key(self) -> str:
        """Name of the attempt."""
        return self.attempt.attempt


def review_queue(state: SessionState, *, over: bool) -> list[QueueEntry]:
    """Return what waits, oldest first; then open winners, oldest first; then decisions, newest first.

    `over`: no engine works on the session, so that the best attempt of each instance is its winner.
    """
    waiting: list[QueueEntry] = []
    undecided: list[QueueEntry] = []
    decided: list[tuple[DecisionMade, QueueEntry]] = []
    for instance in state.instances.values():
        for attempt in instance.attempts:
            if attempt.waiting:
                waiting.append(QueueEntry(QueueKind.WAITS, attempt, instance))
            elif attempt.decision is not None:
                decided.append((attempt.decision, QueueEntry(QueueKind.DECIDED, attempt, instance)))
            elif attempt.verdict is Verdict.CORRECT and _is_open(attempt, instance, over=over):
                undecided.append(QueueEntry(QueueKind.OPEN, attempt, instance))
    waiting.sort(key=lambda entry: entry.attempt.waiting_wall)
    undecided.sort(key=lambda entry: entry.attempt.judged_wall)
    decided.sort(key=lambda pair: pair[0].wall, reverse=True)
    return [*waiting, *undecided, *(entry for _, entry in decided)]


def _is_open(attempt: AttemptState, instance: InstanceState, *, over: bool) -> bool:
    ended = over or instance.finished is not None
    return attempt.held or (ended and attempt is instance.best_attempt)


def next_entry(
    entries: Sequence[QueueEntry],
    after: str | None,
    wanted: Callable[[QueueEntry], bool],
    direction: int = 1,
    *,
    wraps: bool = True,
) -> QueueEntry | None:
    """Return the next wanted entry after an attempt (`direction` -1: before); `wraps`: from the last one on to the first.

    The attempt itself is never returned.
    """
    place = next((place for place, entry in enumerate(entries) if entry.key == after), -1)
    before, behind = list(entries[: max(place, 0)]), list(entries[place + 1 :])
    if direction < 0:
        before, behind = behind[::-1], before[::-1]
    return next(filter(wanted, [*behind, *(before if wraps else ())]), None)


def entry_to_follow(
    before: Sequence[QueueEntry], decided: str, now: Sequence[QueueEntry]
) -> QueueEntry | None:
    """Return the next entry that waits; after a decision about an ended instance, else the next undecided entry.

    The decided attempt moves in the queue, so that the next ones are those after its place `before`.
    """
    kinds = {entry.key: entry.kind for entry in now}
    queue = [*before, *now]
    following = next_entry(queue, decided, lambda entry: kinds.get(entry.key) is QueueKind.WAITS)
    if following is None and any(entry.key == decided and entry.kind is QueueKind.OPEN for entry in before):
        return next_entry(queue, decided, lambda entry: kinds.get(entry.key) is QueueKind.OPEN)
    return following


def is_undecided(entry: QueueEntry) -> bool:
    """True if a person can decide about it for the first time."""
    return entry.kind is not QueueKind.DECIDED


def seen(entries: Sequence[QueueEntry]) -> list[tuple[object, ...]]:
    """Return what the rows depend on, cheap to compare: equal lists give equal rows at the same moment."""
    return [
        (
            entry.key,
            entry.kind,
            entry.attempt.judged_seq,
            id(entry.attempt.examined),
            entry.attempt.decision,
            entry.instance.finished,
        )
        for entry in entries
    ]


def queue_columns(entries: Sequence[QueueEntry], *, wide: bool) -> tuple[Column, ...]:
    """Return the columns of the queue; `wide`: it has the whole width of the screen."""
    waits = any(entry.kind is QueueKind.WAITS for entry in entries)
    columns = (
        Number("waits" if waits else "state", 8, 9),
        Column("attempt", 10, LONGEST_NAME, keep=wide),
        Number("own gain", 8, 8, if_known=True),
    )
    if not wide:
        return columns
    return (
        *columns,
        Column("speedup", 18, 24, drop=2, if_known=True),
        Column("exam", 11, 11, drop=3, if_known=True),
        Column("reason", 10, 60, drop=4, if_known=True),
    )


def queue_rows(entries: Sequence[QueueEntry], wall: float, name_cells: int) -> list[Row]:
    """Return a row for each entry; `wall` is the present moment in seconds since the epoch.

    Names of attempts have at most `name_cells` cells, but at least ten and at most `LONGEST_NAME`.
    """
    return [Row(entry.key, tuple(_cells(entry, wall, name_cells))) for entry in entries]


def _cells(entry: QueueEntry, wall: float, name_cells: int) -> list[Cell]:
    attempt = entry.attempt
    speed = attempt.speed
    decided = entry.kind is QueueKind.DECIDED
    reason = attempt.decision.why if attempt.decision is not None else strategy_words(attempt)
    return [
        _state_cell(entry, wall),
        _name_cell(entry, min(max(name_cells, 10), LONGEST_NAME)),
        Cell(gain_words(attempt, entry.instance), "dim" if decided else ""),
        Cell(
            vocabulary.UNKNOWN if speed is None else str(speed),
            "good" if speed is not None and speed.is_gain else "dim" if decided else "",
        ),
        Cell(EXAM_WORDS.get(attempt.confirmation, vocabulary.UNKNOWN), "dim"),
        Cell(" ".join(clean(reason).split()), "dim"),
    ]


def _name_cell(entry: QueueEntry, width: int) -> Cell:
    """The attempt; `softmax#3/7 !` if it has findings."""
    if findings_of(entry.attempt):
        return Cell(f"{shorten(entry.key, width - 2)} {vocabulary.FINDING}", "warn")
    return Cell(shorten(entry.key, width), "dim" if entry.kind is QueueKind.DECIDED else "")


def _state_cell(entry: QueueEntry, wall: float) -> Cell:
    decision = entry.attempt.decision
    if entry.kind is QueueKind.WAITS:
        return Cell(f"{vocabulary.WAITS} {vocabulary.clock(wall - entry.attempt.waiting_wall)}", "warn")
    if decision is None:
        return Cell("undecided", "dim")
    return Cell("accepted", "") if decision.accepted else Cell("rejected", "bad")


def queue_title(entries: Sequence[QueueEntry]) -> str:
    """Return `Review: 6 wait, 16 undecided`."""
    waits = sum(entry.kind is QueueKind.WAITS for entry in entries)
    rest = sum(map(is_undecided, entries)) - waits
    parts = [f"{waits} wait{'s' if waits == 1 else ''}" if waits else "", f"{rest} undecided" if rest else ""]
    return f"Review: {', '.join(filter(None, parts)) or 'nothing to decide'}"


def decision_counts(entries: Sequence[QueueEntry], *, short: bool = False) -> str:
    """Return `decided 7: 5 accepted, 2 rejected`; `short`: `decided 7`."""
    decisions = [entry.attempt.decision for entry in entries if entry.attempt.decision is not None]
    accepted = sum(decision.accepted for decision in decisions)
    parts = "" if short else f": {accepted} accepted, {len(decisions) - accepted} rejected"
    return f"decided {len(decisions)}{parts}"


def empty_words(state: SessionState, *, over: bool) -> list[str]:
    """Return sentences for an empty queue: when an attempt appears there, and how to choose manual review."""
    manual = state.started is not None and state.started.review != "auto"
    correct = any(attempt.verdict is Verdict.CORRECT for attempt in state.attempts())
    if over:
        return [
            "Nothing to decide: no attempt of this session is correct."
            if not correct
            else "Nothing to decide.",
            "The best correct attempt of each instance appears here.",
        ]
    if manual:
        return [
            "Nothing waits for you.",
            "An attempt appears here when it is correct and better than the best of its instance.",
            "Its instance then waits for your decision.",
        ]
    return [
        "Nothing to decide yet.",
        "This session runs with `--review auto`: no instance waits for a person.",
        "The best attempt of an instance appears here when the instance ends.",
        "`wavedeck run --review manual` lets an instance build on accepted attempts only.",
        "Then each gain waits here for your decision.",
    ]


GAP = "   "


def footer(
    state: SessionState,
    entries: Sequence[QueueEntry],
    entry: QueueEntry | None,
    undoable: str | None,
    *,
    over: bool,
    width: int,
) -> Line:
    """Return `decided 7: 5 accepted, 2 rejected   if accepted: ...`; the longest words that fit into `width` cells.

    `entry` is the one to decide and `u` undoes the decision about `undoable`: none of them where no key decides.
    """
    head = f" {decision_counts(entries)}"
    choices = [""]
    if entry is not None and entry.kind is not QueueKind.DECIDED:
        rejected = f"if rejected: {reject_words(state, entry.attempt, entry.instance, over=over)}"
        choices = [rejected]
        if entry.attempt.verdict is Verdict.CORRECT:
            long, short = (
                f"if accepted: {accept_words(state, entry.attempt, entry.instance, over=over, short=short)}"
                for short in (False, True)
            )
            choices = [f"{long}{GAP}{rejected}", long, f"{short}{GAP}{rejected}", short]
    elif undoable is not None:
        choices = [f"u undoes the decision about {undoable}"]
    room = width - cell_len(head) - len(GAP)
    if cell_len(choices[0]) > room:
        head = f" {decision_counts(entries, short=True)}"
        room = width - cell_len(head) - len(GAP)
    words = next((choice for choice in choices if cell_len(choice) <= room), choices[-1])
    return Span(head, "key"), Span(fit(f"{GAP}{words}", room + len(GAP)).rstrip(), "dim")
