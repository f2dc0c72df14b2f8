"""Protects a candidate with a slow replay: the engine hears of each wait, and gives the judge up later than the wait ends."""

from __future__ import annotations

import os
import socket
import threading
from typing import Any

from harness.cases.call_plan import make_plan
from harness.stages.slot_evaluation import silence_s
from harness.wire import limits
from harness.wire.calls.records import Record
from harness.wire.channels.channel import Channel, ChannelClosed
from harness.wire.channels.encoding import ENCODER
from harness.wire.messages.guest import CaseTraffic, Hello, Load, Loaded, Returned
from harness.wire.messages.judge import Begin
from harness.wire.messages.requests import REQUESTS, AnswerMessage, WorkerAnswer
from harness.wire.messages.verifier import NotReplayed
from harness.worker.judge.replays import Replays
from harness.worker.oracle.caller import Run
from harness.worker.oracle.problem import Problem
from harness.worker.oracle.vault import Vault
from harness.worker.oracle.worker_line import VerifierLine
from suites import load_task


def play_verifier(end: Channel) -> None:
    """Answer as a verifier: the programs of each replay wait for each other, in any order."""
    end.send(ENCODER.encode(AnswerMessage("", Hello(sandbox=()))))
    while True:
        try:
            frame = end.receive()
        except ChannelClosed:
            end.close()
            return
        for descriptor in frame.descriptors:
            os.close(descriptor)
        message = REQUESTS.decode(frame.payload)
        answer: WorkerAnswer = NotReplayed(kind="waits", message="programs wait")
        if isinstance(message.request, Load):
            answer = Loaded(parameters={})
        end.send(ENCODER.encode(AnswerMessage(message.nonce, answer)))


class Line(VerifierLine):
    """Notes each wait for an answer, in seconds."""

    def __init__(self, channel: Channel, reports: list[str | float]) -> None:
        super().__init__(channel, os.getpid())
        self.reports = reports

    def receive(self, wanted: Any, *, wall_s: float, cpu_s: float | None = None) -> Any:
        self.reports.append(wall_s)
        return super().receive(wanted, wall_s=wall_s, cpu_s=cpu_s)


def test_engine_hears_of_each_wait_for_a_replay_and_outlasts_it() -> None:
    task = load_task("vector_add")
    plan = make_plan(task, 1, "x = 1", exam=False, hidden=False)
    begin = Begin(task, "x = 1", 1, 0, 0, "gfx942", limits.ON_CPU, exam=False, plan=plan, further_cases=())
    ours, theirs = socket.socketpair()
    verifier = threading.Thread(target=play_verifier, args=(Channel(theirs),))
    verifier.start()
    reports: list[str | float] = []
    link, vault, problem = Line(Channel(ours), reports), Vault(), Problem(task)
    replays = Replays(
        link,
        begin,
        plan,
        lambda step: vault.given(problem, step.case, begin.seed, step.place),
        lambda: reports.append("alive"),
    )
    step = plan.execution[-1]
    given = vault.given(problem, step.case, begin.seed, step.place)
    record = Record(inputs={}, steps=(), functions=(), returned=())
    traffic = CaseTraffic("", 0, 0, 0, 0, 0, 0, 0, ())
    returned = Returned("", (), (), 0, (), traffic, "", changed_output=False, record=record)
    replays.study()
    reports.clear()
    replays.start(Run(step, given, returned, (), ()))
    assert replays.finish() is None
    link.close()
    verifier.join(60)
    assert [finding.kind for finding in replays.findings] == ["not_replayed"]
    waits = [number for number, report in enumerate(reports) if report != "alive"]
    assert len(waits) == 3, "for the source, for the replay in reverse, and for the replay in order"
    assert all(reports[number - 1] == "alive" for number in waits)
    longest_s = max(report for report in reports if isinstance(report, float))
    assert longest_s < silence_s(begin.limits, replays=True, scripts=False)
