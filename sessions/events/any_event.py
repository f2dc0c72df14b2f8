"""The union of all events."""

from __future__ import annotations

from .attempts import (
    AttemptCommitted,
    AttemptJudged,
    AttemptStarted,
    CandidateProposed,
    CandidateSent,
    CandidateWithdrawn,
    StageFinished,
    StageStarted,
)
from .calls import CallFailed, CallFinished, CallRetried, CallStarted, ReplyPiece
from .commands import (
    AttemptBanned,
    AttemptPinned,
    DecisionMade,
    DecisionUndone,
    DeviceLent,
    DeviceReturned,
    HintGiven,
    InstanceForked,
    MeasureAsked,
    Paused,
    ProfileAsked,
    RetireAsked,
    SessionExtended,
    SessionTitled,
    Unpaused,
)
from .devices import (
    DeviceAwaited,
    DeviceQuarantined,
    DeviceSampled,
    NodePaused,
    NodeResumed,
    VerificationRead,
)
from .instances import AgentLeft, InstanceFinished, InstanceStarted, IterationsMoved, WaitingForPerson
from .measurements import BaselineMeasured, BaselineStageStarted, ProfileTaken, WinnerExamined, WinnerMeasured
from .session import EngineStarted, EngineStopped, Notice, SessionFinished, SessionStarted, TaskLeftOut
from .sweeps import AttemptSwept, SweepRung, SweepStarted

AnyEvent = (
    SessionStarted
    | EngineStarted
    | InstanceStarted
    | AttemptStarted
    | CallStarted
    | ReplyPiece
    | CallRetried
    | CallFinished
    | CallFailed
    | CandidateProposed
    | CandidateSent
    | CandidateWithdrawn
    | AgentLeft
    | SweepStarted
    | AttemptSwept
    | SweepRung
    | StageStarted
    | StageFinished
    | AttemptJudged
    | AttemptCommitted
    | InstanceFinished
    | WaitingForPerson
    | WinnerExamined
    | BaselineStageStarted
    | BaselineMeasured
    | WinnerMeasured
    | DecisionMade
    | DecisionUndone
    | HintGiven
    | AttemptPinned
    | AttemptBanned
    | SessionTitled
    | RetireAsked
    | Paused
    | Unpaused
    | SessionExtended
    | IterationsMoved
    | InstanceForked
    | MeasureAsked
    | ProfileAsked
    | ProfileTaken
    | DeviceLent
    | DeviceReturned
    | DeviceSampled
    | DeviceAwaited
    | DeviceQuarantined
    | VerificationRead
    | NodePaused
    | NodeResumed
    | Notice
    | TaskLeftOut
    | EngineStopped
    | SessionFinished
)
