"""The line of `wavedeck doctor` about the verification of a GPU."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from harness import Device
from harness.hardware.recognition import describe_device
from harness.node.telemetry.samples import StateReport
from harness.wire.results.provenance import Provenance
from sessions.home import home_from
from sessions.verifications import standing_of
from tui.doctor.doctor_findings import DoctorFinding, note, ok


def verification_finding(device: Device, answer: StateReport, environ: Mapping[str, str]) -> DoctorFinding:
    """Return whether `doctor --verify-gpu` verified GPUs of this product and driver on this node."""
    provenance = describe_device(device, Provenance(), answer.provenance)
    standing = standing_of(
        home_from(environ), host=socket.gethostname(), kind=device.kind, provenance=provenance
    )
    subject = f"judge on {device.name}"
    if standing.startswith("verified"):
        return ok(subject, standing)
    return note(subject, standing, "run `wavedeck doctor --verify-gpu`: ten minutes, and one file to send")
