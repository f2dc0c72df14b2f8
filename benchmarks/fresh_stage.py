"""One stage of one evaluation in an interpreter of its own: how today's tools judge, with this judge's checks.

    python -m benchmarks.fresh_stage call|compile|execution|integrity|estimate TASK FILE SPECIFICATIONS

`call` imports and runs the first case; `compile` compiles each launch for gfx942, and again in a clean process; `execution` runs every case, compares it with the
oracle and replays it; `integrity` makes the repeats and replays them, and looks at what was left behind; `estimate` samples the
launches at `gpu` sizes. Each imports torch, triton and the candidate, makes the inputs of its own calls and makes no other calls.
Processes within a stage are forked from this interpreter. What the tasks' arguments are at `gpu` sizes is made once a task, by
`specify`, and costs the other way nothing. Used by `benchmarks.harness_throughput`; exits 0 when the stage passed.
"""

from __future__ import annotations

import dataclasses
import os
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

if sys.argv[1:] and sys.argv[1] != "compile":
    os.environ["TRITON_INTERPRET"] = "1"  # triton looks at it while it is imported

import msgspec

from harness import TimeLimits, limits
from harness.targets import hardware, target
from harness.worker.compiler import capture
from harness.worker.compiler.compiler import CaseSpec, compile_candidate, note_launches, prepare
from harness.worker.guest.candidate import import_candidate
from harness.worker.interpreter import interpreter
from harness.worker.judge import findings
from harness.worker.judge.judge import Judge
from harness.worker.judge.link import GuestLink, VerifierLink
from harness.worker.judge.plan import make_plan
from harness.worker.judge.problem import Problem, specified
from harness.worker.judge.trial import Trial
from harness.worker.sampler import sampling
from harness.worker.sampler.sample_messages import Sample
from harness.worker.sampler.sampler import sample_case
from harness.worker.serving import place
from harness.worker.serving.channel import Channel
from harness.worker.serving.messages import ENCODER, Begin, Farewell, JudgeReport, LeftBehind, Spawn
from harness.worker.serving.roles import ROLES
from harness.worker.serving.specializations import RECOMPILE_REPORTS, Recompile, Recompiled
from suites import Task, load_task

TARGET = "gfx942"
SEED = 1
STAGES = ("call", "compile", "execution", "integrity", "estimate")


class Specifications(msgspec.Struct, frozen=True):
    """What the arguments of a task are."""

    at_gpu_sizes: tuple[CaseSpec, ...]
    once: tuple[CaseSpec, ...]
    """Of the declared cases at the sizes of the interpreter."""


class StageJudge(Judge):
    """A judge without an engine."""

    def tell(self, report: JudgeReport) -> None:
        """Nobody listens."""


class StageTrial(Trial):
    """The calls and checks of one stage; what does not pass raises."""

    def play(self, stage: str) -> None:
        """Returns when the stage passed."""
        plan = self._plan
        calls = {"call": plan.execution[:1], "execution": plan.execution, "integrity": plan.repeats}[stage]
        self._plan = dataclasses.replace(plan, execution=calls, repeats=())
        try:
            self._prepare()
            self._link.hello()
            first = self._call()
            if stage == "execution":
                self._execute(first)
                for run in self._runs:
                    self._refuse(findings.of_call(run, self._task))
            elif stage == "integrity":
                for step in filter(self._is_possible, calls):
                    run = first if step is first.step else self._run(step)
                    self._refuse(findings.of_call(run, self._task))
                    self._repeated(run)
                    self._replays.start(run)
            self._refuse(self._replays.finish())
            left = self._link.ask(
                lambda nonce: Farewell(nonce=nonce),
                LeftBehind,
                wall_s=limits.FAREWELL_S,
                cpu_s=limits.FAREWELL_S,
            )
            self._refuse(findings.of_farewell(left))
        finally:
            self._caller.close()
            self._replays.close()


def forked(role: str, folder: Path) -> tuple[int, socket.socket]:
    """A worker of `role`, forked from here: its process id and our end of its channel."""
    ours, theirs = socket.socketpair()
    scratch = folder / role
    scratch.mkdir()
    pid = os.fork()
    if pid == 0:
        ours.close()
        os.setsid()
        play: Callable[[Channel, Spawn], None] = ROLES[role]
        play(Channel(theirs), Spawn(worker=0, role=role, scratch=str(scratch), cpu_limit_s=600))
        os._exit(0)
    theirs.close()
    return pid, ours


