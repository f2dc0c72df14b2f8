"""Plans of studies: a TOML file with keys of `run`, and with methods, models and seeds that are combined.

One session runs each combination: a *cell*. The name of a study has a hash of all its cells and prompt templates, so the
same plan finds its sessions again, and a changed plan is another study.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from engine.methods import open_method
from engine.models import Limits
from engine.plan.request import RunPlan
from engine.plan.settings import SETTINGS, SUITE, Count, Seed, setting_of
from engine.prompting.prompting import template_hashes
from sessions.names import series_name
from suites import load_suite, load_task, public_suite_names
from tui.config import Configuration, SettingSource, checked, read
from tui.diagnostics import Complaint

SHIPPED = Path(__file__).parents[2] / "engine" / "plan" / "plans"
"""Folder of the plans that ship with Wavedeck."""
DIGITS = 6
"""Hexadecimal digits of the hash in a study's name."""

HASHED = """
model tasks to_record suite method instances iterations devices targets review budget_usd budget_tokens budget_attempts
budget_device_s budget_wall_s seed prices limits providers options stop_rules stop_at_speedup stop_without_gain past_roof
allocate against spread first_chain series python title
"""
"""The settings that the names of studies have always hashed, in their first order."""

Texts = Annotated[tuple[str, ...], Meta(min_length=1, description='a list of names, for example ["softmax"]')]
Seeds = Annotated[
    tuple[Seed, ...], Meta(min_length=1, description="a list of whole numbers, for example [1, 2]")
]
Methods = Annotated[
    tuple[dict[str, Any], ...],
    Meta(min_length=1, description="a table for each method: [[methods]] with method and its options"),
]


