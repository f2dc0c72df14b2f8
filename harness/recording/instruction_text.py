"""The instruction of a recorded task: its calls, constants, signatures, and values of some calls."""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from harness.wire.messages.script import GRADIENTS, NUMBER, RecordedCall
from suites.public.syntax.outline import Assignment, Outline
from suites.public.task import PublicEntryPoint, PublicTask
from suites.source.python_source import parse_python

from .tensor_words import CORNER, INTEGERS, corner_words, first_index, tensor_words

Runs = Sequence[Sequence[RecordedCall]]
"""The same calls with the values of different seeds."""
MOST_EXAMPLES = 2
"""Most calls of which values are shown."""
MOST_ROWS = 3
"""Most rows that are shown because an index may select them."""
MOST_DRAWS = 4
"""Most operators that draw random numbers which are named of a call."""
MOST_CHARACTERS = 120
"""Longest constant that is quoted."""
_TENSOR = re.compile(r": (?:torch\.)?Tensor(?=[,)=])")
_SIGNED = {"linalg_eig": "eig", "_linalg_eigh": "eigh", "linalg_qr": "qr", "_linalg_svd": "svd"}
"""Operators that return vectors with arbitrary signs, and their names in `torch.linalg`."""
_LIBRARIES = frozenset({"tl", "torch", "triton", "math"})


def instruction(public: PublicTask, runs: Runs) -> str:
    """Return the instruction of a recorded task: the suite's own, constants that it names, and the list of calls that are
    judged.

    `runs` are recordings of the same calls with different seeds. Calls with the same facts share a line.
    """
    lines = [public.instruction.strip(), ""]
    if constants := list(_constants(public)):
        lines += [f"Constants of the module: {', '.join(constants)}.", ""]
    lines += ["The judge makes these calls:", ""]
    names: dict[str, list[str]] = {}
    all_multiply = len(runs[0]) > 1 and all(call.multiplies for call in runs[0])
    for place, call_runs in enumerate(zip(*runs, strict=True), 1):
        facts = _call_facts(call_runs, runs, names_products=not all_multiply)
        names.setdefault("; ".join(facts), []).append(f"call-{place}")
    lines += [f"- {', '.join(calls)}: {facts}" for facts, calls in names.items()]
    notes = ["Each call multiplies matrices."] * all_multiply
    if any(call.draw_seed is not None for call in runs[0]):
        notes.append("Torch's generator has the same seed before a call of the reference and of a module.")
    if any(tensor.dtype in INTEGERS for call in runs[0] for tensor in call.inputs.values()):
        notes.append(
            "Values and ranges of integers are those of two sets of inputs. Other sets may have others."
        )
    operators = {name for call in runs[0] for name in call.operators}
    if named := [f"torch.linalg.{name}" for operator, name in _SIGNED.items() if operator in operators]:
        notes.append(
            f"The reference calls {_quoted(named)}. Vectors that they return have no sign of their own: the signs of these calls are right, others are wrong."
        )
    lines += ["", " ".join(notes)] * bool(notes)
    return "\n".join(lines).strip() + "\n"


def _call_facts(call_runs: Sequence[RecordedCall], runs: Runs, *, names_products: bool) -> list[str]:
    """Return the facts about one call in words, each as a part of a sentence.

    `call_runs` are the recordings of this call, one a seed.
    """
    call = call_runs[0]
    apart = {name for _, name in (*call.state, *call.gradients)}
    changed = [output.name for output in call.outputs if output.is_input]
    data = {
        name: [run.inputs[name] for run in call_runs if name in run.inputs]
        for name in call.inputs
        if name not in apart
    }
    tensors = ", ".join(
        f"{name}: {tensor_words(sets, with_values=name not in changed)}" for name, sets in data.items()
    )
    facts = [f"`{call.expression}` with {tensors or 'no tensor'}", *_repeated_words(call)]
    facts += [f"returns {_returns(call_runs)}"] * bool(call.returns)
    facts += [f"changes {_quoted(changed)} in place"] * bool(changed)
    if call.differentiated:
        gradients = ", ".join(f"`{name}`: {tensor_words([call.inputs[name]])}" for _, name in call.gradients)
        facts.append(
            f"the gradients of {_quoted(call.differentiated)} are judged too, from those of the results ({gradients})"
        )
    if call.draw_seed is not None:
        named = call.draws[:MOST_DRAWS]
        further = f" and {len(call.draws) - len(named)} more" if len(call.draws) > len(named) else ""
        facts.append(
            f"draws random numbers: {_quoted(named)}{further}, in this order"
            if named
            else "draws random numbers"
        )
    facts += ["multiplies matrices"] * (call.multiplies and names_products)
    facts += ["for timing"] * call.for_timing
    if call.no_baseline:
        facts.append(f"{call.no_baseline}. These elements are not judged, and this call is not timed")
    if any(recorded.state for recorded in runs[0]) and call.for_timing and not call.state:
        facts.append("its parameters come from the seed alone")
    return facts


