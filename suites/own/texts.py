"""Writes the files of a task for a kernel that no task names yet."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import astuple, replace

from suites.dtypes import BY_TARGET, is_exact
from suites.input_kinds import BlockTable, CuSeqlens, Integers, Slots
from suites.source.python_source import parse_literal
from suites.task import Axis

from .draft import Draft
from .shapes import Dim, Largest, Scalar, TensorShape, parameter_of, size_name, split_dim
from .sizes import CASE_DTYPE, Design

_STRIDED = '''\
def strided(values, *strides):
    """Return the values with these strides, in elements. Elements between them are 0."""
    elements = 1 + sum((size - 1) * stride for size, stride in zip(values.shape, strides))
    return values.new_zeros(elements).as_strided(values.shape, strides).copy_(values)


'''


def files_of(draft: Draft, name: str) -> dict[str, str]:
    """Return the text of each file of the task's folder."""
    return {
        "task.toml": task_toml(draft, name),
        "problem.py": problem_text(draft),
        "cost.py": cost_text(draft),
        "baseline.py": draft.file.text,
    }


def inputs_text(design: Design, parameters: Sequence[str]) -> str:
    """Return the text of `make_inputs` with its imports: it draws each tensor and returns the inputs in the order of
    `parameters`.

    A parameter that is neither a tensor, a plain argument nor a size is left out: its default counts.
    """
    imports = "".join(f"{line}\n" for line in ("import torch", *_kinds_import(design)))
    return f"{imports}\n\n{_make_inputs(design, parameters)}"


def _kinds_import(design: Design) -> list[str]:
    """Return the line that imports the kinds of the inputs, if they have any."""
    kinds = {type(tensor.kind).__name__ for tensor in design.tensors.values() if tensor.kind is not None}
    return [f"from suites.input_kinds import {', '.join([*sorted(kinds), 'draw_inputs'])}"] if kinds else []


def _make_inputs(design: Design, parameters: Sequence[str]) -> str:
    uses_strides = any(tensor.strides is not None for tensor in design.tensors.values())
    lines = [(_STRIDED if uses_strides else "") + "def make_inputs(sizes, dtype, generator):"]
    kinds = {name: kind for name, tensor in design.tensors.items() if (kind := tensor.kind) is not None}
    if kinds:
        lines.append("    kinds = {")
        for name, kind in kinds.items():
            shape = "".join(f"{_size(dim)}, " for dim in design.tensors[name].shape)
            parts = [_size(p) if size_name(p) in design.sizes[0] else repr(p) for p in astuple(kind)]
            lines.append(
                f'        "{name}": ({type(kind).__name__}({", ".join(parts)}), ({shape.rstrip()})),'
            )
        lines += ["    }", "    drawn = draw_inputs(generator, kinds)"]
    items = []
    for name in names_in_order(design, parameters):
        if name in design.tensors:
            lines.append(f"    {_local(name)} = {_drawn(name, design.tensors[name])}")
            items.append(f'"{name}": {_local(name)}')
        elif name in design.scalars:
            items.append(f'"{name}": {_scalar(design.scalars[name], design)}')
        elif name in design.sizes[0]:
            items.append(f'"{name}": {_size(name)}')
    lines.append(f"    return {{{', '.join(items)}}}")
    return "\n".join(lines) + "\n"


def names_in_order(design: Design, parameters: Sequence[str]) -> list[str]:
    """Return the parameters; one with parts as its parts."""
    inputs = (*design.tensors, *design.scalars)
    parts = {name: [part for part in inputs if parameter_of(part) == name] for name in parameters}
    return [name for parameter in parameters for name in parts[parameter] or [parameter]]


def _scalar(value: Scalar, design: Design) -> str:
    """Return the expression of a plain value."""
    if not isinstance(value, Largest):
        return repr(value)
    drawn = f'drawn["{value.input}"]'
    if isinstance(design.tensors[value.input].kind, CuSeqlens):
        drawn = f"({drawn}[1:] - {drawn}[:-1])"
    return f"int({drawn}.max(initial=0))"


def _local(name: str) -> str:
    is_taken = name in ("sizes", "dtype", "generator", "torch", "drawn", "kinds")
    return f"{name}_" if is_taken else re.sub(r"\W", "_", name)


