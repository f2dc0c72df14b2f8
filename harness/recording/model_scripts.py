"""Rewrites a benchmark's module for the judge: smaller sizes, and no options that only AMD's GPUs have.

A module's own sizes take gigabytes, and hours in the interpreter. Texts for AMD's GPUs run on CUDA without AMD's launch options,
with CUDA's device library.
"""

from __future__ import annotations

import ast
import math
import re
from array import array
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import msgspec

from harness.wire.calls.tensors import TensorSpec
from harness.wire.errors import NotRecorded
from harness.wire.limits import memory_words
from harness.wire.messages.script import RanScript, Script
from suites.dtypes import ITEM_BYTES
from suites.public.syntax.model_sizes import (
    CAPS,
    DIVISIONS,
    FOR_TIMING,
    MOST_TIMED_BYTES,
    OWN,
    Odd,
    Shrinking,
    first_call,
    input_statements,
    largest_size,
)
from suites.public.task import PublicTask
from suites.source.python_source import parse_python

MOST_BYTES = 512 << 10
"""Bound for inputs and outputs of a call, without parameters. A model that needs more gets the smallest sizes that run."""
MOST_MODEL_BYTES = 640 << 20
"""Bound for all parameters of its model. Each guest and each timer of an evaluation builds the model."""
TIMED_TRIALS_S = 60.0
"""Seconds after which no further sizes for timing are tried."""
_MODEL = "ModelNew"
_MASK = "-inf"
"""In the text of a model that writes this value on purpose."""
SMALL_BATCH = 4
"""Cap of the batch of a model that does not run at the smallest sizes."""
SLOW_S, SLOW_FAILURE_S = 2.0, 10.0
"""Seconds of a trial that runs, and of a trial that fails. After a slower trial no larger sizes are tried."""
_CALL = """
with torch.no_grad():
    ModelNew(*get_init_inputs()).cuda()(
        *(value.cuda() if isinstance(value, torch.Tensor) else value for value in get_inputs())
    )
"""
_SIZE_CHECK = """
def wavedeck_check(what, most_bytes, make):
    try:
        with torch.device("meta"):
            made = make()
            values = made.values() if isinstance(made, dict) else made
            size_bytes = sum(value.nbytes for value in values if isinstance(value, torch.Tensor))
    except Exception:
        return
    if size_bytes > most_bytes:
        raise MemoryError(f"its {what} take more than {most_bytes >> 20} MiB")
"""
"""Precedes the call of a trial, because a benchmark's own inputs may take gigabytes. Code that fails on `meta` passes."""
_DRAWN = re.compile(r"get_inputs\([^()]*\)")
_VARIANTS = ((Odd.ALL, True), (Odd.INPUTS, True), (Odd.NONE, True), (Odd.ALL, False), (Odd.INPUTS, False))
"""Second calls in the order in which they are tried: which sizes are odd, and whether inputs are normal."""
Ask = Callable[[Script, int], Awaitable[RanScript]]
Item = TypeVar("Item")
AMD_OPTIONS = frozenset({"waves_per_eu", "matrix_instr_nonkdim", "kpack"})
"""Launch options that only AMD's back end of Triton has. They change the speed of a kernel, not its results."""


class _Trial(NamedTuple):
    """Result of a script's calls."""

    problem: str
    """Why the calls cannot be judged; empty if they can."""
    size_bytes: int = 0
    """Inputs without parameters, and outputs."""
    state_bytes: int = 0
    is_constant: bool = False
    seconds: float = 0.0


