"""The union of all events."""

from __future__ import annotations

from . import attempts, calls, commands, devices, instances, measurements, session, sweeps

AnyEvent = (
    session.SessionStarted
    | session.EngineStarted
    | instances.InstanceStarted
    | attempts.AttemptStarted
    | calls.CallStarted
    | calls.ReplyPiece
    | calls.CallRetried
    | calls.CallFinished
    | calls.CallFailed
    | attempts.CandidateProposed
    | commands.CandidateSent
    | commands.CandidateWithdrawn
    | commands.AgentLeft
    | sweeps.SweepStarted
    | sweeps.AttemptSwept
    | sweeps.SweepRung
    | attempts.StageStarted
    | attempts.StageFinished
    | attempts.AttemptJudged
    | attempts.AttemptCommitted
    | instances.InstanceFinished
    | instances.WaitingForPerson
    | measurements.WinnerExamined
    | measurements.BaselineStageStarted
    | measurements.BaselineMeasured
    | measurements.WinnerMeasured
    | commands.DecisionMade
    | commands.DecisionUndone
    | commands.HintGiven
    | commands.AttemptPinned
    | commands.AttemptBanned
    | commands.SessionTitled
    | commands.RetireAsked
    | commands.Paused
    | commands.Unpaused
    | commands.SessionExtended
    | instances.IterationsMoved
    | commands.InstanceForked
    | commands.MeasureAsked
    | commands.ProfileAsked
    | measurements.ProfileTaken
    | commands.DeviceLent
    | commands.DeviceReturned
    | devices.DeviceSampled
    | devices.DeviceAwaited
    | devices.DeviceQuarantined
    | devices.VerificationRead
    | devices.NodePaused
    | devices.NodeResumed
    | session.Notice
    | session.TaskLeftOut
    | session.EngineStopped
    | session.SessionFinished
)
