"""Checked plans: `resolve` turns a person's request into a `SessionPlan` with every default."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from engine.agent_programs.presets import AgentProgram, check_program
from engine.agent_programs.stated import TOKENS, USD, missing_budget
from engine.corpus.further_kernels import check_corpus
from engine.errors import UsageProblem
from engine.methods import METHODS, MODULES, Method, ReadyCandidate, open_method
from engine.models import Limits, NoModel, Pace, check_models, find_recording, recording_of
from engine.models.spec import KNOWN
from engine.plan.prices import Price, with_shipped
from engine.plan.request import RunPlan
from engine.plan.settings import INSTANCES, ITERATIONS, SETTINGS, SUITE, WITHOUT_GAIN, accepted_words
from engine.prompting.profiles import check_profile
from harness.cluster.choice import is_cluster, select_in_cluster
from harness.node.selection import select_devices, targets_for
from harness.processes.starting.judge_python import find_python
from harness.stages.timing.baselines import KINDS, TASK, other_baseline, timing_baseline
from harness.wire.device import Device
from sessions.events import Role
from sessions.home import Home
from sessions.names import short_task, title_problem
from sessions.recording import Recording, load_recording
from sessions.settings import AGENT, ALL_ROLES, MethodOptions, RunSettings, Sampling, StopRules
from suites import Task, load_suite, load_task


class SessionPlan(RunSettings, frozen=True, kw_only=True):
    """A checked run with every default filled in; `plan.json` in the session's folder."""

    session: str
    prices: dict[str, Price] = msgspec.field(default_factory=dict)
    """The known prices of its models."""
    limits: Limits
    providers: dict[str, Pace] = msgspec.field(default_factory=dict)
    to_record: tuple[str, ...] = ()
    """Tasks of benchmarks: the engine records their tests first."""
    left_out: Mapping[str, str] = {}
    """Why other named tasks cannot be judged, by full name."""
    candidates: dict[str, tuple[ReadyCandidate, ...]] = msgspec.field(default_factory=dict)
    """Candidates that exist already, by instance; empty if the method makes them."""


SESSION_PLAN: msgspec.json.Decoder[SessionPlan] = msgspec.json.Decoder(SessionPlan)
KEPT = {*RunPlan.__struct_fields__} & {*SessionPlan.__struct_fields__}
"""Settings that a plan has as the person gave them, unless `resolve` fills them in."""


def resolve(
    plan: RunPlan, *, home: Home, environ: Mapping[str, str] | None, now: datetime | None = None
) -> SessionPlan:
    """Returns the checked plan with every default filled in. Sends nothing to a model.

    Picks devices and targets from this machine, a random seed if the plan has none, and a new session name. A recording
    sets the default of instances and iterations, and the tasks. Without `environ`, it needs no keys.

    Raises, with one line that names the cause:

    - `UsageProblem`: a wrong value, method, model or its key, options, budgets, no task, or a kernel file that cannot be read
    - `SuiteError`: a task or suite that is unknown or broken
    - `HarnessError`: a device, target, lease folder or interpreter that cannot be used, or an unfit timing baseline
    - `BadRecording`: a damaged recording
    """
    _check_values(plan)
    method = open_method(plan.method)
    if plan.method not in (*METHODS, AGENT):
        raise UsageProblem(
            f"the method {plan.method} needs candidates: wavedeck recheck --attempts all, or suites judge"
        )
    models = _models(plan, method, home=home, environ=environ)
    recorded = recording_of(plan.model) if models else None
    recording = load_recording(find_recording(recorded, home.recordings)) if recorded else None
    tasks = _tasks(plan, home, recording)
    if not (tasks or plan.to_record):
        raise UsageProblem("there is no task to run; name one, for example `wavedeck run softmax`")
    if plan.review != "auto" and plan.method == AGENT:
        raise UsageProblem(
            f"--review {plan.review} does not go with the method agent, which waits for no person"
        )
    program = check_program(plan.options, plan.model, environ or {}) if method.name == AGENT else None
    prices = with_shipped(plan.prices)
    _check_budgets(plan, models, prices, program)
    instances, iterations = _counts(plan, method, tasks, recording)
    devices, cluster = _devices(plan.devices)
    against, against_source = _against(plan.against, tasks)
    _check_providers(plan.providers)
    _check_sampling(plan.sampling)
    filled_in: dict[str, Any] = {
        "session": session_name(method.name, now or datetime.now(UTC)),
        "model": _model_words(plan, method, program),
        "tasks": (*(task.id for task in tasks), *plan.to_record),
        "instances": instances,
        "iterations": iterations,
        "seed": secrets.randbelow(1 << 31) if plan.seed is None else plan.seed,
        "devices": tuple(device.name for device in devices),
        "cluster": cluster,
        "targets": tuple(target.name for target in targets_for(devices, plan.targets)),
        "prices": {model: prices[model] for model in models if model in prices},
        "title": _title(plan.title),
        "options": _options(plan.options, method, tasks),
        "stop": _stop_rules(plan, recorded=recording is not None),
        "against": against,
        "against_source": against_source,
        "python": find_python(plan.python, home.judge_packages).path if plan.python else "",
    }
    return SessionPlan(**{name: getattr(plan, name) for name in KEPT} | filled_in)


