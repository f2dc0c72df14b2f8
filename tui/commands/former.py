"""Former names of commands: they still run in this version, and each prints its new name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Former(NamedTuple):
    """A command under a former name."""

    now: str
    """Its words after `wavedeck`."""
    options: Mapping[str, str] = {}
    """Options with a new name. An empty name: only the value is left, as an argument."""


DEVICES = {"--device": "--devices"}
VERBS = ["pause", "unpause", "retire", "hint", "pin", "ban", "fork", "edit", "measure", "extend"]
"""Verbs of `steer`, which were commands."""
FORMER = {
    **{verb: Former(f"steer {verb}") for verb in VERBS},
    "wait": Former("status", {"--for": "--wait"}),
    "best": Former("report --best", {"--json": "--format=json"}),
    "record": Former("sessions record"),
    "dataset": Former("sessions dataset"),
    "propose": Former("mcp call eval"),
    "rejudge": Former("recheck --attempts all"),
    "eval --predictions": Former("suites judge", {"--suite": "", "--predictions": ""}),
    **{
        f"{name} --device": Former(name, DEVICES)
        for name in ("eval", "recheck", "suites", "compare", "doctor")
    },
    "study run": Former("study", {"run": ""}),
    "report --output": Former("report", {"--output": "--out"}),
}
"""Commands by their former name. A name with an option is a command that is given this option."""


def without_former_names(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments of `wavedeck` with today's names, and a remark for each former name."""
    words, remarks = list(args), []
    for name, former in FORMER.items():
        command, _, option = name.partition(" ")
        options = {word.partition("=")[0] for word in words}
        if words[0] == command and (not option or option in options):
            renamed = [now for then, now in former.options.items() if then in options]
            remarks.append(
                f"`wavedeck {name}` is now `{' '.join(['wavedeck', former.now, *renamed]).rstrip()}`"
            )
            further = (_renamed(word, former.options) for word in words[1:])
            words = [*former.now.split(), *(word for word in further if word is not None)]
    return words, remarks


def _renamed(arg: str, options: Mapping[str, str]) -> str | None:
    name, equals, value = arg.partition("=")
    if name not in options:
        return arg
    if not options[name]:
        return value if equals else None
    return f"{options[name]}{equals}{value}"
