"""Plans: `RunPlan` is a person's request, and `resolve` turns it into a checked `SessionPlan` with every default."""

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
"""The largest integer of a plan: events cannot hold a larger one."""

Dollars = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prices of a model in USD per million tokens."""

    input: Dollars
    output: Dollars
    cached_input: Dollars | None = None
    """For tokens read from the provider's cache; if unknown, the full price counts."""
    cache_write: Dollars | None = None
    """For tokens written to the cache; if unknown, `CACHE_WRITE` times the full price counts."""


CACHE_WRITE = 1.25
"""Price of tokens written to the cache over the full price, at Anthropic (five minutes) and OpenAI (since GPT-5.6)."""


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A run as a person requests it; `None` and empty values select the default."""

    model: str = ""
    """One model, or one for each role (`engine.models.spec`); empty for a method that asks none."""
    tasks: tuple[str, ...] = ()
    suite: str | None = None
    method: str = "geak"
    instances: int | None = None
    iterations: int | None = None
    devices: tuple[str, ...] = ("idle",)
    """`idle`, `all`, or names of devices."""
    targets: tuple[str, ...] = ()
    """Empty: the targets of the devices."""
    review: str = "auto"
    budget_usd: float | None = None
    budget_tokens: int | None = None
    seed: int | None = None
    prices: Mapping[str, Price] = {}
    """Prices by model, as people name it, without roles."""
    limits: Limits = Limits()
    model_calls: int = MODEL_CALLS
    """Highest number of requests at the same time, over all instances."""
    options: MethodOptions = MethodOptions()
    against: str = TASK
    """Timing baseline on a GPU: one of `harness.stages.timing.baselines.KINDS`, or the path of a kernel file."""
    spread: bool = False
    """Measure each instance's winner on every GPU."""
    first_chain: int = 1
    """The chain of a recording that instance 1 plays."""
    series: str = ""
    """See `SessionStarted`."""


class SessionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A checked run with every default filled in; `plan.json` in the session's live folder."""

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
    """The known prices of its models."""
    limits: Limits
    model_calls: int
    first_chain: int = 1
    series: str = ""
    options: MethodOptions = MethodOptions()
    against: str = ""
    against_source: str = ""
    spread: bool = False
    """For `against`, `against_source` and `spread` see `SessionStarted`."""


SESSION_PLAN: msgspec.json.Decoder[SessionPlan] = msgspec.json.Decoder(SessionPlan)


def resolve(
    plan: RunPlan, *, home: Home, environ: Mapping[str, str], now: datetime | None = None
) -> SessionPlan:
    """Returns the checked plan with every default filled in. Sends nothing to a model.

    Picks devices and targets from this machine, a random seed if the plan has none, and a new session name. A recording
    sets the default of instances and iterations, and the tasks.

    Raises, with one line that names the cause:

    - `UsageProblem`: method, model or its key, options, counts, budgets, no task, or a kernel file that cannot be read
    - `SuiteError`: a task or suite that is unknown or broken
    - `HarnessError`: a device, target or lease folder that cannot be used, or a timing baseline that does not fit a task
    - `BadRecording`: a damaged recording
    """
    method = open_method(plan.method)
    models = _models(plan, method, home=home, environ=environ)
    recorded = recording_of(plan.model) if models else None
    recording = load_recording(find_recording(recorded, home.recordings)) if recorded else None
    tasks = _tasks(plan, home, recording)
    if not tasks:
        raise UsageProblem("there is no task to run; name one, for example `wavedeck run softmax`")
    if plan.review not in REVIEWS:
        raise UsageProblem(f"--review must be one of {', '.join(REVIEWS)}, not {plan.review!r}")
    _check_budgets(plan, models)
    instances, iterations = _counts(plan, method, tasks, recording)
    devices = select_devices(plan.devices)
    if plan.spread and devices == (CPU,):
        raise UsageProblem(
            "--spread compares GPUs, but no GPU is selected; name them, for example --devices 0,1"
        )
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
        targets=tuple(target.name for target in targets_for(devices, plan.targets)),
        review=plan.review,
        budget_usd=plan.budget_usd,
        budget_tokens=plan.budget_tokens,
        prices={model: plan.prices[model] for model in models if model in plan.prices},
        limits=plan.limits,
        model_calls=_at_least("model_calls", plan.model_calls, 1),
        first_chain=plan.first_chain,
        series=plan.series,
        options=_options(plan.options, method, tasks),
        against=against,
        against_source=against_source,
        spread=plan.spread,
    )


def session_name(method: str, now: datetime) -> str:
    """Returns a new session name, `YYYYMMDD-HHMMSS-<method>-<4 hex>` in UTC."""
    return f"{now.astimezone(UTC):%Y%m%d-%H%M%S}-{method}-{secrets.token_hex(2)}"


def _tasks(plan: RunPlan, home: Home, recording: Recording | None) -> tuple[Task, ...]:
    names = list(dict.fromkeys(plan.tasks))
    if names:
        tasks = [load_task(name, registry=home.suites) for name in names]
        if plan.suite is not None:
            outside = [task.short_id for task in tasks if task.suite != plan.suite]
            if outside:
                raise UsageProblem(
                    f"{outside[0]} is not in suite {plan.suite}; give tasks or --suite, not both"
                )
        return tuple({task.id: task for task in tasks}.values())
    if plan.suite is not None or recording is None:
        return load_suite(plan.suite or SUITE, registry=home.suites)
    return tuple(load_task(name, registry=home.suites) for name in recording.tasks())


