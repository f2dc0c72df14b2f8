"""Tests of public benchmarks that a command records before it judges, without a judge."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from harness import Device
from harness.wire.errors import NotRecorded
from suites.public.task import PublicTask, SuiteKind
from tests.support.tasks.scripts import SCALE, TEST, public_task
from tui.commands.keep import recording
from tui.diagnostics import Complaint

COMPLEX = "its calls make no valid task: complex64"


class NoPool:
    """Replaces a pool of devices."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, *_: object) -> None:
        pass


class Recorder:
    """Replaces `find_or_record`: tasks named `complex...` cannot be judged, the others end in the order of their names."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, names: Sequence[str], folder: Path) -> None:
        self.at_work = 0
        self.most_at_work = 0
        self._turns = {name: turn for turn, name in enumerate(sorted(names))}
        template = public_task(SCALE, TEST, folder)
        self.tasks = {f"mine/{name}": self._named(template, name) for name in names}
        monkeypatch.setattr(recording, "_finder", lambda _: self.tasks.get)
        monkeypatch.setattr(recording, "find_recorded", lambda *_, **__: None)
        monkeypatch.setattr(recording, "find_or_record", self.find_or_record)
        monkeypatch.setattr(recording, "DevicePool", NoPool)
        monkeypatch.setattr(recording, "wait_for_devices", self.wait_for_devices)

    def _named(self, task: PublicTask, name: str) -> PublicTask:
        return msgspec.structs.replace(task, name=name, kind=SuiteKind.TRITONBENCH_G)

    async def wait_for_devices(self, *_: object, **__: object) -> tuple[Device, ...]:
        return (Device("cpu", "cpu"),)

    async def find_or_record(self, public: PublicTask, *_: object, **__: object) -> None:
        self.at_work += 1
        self.most_at_work = max(self.most_at_work, self.at_work)
        try:
            for _turn in range(10 * (1 + self._turns[public.name])):
                await asyncio.sleep(0)
            if public.name.startswith("complex"):
                raise NotRecorded(COMPLEX)
        finally:
            self.at_work -= 1


OPTIONS = {"devices": ("cpu",), "targets": ("gfx942",)}


def test_a_named_task_that_cannot_be_judged_is_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recorder = Recorder(monkeypatch, ["a", "complex", "d"], tmp_path)
    names = ["softmax", "mine/a", "mine/complex", "mine/d"]
    named = recording.record_missing(names, tmp_path, **OPTIONS)
    assert named.ready == ("softmax", "mine/a", "mine/d")
    assert named.left_out == {"mine/complex": COMPLEX}
    assert recorder.most_at_work == 3


def test_a_run_of_tasks_that_cannot_be_judged_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Recorder(monkeypatch, ["complex1", "complex2"], tmp_path)
    with pytest.raises(
        Complaint, match=r"mine/complex1 cannot be judged: .*; mine/complex2 cannot be judged"
    ):
        recording.record_missing(["mine/complex1", "mine/complex2"], tmp_path, **OPTIONS)


def test_a_run_records_nothing_before_its_session_and_refuses_what_the_benchmark_says_cannot_be_judged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recorder = Recorder(monkeypatch, ["adam", "complex", "d"], tmp_path)
    recorder.tasks["mine/adam"] = msgspec.structs.replace(
        recorder.tasks["mine/adam"], unsupported="its entry point returns an optimizer"
    )
    with pytest.raises(Complaint, match="mine/adam cannot be judged: its entry point returns an optimizer"):
        recording.find_unrecorded(["mine/adam"], tmp_path, devices=("cpu",))
    names = ["mine/adam", "mine/d", "softmax", "mine/complex"]
    named = recording.find_unrecorded(names, tmp_path, devices=("cpu",))
    assert named.ready == ("softmax",)
    unrecorded = ("mine/adam", "mine/d", "mine/complex")
    assert named.unrecorded == unrecorded, "the session's journal says why one is left out"
    assert recorder.most_at_work == 0
