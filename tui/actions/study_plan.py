"""Plans of studies: a TOML file with keys of `run`, and with methods, models and seeds that are combined.

One session runs each combination: a *cell*. The name of a study has a hash of all its cells, the texts of its tasks and the
prompt templates. So the same plan finds its sessions again, and a changed plan or task is another study.
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
from engine.plan.request import Label, RunPlan
from engine.plan.settings import SETTINGS, SUITE, Count, Seed, setting_of
from engine.prompting.prompting import template_hashes
from sessions.names import series_name
from sessions.settings import MethodOptions
from suites import find_public_task, load_public_suite, load_suite, load_task, public_suite_names
from suites.folder import FILES
from suites.public.recorded import text_digest
from tui.config import Configuration, SettingSource, checked, read
from tui.diagnostics import Complaint
from tui.facts.settings_words import method_words
from tui.facts.vocabulary import counted

SHIPPED = Path(__file__).parents[2] / "engine" / "plan" / "plans"
"""Folder of the plans that ship with Wavedeck."""
DIGITS = 6
"""Hexadecimal digits of the hash in a study's name."""

Texts = Annotated[tuple[str, ...], Meta(min_length=1, description='a list of names, for example ["softmax"]')]
Seeds = Annotated[
    tuple[Seed, ...], Meta(min_length=1, description="a list of whole numbers, for example [1, 2]")
]
Methods = Annotated[
    tuple[dict[str, Any], ...],
    Meta(min_length=1, description="a table for each method: [[methods]] with method and its options"),
]

Labels = Annotated[
    Mapping[str, Label], Meta(description='a table of texts: [labels] with "anthropic:NAME" = "Sonnet"')
]


class StudyKeys(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """The keys of a plan besides those of `run`."""

    tasks: Texts = ()
    """Empty: all tasks of the suite."""
    sample: Count | None = None
    """Number of tasks to draw."""
    sample_seed: Seed = 0
    models: Texts = ()
    labels: Labels = {}
    """How reports print the models, by name."""
    seeds: Seeds = ()
    """Seeds of the judge's inputs; each is a repetition."""
    methods: Methods


OWN = {field.encode_name: field for field in msgspec.structs.fields(StudyKeys)}
REQUEST = {field.encode_name: field for field in msgspec.structs.fields(RunPlan)}
RUN = {key: field for key, field in SETTINGS.items() if setting_of(field).study} | {
    "sampling": REQUEST["sampling"]
}
"""The keys of `run` in a plan."""
A_METHOD = {key: field for key, field in RUN.items() if key != "suite"} | {
    "models": OWN["models"],
    "label": REQUEST["label"],
}
"""Keys of one entry of `methods`."""
UNHASHED = frozenset({"cells", "label", "limits", "model_label", "prices", "providers"})
"""Settings that decide no result: a study keeps its name if they change."""


class Study(msgspec.Struct, frozen=True):
    """A checked plan."""

    name: str
    """`ablation-3f2a91`."""
    file: Path
    cells: tuple[RunPlan, ...]
    """The sessions to run; cell n is number n - 1."""
    coverage: tuple[str, ...]
    """How many tasks of each suite the study has: `3 of 184 tasks of tritonbench-revised`."""


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
        if settings.options != MethodOptions(without=settings.without) and not settings.label:
            settings = msgspec.structs.replace(
                settings, label=method_words(settings.method, settings.options)
            )
        cells += [
            msgspec.structs.replace(settings, model=model, model_label=keys.labels.get(model, ""))
            for model in models
        ]
    texts, coverage = _texts(names, registry)
    digest = _digest(cells, keys.seeds, texts)
    name = f"{_stem(file)}-{digest[:DIGITS]}"
    usual = int(digest[:DIGITS], 16) if base.seed is None else base.seed
    seeded = [
        msgspec.structs.replace(cell, seed=seed) for seed, cell in product(keys.seeds or (usual,), cells)
    ]
    return Study(name, file, tuple(_numbered(seeded, name)), coverage)


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
        raise Complaint(
            f"no study and no plan that ships is called {word!r}, and a file of yours ends in .toml; {hint}"
        )
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
    own = {
        field.name: values[key]
        for key, field in (RUN | A_METHOD).items()
        if key in values and key != "models"
    }
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


def _texts(names: Sequence[str], registry: Path) -> tuple[list[str], tuple[str, ...]]:
    """Return the hashes of the texts of tasks, and how many of the tasks of each suite these are."""
    public = public_suite_names(registry=registry)
    by_suite: dict[str, list[str]] = {}
    for name in names:
        by_suite.setdefault(name.partition("/")[0], []).append(name)
    texts, coverage = [], []
    for suite, own in by_suite.items():
        if suite in public:
            offered = load_public_suite(suite, registry=registry).tasks
            texts += [text_digest(find_public_task(name, offered)) for name in own]
            number = len(offered)
        else:
            folders = {task.id: task.folder for task in load_suite(suite, registry=registry)}
            texts += [_folder_digest(folders[name]) for name in own]
            number = len(folders)
        coverage.append(f"{len(own):,} of {counted(number, 'task')} of {suite}")
    return texts, tuple(coverage)


def _folder_digest(folder: Path) -> str:
    files = [folder / name for name in FILES if (folder / name).exists()]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _digest(cells: Sequence[RunPlan], seeds: Sequence[int], texts: Sequence[str]) -> str:
    """Return the hash of what decides the results of the cells; prices, time limits and labels do not."""
    text = msgspec.json.encode(
        [[*map(_hashed, cells)], seeds, dict(sorted(template_hashes().items())), texts]
    )
    return hashlib.sha256(text).hexdigest()


def _hashed(cell: RunPlan) -> dict[str, Any]:
    """Return the settings of a cell for the hash that are not at their default, so that a later setting renames no study."""
    usual = type(cell)()
    changed = (name for name in cell.__struct_fields__ if getattr(cell, name) != getattr(usual, name))
    return {name: getattr(cell, name) for name in changed if name not in UNHASHED}


def _numbered(cells: Sequence[RunPlan], name: str) -> Iterator[RunPlan]:
    """Yield the cells with their series. Cells with the same recording play its chains one after the other."""
    chains: dict[str, int] = {}
    for number, cell in enumerate(cells, start=1):
        first = chains.get(cell.model, 1) if cell.model.startswith("recorded:") else 1
        chains[cell.model] = first + (cell.instances or 1)
        yield msgspec.structs.replace(
            cell, series=series_name(name, number), cells=len(cells), first_chain=first
        )