def _size(dim: Dim | float | None) -> str:
    if not isinstance(dim, str):
        return repr(dim)
    factor, name, more = split_dim(dim)
    return f"{factor} * " * (factor != 1) + f'sizes["{name}"]' + f" + {more}" * bool(more)


def _drawn(name: str, tensor: TensorShape) -> str:
    """Return the expression that draws a tensor: its kind, booleans, integers in its range, or floats, uniform in a range or else
    normal.

    Transposed and strided tensors get their layout.
    """
    dims = [*tensor.shape]
    if tensor.transposed:
        dims[-2:] = reversed(dims[-2:])
    shape = ", ".join(map(_size, dims)) or "()"
    dtype = "dtype" if tensor.dtype == CASE_DTYPE else f"torch.{tensor.dtype}"
    if tensor.kind is not None:
        drawn = f'torch.as_tensor(drawn["{name}"], dtype={dtype})' + ".mT.contiguous()" * tensor.transposed
    elif tensor.dtype == "bool":
        drawn = f"torch.rand({shape}, generator=generator) < 0.5"
        drawn = f"({drawn})" if tensor.transposed else drawn
    elif tensor.dtype != CASE_DTYPE and is_exact(tensor.dtype):
        shape = f"({shape},)" if dims else "()"
        drawn = f"torch.randint({_size(tensor.low)}, {_size(tensor.high)}, {shape}, generator=generator, dtype={dtype})"
    elif tensor.low is not None:
        drawn = f"torch.rand({shape}, generator=generator)"
        if tensor.low == 0:
            drawn += f" * {_size(tensor.high)}" * (tensor.high != 1)
        else:
            drawn += f" * ({_size(tensor.high)} - {_size(tensor.low)}) + {_size(tensor.low)}"
        drawn = f"({drawn}).to({dtype})" if "*" in drawn else f"{drawn}.to({dtype})"
    else:
        drawn = f"torch.randn({shape}, generator=generator).to({dtype})"
    if tensor.transposed:
        return f"{drawn}.mT"
    if tensor.strides is not None:
        return f"strided({drawn}, {', '.join(map(_size, tensor.strides))})"
    return drawn


def problem_text(draft: Draft) -> str:
    """Return the text of `problem.py`: the reference with its imports, the inputs, and the oracle."""
    reference = draft.reference
    reference.check_name()
    if reference.is_kernel:
        make_inputs = inputs_text(draft.design, draft.entry.parameters)
        return _joined([reference.text, make_inputs, _oracle(draft)])
    head = f'"""Inputs and right outputs of `{draft.entry.name}`. The reference is {reference.place}."""\n'
    design = replace(draft.design, scalars=_kept_defaults(draft) | draft.design.scalars)
    make_inputs = _make_inputs(design, draft.entry.parameters)
    imports = [line for line in reference.imports if line != "import torch"]
    future = [line for line in imports if line.startswith("from __future__")]
    later_imports = [line for line in imports if line not in future] + _kinds_import(design)
    blocks = ["\n".join(lines) for lines in (future, ["import torch", *later_imports]) if lines]
    return _joined([head, *blocks, reference.text, make_inputs, _oracle(draft)])


def _kept_defaults(draft: Draft) -> dict[str, Scalar]:
    """Return the floats that the reference does not take, with their defaults: with another value it gives no truth."""
    inputs = draft.design.tensors.keys() | draft.design.sizes[0].keys() | set(draft.reference.parameters)
    values = {name: parse_literal(text) for name, text in draft.entry.defaults.items() if name not in inputs}
    return {name: value for name, value in values.items() if isinstance(value, float)}


