"""Tasks that run at the same time: of their errors one is raised, the log keeps the others."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from harness.wire.errors import HarnessError

log = logging.getLogger(__name__)
# Only an engine has a log; a command prints nothing here.
log.addHandler(logging.NullHandler())


def first_failure(failures: ExceptionGroup[Exception]) -> Exception:
    """Returns the error that came first. The errors after it are logged, unless they say the same."""
    first, *others = failures.exceptions
    for other in others:
        if repr(other) != repr(first):
            # A known error says enough in one line; of a bug the log keeps where it was.
            bug = None if isinstance(other, HarnessError) else other
            log.error("another error at the same time, after %r: %s", first, other, exc_info=bug)
    return first


async def end_task(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait until it has ended; nothing needs its result or its error."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()  # mark as retrieved
