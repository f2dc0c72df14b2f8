"""Makes the message to the judge with the counts and findings of one call."""

from __future__ import annotations

from harness.wire.messages.guest import CaseTraffic
from harness.wire.results.evaluation import Finding, line_in

from .traffic import Observation


def case_traffic(case: str, observation: Observation) -> CaseTraffic:
    """The message for the observation of one call."""
    return CaseTraffic(
        case=case,
        requested_read_bytes=observation.requested_read_bytes,
        requested_write_bytes=observation.requested_write_bytes,
        unique_read_bytes=observation.unique_read_bytes,
        unique_write_bytes=observation.unique_write_bytes,
        dot_flops=observation.dot_flops,
        launches=len(observation.launches),
        programs=sum(launch.programs for launch in observation.launches),
        missed_stores=tuple(observation.missed_stores),
        undefined_lanes=tuple(observation.undefined_lanes),
        findings=tuple(
            Finding(kind=kind, message=message, case=case, line=line_in(message))
            for kind, messages in (
                ("out_of_bounds", observation.missed_loads),
                ("false_promise", observation.false_promises),
                ("uninitialised", observation.uninitialised),
            )
            for message in messages
        ),
    )
