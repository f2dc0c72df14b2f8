"""`wavedeck apply`: a kernel, or the rows of a configuration, on a new branch of the repository that it came from."""

from __future__ import annotations

import asyncio
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from engine.tuning.best_by_case import best_by_case
from engine.tuning.config_files import TunedRow, config_file, rows_by_size, with_rows
from engine.tuning.launch_config import launch_config
from harness import DevicePool, Evaluation, Outcome, Target, Verdict, evaluate
from harness.hardware.product_tables import find_product
from harness.hardware.targets import target
from harness.stages.judged_task import resolve_task, specify_cases
from harness.wire.calls.tensors import CASE_SPECS, TensorSpec
from harness.wire.results.provenance import Provenance
from sessions.applying.before_after import BenchmarkComparison, EndToEnd, Side
from sessions.applying.guarding import Guard, Shapes, faster_condition, find_dimension, guarded
from sessions.applying.merging import FileModule, reached
from sessions.applying.overlay import InstalledPython
from sessions.applying.placing import merge_files
from sessions.applying.witness import NO_PROOF, KernelProof, WatchedKernel
from sessions.applying.worktree import PersonRepository
from sessions.errors import NotApplicable
from sessions.files import write_whole
from sessions.home import home_from
from sessions.kept_kernels import KeptKernel
from sessions.names import short_task, split_attempt, split_instance
from sessions.state.speed import missing_speed
from sessions.state.state import Confirmation
from suites import Task, baseline_source, load_task
from tui.commands.opening import complete_words, open_kernel
from tui.diagnostics import Complaint, ExitCode, say
from tui.facts.evaluation.verdict import headline
from tui.print.export_files import standalone_or_none
from tui.print.plain import emit
from tui.print.pull_request import TunedChange, commit_message, comparison_words, pull_request