class StudyKeys(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """The keys of a plan besides those of `run`."""

    tasks: Texts = ()
    """Empty: all tasks of the suite."""
    sample: Count | None = None
    """Number of tasks to draw."""
    sample_seed: Seed = 0
    models: Texts = ()
    seeds: Seeds = ()
    """Seeds of the judge's inputs; each is a repetition."""
    methods: Methods


OWN = {field.encode_name: field for field in msgspec.structs.fields(StudyKeys)}
RUN = {key: field for key, field in SETTINGS.items() if setting_of(field).study}
"""The keys of `run` in a plan."""
A_METHOD = {key: field for key, field in (OWN | RUN).items() if key in {*RUN, "models"} - {"suite"}}
"""Keys of one entry of `methods`."""


class Study(msgspec.Struct, frozen=True):
    """A checked plan."""

    name: str
    """`ablation-3f2a91`."""
    file: Path
    cells: tuple[RunPlan, ...]
    """The sessions to run; cell n is number n - 1."""


def read_study(word: str, tasks: Sequence[str], configured: Configuration, *, registry: Path) -> Study:
    """
    Return the study of a plan's file, or of a plan that ships.

    Flags win over the plan's own keys, the plan over files of configuration and variables; `tasks` replace the tasks of
    the plan. Raises `Complaint` for a wrong plan, and `SuiteError` for an unknown task.
    """
    file = find_plan(word)
    (source,) = read(file, shown=str(file))
    values = {key: checked(source, key, value, OWN | RUN) for key, value in source.values.items()}
    if "methods" not in values:
        raise Complaint(f'{source.name} names no method; add [[methods]] with method = "geak"')
    keys = StudyKeys(**{OWN[key].name: value for key, value in values.items() if key in OWN})
    flags = {SETTINGS[key].name for key, origin in configured.origins.items() if origin.is_flag}
    base = _changed(configured.settings, values, flags)
    names = _tasks(keys, tasks, base, registry)
    cells: list[RunPlan] = []
    for entry in keys.methods:
        entry_values = {key: checked(source, key, value, A_METHOD) for key, value in entry.items()}
        settings = _changed(base, entry_values, flags)
        settings = msgspec.structs.replace(settings, tasks=names, suite=None, stop_rules=False, review="auto")
        models = _models(source, settings, entry_values.get("models", ()), keys.models, flags)
        cells += [msgspec.structs.replace(settings, model=model) for model in models]
    digest = _digest(cells, keys.seeds)
    name = f"{_stem(file)}-{digest[:DIGITS]}"
    usual = int(digest[:DIGITS], 16) if base.seed is None else base.seed
    seeded = [
        msgspec.structs.replace(cell, seed=seed) for seed, cell in product(keys.seeds or (usual,), cells)
    ]
    return Study(name, file, tuple(_numbered(seeded, name)))


def find_plan(word: str) -> Path:
    """Return the file of a plan that ships, or that a person names."""
    file = Path(word)
    if file.suffix == ".toml":
        if not file.is_file():
            raise Complaint(f"there is no plan {file}; plans that ship are {', '.join(shipped_plans())}")
        return file
    if word not in shipped_plans():
        near = difflib.get_close_matches(word, shipped_plans(), n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"plans that ship are {', '.join(shipped_plans())}"
        raise Complaint(f"no plan {word!r} ships with Wavedeck, and a file of yours ends in .toml; {hint}")
    return SHIPPED / f"{word}.toml"


def shipped_plans() -> list[str]:
    """Return the names of the plans that ship with Wavedeck."""
    return sorted(file.stem for file in SHIPPED.glob("*.toml"))


def _stem(file: Path) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", file.stem):
        raise Complaint(
            f"{file}: a study has the name of its file; use small letters, digits, - and _, with a letter first"
        )
    return file.stem


def _changed(settings: RunPlan, values: Mapping[str, Any], flags: set[str]) -> RunPlan:
    """Return the settings with those of a plan, but for what a flag set."""
    own = {RUN[key].name: value for key, value in values.items() if key in RUN}
    return msgspec.structs.replace(
        settings, **{name: value for name, value in own.items() if name not in flags}
    )


def _models(
    source: SettingSource, settings: RunPlan, own: Sequence[str], shared: Sequence[str], flags: set[str]
) -> Sequence[str]:
    """Return the models of a method: its own, the flag's, the plan's or the configured model, in this order."""
    if not open_method(settings.method).asks_model:
        return ("",)
    if own:
        return own
    if shared and "model" not in flags:
        return shared
    if not settings.model:
        raise Complaint(
            f"{source.name} names no model for {settings.method}; add --model P:NAME, or models = [...]"
        )
    return (settings.model,)


def _tasks(keys: StudyKeys, arguments: Sequence[str], settings: RunPlan, registry: Path) -> tuple[str, ...]:
    public = public_suite_names(registry=registry)
    names = [
        # A task of a public benchmark is recorded before the study begins, and cannot be loaded before that.
        name if name.partition("/")[0] in public else load_task(name, registry=registry).id
        for name in dict.fromkeys(arguments or keys.tasks)
    ] or [task.id for task in load_suite(settings.suite or SUITE, registry=registry)]
    if keys.sample is None or arguments:
        return tuple(names)
    if keys.sample > len(names):
        raise Complaint(f"sample = {keys.sample} is more than the {len(names)} tasks to draw from")
    # Not `random.sample`: this order is the same in every version of Python, and a larger sample contains a smaller one.
    drawn = sorted(names, key=lambda name: hashlib.sha256(f"{keys.sample_seed} {name}".encode()).digest())
    return tuple(sorted(drawn[: keys.sample], key=names.index))


def _digest(cells: Sequence[RunPlan], seeds: Sequence[int]) -> str:
    """Return the hash of what decides the results of the cells; prices and time limits do not."""
    text = msgspec.json.encode([[*map(_hashed, cells)], seeds, dict(sorted(template_hashes().items()))])
    return hashlib.sha256(text).hexdigest()


def _hashed(cell: RunPlan) -> dict[str, Any]:
    """Return the settings of a cell for the hash; a later setting counts where it is changed, so that it renames no study."""
    first, usual = HASHED.split(), type(cell)()
    later = [name for name in cell.__struct_fields__ if name not in first and not hasattr(cell.options, name)]
    changed = [name for name in later if getattr(cell, name) != getattr(usual, name)]
    values = {name: getattr(cell, name) for name in (*first, *changed)}
    return values | {"prices": {}, "limits": Limits(), "providers": {}}


def _numbered(cells: Sequence[RunPlan], name: str) -> Iterator[RunPlan]:
    """Yield the cells with their series. Cells with the same recording play its chains one after the other."""
    chains: dict[str, int] = {}
    for number, cell in enumerate(cells, start=1):
        first = chains.get(cell.model, 1) if cell.model.startswith("recorded:") else 1
        chains[cell.model] = first + (cell.instances or 1)
        yield msgspec.structs.replace(cell, series=series_name(name, number), first_chain=first)
