"""The function in `calls.py` that makes recorded calls, and the signatures that `task.toml` holds."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from harness.wire.messages.script import ADAPTER, CALL, DRAW_SEED, GRADIENTS, MODEL_SEED, RESULT, RecordedCall
from suites.public.task import EntryKind, PublicEntryPoint
from suites.source.python_source import parse_python
from suites.source.signature import parse_signature

_PART = re.compile(rf"{RESULT}\[(\d+|'.*?'|\".*?\")\]")
"""An output that is, or lies within, a part of the returned tuple, list or dictionary."""
_COUNT = re.compile(r"a (?:tuple|list) of (\d+)")
_BUILD, _LOAD, _MODELS, _CHECK = "wavedeck_build", "wavedeck_load", "wavedeck_models", "wavedeck_check"
_CHECK_FUNCTION = f"""def {_CHECK}(result, keys, expected):
    \"\"\"Raise if a result does not have these parts; `expected` is the reference's result in words.\"\"\"
    is_sequence = isinstance(result, (tuple, list))
    if is_sequence and all(type(key) is int and key < len(result) for key in keys):
        return
    if isinstance(result, dict) and all(key in result for key in keys):
        return
    name = type(result).__name__.lower()
    got = "None (no return statement?)" if result is None else f"{{'an' if name[0] in 'aeiou' else 'a'}} {{name}}"
    if isinstance(result, dict):
        got += f" with the keys {{', '.join(map(repr, result))}}"
    if is_sequence:
        unit = "tensor" if all(hasattr(part, "data_ptr") for part in result) else "value"
        got += f" of {{len(result)}} {{unit}}{{'' if len(result) == 1 else 's'}}"
    raise TypeError(f"expected {{expected}}, got {{got}}")
"""
_MODEL_FUNCTIONS = f"""def {_BUILD}(model):
    \"\"\"Build a model as the reference was built.\"\"\"
    import torch
    with torch.random.fork_rng():
        torch.manual_seed({MODEL_SEED})
        return model().cuda()


def {_LOAD}(model, state):
    \"\"\"Let a model use the reference's parameters, if it has the same ones by name and shape.\"\"\"
    own = {{name: value.shape for name, value in model.state_dict().items()}}
    if own == {{name: value.shape for name, value in state.items()}}:
        buffers = {{name for name, _ in model.named_buffers()}}  # a call may change them
        kept = {{name: value.clone() if name in buffers else value for name, value in state.items()}}
        model.load_state_dict(kept, assign=True)
    return model
"""


def plain_signature(entry: PublicEntryPoint) -> str:
    """Return the entry point's signature (a class: its constructor's), with plain parameters and defaults, for `task.toml`."""
    signature = "" if entry.kind is EntryKind.VALUE else entry.signature
    text = signature if signature.startswith(entry.name) else f"{entry.name}{signature}"
    try:
        arguments = parse_python(f"def {text}: ...").body[0].args  # type: ignore[attr-defined]
    except SyntaxError:
        return f"{entry.name}(x)"
    names = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(names) - len(arguments.defaults)) + list(arguments.defaults)
    names, defaults = [*names, *arguments.kwonlyargs], [*defaults, *arguments.kw_defaults]
    full = ", ".join(
        argument.arg if default is None else f"{argument.arg}={ast.unparse(default)}"
        for argument, default in zip(names, defaults, strict=True)
    )
    for parameters in (full, ", ".join(argument.arg for argument in names)):
        try:
            may_be_empty = entry.kind is EntryKind.CLASS and bool(signature)
            if parse_signature(f"{entry.name}({parameters})").parameters or may_be_empty:
                return f"{entry.name}({parameters})"
        except ValueError:
            continue
    return f"{entry.name}(x)"


def adapter_signature(calls: Sequence[RecordedCall]) -> str:
    """Return the signature of the function in `calls.py`: the call's number, and every input of any call."""
    names = dict.fromkeys(name for call in calls for name in call.inputs)
    if any(call.draw_seed is not None for call in calls):
        names[DRAW_SEED] = None
    return f"{ADAPTER}({', '.join([CALL, *(f'{name}=None' for name in names)])})"