def _oracle(draft: Draft) -> str:
    """Return the text of the function `oracle`: it calls the reference, and returns outputs in the order of the task.

    Parts that the kernel returns come first, then inputs that the reference changes.
    """
    reference = draft.reference
    outputs = draft.seen[0].reference.outputs if draft.seen[0].reference is not None else ()
    changed = {output.input for output in outputs if output.input}
    lines = [f"def oracle{draft.entry.signature.removeprefix(draft.entry.name)}:"]
    call = reference.call(reference.parameters)
    returned = [output for output in outputs if output.is_returned]
    plain = draft.seen[0].reference.plain if draft.seen[0].reference is not None else {}
    if not changed and (plain or not draft.returns):
        return "\n".join([*lines, f"    return {call}", ""])
    lines.append(f"    result = {call}" if any(not output.input for output in returned) else f"    {call}")
    # Returned outputs come first, in their order.
    count = len(returned) + len(plain)
    places = [place for place in range(count) if place not in plain]
    parts = ["result"] if count == 1 else [f"result[{place}]" for place in places]
    parts += [""] * (len(outputs) - len(parts))
    named = [re.sub(r"\((\d+)\)", r"[\1]", output.input) for output in outputs]
    truths = [name or part for name, part in zip(named, parts, strict=True)]
    for place, name in enumerate(draft.returns):
        if not name:  # the reference has either all parts that are no tensors, or none: then they are None
            truths.insert(place, f"result[{place}]" if plain else "None")
    return "\n".join([*lines, f"    return {', '.join(truths)}", ""])


def _joined(parts: Sequence[str]) -> str:
    """Join the parts of a module; definitions are two lines apart."""
    text = ""
    for part in parts:
        body = part.strip()
        if body:
            gap = "\n\n\n" if body.startswith(("def ", "class ", "@")) or text.count("\ndef ") else "\n\n"
            text += (gap if text else "") + body
    return text + "\n"


def cost_text(draft: Draft) -> str:
    """Return the text of `cost.py`: each input is read once, each output written once.

    Not counted are inputs that are changed too, rows that indices do not choose, blocks and slots, which values choose, and
    outputs of unknown shape: a figure that is too high would praise kernels.
    """
    design = draft.design
    lines = ["from suites import Cost, item_bytes", "", "", "def cost(sizes, dtype):"]
    kinds = [tensor.kind for tensor in design.tensors.values()]
    bounds = {
        tensor.high: name
        for name, tensor in design.tensors.items()
        if isinstance(tensor.high, str) and design.is_exact(name)
    }
    pools = [kind.pool for kind in kinds if isinstance(kind, BlockTable | Slots)]
    terms = []
    for name, tensor in design.tensors.items():
        if name in draft.changed:
            continue  # whether it is also read is not known, and a figure too high praises kernels
        if tensor.kind is None and tensor.shape and tensor.shape[0] in pools:
            lines.append(f"    # {name} is not counted: how many blocks are read depends on values.")
            continue
        factors = []
        for dim in tensor.shape:
            index = bounds.get(str(dim))
            # A kernel reads the rows that indices choose, not every row.
            factors.append(
                f"min({_size(dim)}, {_elements(design.tensors[index].shape)})" if index else _size(dim)
            )
        lines.append(f"    {_local(name)}_bytes = {_product(factors, tensor.dtype)}")
        terms.append(f"{_local(name)}_bytes")
    first = None
    for place, name in enumerate(draft.output_names):
        shape = draft.shape_of(place)
        if shape is None or (draft.outputs[place].input and shape[0] in pools):
            lines.append(f"    # {name} is not counted: no sizes give how much of it is written.")
            continue
        first = first or shape
        name = _local(name)
        lines.append(
            f"    written_{name} = {_product(map(_size, shape), draft.dtype_of(draft.outputs[place]))}"
        )
        terms.append(f"written_{name}")
    operations, dot_dtype = _operations(draft, first)
    lines.append(f"    flops = {operations}")
    dot = f", dot_dtype={dot_dtype}" if dot_dtype else ""
    lines.append(f"    return Cost(flops=flops, minimal_bytes={' + '.join(terms)}{dot})")
    return "\n".join(lines) + "\n"


def _product(factors: Sequence[str] | map[str], dtype: str) -> str:
    item = "item_bytes(dtype)" if dtype == CASE_DTYPE else f'item_bytes("{dtype}")'
    return " * ".join([*factors, item])


def _elements(shape: Sequence[Dim]) -> str:
    return " * ".join(map(_size, shape)) or "1"


def _operations(draft: Draft, output: tuple[Dim, ...] | None) -> tuple[str, str]:
    """Return the least number of operations, and the dtype of the matrix products, if there are any."""
    if output is None:
        return "1  # at least", ""
    matrices = [tensor for tensor in draft.design.tensors.values() if len(tensor.shape) > 1]
    if draft.multiplies and len(matrices) > 1:
        (*rows, summed), second = matrices[0].shape, [*matrices[1].shape[-2:]]
        if summed in second:
            second.remove(summed)
            if output == (*rows, *second):
                dtype = "dtype" if matrices[0].dtype == CASE_DTYPE else f'"{matrices[0].dtype}"'
                return f"2 * {_elements(output)} * {_size(summed)}", dtype
    return f"{_elements(output)}  # at least one for each element", ""


