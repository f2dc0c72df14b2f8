"""`wavedeck tune`: `wavedeck run --method tune`."""

from __future__ import annotations

from functools import partial

import click

from .run import run_command

assert run_command.callback is not None
tune_command = click.Command(
    "tune",
    params=[parameter for parameter in run_command.params if parameter.name != "method"],
    callback=partial(run_command.callback, method="tune"),
    help="Tune the configuration of a kernel, a FILE or the baseline of a TASK, without a model.\n\n"
    "The same as `wavedeck run --method tune`, with the same options.",
)
