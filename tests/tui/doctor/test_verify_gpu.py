"""`wavedeck doctor --verify-gpu`: every check runs and is kept, whatever fails; sessions carry the outcome."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

import msgspec
import pytest

from engine.process.process import note_verification
from harness import Device, DevicePool, Evaluation, HarnessError, Latency, Layer, Verdict, evaluate, target
from harness.node.discovery import CPU
from harness.node.telemetry.samples import StateReport
from harness.profiling.clock_comparison import ClockTrial
from harness.wire.results.latency import DeviceReading, Outcome, Window
from harness.wire.results.provenance import Provenance
from sessions import Home, Recorder, fold
from sessions import events as ev
from sessions.journal.journal import read_journal
from sessions.verifications import (
    CheckResult,
    VerificationFile,
    graph_nodes_of,
    newest_verification,
    read_verifications,
    standing_of,
)
from suites import Task, load_suite, load_task
from tests.support.command_line import Shell
from tests.support.judge.evaluations import correct, failed
from tests.support.sessions import story
from tui.cockpit.screens.header import header_line
from tui.doctor.machine import verification_finding
from tui.doctor.verify_gpu.checks import CHECKS, load_cheats
from tui.doctor.verify_gpu.command import outcome_line, verify
from tui.facts.report import facts_of, report_of

MI300X = Device("0", "hip", "gfx942", "AMD Instinct MI300X", address="0000:c1:00.0")
KNOWN = Provenance(product="MI300X", driver="6.12.12", firmware="022", max_clock_mhz=2100, power_cap_w=750.0)
STATE = DeviceReading(clock_mhz=2100, power_w=140.0, hotspot_c=41.0, memory_total_bytes=1 << 37)
WINDOW = Window("amdsmi", 0.1, clock_mhz=2050, power_w=500.0, hotspot_c=55.0)
HOST = socket.gethostname()
CLOCKS = ClockTrial(
    events_us=(8.0, 13.0, 23.0, 53.0, 103.0), graph_us=(5.5, 10.5, 20.6, 50.5, 100.8), nodes=64,
    processes_us=(10.0, 10.02, 9.98),
)  # fmt: skip


class ScriptedSubject:
    """A subject whose GPUs answer as a test says: right kernels with ratio 1, refused cheats."""

    def __init__(self, *devices: Device) -> None:
        self.devices: Sequence[Device] = devices or (MI300X,)
        self.provenance = KNOWN
        self.evaluations: dict[str, Evaluation] = {}
        self.state_now = STATE
        self.ratio = 1.003
        self.cheat = failed(Verdict.REJECTED, "no")
        self.no_start = ""
        self.hangs_in = ""
        """A check in which judging never ends."""
        self.hung = asyncio.Event()
        self.clocks = CLOCKS
        self.graph_nodes: int | None = None
        self._tasks = load_suite("starter")

    @property
    def tasks(self) -> Sequence[Task]:
        return self._tasks

    async def ask_driver(self, device: Device) -> StateReport:
        return StateReport(self.state_now, "amdsmi", "", KNOWN)

    async def start(self) -> None:
        if self.no_start:
            raise HarnessError(self.no_start)
        self.provenance = msgspec.structs.replace(KNOWN, torch="2.8.0+rocm7.0", triton="3.4.0")

    async def compute(self, device: Device) -> str:
        return ""

    async def compare_clocks(self, device: Device) -> ClockTrial:
        return self.clocks

    async def judge(self, name: str, source: str, task: Task, *, seed: int = 1, on: str = "") -> Evaluation:
        if self.hangs_in and name.startswith(self.hangs_in):
            self.hung.set()
            await asyncio.Event().wait()
        if name.startswith("cheats/"):
            evaluation = self.cheat
        else:
            low, high = self.ratio - 0.002, self.ratio + 0.002
            row = Latency(
                "0", "a", 0.2, 0.2, self.ratio, (low, high), "tape", Outcome.NOT_RESOLVED, window=WINDOW
            )
            evaluation = msgspec.structs.replace(
                correct(),
                latency=(row,),
                sandbox=(Layer("network", "active"), Layer("user", "absent", "no root")),
            )
        self.evaluations[name] = evaluation
        return evaluation


async def verified(subject: ScriptedSubject, home: Home) -> tuple[VerificationFile, dict[str, CheckResult]]:
    """Run all checks; return the verification and its results by name."""
    results: list[CheckResult] = []
    verification = await verify(subject, home, on_result=results.append)
    assert tuple(results) == verification.checks
    return verification, {check.name: check for check in results}


def standing(home: Home, kind: str = "hip", provenance: Provenance = KNOWN) -> str:
    return standing_of(newest_verification(home, host=HOST, provenance=provenance), kind)


async def test_gpu_on_which_all_checks_pass_is_verified_on_this_node(home: Home) -> None:
    verification, results = await verified(ScriptedSubject(), home)
    assert {name: check.passed for name, check in results.items()} == dict.fromkeys(
        (check.name for check in CHECKS), True
    )
    assert verification.outcome == f"verified on this node, {verification.day}"
    assert outcome_line(verification) == f"MI300X, driver 6.12.12: {verification.outcome}"
    assert standing(home) == verification.outcome


async def test_file_to_send_has_provenance_figures_and_evaluations(home: Home) -> None:
    verification, _ = await verified(ScriptedSubject(), home)
    [path] = home.verifications.glob("*.json")
    sent = msgspec.json.decode(path.read_bytes(), type=VerificationFile)
    assert sent == verification
    assert sent.provenance.torch == "2.8.0+rocm7.0"
    assert set(sent.evaluations) >= {"honest/softmax", "repeats/softmax/0/3", "cheats/other_stream"}
    figures = {check.name: check.figures for check in sent.checks}
    assert figures["driver"]["GPU 0 power W"] == 140.0
    assert figures["itself"]["softmax/a"] == 1.003


async def test_outcome_holds_for_one_product_driver_and_host(home: Home) -> None:
    await verified(ScriptedSubject(), home)
    newer = msgspec.structs.replace(KNOWN, driver="6.14.0")
    assert standing(home, provenance=newer) == "unverified on AMD"
    elsewhere = newest_verification(home, host="elsewhere", provenance=KNOWN)
    assert standing_of(elsewhere, "hip") == "unverified on AMD"
    assert standing(home, "cuda", Provenance(product="H100")) == "not verified on this node"


async def test_clock_that_is_trusted_is_kept_for_later_sessions(home: Home) -> None:
    assert graph_nodes_of(home, KNOWN) is None
    _, results = await verified(ScriptedSubject(), home)
    assert results["clocks"].words == (
        "graphs of up to 64 calls are trusted; graph over events: slope 1.003, constant -2.5 us; "
        "3 processes differ by 0.20% (standard deviation)"
    )
    assert graph_nodes_of(home, KNOWN) == 64


async def test_profiler_decides_between_graph_and_events(home: Home) -> None:
    subject = ScriptedSubject()
    device_us = (5.0, 10.0, 20.0, 50.0, 100.0)
    stretched = tuple(1.05 * us for us in device_us)
    subject.clocks = msgspec.structs.replace(CLOCKS, profiler_us=device_us, graph_us=stretched)
    _, results = await verified(subject, home)
    assert results["clocks"].passed, "events agree with the profiler"
    assert results["clocks"].words.startswith("no graph is trusted, batches")
    assert graph_nodes_of(home, KNOWN) == 0
    subject.clocks = msgspec.structs.replace(subject.clocks, events_us=stretched)
    _, results = await verified(subject, home)
    assert not results["clocks"].passed


async def test_failing_checks_do_not_end_the_others(home: Home) -> None:
    subject = ScriptedSubject()
    subject.state_now = DeviceReading(clock_mhz=2100)
    subject.ratio = 1.2
    subject.cheat = correct(speedup=3.0)
    verification, results = await verified(subject, home)
    assert [name for name, check in results.items() if not check.passed] == ["driver", "itself", "cheats"]
    assert "not reported: power W, temperature C, memory bytes" in results["driver"].words
    assert "other_stream is accepted, 3.00x" in results["cheats"].words
    assert verification.outcome == f"unverified on AMD: driver, itself, cheats failed, {verification.day}"
    assert standing(home) == verification.outcome


async def test_nothing_is_judged_if_the_judge_does_not_start(home: Home) -> None:
    subject = ScriptedSubject()
    subject.no_start = "the compiling server ended at its start: no HIP device"
    verification, results = await verified(subject, home)
    assert (results["driver"].passed, results["start"].passed) == (True, False)
    assert results["honest"].words == "not run: the judge did not start"
    assert verification.outcome == f"unverified on AMD: start failed, {verification.day}"


async def test_interruption_keeps_what_was_measured_and_an_earlier_outcome(home: Home) -> None:
    before, _ = await verified(ScriptedSubject(), home)
    subject = ScriptedSubject()
    subject.hangs_in = "repeats/"
    task = asyncio.create_task(verify(subject, home, on_result=lambda _: None))
    await asyncio.wait_for(subject.hung.wait(), 60)
    task.cancel()
    verification = await asyncio.wait_for(task, 60)
    results = {check.name: check for check in verification.checks}
    assert results["itself"].passed
    assert (results["repeats"].words, results["cheats"].words) == ("interrupted", "not run: interrupted")
    assert "not all checks ran" in verification.outcome
    assert len(read_verifications(home)) == 2
    assert standing(home) == before.outcome


async def test_checks_end_with_their_time(home: Home) -> None:
    subject = ScriptedSubject()
    subject.hangs_in = "honest/"
    verification = await asyncio.wait_for(verify(subject, home, on_result=lambda _: None, budget_s=0.5), 60)
    results = {check.name: check for check in verification.checks}
    assert results["contexts"].passed
    assert results["honest"].words == "not finished: the time for all checks is over"
    assert results["cheats"].words == "not run: the time is over"


async def test_each_gpu_is_repeated_on_its_own(home: Home) -> None:
    subject = ScriptedSubject(MI300X, msgspec.structs.replace(MI300X, name="1"))
    _, results = await verified(subject, home)
    assert set(results["repeats"].figures) == {"GPU 0 a spread", "GPU 1 a spread"}


def test_command_needs_a_gpu(shell: Shell) -> None:
    done = shell("doctor", "--verify-gpu", "--devices", "cpu")
    assert done.code == 2
    assert "found no GPU to verify" in done.err


async def test_doctor_shows_the_outcome_of_a_gpu(home: Home) -> None:
    environ = {"WAVEDECK_HOME": str(home.root)}
    answer = StateReport(STATE, "amdsmi", "", KNOWN)
    before = verification_finding(MI300X, answer, environ)
    assert (before.state, before.found) == ("note", "unverified on AMD")
    assert "--verify-gpu" in before.follows
    verification, _ = await verified(ScriptedSubject(), home)
    after = verification_finding(MI300X, answer, environ)
    assert (after.state, after.found) == ("ok", verification.outcome)


def test_session_carries_the_outcome_into_its_report_and_header() -> None:
    read = ev.VerificationRead(standings={"MI300X": "unverified on AMD"})
    state = fold([*story.whole(), read])
    assert facts_of(report_of(state))["verified"] == "MI300X: unverified on AMD"
    for width, shown in ((200, True), (80, False)):
        header = header_line(state, [], name="a session", status=(), concerns=(), width=width)
        assert ("unverified on AMD" in "".join(span.text for span in header)) is shown


class OneGpu:
    """A pool with one MI300X."""

    devices = (CPU, MI300X)

    async def provenance(self, device: Device) -> Provenance:
        """See `DevicePool`."""
        assert device is MI300X
        return KNOWN


async def test_engine_records_the_outcome_once_and_again_if_it_changes(home: Home) -> None:
    with Recorder.begin(home, story.started()) as recorder:
        for _ in range(2):
            await note_verification(OneGpu(), recorder, home)  # type: ignore[arg-type]
        assert recorder.state.verification == {"MI300X": "unverified on AMD"}
        verification, _ = await verified(ScriptedSubject(), home)
        await note_verification(OneGpu(), recorder, home)  # type: ignore[arg-type]
        events = read_journal(home.files(story.started().session).journal).events
        standings = [event.standings for event in events if isinstance(event, ev.VerificationRead)]
        assert standings == [{"MI300X": "unverified on AMD"}, {"MI300X": verification.outcome}]
        recorder.record(ev.EngineStopped(reason="asked"))


@pytest.mark.judge
@pytest.mark.soak
async def test_cheats_are_right_at_the_sizes_of_the_interpreter() -> None:
    cheats = load_cheats()
    assert 3 <= len(cheats) <= 5
    async with DevicePool(("cpu",), timed=False) as pool:
        for name, cheat in cheats.items():
            task = load_task(cheat.task)
            evaluation = await evaluate(cheat.source, task, pool=pool, targets=(target("gfx942"),), seed=1)
            shown = evaluation.error.kind if evaluation.error is not None else ""
            assert shown in ("", "gpu_sizes"), (name, evaluation.error)
            assert (
                msgspec.json.decode(msgspec.json.encode(evaluation), type=Evaluation).provenance is not None
            )
