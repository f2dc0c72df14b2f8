"""The form of a new run: its fields, their choices, and the check by the code that `wavedeck run` uses. No screen."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from engine.agent_programs.presets import PRESETS
from engine.errors import EngineError
from engine.methods import METHODS, open_method
from engine.models import NoModel, parse_models
from engine.models.access import PROVIDERS
from engine.models.spec import ModelSpec, recordings
from engine.plan.plan import SessionPlan, resolve
from engine.plan.prices import SHIPPED
from engine.plan.request import RunPlan
from engine.plan.settings import SETTINGS, SUITE, setting_of
from harness import HarnessError
from harness.stages.timing.baselines import KINDS, TASK
from sessions.errors import SessionsError
from sessions.home import Home
from sessions.names import short_task
from suites import SuiteError, load_suite, suite_names
from suites.registry import OWN
from tui.actions.run_plan import from_own_kernel, model_of
from tui.config import SettingSource, checked, load
from tui.diagnostics import Complaint
from tui.facts.node_facts import NodeFacts

Values = Mapping[str, str]
"""Texts that the person entered, by field; an empty or missing text is the default."""
ANOTHER = "another ..."
"""The choice that lets the person type."""
TUNES_OWN = "tune: no model, no cost. Real model: set ANTHROPIC_API_KEY, choose it below."
"""Why the form chose `tune` for a kernel of the person's own, and how a real model works on it."""


@dataclass(frozen=True, slots=True)
class FormField:
    """One line of the form."""

    key: str
    label: str
    about: str
    has_choices: bool = False
    several: bool = False


def _fields() -> Iterator[FormField]:
    """Yield the settings of the form, and its fields that are no setting of their own: tasks, file and title."""
    for key, info in SETTINGS.items():
        setting = setting_of(info)
        if not setting.form:
            continue
        about, several = f"{setting.words}.", isinstance(info.default, tuple)
        yield FormField(key, setting.form, about, has_choices=key in WITH_CHOICES, several=several)
        if key == "suite":
            about = "Tasks to write kernels for; none marked: all of them."
            yield FormField("tasks", "tasks", about, has_choices=True, several=True)
            about = 'FILE.py --shapes "x=Mx4096:fp16, M=1,16"'
            yield FormField("file", "kernel file", about)
    yield FormField("title", "title", "Name of the session in lists.")


WITH_CHOICES = ("suite", "method", "agent", "model", "devices", "against", "review")
MEANINGS: Mapping[str, Mapping[str, str]] = {
    "method": METHODS,
    "review": {
        "auto": "the run goes on by itself; you can decide later",
        "manual": "each better attempt waits until you accept or reject it",
        "first": "the first better attempt waits, the others go on",
    },
}
"""The meaning of each choice, by field."""
FIELDS = tuple(_fields())
BY_KEY = {entry.key: entry for entry in FIELDS}
OPTIONS = tuple(key for key in BY_KEY if key in SETTINGS)
"""Fields that are settings of `wavedeck run` under the same name."""


@dataclass(frozen=True, slots=True)
class FormChoice:
    """One value to choose."""

    name: str
    words: str = ""


@dataclass(frozen=True, slots=True)
class CheckedRun:
    """The form after its check."""

    run: RunPlan | None = None
    plan: SessionPlan | None = None
    """`None` while a value is wrong or something is missing."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Error texts by field."""
    models: tuple[ModelSpec, ...] = ()
    wanted: str = ""
    """Words on the step that the person has to take before the check; empty if there is none."""


def shown_fields(values: Values) -> list[FormField]:
    """Return the fields of the form; an agent has no method."""
    return [entry for entry in FIELDS if entry.key != "method" or not values.get("agent")]


def arguments(values: Values) -> list[str]:
    """Return the arguments of the same `wavedeck run`."""
    words = [short_task(task) for task in task_names(values)]
    for key in OPTIONS:
        value = values.get(key, "")
        if value and not (key == "suite" and words):
            words += [f"--{key}", value]
    if values.get("title"):
        words += ["--title", values["title"]]
    return words


def command_line(values: Values) -> str:
    """Return the form as a line for a shell."""
    return shlex.join(["wavedeck", "run", *arguments(values)])


def task_names(values: Values) -> tuple[str, ...]:
    """Return the chosen tasks."""
    return tuple(name.strip() for name in values.get("tasks", "").split(",") if name.strip())


def usual_method(values: Values, model: str) -> str:
    """Return `tune` for a person's own kernel, of which a recorded model has no replies; else nothing, the default."""
    is_own = any(task.partition("/")[0] == OWN for task in task_names(values))
    model = values.get("model") or model
    is_recorded = model in ("", NoModel.model) or model.startswith("recorded:")
    return "tune" if is_own and is_recorded and not values.get("agent") else ""