def _check_values(plan: RunPlan) -> None:
    """Raise `UsageProblem` for a value that no source of settings could have given."""
    for key, field in SETTINGS.items():
        value = getattr(plan, field.name)
        if value == field.default:
            continue
        try:
            msgspec.convert(value, field.type)
        except msgspec.ValidationError as error:
            raise UsageProblem(f"--{key} must be {accepted_words(field)}, not {value!r}") from error


def _model_words(plan: RunPlan, method: Method, program: AgentProgram | None) -> str:
    """Returns the model of the session: of an agent that the engine starts, its name and the model if a person chose it."""
    if program is not None:
        return " ".join(filter(None, (program.name, plan.model)))
    return plan.model if method.asks_model or method.name == AGENT else NoModel.model


def _devices(options: Sequence[str]) -> tuple[tuple[Device, ...], str]:
    """Returns the devices of a run, and the address of their cluster if they are not of this machine."""
    if not is_cluster(options):
        return select_devices(options), ""
    chosen = select_in_cluster(options)
    return chosen.devices, chosen.address


def session_name(method: str, now: datetime) -> str:
    """Returns a new session name, `YYYYMMDD-HHMMSS-<method>-<4 hex>` in UTC."""
    return f"{now.astimezone(UTC):%Y%m%d-%H%M%S}-{method}-{secrets.token_hex(2)}"


def _title(text: str) -> str:
    title = text.strip()
    problem = title_problem(title)
    if problem:
        raise UsageProblem(f"--title: {problem}")
    return title


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
    if plan.to_record:
        return ()
    if plan.suite is not None or recording is None:
        return load_suite(plan.suite or SUITE, registry=home.suites)
    return tuple(load_task(name, registry=home.suites) for name in recording.tasks())


def check_model(plan: RunPlan, *, home: Home, environ: Mapping[str, str]) -> None:
    """Raise the error of a run without a usable model. It needs no task, so that it comes before a long preparation of tasks."""
    _models(plan, open_method(plan.method), home=home, environ=environ)


def can_record(plan: RunPlan) -> bool:
    """True if the engine may record tests of benchmarks while it works: nothing else is checked with each task before the run."""
    is_usual = plan.against in ("", TASK) and plan.prompt_style == RunPlan().prompt_style
    is_recorded = plan.model.startswith("recorded:")
    return is_usual and not (plan.start or plan.python or is_recorded or is_cluster(plan.devices))


def _models(
    plan: RunPlan, method: Method, *, home: Home, environ: Mapping[str, str] | None
) -> tuple[str, ...]:
    """Returns the names of the models; `UsageProblem` if a model is impossible or a role has none."""
    if not method.asks_model:
        if plan.model and method.name != AGENT:
            raise UsageProblem(f"the method {method.name} asks no model; leave --model out")
        return ()
    specs = check_models(plan.model, environ=environ, home_recordings=home.recordings, roles=method.roles)
    return tuple(dict.fromkeys(map(str, specs.values())))