@click.command(name="apply")
@click.argument("words", nargs=-1, metavar="[SESSION] ATTEMPT", shell_complete=complete_words)
@click.option(
    "--to",
    "repository",
    type=click.Path(path_type=Path),
    metavar="REPO",
    help="The git repository of the original kernel.",
)
@click.option(
    "--file", metavar="PATH", default="", help="The file of the original kernel. [the file with its text]"
)
@click.option(
    "--config",
    metavar="PATH",
    default="",
    help="Write what `run --method tune --by case` found into this configuration file of vLLM, SGLang or aiter, and leave the "
    "kernel as it is.",
)
@click.option(
    "--test",
    metavar="CMD",
    default="",
    help="Shell command that must succeed before and after the change, in the new worktree.",
)
@click.option(
    "--guard",
    metavar="SIZE",
    default="",
    help="Call the kernel only on the architecture of its times and in the ranges of this size in which it was faster, else the "
    "original.",
)
@click.option(
    "--must-hold",
    metavar="NAMES",
    default="",
    help="Architectures, such as gfx950,sm_90, for which the kernel must compile and be correct in the interpreter, too.",
)
@click.option(
    "--e2e",
    metavar="CMD",
    default="",
    help="Command that runs before and after the change, in the order A B B A. Its numbers count: lines of key=value, else a "
    "number alone in the last line, else its time. Says whether it ran the new kernel. No shell reads it.",
)
@click.option(
    "--e2e-metric",
    "metric",
    metavar="REGEX",
    default="",
    help="Regular expression whose group finds the number of --e2e; its last match counts.",
)
@click.option(
    "--gate",
    metavar="KEY",
    default="",
    help="Stop if this number of --e2e drops beyond its noise, such as an accuracy: more is better.",
)
@click.option(
    "--overlay",
    metavar="PYTHON",
    default="",
    help="Instead of --to: make this Python import the kernel for the installed module, and leave the package untouched.",
)
@click.option("--remove", is_flag=True, help="Delete the overlays of the Python of --overlay.")
def apply_command(  # an option each
    words: tuple[str, ...],
    *,
    repository: Path | None,
    file: str,
    config: str,
    test: str,
    guard: str,
    must_hold: str,
    e2e: str,
    metric: str,
    gate: str,
    overlay: str,
    remove: bool,
) -> None:
    """Commit a correct ATTEMPT to a new branch wavedeck/NAME of REPO.

    Your files and branches stay as they are, and nothing is pushed. The branch has a worktree of its own; the text for a pull
    request lies beside it. Exit code: 1 if the number of --gate drops or the kernel does not hold.
    """
    if bool(overlay) == (repository is not None) or (remove and not overlay):
        raise Complaint(
            "name the repository with --to REPO, or a Python with --overlay PYTHON; --remove needs --overlay"
        )
    if overlay and (config or test or must_hold):
        raise Complaint("--overlay writes no commit; leave --config, --test and --must-hold out")
    if remove:
        python = InstalledPython(overlay)
        for path in python.remove_overlays():
            emit(f"removed       {path} of {python.name}")
        return
    if not words:
        raise Complaint("name an attempt, such as latest softmax#1/3")
    if (gate or metric) and not e2e:
        raise Complaint(
            "--gate and --e2e-metric are about numbers that the command of --e2e prints; add --e2e CMD"
        )
    kernel = open_kernel(words)
    _check_correct(kernel)
    home = home_from(os.environ)
    home.ensure()
    task = load_task(short_task(kernel.task), registry=home.suites)
    measured = _EndToEndRun(EndToEnd(e2e, metric), gate, kernel, task)
    if e2e:
        measured.program.check()
    if repository is None:
        _overlay(kernel, task, InstalledPython(overlay), file, guard, measured if e2e else None)
        return
    repo = PersonRepository(repository)
    if config and (guard or must_hold or file):
        raise Complaint("--config leaves the kernel as it is; leave --file, --guard and --must-hold out")
    targets = tuple(filter(None, must_hold.split(",")))
    choice = measured_guard(kernel, task, guard) if guard else None
    imports = ""  # the folder of the repository that Python imports the module from
    if config:
        tuned = tuned_change(kernel, task, config, repo)
        files, name = (
            {config: tuned.text.encode()},
            f"{_name(kernel)}-{re.sub(r'[^A-Za-z0-9_.]+', '-', Path(config).stem).strip('-')}",
        )
    else:
        tuned = None
        homes, name = repo.find_files(task, baseline_source(task), file), _name(kernel)
        source = guarded(homes, kernel.source, task.entry_points[0].name, choice) if choice else kernel.source
        files, measured.source = repo.merged(homes, source, task), source
        if homes[0].package is not None:
            module_path = re.sub(r"(/__init__)?\.py$", "", homes[0].path)
            imports = module_path.removesuffix(homes[0].package.module.replace(".", "/"))
    place, branch = home.root / "applied" / name, f"wavedeck/{name}"
    repo.check_free(branch, place / "tree")
    check_holds(kernel, task, targets)
    message = commit_message(kernel, task, tuned)
    paths = [*files]

    def compare(trees: tuple[Path, Path]) -> None:
        sides = [Side(tree, tree / imports) for tree in trees]
        changed = frozenset(() if config else (str(trees[1] / path) for path in paths))
        measured.compare((sides[0], sides[1]), changed)

    commit = repo.apply(
        files,
        branch=branch,
        folder=place / "tree",
        message=message,
        test=test,
        compare=compare if e2e else None,
    )
    page = pull_request(
        kernel,
        task,
        paths,
        test=test,
        comparisons=measured.comparisons,
        proof=measured.proof,
        tuned=tuned,
        guard=choice,
        targets=targets,
        template=repo.pull_request_template,
    )
    write_whole(place / "PR.md", page.encode("utf-8", "replace"))
    standalone = {} if config else standalone_or_none(task, kernel.source)
    for name, content in standalone.items():
        (place / "standalone").mkdir(exist_ok=True)
        write_whole(place / "standalone" / name, content.encode("utf-8", "replace"))
    emit(f"branch        {branch}: commit {commit[:12]} changes {', '.join(paths)}")
    emit(f"worktree      {place / 'tree'}")
    emit(f"pull request  {place / 'PR.md'}")
    if standalone:
        emit(f"test, bench   {place / 'standalone'}")
    emit(f"sign it off   git -C {place / 'tree'} commit --amend -s --no-edit")


def _check_correct(kernel: KeptKernel) -> None:
    attempt = kernel.attempt_state
    if attempt is None or attempt.verdict is not Verdict.CORRECT:
        verdict = attempt.verdict if attempt is not None and attempt.verdict is not None else "not judged"
        raise Complaint(f"{kernel.attempt} is {verdict}; apply a correct attempt")
    if attempt.confirmation is Confirmation.NOT_CONFIRMED:
        raise Complaint(f"{kernel.attempt} failed its exam; apply another attempt")