def _models(plan: RunPlan, method: Method, *, home: Home, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the names of the models; `UsageProblem` if a model is impossible or a role has none."""
    if not method.asks_model:
        if plan.model:
            raise UsageProblem(f"the method {method.name} asks no model; leave --model out")
        return ()
    specs = check_models(plan.model, environ=environ, home_recordings=home.recordings, roles=method.roles)
    return tuple(dict.fromkeys(map(str, specs.values())))


def _options(options: MethodOptions, method: Method, tasks: Sequence[Task]) -> MethodOptions:
    """Returns the options with absolute paths; `UsageProblem` if the method does not take an option."""
    for name, value in msgspec.structs.asdict(options).items():
        if value != getattr(MethodOptions(), name) and name not in method.takes:
            takers = [taker for taker in METHODS if name in open_method(taker).takes]
            raise UsageProblem(f"--{name} is an option of {', '.join(takers)}, not of {method.name}")
    for module in options.without:
        if module not in MODULES:
            raise UsageProblem(f"--without knows {', '.join(MODULES)}, not {module!r}")
        if module not in method.modules:
            modules = ", ".join(sorted(method.modules))
            raise UsageProblem(f"{method.name} has no module {module!r} to switch off; it has {modules}")
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
    if options.profile != MethodOptions().profile:
        raise UsageProblem(
            f"--start does not go with --profile {options.profile}, which has no prompt to improve a kernel"
        )
    if len(tasks) > 1:
        raise UsageProblem(
            f"--start is a kernel of one task, but the run has {len(tasks)} tasks; name its task"
        )
    start = Path(options.start).absolute()
    read_start(start)
    return msgspec.structs.replace(options, start=str(start))


def _against(name: str, tasks: Sequence[Task]) -> tuple[str, str]:
    """Returns name and source of the timing baseline, as in `SessionStarted`; every task must have it."""
    if name in ("", TASK):
        return "", ""
    if name in KINDS:
        for task in tasks:
            timing_baseline(task, name)
        return name, ""
    if not Path(name).exists():
        raise UsageProblem(f"--against {name}: neither one of {', '.join(KINDS)} nor a kernel file")
    if len(tasks) > 1:
        raise UsageProblem(
            f"--against {name} is a kernel of one task, but the run has {len(tasks)} tasks; name its task"
        )
    baseline = kernel_baseline(tasks[0], name, read_kernel(Path(name), "--against"))
    return baseline.name, baseline.source


def read_start(file: Path) -> str:
    """Returns the kernel in the file of `--start`; `UsageProblem` if there is none."""
    return read_kernel(file, "--start")


def read_kernel(file: Path, option: str) -> str:
    """Returns the kernel in the file of an option; `UsageProblem` if there is none."""
    try:
        source = file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageProblem(f"{option} {file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageProblem(f"{option} {file} is not UTF-8 text") from error
    if not source.strip():
        raise UsageProblem(f"{option} {file} is empty")
    return source


def _counts(
    plan: RunPlan, method: Method, tasks: tuple[Task, ...], recording: Recording | None
) -> tuple[int, int]:
    """Returns instances and iterations; with a recording, its chains of each task limit the instances."""
    instances = None if plan.instances is None else _at_least("--instances", plan.instances, 1)
    iterations = None if plan.iterations is None else _at_least("--iterations", plan.iterations, 1)
    if method.iterations is not None:
        if iterations not in (None, method.iterations):
            raise UsageProblem(
                f"--iterations {iterations}: {method.name} makes {method.iterations} in each instance; "
                "use more --instances instead"
            )
        iterations = method.iterations
    if not method.asks_model:
        if instances is not None and instances > 1:
            raise UsageProblem(
                f"--instances {instances}: {method.name} asks no model, so all instances would be the same; leave it out"
            )
        return 1, iterations or ITERATIONS
    if recording is None:
        return instances or INSTANCES, iterations or ITERATIONS
    for task in tasks:
        chains = recording.chain_count(task.id)
        if not chains:
            names = ", ".join(map(short_task, recording.tasks()))
            raise UsageProblem(f"{plan.model} has no reply for {task.short_id}; its tasks are {names}")
        available = chains - plan.first_chain + 1
        if (instances or 1) > available:
            begun = f" from chain {plan.first_chain} on" if plan.first_chain > 1 else ""
            raise UsageProblem(
                f"--instances {instances or 1} is more than the {max(0, available)} that {plan.model} has for "
                f"{task.short_id}{begun}; use fewer, or another --model"
            )
    fewest = min(recording.chain_count(task.id) for task in tasks) - plan.first_chain + 1
    return instances or fewest, iterations or recording.longest_chain()


def _check_budgets(plan: RunPlan, models: Sequence[str]) -> None:
    if plan.budget_tokens is not None:
        _at_least("--budget-tokens", plan.budget_tokens, 1)
    if plan.budget_usd is None:
        return
    if not 0 < plan.budget_usd < math.inf:
        raise UsageProblem(f"--budget-usd must be more than 0 and finite, not {plan.budget_usd:g}")
    for model in models:
        if model not in plan.prices:
            raise UsageProblem(
                f"--budget-usd needs a price for {model}: configure "
                f'[prices."{model}"] with input, cached_input, cache_write and output in USD per million tokens'
            )


def _at_least(option: str, number: int, least: int) -> int:
    if number < least:
        raise UsageProblem(f"{option} must be at least {least}, not {number}")
    if number > MOST:
        raise UsageProblem(f"{option} must be less than 2^63, not {number}")
    return number
