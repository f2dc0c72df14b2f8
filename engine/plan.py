"""What a person asks for, and what is run: the first is checked once and becomes the second."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec

from engine.errors import UsageProblem
from engine.methods import METHODS, MODULES, Method, open_method
from engine.models import Limits, NoModel, check_models, find_recording, recording_of
from engine.profiles import check_profile
from engine.retrieval import check_folder
from harness.node.discovery import CPU
from harness.node.selection import select_devices, targets_for
from harness.stages.timing.baselines import KINDS, TASK, kernel_baseline, timing_baseline
from sessions.events import MethodOptions
from sessions.home import Home
from sessions.names import short_task
from sessions.recording import Recording, load_recording
from suites import Task, load_suite, load_task

INSTANCES = 4
ITERATIONS = 10
MODEL_CALLS = 16
SUITE = "starter"
REVIEWS = ("auto", "manual")

MOST = (1 << 63) - 1
"""The largest whole number of a plan: what an event can hold."""

Dollars = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """USD a million tokens."""

    input: Dollars
    output: Dollars
    cached_input: Dollars | None = None
    """Read from the provider's cache; where it is unknown, these tokens are counted at the full price."""
    cache_write: Dollars | None = None
    """Written to the cache; where it is unknown, at `CACHE_WRITE` times the full price."""


CACHE_WRITE = 1.25
"""What Anthropic (for five minutes) and OpenAI (since GPT-5.6) ask for tokens written to the cache, in full prices."""


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A run as asked for; `None` and empty mean: what is usual."""

    model: str = ""
    """One, or one for each role (`engine.models.spec`); empty for a method that asks none."""
    tasks: tuple[str, ...] = ()
    suite: str | None = None
    method: str = "geak"
    instances: int | None = None
    iterations: int | None = None
    devices: tuple[str, ...] = ("idle",)
    """`idle`, `all`, or names of devices."""
    targets: tuple[str, ...] = ()
    """Empty: those of the devices."""
    review: str = "auto"
    budget_usd: float | None = None
    budget_tokens: int | None = None
    seed: int | None = None
    prices: Mapping[str, Price] = {}
    """By model, as people name it, without roles."""
    limits: Limits = Limits()
    model_calls: int = MODEL_CALLS
    """Requests under way at once, over all instances."""
    options: MethodOptions = MethodOptions()
    against: str = TASK
    """What a GPU times candidates against: one of `harness.stages.timing.baselines.KINDS`, or the path of a kernel file."""
    spread: bool = False
    """Measure each instance's winner on every GPU."""
    first_chain: int = 1
    """Of a recording: the chain that instance 1 plays."""
    series: str = ""
    """What the session is a part of; see `SessionStarted`."""


class SessionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A checked run, every default filled in; `plan.json` in the session's live folder."""

    session: str
    method: str
    model: str
    tasks: tuple[str, ...]
    """Full names, `suite/task`."""
    instances: int
    iterations: int
    seed: int
    devices: tuple[str, ...]
    targets: tuple[str, ...]
    review: str
    budget_usd: float | None
    budget_tokens: int | None
    prices: dict[str, Price] = {}
    """Of its models, those that are known."""
    limits: Limits
    model_calls: int
    first_chain: int = 1
    series: str = ""
    options: MethodOptions = MethodOptions()
    against: str = ""
    against_source: str = ""
    spread: bool = False
    """These three: see `SessionStarted`."""


SESSION_PLAN: msgspec.json.Decoder[SessionPlan] = msgspec.json.Decoder(SessionPlan)


