"""Texts about recorded calls: the function in `calls.py` that makes them, and their list in the instruction."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from harness.wire.script_messages import ADAPTER, CALL, DRAW_SEED, GRADIENTS, RESULT, RecordedCall
from suites.public.task import EntryKind, EntryPoint, PublicTask
from suites.python_source import parse_python
from suites.signature import parse_signature


def instruction(public: PublicTask, calls: Sequence[RecordedCall]) -> str:
    """Return the suite's instruction and the list of calls that are judged."""
    lines = [public.instruction.strip(), "", "The judge makes these calls:", ""]
    for place, call in enumerate(calls, 1):
        tensors = ", ".join(f"{name}: {data.dtype}{list(data.shape)}" for name, data in call.inputs.items())
        changed = [f"`{output.name}`" for output in call.outputs if output.is_input]
        in_place = f"; changes {', '.join(changed)} in place" if changed else ""
        lines.append(f"- call-{place}: `{call.expression}` with {tensors or 'no tensor'}{in_place}")
    return "\n".join(lines).strip() + "\n"


def plain_signature(entry: EntryPoint) -> str:
    """Return the entry point's signature with plain parameters and defaults, as `task.toml` wants it."""
    signature = entry.signature if entry.kind in (EntryKind.FUNCTION, EntryKind.KERNEL) else ""
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
            if parse_signature(f"{entry.name}({parameters})").parameters:
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
    """Return the text of `calls.py`."""
    lines = [
        f"def {adapter_signature(calls)}:",
        '    """Make one of the calls that are judged; return its outputs."""',
    ]
    if any("triton." in line for call in calls for line in _statements(call)):
        lines.append("    import triton.language")
    if any("torch." in line for call in calls for line in _statements(call)):
        lines.append("    import torch")
    for place, call in enumerate(calls, 1):
        lines.append(f"    if {CALL} == {place}:")
        lines += [f"        {line}" for line in _statements(call)]
    lines.append('    raise ValueError(f"there is no call {call}")')
    return "\n".join(lines) + "\n"


def _statements(call: RecordedCall) -> list[str]:
    lines = [f"{name} = {name}.detach().clone().requires_grad_()" for name in call.differentiated]
    made = f"{RESULT} = {call.expression}"
    if call.draw_seed is None:
        lines.append(made)
    else:
        lines += ["with torch.random.fork_rng():", f"    torch.manual_seed({DRAW_SEED})", f"    {made}"]
    if call.gradients:
        outputs = ", ".join(path for path, _ in call.gradients)
        drawn = ", ".join(f"{name}.clone()" for _, name in call.gradients)
        wanted = ", ".join(call.differentiated)
        lines.append(
            f"{GRADIENTS} = torch.autograd.grad([{outputs}], [{wanted}], [{drawn}], allow_unused=True)"
        )
    return [*lines, f"return {', '.join(output.path for output in call.outputs)}"]
