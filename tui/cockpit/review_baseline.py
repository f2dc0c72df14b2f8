"""The source of the baseline that a session is timed against. Reads files: call it in a thread."""

from __future__ import annotations

from sessions.events import SessionStarted
from sessions.home import Home

KERNEL_MARK = "@triton.jit"
"""In each Triton kernel; a baseline without it is PyTorch code."""


def baseline_source(home: Home, started: SessionStarted, task: str) -> str:
    """Return the source of the baseline of a task (full name); empty if it is not known.

    It is the kernel file that `--against` named, else the task's own baseline as the suite has it now.
    """
    if started.against_source or started.against:
        return started.against_source
    from suites import SuiteError, load_task
    from suites import baseline_source as source_of

    try:
        return source_of(load_task(task, registry=home.suites))
    except SuiteError:
        return ""


def is_kernel(source: str) -> bool:
    """True if a diff from this source to a Triton kernel says something."""
    return KERNEL_MARK in source
