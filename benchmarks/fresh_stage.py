"""One stage of one evaluation in an interpreter of its own: how today's tools judge, with this judge's checks.

    python -m benchmarks.fresh_stage call|compile|checks TASK FILE

`call` imports and runs the first case, `compile` compiles each launch for gfx942, `checks` runs every case, the repeats and the
replays. The stage's processes are forked from this interpreter, which has imported torch and triton for this one stage. Used by
`benchmarks.harness_throughput`; exits 0 when the stage passed.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

if sys.argv[1:] and sys.argv[1] != "compile":
    os.environ["TRITON_INTERPRET"] = "1"  # triton looks at it while it is imported


from harness import TimeLimits, Verdict
from harness.targets import target
from harness.worker.candidate import import_candidate
from harness.worker.channel import Channel
from harness.worker.compiler import compile_candidate, prepare
from harness.worker.judge import Judge
from harness.worker.messages import Begin, Judged, JudgeReport, Spawn
from harness.worker.plan import make_plan
from harness.worker.problem import Problem
from harness.worker.roles import ROLES
from suites import Task, load_task

TARGET = "gfx942"
SEED = 1


class StageJudge(Judge):
    """A judge whose engine is this process: it hears the verdict and says whether to go on."""

    def __init__(self, end: socket.socket, *, goes_on: bool) -> None:
        super().__init__(Channel(end))
        self._goes_on = goes_on
        self.verdict = ""

    def tell(self, report: JudgeReport) -> None:
        """Keeps the verdict."""
        if isinstance(report, Judged):
            self.verdict = report.verdict

    def wait_for_go(self) -> bool:
        """Whether the stages after the first call belong to this process."""
        return self._goes_on


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


def judge(task: Task, source: str, folder: Path, *, goes_on: bool) -> bool:
    """Whether the candidate is correct as far as this process looks."""
    guest_pid, guest = forked("guest", folder)
    verifier_pid, verifier = forked("verifier", folder)
    begin = Begin(
        task=task,
        source=source,
        seed=SEED,
        guest_pid=guest_pid,
        verifier_pid=verifier_pid,
        target=TARGET,
        limits=TimeLimits(),
        exam=False,
    )
    mine, _theirs = socket.socketpair()
    one = StageJudge(mine, goes_on=goes_on)
    one.judge(begin, (guest.detach(), verifier.detach()))
    for pid in (guest_pid, verifier_pid):
        os.waitpid(pid, 0)
    return one.verdict == (Verdict.CORRECT if goes_on else Verdict.CANCELLED)


def compiles(task: Task, source: str, folder: Path) -> bool:
    """Whether every launch compiles for the target."""
    os.environ["TRITON_CACHE_DIR"] = str(folder / "cache")
    prepare(target(TARGET))
    module = import_candidate(folder / "kernel.py", source)
    cases = Problem(task).specifications(make_plan(task, SEED, source, exam=False).declared)
    return compile_candidate(module, task.entry_points[0].name, cases, target(TARGET)).error is None


def main() -> int:
    """Plays one stage; 1 when it does not pass."""
    stage, name, file = sys.argv[1:]
    task, source = load_task(name), Path(file).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="wavedeck-fresh-") as folder:
        if stage == "compile":
            passed = compiles(task, source, Path(folder))
        else:
            passed = judge(task, source, Path(folder), goes_on=stage == "checks")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
