"""Prints a verification as it goes: what each check does, what it found, the file to send, and one line of outcome."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

from harness import Device
from harness.node.selection import select_devices
from harness.processes.starting.judge_python import JudgePython
from sessions.home import home_from
from sessions.verifications import CheckResult, VerificationFile, verification_path
from tui.diagnostics import Complaint, ExitCode
from tui.print.plain import emit, emit_json
from tui.print.waiting_line import WaitingLine

from .checks import CHECKS
from .subject import Subject, by_product
from .verifying import BUDGET_S, INTERRUPTED, verify_pool

WORDS = {True: "ok", False: "FAILED", None: "-"}
NAME_CELLS = max(len(check.name) for check in CHECKS)


def verify_gpus(named: str, python: JudgePython, *, as_json: bool) -> ExitCode:
    """Verify the named GPUs, a product after another, and print the outcome of each; 1 if one is not verified."""
    subjects = by_product(gpus_of(named), python)
    verifications: list[VerificationFile] = []
    home = home_from(os.environ)
    home.ensure()
    budget_s = BUDGET_S / len(subjects)
    for subject in subjects:
        if not as_json:
            count = f"{len(subject.devices)} x " if len(subject.devices) > 1 else ""
            emit(
                f"{count}{subject.provenance.product}: at most {budget_s / 60:.0f} minutes; Ctrl-C keeps what was measured"
            )
        with WaitingLine(f"check {CHECKS[0].name}", wanted=not as_json) as status:
            verification = asyncio.run(_verify(subject, budget_s, status, as_json=as_json))
        verifications.append(verification)
        interrupted = any(check.words == INTERRUPTED for check in verification.checks)
        if not as_json:
            emit(f"send this file: {verification_path(home, verification)}")
            emit(outcome_line(verification))
        if interrupted:
            break
    if as_json:
        emit_json(verifications)
    return ExitCode.DONE if all(done.verified for done in verifications) else ExitCode.NO


def gpus_of(named: str) -> Sequence[Device]:
    """Return the named GPUs. Raises `Complaint` if there are none; `HarnessError` if a name is wrong."""
    devices = [device for device in select_devices(named.split(",")) if device.kind != "cpu"]
    if not devices:
        raise Complaint(
            "--verify-gpu found no GPU to verify; `wavedeck doctor` says which GPUs a driver shows, and who uses them"
        )
    return devices


async def _verify(
    subject: Subject, budget_s: float, status: WaitingLine, *, as_json: bool
) -> VerificationFile:
    names = [check.name for check in CHECKS]

    def on_result(result: CheckResult) -> None:
        if not as_json:
            emit("\n".join(result_lines(result)))
        after = names.index(result.name) + 1
        status.show(
            f"check {names[after]}: {CHECKS[after].description}" if after < len(names) else "ending the judge"
        )

    return await verify_pool(subject, home_from(os.environ), budget_s=budget_s, on_result=on_result)


def result_lines(result: CheckResult) -> list[str]:
    """Return what a check does, and below it what it found."""
    took = f" ({result.seconds:.0f} s)" if result.seconds >= 1 else ""
    return [
        f"{result.name:<{NAME_CELLS}}  {result.description}",
        f"{'':<{NAME_CELLS}}  {WORDS[result.passed]}: {result.words}{took}",
    ]


def outcome_line(verification: VerificationFile) -> str:
    """Return `MI300X, driver 6.12.12: verified on this node, 2026-11-26`."""
    provenance = verification.provenance
    driver = f", driver {provenance.driver}" if provenance.driver else ""
    return f"{provenance.product}{driver}: {verification.outcome}"