def resolve(
    plan: RunPlan, *, home: Home, environ: Mapping[str, str], now: datetime | None = None
) -> SessionPlan:
    """The plan with its defaults, checked as far as can be without asking anybody.

    A recording says how many instances and iterations there are, and of which tasks. `UsageProblem`, `SuiteError` and
    `HarnessError` say in one line what cannot be.
    """
    method = open_method(plan.method)
    models = _models(plan, method, home=home, environ=environ)
    recorded = recording_of(plan.model) if models else None
    recording = load_recording(find_recording(recorded, home.recordings)) if recorded else None
    tasks = _tasks(plan, home, recording)
    if not tasks:
        raise UsageProblem("there is no task to run; name one, as `wavedeck run softmax`")
    if plan.review not in REVIEWS:
        raise UsageProblem(f"--review is one of {', '.join(REVIEWS)}, not {plan.review!r}")
    _check_budgets(plan, models)
    instances, iterations = _counts(plan, method, tasks, recording)
    devices = select_devices(plan.devices)
    if plan.spread and devices == (CPU,):
        raise UsageProblem("--spread compares GPUs, and none was chosen; name them, as --devices 0,1")
    against, against_source = _against(plan.against, tasks)
    return SessionPlan(
        session=session_name(method.name, now or datetime.now(UTC)),
        method=method.name,
        model=plan.model if method.asks_model else NoModel.model,
        tasks=tuple(task.id for task in tasks),
        instances=instances,
        iterations=iterations,
        seed=secrets.randbelow(1 << 31) if plan.seed is None else _at_least("--seed", plan.seed, 0),
        devices=tuple(device.name for device in devices),
        targets=tuple(each.name for each in targets_for(devices, plan.targets)),
        review=plan.review,
        budget_usd=plan.budget_usd,
        budget_tokens=plan.budget_tokens,
        prices={model: plan.prices[model] for model in models if model in plan.prices},
        limits=plan.limits,
        model_calls=_at_least("model calls at once", plan.model_calls, 1),
        first_chain=plan.first_chain,
        series=plan.series,
        options=_options(plan.options, method, tasks),
        against=against,
        against_source=against_source,
        spread=plan.spread,
    )


def session_name(method: str, now: datetime) -> str:
    """A fresh name, `YYYYMMDD-HHMMSS-<method>-<4 hex>` in UTC."""
    return f"{now.astimezone(UTC):%Y%m%d-%H%M%S}-{method}-{secrets.token_hex(2)}"


def _tasks(plan: RunPlan, home: Home, recording: Recording | None) -> tuple[Task, ...]:
    names = list(dict.fromkeys(plan.tasks))
    if names:
        tasks = [load_task(name, registry=home.suites) for name in names]
        if plan.suite is not None:
            strange = [task.short_id for task in tasks if task.suite != plan.suite]
            if strange:
                raise UsageProblem(
                    f"{strange[0]} is not in suite {plan.suite}; give tasks or --suite, not both"
                )
        return tuple({task.id: task for task in tasks}.values())
    if plan.suite is not None or recording is None:
        return load_suite(plan.suite or SUITE, registry=home.suites)
    return tuple(load_task(name, registry=home.suites) for name in recording.tasks())


