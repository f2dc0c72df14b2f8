"""Judges a candidate by its benchmark's own definition of correct, for comparison with published figures.

Candidate and reference run as programs, each in its own sandboxed process. The definitions are weaker than the judge's: see
docs/suites.md.
"""

from __future__ import annotations

import ast
import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import StrEnum

import msgspec

from harness.processes.pool import DevicePool
from harness.processes.slot import Slot
from harness.wire import limits
from harness.wire.async_channel import AsyncChannel
from harness.wire.channel import BadFrame
from harness.wire.device import Target
from harness.wire.encoding import ENCODER, decode_message
from harness.wire.errors import HarnessError, WorkerDied
from harness.wire.program_messages import (
    PROGRAM_REPORTS,
    Compare,
    Compared,
    Comparison,
    RanProgram,
    RunProgram,
    Value,
)
from suites.public.separator import SEPARATOR, split_file
from suites.public.task import PublicTask, SuiteKind
from suites.python_source import parse_python

from .recording import helpers_of

PROGRAM = "program.py"
KERNEL_NAME = "kernel_function"
"""KernelBench-X accepts this name in place of the task's own."""


class Outcome(StrEnum):
    """Result by a benchmark's own definition."""

    PASSES = "passes"
    DIFFERS = "differs"
    """It runs, but its results differ."""
    FAILS = "fails"
    """It does not run to its end."""
    UNSUPPORTED = "unsupported"
    """This device cannot run the candidate or the reference, or the task has no such test."""


class OriginalVerdict(msgspec.Struct, frozen=True):
    """How a candidate was judged."""

    outcome: Outcome
    why: str = ""
    printed: str = ""


class Definition(msgspec.Struct, frozen=True):
    """A benchmark's definition of correct."""

    rule: Comparison | None = None
    """For the results of the test; `None`: what the test prints is compared."""
    seed: int | None = None


DEFINITIONS = {
    SuiteKind.TRITONBENCH_G: Definition(),
    SuiteKind.TRITONBENCH_T: Definition(),
    SuiteKind.TRITONBENCH_REVISED: Definition(Comparison(other=1e-3), seed=42),
    SuiteKind.KERNELBENCH_X: Definition(
        Comparison(
            tolerances={"float16": 5e-3, "bfloat16": 5e-3, "float32": 1e-5, "float64": 1e-5}, equal_nan=True
        ),
        seed=0,
    ),
}
"""The benchmarks whose definition is two programs: a kernel with the test, and the reference with the test."""


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
        return OriginalVerdict(Outcome.UNSUPPORTED, public.unsupported)
    parts = split_file(public.test.path)
    if parts is None:
        return OriginalVerdict(Outcome.UNSUPPORTED, f"{public.file} has no separator line any more")
    reference, test = (part.text for part in parts)
    missing = _missing_entry(public, source)
    if missing:
        return OriginalVerdict(Outcome.FAILS, missing)
    result_name = public.result_name if definition.rule is not None else ""
    rule = definition.rule
    if rule is not None and public.quantization is not None:
        rule = msgspec.structs.replace(rule, quantization=public.quantization)

    def program(kernel: str) -> RunProgram:
        return RunProgram(
            nonce=secrets.token_hex(16),
            text=f"{kernel}\n{SEPARATOR}\n{test}",
            file=PROGRAM,
            target=target.name,
            helpers=helpers_of(public),
            seed=definition.seed,
            result_name=result_name,
        )

    async with pool.slot() as slot, pool.leases.using(slot), _worker(slot) as reference_worker:
        expected = await _run(reference_worker, program(reference))
        if isinstance(expected, str) or expected.error:
            why = expected if isinstance(expected, str) else expected.error
            return OriginalVerdict(Outcome.UNSUPPORTED, f"the reference fails here: {why}")
        async with _worker(slot) as worker:
            ran = await _run(worker, program(_UPSTREAM_TEXT.get(public.kind, str)(source)))
        if isinstance(ran, str):
            too_slow = ran == _too_slow()
            return OriginalVerdict(
                Outcome.UNSUPPORTED if too_slow and slot.device.kind == "cpu" else Outcome.FAILS, ran
            )
        if ran.error:
            outcome = Outcome.UNSUPPORTED if ran.unsupported else Outcome.FAILS
            return OriginalVerdict(outcome, ran.error, ran.printed)
        if rule is None:
            why = "" if ran.printed == expected.printed else "it prints other text than the reference"
        else:
            why = await _compare(reference_worker, ran.results, rule)
    return OriginalVerdict(Outcome.DIFFERS if why else Outcome.PASSES, why, ran.printed)