@dataclass(slots=True)
class _EndToEndRun:
    """The command of `--e2e` for one kernel, and what it gave."""

    program: EndToEnd
    gate: str
    kernel: KeptKernel
    task: Task
    source: str = ""
    """The text that is written: `--guard` renames parts of the kernel. Empty for `--config`."""
    comparisons: list[BenchmarkComparison] = field(default_factory=list)
    proof: KernelProof = NO_PROOF

    def compare(self, sides: tuple[Side, Side], files: frozenset[str]) -> None:
        """Run the command and print a line for each fact. `files` are those of the new code, as its functions name them.

        Raises `Complaint` if the new kernel did not run, or if the number of `--gate` drops.
        """
        entry_points = [entry.name for entry in self.task.entry_points]
        texts = (reached(self.kernel.source, entry_points), self.source) if self.source else ()
        names = frozenset(name for text in texts for name in FileModule(text).defined)
        attempt = self.kernel.attempt_state
        speedup = attempt.speed.value if attempt is not None and attempt.speed is not None else math.inf
        self.comparisons, self.proof = self.program.compare(
            sides, WatchedKernel(names, files, speedup), lambda step: say(f"end to end: {step}")
        )
        for name, words in self.proof.rows:
            emit(f"{name:<13} {words}")
        for comparison in self.comparisons:
            emit(f"{comparison.number:<13} {comparison_words(comparison, self.proof)}")
        if self.proof.refusal:
            raise Complaint(
                f"the new kernel was {self.proof.refusal}; nothing is left behind", code=ExitCode.NO
            )
        if self.gate:
            self._check_gate()

    def _check_gate(self) -> None:
        """Raise `Complaint` if the number of the gate is missing, or if its whole interval is a drop."""
        gated = next((compared for compared in self.comparisons if compared.number == self.gate), None)
        if gated is None:
            numbers = ", ".join(compared.number for compared in self.comparisons)
            raise Complaint(
                f"--gate {self.gate}: the command prints no {self.gate}=NUMBER; its numbers are: {numbers}"
            )
        if gated.ratio[2] < 1:
            raise Complaint(
                f"{self.gate} drops beyond its noise: {comparison_words(gated, self.proof)}; nothing is left behind",
                code=ExitCode.NO,
            )


def _overlay(
    kernel: KeptKernel,
    task: Task,
    python: InstalledPython,
    file: str,
    guard: str,
    measured: _EndToEndRun | None,
) -> None:
    """Write the overlay. A command of `--e2e` runs before, with the overlay in its own processes only."""
    homes = python.find_files(task, baseline_source(task), file)
    entry_points = [entry.name for entry in task.entry_points]
    choice = measured_guard(kernel, task, guard) if guard else None
    source = guarded(homes, kernel.source, entry_points[0], choice) if choice else kernel.source
    modules = [home.path for home in homes]
    texts = merge_files(
        homes, source, entry_points, users=lambda name: python.users(name, other_than=modules)
    )
    if not texts:
        raise NotApplicable(f"{modules[0]} of {python.name} has this already")
    data = {home.path: home.encoded(texts[home.path]) for home in homes if home.path in texts}
    python.check_free(next(iter(data)))
    if measured is not None:
        with TemporaryDirectory(prefix="wavedeck-overlay-") as folder:
            measured.source = source
            trial, files = python.write(data, Path(folder))
            measured.compare((Side(Path.cwd()), Side(Path.cwd(), overlay=str(trial))), files)
    switch = python.install(data)
    emit(f"overlay       {switch}: runs the kernel of {kernel.attempt} for {', '.join(data)}")
    emit(f"python        {python.name}; processes that start from now on")
    emit(f"take it away  wavedeck apply --overlay {python.program} --remove")


def _name(kernel: KeptKernel) -> str:
    """Return `softmax-1-3-5f0a`: task, instance, attempt, and the end of the session's name."""
    instance, number = split_attempt(kernel.attempt)
    task, place = split_instance(instance)
    return f"{task.rpartition('/')[2]}-{place}-{number}-{kernel.session.rpartition('-')[2]}"