def check(values: Values, *, home: Home, environ: Mapping[str, str], folder: Path) -> CheckedRun:
    """Return the checked run: every value by the settings of `wavedeck run`, then the whole plan. Blocks; sends nothing."""
    if values.get("file") and not values.get("tasks"):
        return CheckedRun(wanted="kernel file: enter reads it and makes a task of it")
    flags = {key: values[key] for key in OPTIONS if values.get(key)}
    tasks = task_names(values)
    if tasks:
        flags.pop("suite", None)
    errors = {}
    for key, value in flags.items():
        try:
            checked(SettingSource(f"--{key}", {}), key, value)
        except Complaint as error:
            errors[key] = str(error)
    if errors:
        return CheckedRun(errors=errors)
    try:
        configured = load(flags, environ=environ, folder=folder)
        model, _ = model_of(configured.settings, configured.origins, environ)
        settings = from_own_kernel(configured.settings, tasks, home.suites)
        run = msgspec.structs.replace(settings, tasks=tasks, model=model, title=values.get("title", ""))
        method = open_method(run.method)
        specs = parse_models(model, method.roles) if model and method.asks_model else {}
        return CheckedRun(
            run, resolve(run, home=home, environ=environ), models=tuple(dict.fromkeys(specs.values()))
        )
    except (Complaint, EngineError, SuiteError, HarnessError, SessionsError) as error:
        return CheckedRun(errors={field_of(error): str(error)})


def field_of(error: Exception) -> str:
    """Return the field that an error is about: the option that it names, else by its kind."""
    options: list[str] = re.findall(r"--([a-z-]+)", str(error))
    named = next((option for option in options if option in BY_KEY), None)
    if named is not None and "needs a key" not in str(error):
        return named
    if isinstance(error, SuiteError):
        return "tasks"
    return "devices" if isinstance(error, HarnessError) else "model"


def choices(
    key: str, values: Values, *, home: Home, environ: Mapping[str, str], node: NodeFacts, past: Sequence[str]
) -> list[FormChoice]:
    """Return the choices of a field; `past` are the models of past sessions. Blocks: tasks are read. Raises `SuiteError`."""
    if key == "suite":
        return [FormChoice(name) for name in suite_names(registry=home.suites)]
    if key == "tasks":
        tasks = load_suite(values.get("suite") or SUITE, registry=home.suites)
        return [FormChoice(task.short_id, task.title) for task in tasks]
    if key == "method":
        return [FormChoice(name, words) for name, words in MEANINGS["method"].items()]
    if key == "agent":
        path = environ.get("PATH")
        return [
            FormChoice(name, "" if shutil.which(preset.command[0], path=path) else "not installed here")
            for name, preset in PRESETS.items()
        ]
    if key == "devices":
        gpus = [FormChoice(gpu.name, f"{gpu.model}: {gpu.busy or 'idle'}") for gpu in node.gpus]
        usual = [
            FormChoice("idle", "all GPUs that nobody uses"),
            FormChoice("all", "all GPUs, also busy ones"),
        ]
        return [
            *usual,
            *gpus,
            FormChoice("cpu", "Triton's interpreter: right or wrong; nothing is timed"),
        ]
    if key == "against":
        words = {TASK: "the task's own baseline", "eager": "PyTorch, eager", "compile": "torch.compile"}
        return [
            *(FormChoice(kind, words.get(kind, "")) for kind in dict.fromkeys((TASK, *KINDS))),
            FormChoice(ANOTHER, "a kernel file"),
        ]
    if key == "review":
        return [FormChoice(name, words) for name, words in MEANINGS["review"].items()]
    return model_choices(environ, home=home, past=past)


def model_choices(environ: Mapping[str, str], *, home: Home, past: Sequence[str]) -> list[FormChoice]:
    """Return recorded models, models of past sessions, and models with a price and a key here."""
    models = {f"recorded:{name}": "recorded: no key, no cost" for name in sorted(recordings(home.recordings))}
    for model in past:
        if "=" not in model and not model.startswith("recorded:"):
            models.setdefault(model, "used in a past session")
    for model, price in SHIPPED.items():
        provider = PROVIDERS[model.partition(":")[0]]
        if environ.get(provider.key_variable, "").strip():
            words = f"${price.input:g} in, ${price.output:g} out for a million tokens ({price.date})"
            models[model] = words
    listed = [FormChoice(model, words) for model, words in models.items()]
    return [*listed, FormChoice(ANOTHER, "anthropic:NAME, openai:NAME@URL, gemini:NAME, azure:DEPLOYMENT")]
