"""Runs the checks within ten minutes and prints them: what each does and found, the file to send, and one line of outcome."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Sequence

import msgspec

from harness import Device, HarnessError
from harness.linux.installed import installed_version
from harness.node.selection import select_devices
from harness.processes.starting.judge_python import JudgePython
from sessions.home import Home, home_from
from sessions.verifications import CheckResult, VerificationFile, verification_path, write_verification
from tui.diagnostics import Complaint, ExitCode, one_line
from tui.print.plain import emit, emit_json
from tui.print.waiting_line import WaitingLine

from .checks import CHECKS, Check, NothingTimed
from .subject import GpusUnderTest, by_product

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
    subject: GpusUnderTest, budget_s: float, status: WaitingLine, *, as_json: bool
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


BUDGET_S = 570.0
"""For all checks; ending the processes takes some seconds more."""
INTERRUPTED = "interrupted"
OnResult = Callable[[CheckResult], None]


async def verify_pool(
    subject: GpusUnderTest, home: Home, *, budget_s: float, on_result: OnResult
) -> VerificationFile:
    """Run the checks on a subject of real GPUs, and end its processes."""
    try:
        return await verify(subject, home, budget_s=budget_s, on_result=on_result)
    finally:
        await subject.close()


async def verify(
    subject: GpusUnderTest, home: Home, *, on_result: OnResult, budget_s: float = BUDGET_S
) -> VerificationFile:
    """Run the checks in order and return the verification, which is in the home after each check.

    A check that fails does not end the others, except that without the check `start` nothing can be judged. `on_result` gets each
    result as soon as it is known. If the task is cancelled (Ctrl-C) or `budget_s` is over, the checks that are left do not
    run, and all that was measured is kept.
    """
    verification = VerificationFile(
        host=socket.gethostname(),
        wavedeck=installed_version("wavedeck") or "not installed",
        kind=subject.devices[0].kind,
        provenance=subject.provenance,
        devices=tuple(
            f"{device.name}: {device.description} {device.address}".rstrip() for device in subject.devices
        ),
        begun=time.time(),
    )
    path = verification_path(home, verification)
    ends = asyncio.get_running_loop().time() + budget_s
    results: list[CheckResult] = []
    why_not = ""
    for check in CHECKS:
        if why_not:
            result = CheckResult(
                name=check.name, description=check.description, passed=None, words=f"not run: {why_not}"
            )
        else:
            result, why_not = await run_check(check, subject, ends)
        results.append(result)
        on_result(result)
        verification = msgspec.structs.replace(
            verification,
            provenance=subject.provenance,
            checks=tuple(results),
            whole=len(results) == len(CHECKS) and all(done.passed is not None for done in results),
            evaluations=subject.evaluations,
            graph_nodes=subject.graph_nodes,
        )
        await asyncio.to_thread(write_verification, path, verification)
    return verification


async def run_check(check: Check, subject: GpusUnderTest, ends: float) -> tuple[CheckResult, str]:
    """Return the result of a check, and why the checks after it cannot run; empty if they can."""
    began = time.monotonic()
    passed: bool | None = False
    figures: dict[str, float | str | None] = {}
    why_not = ""
    try:
        async with asyncio.timeout_at(ends):
            finding = await check.run(subject)
            passed, words, figures = finding.passed, finding.words, finding.figures
    except TimeoutError:
        if asyncio.get_running_loop().time() >= ends:
            passed, words = None, "not finished: the time for all checks is over"
            why_not = "the time is over"
        else:
            words = "a process did not answer in time"
    except asyncio.CancelledError:
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()
        passed, words, why_not = None, INTERRUPTED, INTERRUPTED
    except NothingTimed as error:
        words = str(error)
    except HarnessError as error:
        words = one_line(str(error))
    except Exception as error:  # noqa: BLE001  # the checks after it still run on untried hardware
        words = one_line(f"{type(error).__name__}: {error}")
    if check.name == "start" and passed is False:
        why_not = "the judge did not start"
    seconds = time.monotonic() - began
    result = CheckResult(
        name=check.name,
        description=check.description,
        passed=passed,
        words=words,
        seconds=seconds,
        figures=figures,
    )
    return result, why_not
