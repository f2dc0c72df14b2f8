"""The settings that a person may give for a run. Each field has the words, the values and the places of its setting.

Options of commands, keys of files, variables, the form of a new run and plans of studies come from here. Every command
imports this module, so it stays light.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta
from msgspec.structs import FieldInfo

from sessions.settings import MODULES, MOST, MOST_COUNT, MethodOptions

SUITE = "starter"
RECORDED = f"recorded:{SUITE}"
"""The model without a setting: a shipped recording, so that no run costs money by default."""
INSTANCES = 4
ITERATIONS = 10
WITHOUT_GAIN = 2
"""Correct attempts in a row without a gain after which an instance ends, by default."""


class RunSetting(msgspec.Struct, frozen=True):
    """How people know a setting; part of the annotation of its field."""

    words: str
    """Effect of the setting, for the help of its option and for the form."""
    values: str = ""
    """The values to choose from, or their form."""
    default: str = ""
    """The default in words, where the field's default is empty."""
    form: str = ""
    """Its name in the form of a new run; empty: the form does not have it."""
    study: bool = True
    """False if plans of studies have it in another form, if it would make cells unequal, or if it runs a command."""


# Kinds of values: the title is the name of a value in help, the description says which values are right.
COMMAS = "names with commas between them"
Flag = Annotated[bool, Meta(description="true or false")]
Text = Annotated[str, Meta(title="TEXT")]
Name = Annotated[str, Meta(title="NAME")]
File = Annotated[str, Meta(title="FILE")]
AnyPath = Annotated[str, Meta(title="PATH")]
What = Annotated[str, Meta(title="WHAT")]
Model = Annotated[str, Meta(title="P:NAME")]
Count = Annotated[
    int, Meta(ge=1, le=MOST_COUNT, title="N", description=f"a whole number from 1 to {MOST_COUNT:,}")
]
Rounds = Annotated[
    int, Meta(ge=0, le=MOST_COUNT, title="N", description=f"a whole number from 0 to {MOST_COUNT:,}")
]
Tokens = Annotated[int, Meta(ge=1, le=MOST, title="N", description="a whole number from 1 to 2^63 - 1")]
Seed = Annotated[int, Meta(ge=0, le=MOST, title="N", description="a whole number from 0 to 2^63 - 1")]
Dollars = Annotated[
    float, Meta(gt=0, le=1e9, title="X", description="an amount of US dollars above 0, at most 1,000,000,000")
]
Seconds = Annotated[
    float, Meta(gt=0, le=1e9, title="X", description="a number of seconds above 0, at most 1,000,000,000")
]
Ratio = Annotated[float, Meta(gt=0, le=1e9, title="X", description="a number above 0, at most 1,000,000,000")]
Names = Annotated[tuple[str, ...], Meta(min_length=1, title="NAMES")]
Devices = Annotated[Names, Meta(description=f"{COMMAS}, for example idle or 0,1")]
Targets = Annotated[Names, Meta(description=f"{COMMAS}, for example gfx942,sm_90")]
Modules = Annotated[Names, Meta(title="MODULES", description=f"{COMMAS}, of {', '.join(MODULES)}")]
By = Annotated[Literal["all", "case"], Meta(title="WHAT", description="all or case")]
Review = Annotated[Literal["auto", "first", "manual"], Meta(title="HOW", description="auto, first or manual")]


