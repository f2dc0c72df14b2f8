"""`wavedeck tune`: `wavedeck run --method tune`."""

from __future__ import annotations

from functools import partial

from tui.commands.sections import SECTIONS, Sectioned

from .run import run_command

OF_MODELS = {
    *f"method agent agent_command budget_usd budget_tokens send_only {SECTIONS['Models and prompts']}".split()
}
"""Options of `run` that have no meaning without a model."""
assert run_command.callback is not None
tune_command = Sectioned(
    "tune",
    params=[parameter for parameter in run_command.params if parameter.name not in OF_MODELS],
    callback=partial(run_command.callback, method="tune"),
    help="Tune the configuration of a kernel, a FILE or the baseline of a TASK, without a model.\n\n"
    "The same as `wavedeck run --method tune`, with its options. FILE.py or FILE.py:FUNCTION becomes a task.",
)