def _missing_entry(public: PublicTask, source: str) -> str:
    """KernelBench-X runs only a module that binds the task's name at its top level, by `def` or `=`."""
    if public.kind is not SuiteKind.KERNELBENCH_X:
        return ""
    stem = public.file.rpartition("/")[2].removesuffix(".py")
    try:
        body = parse_python(source).body
    except (SyntaxError, ValueError, RecursionError) as error:
        return f"Python cannot read it: {error}"
    bound: set[str] = set()
    for statement in body:
        targets: list[ast.expr] = []
        if isinstance(statement, ast.FunctionDef):
            bound.add(statement.name)
        elif isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        bound.update(item.id for item in targets if isinstance(item, ast.Name))
    return "" if bound & {stem, KERNEL_NAME} else f"it defines neither {stem} nor {KERNEL_NAME}"


def _imports_and_functions(source: str) -> str:
    """The candidate as TritonBench-G runs it: only its imports and functions, nested ones a second time; no constants."""
    try:
        nodes = list(ast.walk(parse_python(source)))
    except (SyntaxError, ValueError, RecursionError):
        return source
    imports = [ast.unparse(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    functions = [ast.unparse(node) for node in nodes if isinstance(node, ast.FunctionDef)]
    return "\n".join(imports) + "\n\n" + "\n".join(functions)


def _without_tests(source: str) -> str:
    """The candidate as GEAK-eval runs it: without its own functions `test_*` and the statements that call them."""
    try:
        tree = parse_python(source)
    except (SyntaxError, ValueError, RecursionError):
        return source
    tree.body = [statement for statement in tree.body if not _is_test(statement)]
    return ast.unparse(tree)


def _is_test(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.FunctionDef):
        return statement.name.startswith("test_")
    if not isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign):
        return False
    function = statement.value.func if isinstance(statement.value, ast.Call) else None
    name = getattr(function, "id", "") or getattr(function, "attr", "")
    return str(name).startswith("test_")


_UPSTREAM_TEXT: dict[SuiteKind, Callable[[str], str]] = {
    SuiteKind.TRITONBENCH_G: _imports_and_functions,
    SuiteKind.TRITONBENCH_REVISED: _without_tests,
}
"""What a benchmark does to a candidate's text before it runs it."""


@asynccontextmanager
async def _worker(slot: Slot) -> AsyncIterator[AsyncChannel]:
    child, channel = await slot.server.spawn(
        "script",
        cpu_limit_s=limits.SCRIPT_CPU_S,
        sandboxed=True,
        device=None if slot.device.kind == "cpu" else slot.device,
    )
    try:
        yield channel
    finally:
        channel.close()
        child.end()


async def _run(channel: AsyncChannel, request: RunProgram) -> RanProgram | str:
    """What the program did; why there is no report, in words."""
    try:
        async with asyncio.timeout(limits.SCRIPT_S):
            await channel.receive(limits.ANSWER_BYTES)  # the worker's hello
            await channel.send(ENCODER.encode(request))
            ran = decode_message(PROGRAM_REPORTS, await channel.receive(limits.ANSWER_BYTES))
    except TimeoutError:
        return _too_slow()
    except (EOFError, BadFrame):
        return "it ends its process"
    if not isinstance(ran, RanProgram) or ran.nonce != request.nonce:
        return "its process sent an answer that was not asked for"
    return ran


def _too_slow() -> str:
    return f"it does not end within {limits.SCRIPT_S:g} s here"


async def _compare(channel: AsyncChannel, results: Value | None, rule: Comparison) -> str:
    """The first difference between the candidate's results and those of the reference, in the reference's process."""
    request = Compare(nonce=secrets.token_hex(16), results=results, rule=rule)
    try:
        async with asyncio.timeout(limits.ORACLE_S):
            await channel.send(ENCODER.encode(request))
            compared = decode_message(PROGRAM_REPORTS, await channel.receive(limits.ANSWER_BYTES))
    except (TimeoutError, EOFError, BadFrame) as error:
        raise WorkerDied("the process of the reference was lost") from error
    if not isinstance(compared, Compared) or compared.nonce != request.nonce:
        raise WorkerDied("a script worker sent an answer that was not asked for")
    return compared.difference
