"""The judge's process: trusted, long-lived, one candidate after the other; it alone writes verdicts."""

from __future__ import annotations

import gc
import socket
from pathlib import Path

import torch

from harness.evaluation import ErrorReport, Verdict
from suites.task import Task

from . import linux
from .channel import Channel, ChannelClosed
from .link import GuestBroken, GuestLink
from .messages import (
    ENCODER,
    JUDGE_REQUESTS,
    Alive,
    Begin,
    Entered,
    Judged,
    JudgeReport,
    Left,
    Proceed,
    Spawn,
)
from .problem import BadProblem, Problem
from .trial import Trial


def main(channel: Channel, spawn: Spawn) -> None:  # noqa: ARG001 -- a role like the others
    """Judges until the engine hangs up."""
    linux.prctl(linux.PR_SET_DUMPABLE, 0)
    torch.set_num_threads(1)
    judge = Judge(channel)
    while True:
        try:
            frame = channel.receive()
        except ChannelClosed:
            return
        request = JUDGE_REQUESTS.decode(frame.payload)
        if isinstance(request, Proceed):
            continue  # for a trial that is over
        judge.judge(request, frame.descriptors[0])
        gc.collect()


class Judge:
    """Tells the engine what happens, and keeps loaded problems."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._problems: dict[tuple[Path, int], Problem] = {}

    def judge(self, begin: Begin, guest_end: int) -> None:
        """One trial, from the first call to the verdict."""
        link = GuestLink(Channel(socket.socket(fileno=guest_end)), begin.guest_pid)
        try:
            self.tell(Trial(self, link, begin, self._problem(begin.task)).run())
        except (BadProblem, GuestBroken) as error:
            self.tell(infra(str(error)))
        finally:
            link.close()

    def tell(self, report: JudgeReport) -> None:
        """To the engine."""
        self._channel.send(ENCODER.encode(report))

    def enter(self, stage: str) -> None:
        """A stage begins."""
        self.tell(Entered(stage=stage))

    def leave(self, stage: str, detail: str, *, ok: bool | None) -> None:
        """A stage is over."""
        self.tell(Left(stage=stage, ok=ok, detail=detail))

    def alive(self) -> None:
        """Work goes on."""
        self.tell(Alive())

    def wait_for_go(self) -> bool:
        """Whether the engine wants the trial to go on; `False` when it hung up."""
        try:
            return isinstance(JUDGE_REQUESTS.decode(self._channel.receive().payload), Proceed)
        except ChannelClosed:
            return False

    def _problem(self, task: Task) -> Problem:
        file = task.folder / "problem.py"
        key = (file, file.stat().st_mtime_ns if file.exists() else 0)
        if key not in self._problems:
            self._problems[key] = Problem(task)
        return self._problems[key]


def infra(message: str) -> Judged:
    """The verdict when the fault is not the candidate's."""
    return Judged(
        verdict=Verdict.INFRA_ERROR,
        error=ErrorReport(kind="infra", message=message),
        traffic=(),
        sandbox=(),
        facts=(),
    )
