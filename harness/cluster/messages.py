"""Messages between an engine and the judges of a cluster's nodes, as msgpack: Ray itself carries only bytes."""

from __future__ import annotations

import msgspec

from harness.processes.gpus.quarantine import LeaseAwaited, Quarantined
from harness.stages.modes import Mode
from harness.stages.survey import Compiled
from harness.stages.timing.baselines import Against
from harness.wire.channels.channel import text_to_path
from harness.wire.device import Device, Target
from harness.wire.messages.server import Language
from harness.wire.results.evaluation import Evaluation, StageEvent
from harness.wire.results.latency import DeviceReading
from harness.wire.results.provenance import Provenance
from suites.task import Task


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments for the judge of one device of a node."""

    node: str
    device: str
    """Name on the node: `0`, or `cpu`."""
    cores: int
    session: str
    case_bytes: int
    """Bytes of the largest case of the session's tasks."""
    python: str = ""
    """Path of the judge's interpreter on the node; empty: Wavedeck's own."""


class JudgeOpened(msgspec.Struct, frozen=True, kw_only=True):
    """A judge that is ready."""

    device: Device
    slots: int
    language: Language | None
    provenance: Provenance
    wavedeck: str
    """Digest of Wavedeck's judge on the node."""


class SentTask(msgspec.Struct, frozen=True):
    """A task. Its folder is sent separately, as a parcel."""

    task: Task
    parcel: str
    """Digest of the folder's contents."""


class JudgeCandidate(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Evaluate one candidate; see `harness.stages.cascade.evaluate`."""

    task: SentTask
    candidate: str
    mode: Mode
    targets: tuple[Target, ...]
    seed: int
    against: Against | None
    wants_texts: bool
    name: str


class CompileSources(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Compile sources of one task; see `harness.stages.survey.Survey`."""

    task: SentTask
    target: Target
    sources: tuple[str, ...]


Request = JudgeCandidate | CompileSources


class StageReported(msgspec.Struct, frozen=True, tag=True):
    """A candidate entered or left a stage."""

    call: str
    event: StageEvent


class Finished(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A call ended."""

    call: str
    result: bytes = b""
    """`EVALUATION` or `COMPILED`, by the kind of the request."""
    texts: dict[str, bytes] = {}
    """The compiler's texts, as gzip by SHA-256."""
    error: str = ""
    """Why there is no result."""
    is_out_of_service: bool = False
    """The device failed before it could judge, so another device has to."""


Report = StageReported | Finished | LeaseAwaited | Quarantined


class ReportBatch(msgspec.Struct, frozen=True):
    """The reports since the last batch."""

    reports: tuple[Report, ...]
    last: int
    """Number of the last report."""
    state: DeviceReading


SETUP = msgspec.msgpack.Decoder(Setup)
OPENED = msgspec.msgpack.Decoder(JudgeOpened)
REQUESTS: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request, dec_hook=text_to_path)
BATCHES = msgspec.msgpack.Decoder(ReportBatch)
CALLS: msgspec.msgpack.Decoder[tuple[str, ...]] = msgspec.msgpack.Decoder(tuple[str, ...])
EVALUATION = msgspec.msgpack.Decoder(Evaluation)
COMPILED: msgspec.msgpack.Decoder[tuple[Compiled, ...]] = msgspec.msgpack.Decoder(tuple[Compiled, ...])