def judge(task: Task, source: str, folder: Path, stage: str) -> None:
    """Plays one of the stages that run the candidate; raises where it does not pass."""
    guest_pid, guest = forked("guest", folder)
    link = GuestLink(Channel(guest), guest_pid, place.answer_bytes())
    pids, verifier = [guest_pid], None
    if stage != "call":
        verifier_pid, end = forked("verifier", folder)
        verifier = VerifierLink(Channel(end), verifier_pid)
        pids.append(verifier_pid)
    begin = Begin(
        task=task,
        source=source,
        seed=SEED,
        guest_pid=guest_pid,
        verifier_pid=None if verifier is None else pids[1],
        target=TARGET,
        limits=TimeLimits(),
        exam=False,
        compiled=True,
    )
    mine, _theirs = socket.socketpair()
    StageTrial(StageJudge(Channel(mine)), link, verifier, begin, Problem(task)).play(stage)
    link.close()
    if verifier is not None:
        verifier.close()
    for pid in pids:
        os.waitpid(pid, 0)


def compiles(task: Task, source: str, folder: Path, known: Specifications) -> bool:
    """Whether every launch compiles for the target, and a clean process compiles the same from the text."""
    pid, end = forked("recompiler", folder)
    os.environ["TRITON_CACHE_DIR"] = str(folder / "cache")
    prepare(target(TARGET))
    entry = task.entry_points[0].name
    with capture.note_import():
        fresh = import_candidate(folder / "kernel.py", source)
    noted = note_launches(fresh, entry, known.once)
    module = import_candidate(folder / "kernel.py", source)
    report = compile_candidate(
        module, entry, known.at_gpu_sizes, target(TARGET), allowed=task.allowed_operators
    )
    again = Channel(end)
    again.receive()  # its greeting
    request = Recompile("", source, str(folder / "kernel.py"), TARGET, report.asked)
    again.send(ENCODER.encode(request))
    made = RECOMPILE_REPORTS.decode(again.receive().payload)
    assert isinstance(made, Recompiled)
    os.waitpid(pid, 0)
    same = made.codes == tuple(one.code_sha256 for one in report.asked)
    return same and report.error is None and len(noted) == len(known.once)


def samples(task: Task, source: str, folder: Path, known: Specifications) -> bool:
    """Whether every case could be sampled at `gpu` sizes."""
    interpreter.prepare(target(TARGET))
    sampling.install()
    module = import_candidate(folder / "kernel.py", source)
    request = Sample(
        nonce="",
        source=source,
        entry_point=task.entry_points[0].name,
        cases=msgspec.Raw(msgspec.msgpack.encode(known.at_gpu_sizes)),
        target=TARGET,
    )
    dies = hardware(target(TARGET)).dies
    return all(not sample_case(module, request, spec, dies).why for spec in known.at_gpu_sizes)


def specify(task: Task, source: str) -> Specifications:
    """What `compile` and `estimate` are told."""
    problem, plan = Problem(task), make_plan(task, SEED, source, exam=False)
    once = tuple(
        specified(step.case.name, problem.given(step.case, SEED, step.place))
        for step in plan.execution
        if not step.case.hidden
    )
    return Specifications(problem.specifications(plan.declared), once)


def main() -> int:
    """Plays one stage; 1 when it does not pass."""
    stage, name, file, told = sys.argv[1:]
    task, source = load_task(name), Path(file).read_text(encoding="utf-8")
    if stage == "specify":
        Path(told).write_bytes(msgspec.msgpack.encode(specify(task, source)))
        return 0
    with tempfile.TemporaryDirectory(prefix="wavedeck-fresh-") as folder:
        if stage not in ("compile", "estimate"):
            judge(task, source, Path(folder), stage)
            return 0
        known = msgspec.msgpack.decode(Path(told).read_bytes(), type=Specifications)
        plays = compiles if stage == "compile" else samples
        return 0 if plays(task, source, Path(folder), known) else 1


if __name__ == "__main__":
    sys.exit(main())