def _returns(call_runs: Sequence[RecordedCall]) -> str:
    """Return a call's result in words, with the numbers that are the same for each seed."""
    values = [
        f" {numbers[0]}" if len(set(numbers)) == 1 else ""
        for numbers in zip(*(run.numbers for run in call_runs), strict=False)
    ]
    words = call_runs[0].returns.split(NUMBER)
    return "".join(f"{text}{value}" for text, value in zip_longest(words, values, fillvalue=""))


def shown_signature(entry: PublicEntryPoint) -> str:
    """Return how a test calls an entry point, with defaults and annotations of numbers; its name if that is not known."""
    if not entry.signature:
        return entry.name
    text = entry.signature if entry.signature.startswith(entry.name) else f"{entry.name}{entry.signature}"
    return _TENSOR.sub("", text)


def example_words(runs: Runs) -> tuple[str, ...]:
    """Return values of the smallest call of each entry point, one line per tensor; empty if no call has values to show.

    A call with the same inputs for each seed is not shown: its results would be the answer. A call that changes zeros is
    shown if there is no other: it leaves open if the call adds to them.
    """
    smallest: dict[str, tuple[bool, int, int]] = {}
    for place, call in enumerate(runs[0]):
        is_fitting = call.inputs and not call.for_timing and call.draw_seed is None
        if is_fitting and any(run[place].inputs != call.inputs for run in runs[1:]):
            name, ranked = call.expression.partition("(")[0], (_changes_zeros(call), _elements(call), place)
            smallest[name] = min(ranked, smallest.get(name, ranked))
    return tuple(
        f"call-{place + 1}: {words}"
        for *_, place in list(smallest.values())[:MOST_EXAMPLES]
        for words in _values_of(runs[0][place])
    )


def _values_of(call: RecordedCall) -> Iterator[str]:
    """Yield the first values of a call's inputs and outputs in words, and rows of its indices."""
    changed = {output.name for output in call.outputs if output.is_input}
    before = [(name, " before the call" * (name in changed), data) for name, data in call.inputs.items()]
    after = []
    for output in call.outputs:
        # A reference that returns an input unchanged is a surprise that a corner of its values does not show.
        equal = next((name for name, data in call.inputs.items() if data == output.tensor), None)
        words = f", equal to `{equal}` throughout" if equal else ""
        kind = "gradient" if output.path.startswith(GRADIENTS) else "returned"
        words = f" after the call{words}" if output.is_input else f" ({kind}{words})"
        after.append((output.name, words, output.tensor))
    for name, words, data in (*before, *after):
        if text := corner_words(name, data):
            yield f"`{text}`{words}"
    yield from _rows_of_indices(call, changed)


def _rows_of_indices(call: RecordedCall, changed: set[str]) -> list[str]:
    """Return rows of large inputs, except `changed` ones, that the first value of another input may select."""
    indices = dict.fromkeys(
        index for data in call.inputs.values() if (index := first_index(data)) is not None
    )
    return [
        f"`{words}`"
        for name, data in call.inputs.items()
        for index in indices
        if name not in changed
        and len(data.shape) > 1
        and CORNER[0] <= index < data.shape[0]
        and (words := corner_words(name, data, index))
    ][:MOST_ROWS]


def _changes_zeros(call: RecordedCall) -> bool:
    changed = [call.inputs[output.name].data for output in call.outputs if output.is_input]
    return any(data.count(0) == len(data) for data in changed)


def _elements(call: RecordedCall) -> int:
    tensors = [*call.inputs.values(), *(output.tensor for output in call.outputs)]
    return sum(math.prod(tensor.shape) for tensor in tensors)


def _constants(public: PublicTask) -> Iterator[str]:
    """Yield each constant of a hidden reference that instruction or signatures name: `EPS = 1e-06`."""
    if public.reference is None or not public.asks_for_reference:
        return
    outline = Outline(public.reference.text)
    entries = {entry.name for entry in public.entry_points}
    named = " ".join([public.instruction, *map(shown_signature, public.entry_points)])
    for name in outline.pieces:
        if name in entries or not re.search(rf"\b{re.escape(name)}\b", named):
            continue
        definition = outline.definition(name)
        value = definition.value if isinstance(definition, Assignment) else None
        if value is not None and _is_plain(value) and len(text := ast.unparse(value)) <= MOST_CHARACTERS:
            yield f"`{name} = {text}`"


def _is_plain(value: ast.expr) -> bool:
    """True if a constant is made of literals, and of names and calls of libraries."""
    roots = [node for node in ast.walk(value) if isinstance(node, ast.Name)]
    return all(root.id in _LIBRARIES for root in roots)


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _repeated_words(call: RecordedCall) -> list[str]:
    """Return which tensors the call passes several times, in words."""
    names = (node.id for node in ast.walk(parse_python(call.expression)) if isinstance(node, ast.Name))
    counts = Counter(name for name in names if name in call.inputs)
    return [f"`{name}` is one tensor in {count} places" for name, count in counts.items() if count > 1]