def adapter(calls: Sequence[RecordedCall]) -> str:
    """Return the text of `calls.py`, which is appended to a candidate: a function that makes the call of a number.

    Models are built and helpers defined only if a call needs them.
    """
    lines = _models(calls)
    by_call = [_statements(place, call) for place, call in enumerate(calls, 1)]
    if any(_CHECK in line for statements in by_call for line in statements):
        lines += [*_CHECK_FUNCTION.splitlines(), "", ""]
    lines += [
        f"def {adapter_signature(calls)}:",
        '    """Make one of the calls that are judged; return its outputs."""',
    ]
    if any("triton." in line for statements in by_call for line in statements):
        lines.append("    import triton.language")
    if any("torch." in line for statements in by_call for line in statements):
        lines.append("    import torch")
    for place, statements in enumerate(by_call, 1):
        lines.append(f"    if {CALL} == {place}:")
        lines += [f"        {line}" for line in statements]
    lines.append('    raise ValueError(f"there is no call {call}")')
    return "\n".join(lines) + "\n"


def _models(calls: Sequence[RecordedCall]) -> list[str]:
    """Return the lines that build the models of the calls when the candidate is imported; none if no call has a model.

    Building a model computes on the host, which a call may not do.
    """
    models = {place: call.model for place, call in enumerate(calls, 1) if call.model}
    if not models:
        return []
    built = [f"    {place}: {_BUILD}(lambda: {model})," for place, model in models.items()]
    return [*_MODEL_FUNCTIONS.splitlines(), "", "", f"{_MODELS} = {{", *built, "}", "", ""]


def _statements(place: int, call: RecordedCall) -> list[str]:
    """Return the lines of Python that repeat one recorded call and return its outputs.

    They build the model with its recorded parameters, and seed torch if the call drew random numbers. They compute gradients
    from the recorded gradients of the outputs. Last they check which parts of the result are tensors. `place`: see `_MODELS`.
    """
    lines = [f"{name} = {name}.detach().clone().requires_grad_()" for name in call.differentiated]
    made = f"{RESULT} = {call.expression}"
    if call.model:
        state = ", ".join(f"{name!r}: {value}" for name, value in call.state)
        arguments = call.expression.removeprefix(call.model)
        made = f"{RESULT} = {_LOAD}({_MODELS}[{place}], {{{state}}}){arguments}"
    draws = call.draw_seed is not None
    contexts = ["torch.no_grad()"] * bool(call.model) + ["torch.random.fork_rng()"] * draws
    made_lines = [f"torch.manual_seed({DRAW_SEED})"] * draws + [made]
    if contexts:
        lines += [f"with {', '.join(contexts)}:", *(f"    {line}" for line in made_lines)]
    else:
        lines += made_lines
    if call.gradients:
        outputs = ", ".join(path for path, _ in call.gradients)
        drawn = ", ".join(f"{name}.clone()" for _, name in call.gradients)
        wanted = ", ".join(call.differentiated)
        lines.append(
            f"{GRADIENTS} = torch.autograd.grad([{outputs}], [{wanted}], [{drawn}], allow_unused=True)"
        )
    parts = dict.fromkeys(part[1] for output in call.outputs if (part := _PART.match(output.path)))
    if parts:
        lines.append(f"{_CHECK}({RESULT}, [{', '.join(parts)}], {_expected_words(call, list(parts))!r})")
    return [*lines, f"return {', '.join(output.path for output in call.outputs)}"]


def _expected_words(call: RecordedCall, parts: list[str]) -> str:
    """Return the reference's result in words: `a tuple of 1 tensor` if all its parts are judged, else each part."""
    count = _COUNT.match(call.returns)
    if call.returns and (count is None or int(count[1]) != len(parts)):
        return call.returns
    return f"{count[0] if count else f'a tuple of {len(parts)}'} {'tensor' if len(parts) == 1 else 'tensors'}"