def _options(options: MethodOptions, method: Method, tasks: Sequence[Task]) -> MethodOptions:
    """Returns the options with absolute paths; `UsageProblem` if the method does not take an option."""
    for name, value in msgspec.structs.asdict(options).items():
        if value != getattr(MethodOptions(), name) and name not in method.takes:
            takers = [taker for taker in (*METHODS, AGENT) if name in open_method(taker).takes]
            raise UsageProblem(
                f"--{name.replace('_', '-')} is an option of {', '.join(takers)}, not of {method.name}"
            )
    for module in options.without:
        if module not in MODULES:
            raise UsageProblem(f"--without knows {', '.join(MODULES)}, not {module!r}")
        if module not in method.modules:
            modules = ", ".join(sorted(method.modules))
            raise UsageProblem(f"{method.name} has no module {module!r} to switch off; it has {modules}")
    check_profile(options.prompt_style, method.name, tasks)
    if options.show_reference and options.prompt_style != MethodOptions().prompt_style:
        raise UsageProblem(
            f"--show-reference does not go with --prompt-style {options.prompt_style}, which shows no kernel"
        )
    options = msgspec.structs.replace(options, without=tuple(sorted(set(options.without))))
    if options.corpus:
        corpus = Path(options.corpus).absolute()
        check_corpus(corpus)
        options = msgspec.structs.replace(options, corpus=str(corpus))
    if not options.start:
        return options
    if options.prompt_style != MethodOptions().prompt_style:
        raise UsageProblem(
            f"--start does not go with --prompt-style {options.prompt_style}, which has no prompt to improve a kernel"
        )
    if len(tasks) > 1:
        raise UsageProblem(
            f"--start is a kernel of one task, but the run has {len(tasks)} tasks; name its task"
        )
    start = Path(options.start).absolute()
    read_start(start)
    return msgspec.structs.replace(options, start=str(start))


def _against(name: str, tasks: Sequence[Task]) -> tuple[str, str]:
    """Returns name and source of the timing baseline, as in `RunSettings`; every task must have it."""
    if name in ("", TASK):
        return "", ""
    if name in KINDS:
        for task in tasks:
            timing_baseline(task, name)
        return name, ""
    if len(tasks) > 1:
        raise UsageProblem(
            f"--against {name} is a kernel of one task, but the run has {len(tasks)} tasks; name its task"
        )
    baseline = other_baseline(tasks[0], name, lambda file: read_kernel(Path(file), "--against"))
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
    instances, iterations = plan.instances, plan.iterations
    if method.iterations is not None:
        if iterations not in (None, method.iterations):
            raise UsageProblem(
                f"--iterations {iterations}: {method.name} makes {method.iterations} in each instance; "
                "use more --instances instead"
            )
        iterations = method.iterations
    if not method.asks_model:
        if plan.agent or plan.agent_command:
            return instances or 1, iterations or ITERATIONS
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


def _check_budgets(
    plan: RunPlan, models: Sequence[str], prices: Mapping[str, Price], program: AgentProgram | None
) -> None:
    if plan.method == AGENT:
        name, output = (program.name, program.output) if program is not None else ("", "")
        problem = missing_budget(name, output, {USD: plan.budget_usd, TOKENS: plan.budget_tokens})
        if problem:
            raise UsageProblem(problem)
    unpriced = [model for model in models if model not in prices]
    if plan.budget_usd is not None and unpriced:
        raise UsageProblem(
            f"--budget-usd needs a price for {unpriced[0]}: configure "
            f'[prices."{unpriced[0]}"] with input, cached_input, cache_write and output in USD per million tokens'
        )


def _stop_rules(plan: RunPlan, *, recorded: bool) -> StopRules:
    if not plan.stop_rules or plan.method == AGENT:
        return StopRules()
    usual = 0 if recorded else WITHOUT_GAIN
    return StopRules(
        speedup=plan.stop_at_speedup,
        without_gain=usual if plan.stop_without_gain is None else plan.stop_without_gain,
        at_roof=not (recorded or plan.past_roof),
    )


def _check_sampling(sampling: Mapping[str, Sampling]) -> None:
    for role in sampling:
        if role not in (ALL_ROLES, *Role):
            raise UsageProblem(
                f"[sampling.{role}] names no role: write one of {', '.join((ALL_ROLES, *Role))}"
            )


def _check_providers(paces: Mapping[str, Pace]) -> None:
    for provider in paces:
        if provider.partition("@")[0] not in KNOWN:
            raise UsageProblem(
                f"[providers.{provider}] names no provider: write one of {', '.join(KNOWN)}, "
                'or for another server ["openai@URL"]'
            )