class RequestedSettings(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """The settings as a person gives them, in the order of help and form; `None` and empty values select the default."""

    suite: Annotated[
        Text | None,
        RunSetting("Suite of the tasks; all of them unless tasks are named", default=SUITE, form="suite"),
    ] = None
    method: Annotated[Name, RunSetting("Method of the agents", "see below", form="method")] = "geak"
    agent: Annotated[
        Name,
        RunSetting(
            "Coding agent to start; it writes the kernels",
            "claude-code, codex, gemini, openhands or mini-swe-agent",
            form="agent",
        ),
    ] = ""
    agent_command: Annotated[
        Text,
        RunSetting(
            "Command to start as the agent: 'CMD {prompt}'. With --agent: instead of its usual command",
            study=False,
        ),
    ] = ""
    """Either of the two selects the method `agent`."""
    model: Annotated[
        Model,
        RunSetting(
            "Model of all roles",
            "anthropic:NAME, openai:NAME, either with @URL, azure:DEPLOYMENT, gemini:NAME or recorded:NAME; "
            "or by role: generator=...,reflector=...",
            RECORDED,
            form="model",
            study=False,
        ),
    ] = ""
    """One model, or one for each role (`engine.models.spec`); the agent's name; empty for a method that asks none."""
    instances: Annotated[
        Count | None,
        RunSetting(
            "Independent chains on each task", default=f"{INSTANCES}, or as recorded", form="instances"
        ),
    ] = None
    iterations: Annotated[
        Count | None,
        RunSetting("Attempts of each chain", default=f"{ITERATIONS}, or as recorded", form="iterations"),
    ] = None
    tune: Annotated[Flag, RunSetting("geak: also sweep the launch parameters of each correct attempt")] = (
        False
    )
    by: Annotated[
        By,
        RunSetting(
            "tune: keep variants that are best over all cases, or those that are best in a case", "all, case"
        ),
    ] = "all"
    without: Annotated[Modules, RunSetting("Modules to switch off", ",".join(MODULES))] = ()
    show_reference: Annotated[
        Flag,
        RunSetting(
            "Show models the reference kernel of benchmarks that hide it: for speed, not for the benchmark's score"
        ),
    ] = False
    workers: Annotated[Count, RunSetting("kernelagent: number of parallel workers")] = 4
    descendants: Annotated[Count, RunSetting("geak-evolve: candidates per round")] = 8
    prompt_style: Annotated[
        Name, RunSetting("Prompt format of the model", "chat, kernelllm or autotriton")
    ] = "chat"
    corpus: Annotated[
        AnyPath, RunSetting("Triton kernels to use as further examples", "a folder of *.py, or a JSON array")
    ] = ""
    start: Annotated[
        File, RunSetting("Kernel to start from: the first attempt of each instance; tune sweeps it")
    ] = ""
    devices: Annotated[
        Devices,
        RunSetting(
            "Devices of the judge",
            "idle, all, 0,1 or cpu; run and study: also ray, ray:ADDRESS or ray,NODE",
            "idle GPUs, else cpu",
            form="devices",
        ),
    ] = ("idle",)
    targets: Annotated[
        Targets,
        RunSetting(
            "Architectures to compile for; the first decides",
            "gfx942,sm_90",
            "the devices' own; gfx942 on cpu",
        ),
    ] = ()
    against: Annotated[
        What,
        RunSetting(
            "Timing baseline on GPUs",
            "task, eager, compile, a file, FILE.py:FUNCTION, PACKAGE.MODULE:FUNCTION or torch.ops.X.Y",
            form="against",
        ),
    ] = "task"
    review: Annotated[
        Review,
        RunSetting(
            "auto, or wait for a decision at the first better attempt, or at each: first, manual",
            form="review",
            study=False,
        ),
    ] = "auto"
    budget_usd: Annotated[
        Dollars | None, RunSetting("Highest cost of the session (needs prices)", form="most money, $")
    ] = None
    budget_tokens: Annotated[
        Tokens | None, RunSetting("Highest number of tokens of the session", form="most tokens")
    ] = None
    budget_device_s: Annotated[
        Seconds | None, RunSetting("Most seconds of judging on devices, in sum", form="most GPU time, s")
    ] = None
    budget_wall_s: Annotated[
        Seconds | None, RunSetting("Most seconds that the session runs", form="most wall time, s")
    ] = None
    stop_at_speedup: Annotated[
        Ratio | None, RunSetting("On GPUs: end an instance at this speedup", default="never", study=False)
    ] = None
    stop_without_gain: Annotated[
        Rounds | None,
        RunSetting(
            "On GPUs: end an instance after N correct attempts in a row without a gain; 0: never",
            default=f"{WITHOUT_GAIN}",
            study=False,
        ),
    ] = None
    past_roof: Annotated[
        Flag,
        RunSetting("On GPUs: go on where each case is at its roof, or too short to get faster", study=False),
    ] = False
    seed: Annotated[Seed | None, RunSetting("Seed of the judge's inputs", default="random", study=False)] = (
        None
    )

    @property
    def options(self) -> MethodOptions:
        """The options of the method."""
        names = {*MethodOptions.__struct_fields__} & {*RequestedSettings.__struct_fields__}
        return MethodOptions(**{name: getattr(self, name) for name in names})


SETTINGS = {field.encode_name: field for field in msgspec.structs.fields(RequestedSettings)}
"""Fields by key: the name of the option and of the key in files."""


def setting_of(field: FieldInfo) -> RunSetting:
    """Returns how people know the setting of a field of `SETTINGS`."""
    setting: RunSetting = field.type.__metadata__[-1]
    return setting


def help_of(field: FieldInfo) -> str:
    """Returns the help of the option of a field of `SETTINGS`, with its values and its default."""
    setting, usual = setting_of(field), field.default
    default = setting.default or (",".join(usual) if isinstance(usual, tuple) else str(usual or ""))
    return (
        ": ".join(filter(None, (setting.words, setting.values))) + "." + (f" [{default}]" if default else "")
    )


def metas(kind: Any) -> Iterator[Meta]:
    """Yield what msgspec knows about the values of a type, and about the types that it contains."""
    yield from (meta for meta in reversed(getattr(kind, "__metadata__", ())) if isinstance(meta, Meta))
    for part in get_args(kind):
        yield from metas(part)


def value_name(field: FieldInfo) -> str:
    """Returns the name of the field's values in help; empty for a switch."""
    return next((meta.title for meta in metas(field.type) if meta.title), "")


def accepted_words(field: FieldInfo) -> str:
    """Returns the values that a field accepts, in words."""
    return next((meta.description for meta in metas(field.type) if meta.description), "text")