def task_toml(draft: Draft, name: str) -> str:
    """Return the text of `task.toml` for a draft: a key a line, then a case a line."""
    entry, design = draft.entry, draft.design
    dtypes = [draft.dtype_of(output) for output in draft.outputs]
    outputs = [
        f"{{ name = {_quoted(output)}, dtype = {_quoted(dtype)} }}"
        for output, dtype in zip(draft.output_names, dtypes, strict=True)
    ]
    itself_words = ", which is its own reference" if draft.reference.is_kernel else ""
    lines = [
        "schema = 1",
        f"name = {_quoted(name)}",
        f"title = {_quoted(f'{entry.name} of {draft.file.path.name}{itself_words}')}",
        f"category = {_quoted('MatrixMultiply' if draft.multiplies else 'Fusion')}",
        "difficulty = 3",
        f"instruction = {_long(instruction(draft))}",
        f"entry_points = [{{ name = {_quoted(entry.name)}, signature = {_quoted(entry.signature)} }}]",
        f"outputs = [{', '.join(outputs)}]",
    ]
    for dtype, limit in draft.tolerances.items():
        lines += [f"tolerances.{key} = {{ {limit} }}" for key in _tolerance_keys(draft, dtype)]
    if draft.file.path_in_repository:
        lines.append(f"original = {_quoted(draft.file.path_in_repository)}")
    if draft.package is not None:
        root, module = map(_quoted, (draft.package.root, draft.package.module))
        lists = {"environment": draft.package.environment, "kernels": draft.package.kernels}
        further = [f", {key} = [{', '.join(map(_quoted, words))}]" for key, words in lists.items() if words]
        lines.append(f"package = {{ root = {root}, module = {module}{''.join(further)} }}")
    if draft.returns:
        lines.append(f"returns = [{', '.join(map(_quoted, draft.returns))}]")
    if draft.changed:
        lines.append(f"in_place = [{', '.join(map(_quoted, draft.changed))}]")
    if draft.seen[0].operators:
        lines.append(f"allowed_operators = [{', '.join(map(_quoted, draft.seen[0].operators))}]")
    has_layout = any(tensor.transposed or tensor.strides is not None for tensor in design.tensors.values())
    rough = [
        name
        for name, tensor in design.tensors.items()
        if tensor.low is None and not design.is_exact(name) and name not in draft.changed
    ]
    allows = ["offset"] * (not has_layout)
    if rough and not draft.reference.is_kernel:
        allows.append("degenerate-rows")
        lines.append(f"outlier_inputs = [{', '.join(map(_quoted, rough))}]")
    lines.append(f"allows = [{', '.join(map(_quoted, allows))}]")
    axes = {name: axis_text(draft.axes.get(name, Axis(vary=False))) for name in design.sizes[0]}
    lines.append(f"axes = {{ {', '.join(f'{name} = {text}' for name, text in axes.items())} }}")
    lines.append("cases = [")
    for case, dtype, small, sizes, weight, is_exam in zip(
        *(design.case_names(), design.dtypes, draft.small, design.sizes, design.weights, design.exams),
        strict=True,
    ):
        counts = ", exam = true" if is_exam else f", weight = {weight:.4g}" if weight else ""
        lines.append(
            f"    {{ name = {_quoted(case)}, dtype = {_quoted(dtype)}, cpu = {_table(small)}, gpu = {_table(sizes)}{counts} }},"
        )
    return "\n".join([*lines, "]", ""])


def axis_text(axis: Axis) -> str:
    """Return an entry of `axes`."""
    if not axis.vary:
        return "{ vary = false }"
    step = f", multiple_of = {axis.multiple_of}" if axis.multiple_of > 1 else ""
    return f"{{ min = {axis.min}, max = {axis.max}{step} }}"


