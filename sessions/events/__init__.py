"""The event vocabulary: everything that can happen in a session, as tagged data.

Tags are never reused, and new fields have defaults: an older reader skips and counts unknown events.
"""

from typing import get_args

from .attempts import GIVEN as GIVEN
from .attempts import UNASKED as UNASKED
from .attempts import AttemptCommitted as AttemptCommitted
from .attempts import AttemptJudged as AttemptJudged
from .attempts import AttemptStarted as AttemptStarted
from .attempts import CandidateProposed as CandidateProposed
from .attempts import Origin as Origin
from .attempts import StageFinished as StageFinished
from .attempts import StageStarted as StageStarted
from .base import DurableEvent as DurableEvent
from .base import Event as Event
from .base import JudgedEvent as JudgedEvent
from .calls import AGENT_PROGRAM as AGENT_PROGRAM
from .calls import CallFailed as CallFailed
from .calls import CallFinished as CallFinished
from .calls import CallRetried as CallRetried
from .calls import CallStarted as CallStarted
from .calls import Message as Message
from .calls import ReplyPiece as ReplyPiece
from .calls import Role as Role
from .calls import ServedModel as ServedModel
from .calls import Usage as Usage
from .commands import ALL_GPUS as ALL_GPUS
from .commands import NOTHING_TO_STOP as NOTHING_TO_STOP
from .commands import AgentLeft as AgentLeft
from .commands import AttemptBanned as AttemptBanned
from .commands import AttemptPinned as AttemptPinned
from .commands import CandidateSent as CandidateSent
from .commands import CandidateWithdrawn as CandidateWithdrawn
from .commands import Command as Command
from .commands import DecisionMade as DecisionMade
from .commands import DecisionUndone as DecisionUndone
from .commands import DeviceLent as DeviceLent
from .commands import DeviceReturned as DeviceReturned
from .commands import HintGiven as HintGiven
from .commands import InstanceForked as InstanceForked
from .commands import MeasureAsked as MeasureAsked
from .commands import Orders as Orders
from .commands import Paused as Paused
from .commands import PersonCommand as PersonCommand
from .commands import Ping as Ping
from .commands import ProfileAsked as ProfileAsked
from .commands import RetireAsked as RetireAsked
from .commands import SessionExtended as SessionExtended
from .commands import SessionTitled as SessionTitled
from .commands import Stop as Stop
from .commands import Unpaused as Unpaused
from .commands import checked as checked
from .commands import orders_until as orders_until
from .devices import DeviceAwaited as DeviceAwaited
from .devices import DeviceQuarantined as DeviceQuarantined
from .devices import DeviceSampled as DeviceSampled
from .devices import DeviceUser as DeviceUser
from .devices import NodePaused as NodePaused
from .devices import NodeResumed as NodeResumed
from .devices import VerificationRead as VerificationRead
from .measurements import RECORDING as RECORDING
from .measurements import AttemptSwept as AttemptSwept
from .measurements import BaselineMeasured as BaselineMeasured
from .measurements import BaselineStageStarted as BaselineStageStarted
from .measurements import ProfileTaken as ProfileTaken
from .measurements import RungEntry as RungEntry
from .measurements import SweepRung as SweepRung
from .measurements import SweepStarted as SweepStarted
from .measurements import SweptVariant as SweptVariant
from .measurements import WinnerExamined as WinnerExamined
from .measurements import WinnerMeasured as WinnerMeasured
from .methods import METHOD_FACTS as METHOD_FACTS
from .methods import gone_method as gone_method
from .session import EndReason as EndReason
from .session import EngineStarted as EngineStarted
from .session import EngineStopped as EngineStopped
from .session import InstanceFinished as InstanceFinished
from .session import InstanceStarted as InstanceStarted
from .session import Notice as Notice
from .session import SessionFinished as SessionFinished
from .session import SessionStarted as SessionStarted
from .session import TaskLeftOut as TaskLeftOut
from .session import WaitingForPerson as WaitingForPerson

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
"""Every event of a journal."""
COMMANDS: dict[str, type[Command]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (Ping, Stop, *get_args(AnyEvent))
    if issubclass(kind, Command)
}
"""Every command by its tag."""