def tuned_change(kernel: KeptKernel, task: Task, path: str, repository: PersonRepository) -> TunedChange:
    """Return the new text of a configuration file.

    Raises `Complaint`, `UsageProblem` or `NotApplicable` if the session measured no configuration for it.
    """
    state = kernel.state
    bests = best_by_case(state, kernel.task) if state is not None else []
    if state is None or not bests:
        raise Complaint(
            f"the session of {kernel.attempt} timed no launch parameters; run it on a GPU with --method tune --by case"
        )
    baseline = baseline_source(task)
    prefix = f"{short_task(kernel.task)}#"
    swept = next(attempt.source for attempt in state.attempts() if attempt.attempt.startswith(prefix))
    if swept != baseline:
        raise Complaint(
            f"{kernel.session} swept another kernel than the baseline of {task.id}, so its gains are not the file's"
        )
    file = config_file(path)
    provenance = bests[0].provenance
    timed_on = timed_target(provenance)
    file.check(provenance, timed_on)
    sizes = {case.name: {name.upper(): size for name, size in case.gpu.items()} for case in task.open_cases}
    rows = rows_by_size(
        file,
        [
            TunedRow(best.row.case, sizes[best.row.case], best.config, best.is_faster)
            for best in bests
            if best.row.case in sizes
        ],
    )
    present = repository.read_if_there(path)
    default = repository.read_if_there(file.default) if file.default and present is None else None
    start = launch_config(baseline)
    text, written = with_rows(file, present, rows, start=start, target=timed_on, default=default)
    if not written:
        raise Complaint(f"no configuration was measured as faster than those that {path} has")
    cases = {row.case for row in rows.values()}
    shown = tuple(best for best in bests if best.row.case in cases)
    return TunedChange(path, text, file.home, tuple(written), shown, file.default if default else "")


def timed_target(provenance: Provenance | None) -> Target:
    """Return the architecture of the GPU that took the times."""
    product = provenance.product if provenance is not None else ""
    try:
        return target(find_product(product).target)
    except KeyError as error:
        raise Complaint(
            f"no times of a known GPU: {product or 'the GPU'} is not in the table of products"
        ) from error


def check_holds(kernel: KeptKernel, task: Task, names: Sequence[str]) -> None:
    """Judge the kernel on `cpu` for each architecture. Raises `Complaint` with the first for which it is not correct."""
    targets = [target(name) for name in names]
    seed = kernel.state.started.seed if kernel.state is not None and kernel.state.started is not None else 1

    async def judge() -> list[Evaluation]:
        async with DevicePool(("cpu",)) as pool:
            return [
                await evaluate(kernel.source, task, pool, targets=(compiled_for,), seed=seed, against=None)
                for compiled_for in targets
            ]

    if targets:
        say(f"judging {kernel.attempt} for {', '.join(names)}")
    for name, evaluation in zip(names, asyncio.run(judge()) if targets else (), strict=True):
        if evaluation.verdict is not Verdict.CORRECT:
            raise Complaint(
                f"{kernel.attempt} does not hold for {name}: {headline(evaluation)}", code=ExitCode.NO
            )


def measured_guard(kernel: KeptKernel, task: Task, size: str) -> Guard:
    """Return the ranges of a size in which the kernel was measured as faster than the original. `Complaint` if there is none."""
    timed, started = kernel.judged, kernel.state.started if kernel.state is not None else None
    if timed is None or started is None or not timed.latency:
        reason = f" ({missing_speed(timed)})" if timed is not None else ""
        raise Complaint(f"--guard needs times, but {kernel.attempt} has none{reason}; judge it on a GPU")
    if started.against:
        raise Complaint(
            f"--guard needs times against the original; {kernel.attempt} has some against {started.against}"
        )
    if len(task.entry_points) > 1:
        raise Complaint(f"{task.id} has several entry points; write its guard by hand")
    sizes = {case.name: case.gpu.get(size) for case in task.cases}
    measured = [
        (length, latency.outcome is Outcome.FASTER)
        for latency in timed.latency
        if (length := sizes.get(latency.case)) is not None
    ]
    if not measured:
        raise Complaint(
            f"--guard {size}: {task.id} has the sizes {', '.join(task.cases[0].gpu) or 'of no name'}"
        )
    timed_on = timed_target(timed.provenance)
    shapes = asyncio.run(_shapes(task, timed_on))
    tensor, index, dimensions = find_dimension([(shapes[case], sizes[case]) for case in shapes])
    condition = faster_condition(f"{tensor}.shape[{index}]", measured)
    if not tensor:
        raise Complaint(
            f"{size} is not exactly one dimension of a tensor of {task.id}; write the guard by hand"
        )
    if not condition:
        raise Complaint(f"{kernel.attempt} is faster at no {size}, so there is nothing to guard")
    return Guard(tensor, f"{tensor}.ndim == {dimensions} and ({condition})", timed_on.name)


async def _shapes(task: Task, timed_on: Target) -> dict[str, Shapes]:
    """Return the shape of each tensor at `gpu` sizes, by case."""
    async with DevicePool(("cpu",)) as pool:
        specs = await specify_cases(pool, resolve_task(task, timed_on.name, on_gpu=False), timed_on.name)
    return {
        case: {name: value.shape for name, value in arguments.items() if isinstance(value, TensorSpec)}
        for case, arguments in CASE_SPECS.decode(specs.cases).items()
    }