def axis_words(axis: Axis | None, sizes: Sequence[int]) -> str:
    """Return which values a size may have."""
    shown = ", ".join(map(str, sizes))
    if axis is None or not axis.vary:
        return f"{shown} only" if len(sizes) > 1 else f"always {shown}"
    kind = f"any multiple of {axis.multiple_of}" if axis.multiple_of > 1 else "any number"
    return f"{kind} from {axis.min} to {axis.max}, such as {shown}"


def _tolerance_keys(draft: Draft, dtype: str) -> list[str]:
    """Return the names that `task.toml` has for a dtype: an 8-bit float may be the target's."""
    names = [name for name, dtypes in BY_TARGET.items() if dtype in dtypes and name in draft.design.dtypes]
    return names or [dtype]


def instruction(draft: Draft) -> str:
    """Return the instruction for agents: the reference's text, the inputs, the outputs and the sizes."""
    entry, reference = draft.entry, draft.reference
    lines = [f"Write `{entry.signature}` with Triton kernels.", ""]
    if reference.is_kernel:
        lines += [
            f"It computes what `{reference.name}` of this module computes from the same arguments:",
            "",
            "```python",
            reference.text.strip(),
            "```",
            "",
        ]
    elif reference.text and reference.is_sent:
        lines += [
            f"It computes what this PyTorch function `{reference.name}` computes from the same arguments:",
            "",
            "```python",
            *[line for line in reference.imports if "__future__" not in line],
            "",
            reference.text.strip(),
            "```",
            "",
        ]
    else:
        place = reference.place if reference.is_sent else reference.name
        lines += [f"It computes what `{place}` computes from the same arguments.", ""]
    if entry.left_out:
        lines.append(
            f"- Further parameters of the signature, at its end: `{', '.join(entry.left_out)}`. They always have these defaults."
        )
    for name in names_in_order(draft.design, entry.parameters):
        if name in draft.design.tensors:
            lines.append(f"- `{name}`: {tensor_words(draft.design, name)}.")
        elif name in draft.design.scalars:
            lines.append(f"- `{name}`: {draft.design.scalars[name]!r}.")
    new = [name for name, output in zip(draft.output_names, draft.outputs, strict=True) if not output.input]
    if draft.changed:
        lines.append(f"- Writes the result into {', '.join(f'`{name}`' for name in draft.changed)}.")
    if draft.returns:
        plain = iter(draft.seen[0].kernel.plain.values())
        parts = [
            f"`{name}`" if name else "None" if next(plain) is None else "a number" for name in draft.returns
        ]
        lines.append(f"- Returns a tuple: {', '.join(parts)}.")
    elif new:
        lines.append(f"- Returns {', '.join(new)}: new {'tensor' if len(new) == 1 else 'tensors'}.")
    elif not any(output.is_returned for output in draft.outputs):
        lines.append("- Returns None.")
    lines += [
        f"- `{name}`: {axis_words(draft.axes.get(name), sizes)}."
        for name, sizes in draft.design.values.items()
    ]
    lines += ["- All arithmetic happens in kernels. Other inputs stay unchanged."]
    return "\n".join(lines) + "\n"


def tensor_words(design: Design, name: str) -> str:
    """Return an input in words: `float16 [M, 4096], values from 0 to 1`."""
    tensor = design.tensors[name]
    dtype = " or ".join(dict.fromkeys(design.dtypes)) if tensor.dtype == CASE_DTYPE else tensor.dtype
    words = f"{dtype} [{', '.join(map(str, tensor.shape))}]"
    if tensor.transposed:
        words += ", the last two dimensions swapped in memory"
    if tensor.strides is not None:
        words += f", strides {', '.join(map(str, tensor.strides))}"
    if tensor.kind is not None and type(tensor.kind) is not Integers:
        meaning, _, _ = (tensor.kind.__doc__ or "").partition("\n")
        words += f", {tensor.kind!r}: {meaning.removesuffix('.')}"
    elif tensor.low is not None:
        words += f", values from {tensor.low} to {'below ' if design.is_exact(name) else ''}{tensor.high}"
    return words


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _long(text: str) -> str:
    plain = "'''" not in text and all(char.isprintable() or char in "\n\t" for char in text)
    return f"'''\n{text}'''" if plain else _quoted(text)


def _table(sizes: dict[str, int]) -> str:
    return f"{{ {', '.join(f'{name} = {size}' for name, size in sizes.items())} }}"
