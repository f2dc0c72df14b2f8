"""Plans of sessions that judge candidates that exist already: predictions from a file, and attempts of another session."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from engine.methods import ReadyCandidate
from engine.models import Limits
from engine.plan.plan import SessionPlan, session_name
from engine.predictions.matching import Sample
from harness import Device
from harness.node.discovery import CPU
from harness.node.selection import targets_for
from sessions.catalog import SessionInfo, Standing, list_sessions
from sessions.home import Home
from sessions.names import instance_key, split_attempt, split_instance
from sessions.settings import MethodOptions, SessionDescription
from sessions.state.state import AttemptState


def plan_predictions(
    samples: Sequence[Sample], *, file: str, seed: int, devices: Sequence[Device], targets: Sequence[str]
) -> SessionPlan:
    """Returns the plan of a session with an instance for each prediction."""
    return _plan(
        "predictions",
        {
            instance_key(sample.public.id, sample.number): (
                ReadyCandidate(sample.source, strategy=f"{sample.place} of {file}", unusable=sample.unusable),
            )
            for sample in samples
        },
        model=file,
        seed=seed,
        devices=devices,
        targets=targets,
        options=MethodOptions(predictions=digest_of(samples, seed)),
    )


def digest_of(samples: Sequence[Sample], seed: int) -> str:
    """Returns a digest of the predictions, of their tasks' texts and of the seed."""
    lines = "".join(f"{sample.key('', seed)} {sample.number}\n" for sample in samples)
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


def earlier_session(home: Home, plan: SessionPlan) -> SessionInfo | None:
    """Returns the newest session of the same predictions, targets and kind of device; `None` if there is none."""
    for info in list_sessions(home):
        settings = info.settings
        same = (settings.options, settings.targets) == (plan.options, plan.targets)
        same_kind = (settings.devices == (CPU.name,)) == (plan.devices == (CPU.name,))
        if same and same_kind and info.state is not Standing.DAMAGED:
            return info
    return None


def plan_rejudge(
    source: SessionDescription,
    attempts: Sequence[AttemptState],
    *,
    devices: Sequence[Device],
    targets: Sequence[str],
) -> SessionPlan:
    """Returns the plan of a session that judges these attempts of `source` again.

    Inputs and timing baseline are those of `source`; on `cpu` also the targets, if none are named.
    """
    candidates: dict[str, list[ReadyCandidate]] = {}
    for attempt in attempts:
        candidates.setdefault(split_attempt(attempt.attempt).instance, []).append(
            ReadyCandidate(
                attempt.source or "",
                origin=attempt.origin,
                strategy=attempt.strategy,
                attempt=attempt.attempt,
                base=attempt.base,
            )
        )
    return _plan(
        "rejudge",
        {key: tuple(chain) for key, chain in candidates.items()},
        model=source.model,
        seed=source.seed,
        devices=devices,
        targets=targets or (source.targets if devices[0] == CPU else ()),
        options=MethodOptions(rejudges=source.session),
        against=source.against,
        against_source=source.against_source,
        references_shown=tuple(filter(source.shows_reference, source.tasks)),
    )


def _plan(
    method: str,
    candidates: Mapping[str, tuple[ReadyCandidate, ...]],
    *,
    devices: Sequence[Device],
    targets: Sequence[str],
    **settings: object,
) -> SessionPlan:
    names = [split_instance(key) for key in candidates]
    return SessionPlan(
        session=session_name(method, datetime.now(UTC)),
        method=method,
        tasks=tuple(dict.fromkeys(name.task for name in names)),
        instances=max(name.number for name in names),
        iterations=max(map(len, candidates.values())),
        devices=tuple(device.name for device in devices),
        targets=tuple(target.name for target in targets_for(devices, targets)),
        review="auto",
        limits=Limits(),
        candidates=dict(candidates),
        **settings,  # type: ignore[arg-type]
    )
