"""Refuses threads and looks at the judge's frames while a candidate runs, whatever names the candidate uses for them.

The watch of operators follows one thread only, and with the judge's frames a candidate could turn the watch off.
"""

from __future__ import annotations

import _thread
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

from harness.worker.interpreter.traffic import cannot

_STARTS = ("start_new_thread", "start_new", "start_joinable_thread")
_ASKING = frozenset({
    "gc.get_objects", "gc.get_referrers", "gc.get_referents", "sys._getframe", "sys._current_frames", "sys.settrace",
    "sys.setprofile",
})  # fmt: skip
_MEMBER = "object.__getattr__"
_FRAMES = frozenset({"tb_frame", "gi_frame", "cr_frame", "ag_frame"})


class NotAllowed(RuntimeError):
    """A candidate looked at objects that do not belong to it."""


def install(file: str) -> None:
    """Refuse both from now on in this process. `file`: the candidate's. Call once, before its import."""
    _refuse_threads()
    frame_of_caller: Callable[[int], FrameType] = sys._getframe
    is_asking = False

    def hook(event: str, args: tuple[object, ...]) -> None:
        """Raise `NotAllowed` if the candidate's own code looks at frames or starts a thread; ignore all other events."""
        nonlocal is_asking
        if is_asking or not (event in _ASKING or (event == _MEMBER and args[1] in _FRAMES)):
            return
        is_asking = True  # `_getframe` is an event too
        try:
            code = frame_of_caller(1).f_code
        finally:
            is_asking = False
        # Python's libraries read frames by their names. A name that was computed is in no code.
        if code.co_filename == file or (event == _MEMBER and args[1] not in code.co_names):
            subject = args[1] if event == _MEMBER else event
            raise NotAllowed(f"`{subject}` reaches objects of Python that do not belong to the candidate")

    sys.addaudithook(hook)


def _refuse_threads() -> None:
    """Replace the functions that start threads. No other module of Python holds them."""
    for module in (_thread, threading):
        for name in (*_STARTS, *(f"_{start}" for start in _STARTS)):
            if hasattr(module, name):
                setattr(module, name, _refuse_thread)


def _refuse_thread(*_: Any, **__: Any) -> NoReturn:
    raise cannot("it starts a thread, and the judge cannot watch what a thread computes")