async def choose_model_script(
    public: PublicTask, ask: Ask, *, on_gpu: bool
) -> tuple[Script, tuple[str, ...]]:
    """Return a script that calls a module at small sizes, and notes about it. Raises `NotRecorded` if the module runs at no size.

    `ask` records a script with a seed. `on_gpu`: the script has a call for timing too, at the largest sizes that run there.
    """
    assert public.reference is not None
    text = public.test.text if public.test is not None else f"{public.reference.text}\n{_CALL}"

    masked = _MASK in public.reference.text

    async def try_statements(statements: str) -> _Trial:
        return _trial_of(await ask(_script(public, statements), 1), masked=masked)

    shrinking = await _choose_shrinking(text, try_statements)
    largest = largest_size(text)
    notes = []
    if shrinking.cap < largest or shrinking.batch:
        notes.append(f"judged at {shrinking}; the benchmark's own are up to {largest}")
    first = input_statements(text, shrinking)
    is_normal = False
    trial = await try_statements(first)
    if trial.is_constant:
        normal_inputs = input_statements(text, shrinking, normal=True)
        trial = await try_statements(normal_inputs)
        if not trial.problem and not trial.is_constant:
            first, is_normal = normal_inputs, True
            notes.append("first calls: normal inputs, because the benchmark's inputs give constant outputs")
    chosen = [first]
    for odd, normal in _VARIANTS:
        uniform = input_statements(text, shrinking, odd)
        second = input_statements(text, shrinking, odd, normal=normal)
        if second == first or (normal and second == uniform):
            continue
        if (await try_statements(second)).problem:
            continue
        changes = [f"{odd} sizes are odd"] * (odd is not Odd.NONE) + ["inputs are normal"] * normal
        notes.append(f"second half of the calls: {', '.join(changes)}")
        chosen.append(second)
        break
    else:
        notes.append("neither odd sizes nor normal inputs can be judged")
    script = _script(public, *chosen)
    if on_gpu:
        timed, note = await _choose_timed(text, try_statements, normal=is_normal)
        script = msgspec.structs.replace(script, performance=timed)
        notes.append(note)
    return script, tuple(notes)


async def _choose_timed(
    text: str, try_statements: Callable[[str], Awaitable[_Trial]], *, normal: bool
) -> tuple[str, str]:
    """Return statements that make the call for timing, and a note about its sizes. If no large sizes run, the text is empty."""
    text = first_call(text)
    problem = ""
    seconds = 0.0
    tried: set[str] = set()
    for shrinking in FOR_TIMING:
        statements = input_statements(text, shrinking, normal=normal)
        if statements in tried:
            continue
        tried.add(statements)
        try:
            trial = await try_statements(_with_size_check(statements))
        except NotRecorded as reason:  # the process has ended
            problem = str(reason)
            break
        seconds += trial.seconds
        size_bytes = trial.size_bytes + trial.state_bytes
        if trial.problem:
            problem = trial.problem
        elif size_bytes > MOST_TIMED_BYTES:
            problem = f"its tensors take {memory_words(size_bytes)}"
        elif trial.seconds > SLOW_FAILURE_S:
            problem = f"its call takes {trial.seconds:.0f} s"
        elif trial.size_bytes <= MOST_BYTES and shrinking != OWN:
            continue  # as small as the other calls
        else:
            smaller = "" if shrinking == OWN else ", smaller than the benchmark's own"
            return f"import torch\n{statements}", f"timed at {shrinking}{smaller}"
        if seconds > TIMED_TRIALS_S:
            break
    return "", f"timed at no larger sizes than these: {problem}"


def _with_size_check(statements: str) -> str:
    """Return statements that first check how many bytes inputs and parameters take, and end the script if they are too many."""
    preparation, start, call = statements.rpartition("\nwith ")
    drawn = _DRAWN.search(call)
    inputs = drawn.group() if drawn else "()"
    parameters = f"{_MODEL}(*get_init_inputs()).state_dict().values()"
    checks = (
        f'wavedeck_check("inputs", {MOST_TIMED_BYTES}, lambda: {inputs})\n'
        f'wavedeck_check("parameters", {MOST_MODEL_BYTES}, lambda: {parameters})'
    )
    return f"{preparation}\n{_SIZE_CHECK}{checks}{start}{call}"