def _models(plan: RunPlan, method: Method, *, home: Home, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the models that are asked; a model that cannot be, or a role that has none, is a `UsageProblem`."""
    if not method.asks_model:
        if plan.model:
            raise UsageProblem(f"the method {method.name} asks no model; leave --model out")
        return ()
    specs = check_models(plan.model, environ=environ, home_recordings=home.recordings, roles=method.roles)
    return tuple(dict.fromkeys(map(str, specs.values())))


def _options(options: MethodOptions, method: Method, tasks: Sequence[Task]) -> MethodOptions:
    """The options with paths that hold wherever the engine runs; a `UsageProblem` names one that the method does not take."""
    for name, value in msgspec.structs.asdict(options).items():
        if value != getattr(MethodOptions(), name) and name not in method.takes:
            takers = [known for known in METHODS if name in open_method(known).takes]
            raise UsageProblem(f"--{name} is an option of {', '.join(takers)}, not of {method.name}")
    for module in options.without:
        if module not in MODULES:
            raise UsageProblem(f"--without knows {', '.join(MODULES)}, not {module!r}")
        if module not in method.modules:
            having = ", ".join(sorted(method.modules))
            raise UsageProblem(f"{method.name} has no module {module!r} to do without; it has {having}")
    _at_least("--workers", options.workers, 1)
    _at_least("--descendants", options.descendants, 1)
    check_profile(options.profile, method.name, tasks)
    options = msgspec.structs.replace(options, without=tuple(sorted(set(options.without))))
    if options.corpus:
        corpus = Path(options.corpus).absolute()
        check_folder(corpus)
        options = msgspec.structs.replace(options, corpus=str(corpus))
    if not options.start:
        return options
    if len(tasks) > 1:
        raise UsageProblem(f"--start is a kernel of one task, and {len(tasks)} are to be run; name its task")
    start = Path(options.start).absolute()
    read_start(start)
    return msgspec.structs.replace(options, start=str(start))


def _against(asked: str, tasks: Sequence[Task]) -> tuple[str, str]:
    """Name and source of what is timed against, as `SessionStarted` has them; it is there for every task."""
    if asked in ("", TASK):
        return "", ""
    if asked in KINDS:
        for task in tasks:
            timing_baseline(task, asked)
        return asked, ""
    if not Path(asked).exists():
        raise UsageProblem(f"--against {asked}: neither one of {', '.join(KINDS)} nor a kernel file")
    if len(tasks) > 1:
        raise UsageProblem(
            f"--against {asked} is a kernel of one task, and {len(tasks)} are to be run; name its task"
        )
    found = kernel_baseline(tasks[0], asked, read_kernel(Path(asked), "--against"))
    return found.name, found.source


def read_start(file: Path) -> str:
    """The kernel in a file; `UsageProblem` where there is none."""
    return read_kernel(file, "--start")


def read_kernel(file: Path, option: str) -> str:
    """The kernel that an option names; `UsageProblem` where there is none."""
    try:
        source = file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageProblem(f"{option} {file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageProblem(f"{option} {file} is no text in UTF-8") from error
    if not source.strip():
        raise UsageProblem(f"{option} {file} is empty")
    return source


def _counts(
    plan: RunPlan, method: Method, tasks: tuple[Task, ...], recording: Recording | None
) -> tuple[int, int]:
    """Instances and iterations. What a recording holds of each task bounds the instances of all."""
    instances = None if plan.instances is None else _at_least("--instances", plan.instances, 1)
    iterations = None if plan.iterations is None else _at_least("--iterations", plan.iterations, 1)
    if method.iterations is not None:
        if iterations not in (None, method.iterations):
            raise UsageProblem(
                f"--iterations {iterations}: {method.name} makes {method.iterations} in each instance; "
                "ask for more --instances instead"
            )
        iterations = method.iterations
    if not method.asks_model:
        if instances is not None and instances > 1:
            raise UsageProblem(
                f"--instances {instances}: {method.name} asks no model, so each would do the same; leave it out"
            )
        return 1, iterations or ITERATIONS
    if recording is None:
        return instances or INSTANCES, iterations or ITERATIONS
    for task in tasks:
        chains = recording.chain_count(task.id)
        if not chains:
            held = ", ".join(map(short_task, recording.tasks()))
            raise UsageProblem(f"{plan.model} holds nothing for {task.short_id}; it holds {held}")
        left = chains - plan.first_chain + 1
        if (instances or 1) > left:
            begun = f" from chain {plan.first_chain} on" if plan.first_chain > 1 else ""
            raise UsageProblem(
                f"--instances {instances or 1} is more than the {max(0, left)} that {plan.model} holds for "
                f"{task.short_id}{begun}; ask for fewer, or for another --model"
            )
    fewest = min(recording.chain_count(task.id) for task in tasks) - plan.first_chain + 1
    return instances or fewest, iterations or recording.longest_chain()


def _check_budgets(plan: RunPlan, models: Sequence[str]) -> None:
    if plan.budget_tokens is not None:
        _at_least("--budget-tokens", plan.budget_tokens, 1)
    if plan.budget_usd is None:
        return
    if not 0 < plan.budget_usd < math.inf:
        raise UsageProblem(f"--budget-usd is more than 0 and finite, not {plan.budget_usd:g}")
    for model in models:
        if model not in plan.prices:
            raise UsageProblem(
                f"--budget-usd needs a price for {model}: configure "
                f'[prices."{model}"] with input, cached_input, cache_write and output in USD a million tokens'
            )


def _at_least(what: str, number: int, least: int) -> int:
    if number < least:
        raise UsageProblem(f"{what} is at least {least}, not {number}")
    if number > MOST:
        raise UsageProblem(f"{what} is less than 2^63, not {number}")
    return number
