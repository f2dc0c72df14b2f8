"""A person's commands to a session."""

from __future__ import annotations

from sessions.names import AttemptKey, InstanceKey, InstanceKeyOrNone, TaskName

from .base import PersonEvent


class DecisionMade(PersonEvent, frozen=True, kw_only=True, tag="decision_made"):
    """A person accepted or rejected an attempt."""

    attempt: AttemptKey
    accepted: bool
    why: str = ""
    forced: bool = False
    """True if the person accepts an attempt that is not correct; `why` then has the reason."""


class DecisionUndone(PersonEvent, frozen=True, kw_only=True, tag="decision_undone"):
    """A person undid the current decision about an attempt."""

    attempt: AttemptKey


class HintGiven(PersonEvent, frozen=True, kw_only=True, tag="hint_given"):
    """A person gave a hint for the next attempt of an instance."""

    instance: InstanceKey
    """`softmax#2`."""
    text: str


class AttemptPinned(PersonEvent, frozen=True, kw_only=True, tag="attempt_pinned"):
    """A person chose a correct attempt as the base of its instance's optimizations, until the next pin."""

    attempt: AttemptKey


class AttemptBanned(PersonEvent, frozen=True, kw_only=True, tag="attempt_banned"):
    """A person excluded an attempt: its instance builds on it no more."""

    attempt: AttemptKey


class SessionTitled(PersonEvent, frozen=True, kw_only=True, tag="session_titled"):
    """A person gave the session a title, or removed it; a finished session stays finished."""

    title: str
    """Empty: no title."""


class RetireAsked(PersonEvent, frozen=True, kw_only=True, tag="retire_asked"):
    """A person retired an instance; its work in progress is cancelled and its winner examined."""

    instance: InstanceKey


class Paused(PersonEvent, frozen=True, kw_only=True, tag="paused"):
    """A person paused an instance: no call and no attempt starts until `Unpaused`."""

    instance: InstanceKeyOrNone = ""
    """Empty: the whole session."""


class Unpaused(PersonEvent, frozen=True, kw_only=True, tag="unpaused"):
    """A person ended a pause."""

    instance: InstanceKeyOrNone = ""
    """Empty: all pauses of the session."""


class SessionExtended(PersonEvent, frozen=True, kw_only=True, tag="session_extended"):
    """A person gave a session more iterations or a larger budget; a finished session is open again.

    With iterations, the instances go on that used all of their own or met a stop rule. With a budget, those go on that
    the budget ended.
    """

    iterations: int
    """Further iterations of each instance."""
    budget_usd: float = 0.0
    """Added to the budget in USD."""


class InstanceForked(PersonEvent, frozen=True, kw_only=True, tag="instance_forked"):
    """A person added an instance that starts from an attempt; a finished session is open again."""

    task: TaskName
    instance: int
    base: AttemptKey
    """The attempt whose kernel is the first attempt."""
    source: str = ""
    """A person's edit of that kernel: it is judged, and no model is asked. Empty: the method goes on from the kernel."""
    hint: str = ""
    """A hint for the attempt after the first."""


class MeasureAsked(PersonEvent, frozen=True, kw_only=True, tag="measure_asked"):
    """A person asked to time a correct attempt again; a finished session is open again."""

    attempt: AttemptKey
    devices: tuple[str, ...]
    """GPUs of the session; each gives a `WinnerMeasured`."""


class ProfileAsked(PersonEvent, frozen=True, kw_only=True, tag="profile_asked"):
    """A person asked for the profile of a correct attempt; a finished session is open again."""

    attempt: AttemptKey
    device: str
    """GPU of the session."""
    case: str = ""
    """Empty: the case that reaches the smallest share of its practical roof."""
    of_baseline: bool = False
    """The timing baseline of the attempt's task is profiled, not the attempt."""


class DeviceLent(PersonEvent, frozen=True, kw_only=True, tag="device_lent"):
    """A person lent a GPU to others: no candidate starts on it until `DeviceReturned`."""

    device: str


class DeviceReturned(PersonEvent, frozen=True, kw_only=True, tag="device_returned"):
    """A person took a lent GPU back."""

    device: str