async def _choose_shrinking(text: str, try_statements: Callable[[str], Awaitable[_Trial]]) -> Shrinking:
    """Return the largest sizes at which the calls fit, else the smallest sizes at which they run. Raises `NotRecorded`."""
    problem = ""
    chosen: Shrinking | None = None
    chosen_bytes = 0
    for kinds in (CAPS, DIVISIONS):
        for shrinking in kinds:
            if problem and shrinking.cap:
                # The module needs some large size, such as pictures of 224 pixels. A large batch of them would take minutes.
                shrinking = msgspec.structs.replace(shrinking, batch=SMALL_BATCH)
            trial = await try_statements(input_statements(text, shrinking))
            fits = not trial.problem and trial.size_bytes <= MOST_BYTES
            if fits or (not trial.problem and (chosen is None or trial.size_bytes < chosen_bytes)):
                chosen, chosen_bytes = shrinking, trial.size_bytes
            problem = trial.problem or problem
            is_slow = trial.seconds > (SLOW_FAILURE_S if trial.problem else SLOW_S)
            too_large = is_slow or not (fits or trial.problem)
            if too_large or shrinking.cap >= largest_size(text):
                break
        if chosen is not None and chosen_bytes <= MOST_BYTES:
            break
    if chosen is None:
        raise NotRecorded(problem)
    return chosen


def _script(public: PublicTask, *statements: str) -> Script:
    """Return a script that runs these statements with the benchmark's reference; no kernel of Triton is expected in it."""
    assert public.reference is not None
    names = tuple(entry.name for entry in public.entry_points)
    builds_models = names == (_MODEL,)
    return Script(
        reference=public.reference.text + f"\n\n\n{_MODEL} = Model\n" * builds_models,
        test="\n".join(["import torch", *statements]),
        entry_points=names,
        has_kernels=False,
        builds_models=builds_models,
    )


def _trial_of(recorded: RanScript, *, masked: bool) -> _Trial:
    """Judge by its recording whether a module is usable with these sizes: its first problem, its bytes and its seconds."""
    calls = recorded.calls
    outputs = [output.tensor for call in calls for output in call.outputs]
    problem = recorded.error or ("" if calls else "it makes no call")
    for call in calls:
        problem = problem or call.unsupported or ("" if call.outputs else "it computes no tensor")
    if not (problem or all(_is_finite(output, masked=masked) for output in outputs)):
        problem = "its outputs are not finite"
    state_bytes = sum(len(call.inputs[name].data) for call in calls for name in dict(call.state).values())
    size_bytes = recorded.input_bytes - state_bytes + sum(len(tensor.data) for tensor in outputs)
    is_constant = not problem and all(map(_is_constant, outputs))
    return _Trial(problem, size_bytes, state_bytes, is_constant, recorded.seconds)


def _is_constant(tensor: TensorSpec) -> bool:
    """True if all elements are equal: an activation often gives such outputs for uniform inputs."""
    size = ITEM_BYTES[tensor.dtype]
    return len(tensor.data) > size and tensor.data == tensor.data[:size] * (len(tensor.data) // size)


def _is_finite(tensor: TensorSpec, *, masked: bool) -> bool:
    total = sum(array("f", tensor.data)) if tensor.dtype == "float32" else 0.0
    return math.isfinite(total) or (masked and total == -math.inf)


def for_cuda(text: str) -> str:
    """Return a module's text for CUDA. It is unchanged if it names nothing of AMD's, or if Python cannot parse it.

    An option stays if a function of the module has a parameter of its name: then it may be the kernel's own.
    """
    text = text.replace("extra.hip.libdevice", "extra.cuda.libdevice")
    if not any(option in text for option in AMD_OPTIONS):
        return text
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError):
        return text
    parameters = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    remover = _Remover(AMD_OPTIONS - parameters)
    tree = remover.visit(tree)
    return ast.unparse(tree) if remover.count else text


class _Remover(ast.NodeTransformer):
    """Removes options from launches (`kernel[grid](...)`) and from the dictionaries of `triton.Config`."""

    def __init__(self, options: frozenset[str]) -> None:
        self._options = options
        self.count = 0

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        config = node.args[0] if node.args else None
        if isinstance(node.func, ast.Subscript):
            node.keywords = self._kept((keyword.arg, keyword) for keyword in node.keywords)
        elif ast.unparse(node.func).rpartition(".")[2] == "Config" and isinstance(config, ast.Dict):
            items = list(zip(config.keys, config.values, strict=True))
            items = self._kept((getattr(key, "value", None), (key, value)) for key, value in items)
            config.keys, config.values = [key for key, _ in items], [value for _, value in items]
        return node

    def _kept(self, items: Iterable[tuple[object, Item]]) -> list[Item]:
        named = list(items)
        kept = [item for name, item in named if name not in self._options]
        self.count += len(named) - len(kept)
        return kept
