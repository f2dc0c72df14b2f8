"""Runs the checks within ten minutes, and keeps what they measured after each one."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable

import msgspec

from harness import HarnessError
from harness.linux.installed import installed_version
from sessions.home import Home
from sessions.verifications import CheckResult, VerificationFile, verification_path, write_verification
from tui.diagnostics import one_line

from .checks import CHECKS, Check, NothingTimed
from .subject import Subject

BUDGET_S = 570.0
"""For all checks; ending the processes takes some seconds more."""
INTERRUPTED = "interrupted"
OnResult = Callable[[CheckResult], None]


async def verify_pool(
    subject: Subject, home: Home, *, budget_s: float, on_result: OnResult
) -> VerificationFile:
    """Run the checks on a subject of real GPUs, and end its processes."""
    try:
        return await verify(subject, home, budget_s=budget_s, on_result=on_result)
    finally:
        await subject.close()


async def verify(
    subject: Subject, home: Home, *, on_result: OnResult, budget_s: float = BUDGET_S
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


async def run_check(check: Check, subject: Subject, ends: float) -> tuple[CheckResult, str]:
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
