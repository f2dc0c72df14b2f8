"""Judges a candidate by its benchmark's own definition of correct, for comparison with published figures.

Candidate and reference run as programs, each in its own sandboxed process. These definitions accept more than the judge does
(docs/suites.md).
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import msgspec

from harness.processes.pool import DevicePool
from harness.wire.device import Target
from harness.wire.errors import HarnessError, NoReport, WorkerDied
from harness.wire.messages.program import Compare, RanProgram, RunProgram
from suites.public.loaders.separated import SEPARATOR, split_file
from suites.public.task import PublicTask, SuiteKind
from suites.source.python_source import parse_python
from suites.task import TextEnum

from .recorder import helpers_of
from .script_process import Start, run_in_slot

_KERNEL_NAME = "kernel_function"
"""KernelBench-X also accepts this name for the task's own."""


class OriginalOutcome(TextEnum):
    """Result by a benchmark's own definition."""

    PASSES = "passes"
    DIFFERS = "differs"
    """The candidate runs, but its results are different."""
    FAILS = "fails"
    """The candidate does not run to its end."""
    UNSUPPORTED = "unsupported"
    """This device cannot run the candidate or the reference, or the task has no such test."""


class OriginalVerdict(msgspec.Struct, frozen=True):
    """How a candidate was judged."""

    outcome: OriginalOutcome
    why: str = ""
    printed: str = ""


class Definition(NamedTuple):
    """A benchmark's definition of correct, by two programs: the candidate with the test, and the reference with the test."""

    rule: Compare | None = None
    """Compares the results of the test; `None`: the printed texts are compared."""
    seed: int | None = None
    change: Callable[[ast.Module], str] | None = None
    """Returns the text of a candidate that the benchmark runs; `None`: the whole text."""
    needs_name: bool = False
    """The candidate must bind the task's name, or `_KERNEL_NAME`, at its top level, by `def` or `=`."""


def check_definition(kind: SuiteKind) -> Definition:
    """Return a benchmark's definition. Raises `HarnessError` if this judge cannot follow it."""
    definition = DEFINITIONS.get(kind)
    if definition is None:
        raise HarnessError(
            f"the original protocol of {kind} is not available, only those of {', '.join(DEFINITIONS)}; "
            "leave --protocol out"
        )
    return definition


async def judge_original(
    public: PublicTask, source: str, *, pool: DevicePool, target: Target
) -> OriginalVerdict:
    """Judge a candidate by its benchmark's own definition. Raises `WorkerDied` if a process of ours is lost."""
    definition = check_definition(public.kind)
    if public.unsupported or public.test is None:
        return OriginalVerdict(OriginalOutcome.UNSUPPORTED, public.unsupported)
    parts = split_file(public.test.path)
    if parts is None:
        return OriginalVerdict(OriginalOutcome.UNSUPPORTED, f"{public.file} has no separator line any more")
    reference, test = (part.text for part in parts)
    tree: ast.Module | None = None
    problem = ""
    try:
        tree = parse_python(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        problem = f"Python cannot read it: {error}"
    if definition.needs_name:
        stem = public.file.rpartition("/")[2].removesuffix(".py")
        names = {name for statement in tree.body for name in _bound_names(statement)} if tree else set()
        if not names & {stem, _KERNEL_NAME}:
            why = problem or f"it defines neither {stem} nor {_KERNEL_NAME}"
            return OriginalVerdict(OriginalOutcome.FAILS, why)
    kernel = definition.change(tree) if definition.change and tree else source
    rule = definition.rule
    if rule is not None and public.quantization is not None:
        rule = msgspec.structs.replace(rule, quantization=public.quantization)
    helpers = helpers_of(public)

    def program(kernel: str) -> RunProgram:
        """Return the program that the benchmark runs for a kernel: the kernel's text, then the test."""
        return RunProgram(
            text=f"{kernel}\n{SEPARATOR}\n{test}",
            target=target.name,
            helpers=helpers,
            seed=definition.seed,
            result_name=public.result_name if rule is not None else "",
        )

    candidate = program(kernel)
    return await run_in_slot(
        pool, "the program", partial(_compare, program(reference), candidate, rule, pool)
    )


async def _compare(
    reference: RunProgram, candidate: RunProgram, rule: Compare | None, pool: DevicePool, start: Start
) -> OriginalVerdict:
    """Run reference and candidate in two processes and compare what they print, or their results by `rule`.

    A reference that fails gives `UNSUPPORTED`, a candidate that fails gives `FAILS`. Raises `WorkerDied` if the process of the
    reference is lost while it compares.
    """
    async with start() as reference_process:
        try:
            expected = await reference_process.ask(reference, RanProgram)
        except NoReport as reason:
            expected = RanProgram(error=str(reason))
        if expected.error:
            return OriginalVerdict(OriginalOutcome.UNSUPPORTED, f"the reference fails here: {expected.error}")
        try:
            async with start() as process:
                ran = await process.ask(candidate, RanProgram)
        except NoReport as reason:
            ran = RanProgram(error=str(reason), unsupported=reason.is_slow and pool.devices[0].kind == "cpu")
        if ran.error:
            outcome = OriginalOutcome.UNSUPPORTED if ran.unsupported else OriginalOutcome.FAILS
            return OriginalVerdict(outcome, ran.error, ran.printed)
        if rule is None:
            why = "" if ran.printed == expected.printed else "it prints other text than the reference"
        else:
            try:
                why = await reference_process.ask(msgspec.structs.replace(rule, results=ran.results), str)
            except NoReport as reason:
                raise WorkerDied(f"the process of the reference was lost: {reason}") from reason
    return OriginalVerdict(OriginalOutcome.DIFFERS if why else OriginalOutcome.PASSES, why, ran.printed)


def _bound_names(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.FunctionDef():
            return {statement.name}
        case ast.Assign():
            return {target.id for target in statement.targets if isinstance(target, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
        case _:
            return set()


def _imports_and_functions(tree: ast.Module) -> str:
    """Return only the imports and functions, nested functions a second time, and no constants, as TritonBench-G does."""
    nodes = list(ast.walk(tree))
    imports = [ast.unparse(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    functions = [ast.unparse(node) for node in nodes if isinstance(node, ast.FunctionDef)]
    return "\n".join(imports) + "\n\n" + "\n".join(functions)


def _without_tests(tree: ast.Module) -> str:
    """Return the text without functions `test_*` and the statements that call them, as GEAK-eval does."""
    return "\n".join(ast.unparse(statement) for statement in tree.body if not _is_test(statement))


def _is_test(statement: ast.stmt) -> bool:
    """True if a statement defines or calls a function with a name that begins with `test_`."""
    if isinstance(statement, ast.FunctionDef):
        return statement.name.startswith("test_")
    if not isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign):
        return False
    function = statement.value.func if isinstance(statement.value, ast.Call) else None
    name = getattr(function, "id", "") or getattr(function, "attr", "")
    return str(name).startswith("test_")


DEFINITIONS = {
    SuiteKind.TRITONBENCH_G: Definition(change=_imports_and_functions),
    SuiteKind.TRITONBENCH_T: Definition(),
    SuiteKind.TRITONBENCH_REVISED: Definition(
        Compare(default_tolerance=1e-3), seed=42, change=_without_tests
    ),
    SuiteKind.KERNELBENCH_X: Definition(
        Compare(
            tolerances={"float16": 5e-3, "bfloat16": 5e-3, "float32": 1e-5, "float64": 1e-5}, equal_nan=True
        ),
        seed=0,
        needs_name=True,
    ),
}
