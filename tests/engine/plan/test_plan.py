"""Session plans: defaults, and one-line errors for settings that cannot run."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from engine.errors import UsageProblem
from engine.models import Pace
from engine.plan.job import Job, plan_of, read_plan, references_shown, session_started
from engine.plan.plan import SessionPlan, resolve
from engine.plan.request import RunPlan
from engine.process.launch import write_plan
from harness import Device, HarnessError
from sessions import Home
from sessions.names import SESSION
from sessions.settings import MethodOptions, Sampling
from suites import SuiteError, load_public_suite, load_suite, load_task
from suites.public.task import SuiteKind
from suites.registry import add_suite
from suites.task import RecordedScript
from tests.suites.public import clones

KEY = {"ANTHROPIC_API_KEY": "key"}


def resolved(home: Path, **settings: object) -> SessionPlan:
    fields = {"model": "anthropic:test", **settings}
    return resolve(RunPlan(**fields), home=Home(home), environ=KEY)  # type: ignore[arg-type]


def write_recording(home: Path, **chains: list[int]) -> None:
    """Write `recorded:small`; the lists give the number of attempts by task and chain."""
    folder = home / "recordings" / "small"
    lines = ['schema = 1\nname = "small"\nmodel = "anthropic:test"\ndate = "2026-01-01"\nsession = "s"']
    for task, attempts in chains.items():
        for chain, count in enumerate(attempts, start=1):
            lines.append(f'[[chains]]\ntask = "starter/{task}"\nchain = {chain}\nattempts = {count}')
            file = folder / "chains" / "starter" / task / f"{chain}.jsonl"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("")
    (folder / "recording.toml").write_text("\n".join(lines))


def test_plan_without_settings_has_defaults(tmp_path: Path) -> None:
    plan = resolved(tmp_path)
    assert plan.tasks == tuple(task.id for task in load_suite("starter"))
    assert (plan.instances, plan.iterations) == (4, 10)
    assert (plan.devices, plan.targets, plan.review) == (("cpu",), ("gfx942",), "auto")
    assert SESSION.fullmatch(plan.session)


def test_targets_default_to_the_targets_of_the_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = tuple(Device(name=str(number), kind="cuda", target="sm_90") for number in range(2))
    monkeypatch.setattr("engine.plan.plan.select_devices", lambda _: gpus)
    assert (resolved(tmp_path).devices, resolved(tmp_path).targets) == (("0", "1"), ("sm_90",))
    assert resolved(tmp_path, targets=("gfx942",)).targets == ("gfx942",)


def test_session_name_contains_its_start_in_utc(tmp_path: Path) -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    plan = resolve(RunPlan(model="anthropic:test"), home=Home(tmp_path), environ=KEY, now=now)
    assert re.fullmatch(r"20260102-030405-geak-[0-9a-f]{4}", plan.session)


def test_task_named_twice_runs_once(tmp_path: Path) -> None:
    assert resolved(tmp_path, tasks=("softmax", "starter/softmax")).tasks == ("starter/softmax",)


def test_recording_sets_tasks_instances_and_iterations(tmp_path: Path) -> None:
    write_recording(tmp_path, softmax=[3, 5], vector_add=[4, 4])
    plan = resolved(tmp_path, model="recorded:small")
    assert plan.tasks == ("starter/softmax", "starter/vector_add")
    assert (plan.instances, plan.iterations) == (2, 5)


def test_plan_may_use_less_than_the_recording_has(tmp_path: Path) -> None:
    write_recording(tmp_path, softmax=[3, 5])
    plan = resolved(tmp_path, model="recorded:small", instances=1, iterations=2)
    assert (plan.instances, plan.iterations) == (1, 2)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"instances": 0}, "--instances must be a whole number from 1 to 1,000,000, not 0"),
        ({"iterations": -3}, "--iterations must be a whole number from 1 to 1,000,000, not -3"),
        ({"seed": -1}, "--seed must be a whole number from 0"),
        ({"seed": 1 << 63}, r"--seed must be a whole number from 0 to 2\^63 - 1"),
        (
            {"budget_usd": float("inf")},
            "--budget-usd must be an amount of US dollars above 0, at most 1,000,000,000, not inf",
        ),
        ({"budget_tokens": 0}, "--budget-tokens must be a whole number from 1 to 2"),
        ({"review": "maybe"}, "--review must be auto, first or manual, not 'maybe'"),
        (
            {"budget_device_s": 0.0},
            "--budget-device-s must be a number of seconds above 0, at most 1,000,000,000",
        ),
        ({"providers": {"antropic": Pace()}}, r"\[providers.antropic\] names no provider"),
        (
            {"sampling": {"judge": Sampling(temperature=0.2)}},
            r"\[sampling.judge\] names no role: write one of all, generator, reflector, optimizer",
        ),
        ({"budget_usd": -1.0}, "--budget-usd must be an amount of US dollars above 0, at most 1,000,000,000"),
        (
            {"budget_usd": float("nan")},
            "--budget-usd must be an amount of US dollars above 0, at most 1,000,000,000",
        ),
        ({"tasks": ("softmax",), "suite": "other"}, "not in suite other"),
        ({"model": "recorded:small", "tasks": ("flip",)}, "has no reply for flip; its tasks are softmax"),
    ],
)
def test_impossible_setting_is_a_one_line_error(
    tmp_path: Path, settings: dict[str, object], words: str
) -> None:
    write_recording(tmp_path, softmax=[3, 5])
    with pytest.raises((UsageProblem, SuiteError, HarnessError), match=words) as caught:
        resolved(tmp_path, **settings)
    assert "\n" not in str(caught.value)


def test_plan_on_disk_and_first_event_keep_the_series_and_the_chains(tmp_path: Path) -> None:
    write_recording(tmp_path, vector_add=[2] * 7)
    run = RunPlan(model="recorded:small", instances=1, first_chain=7, series="tables-3f2a91/7")
    plan = resolve(run, home=Home(tmp_path), environ={})
    live = Home(tmp_path).files(plan.session)
    live.folder.mkdir(parents=True)
    write_plan(live, plan)
    assert read_plan(live) == plan
    resumed = plan_of(session_started(plan).describe())
    assert (resumed.first_chain, resumed.series) == (7, "tables-3f2a91/7")


@pytest.mark.parametrize(
    ("hides", "instruction", "option", "shown"),
    [
        (False, "Write it.\n```python\n@triton.jit\ndef f(): ...\n```", False, True),
        (False, "Improve the kernel that is shown below.", False, False),
        (True, "Write a softmax.", False, False),
        (True, "Write a softmax.", True, True),
    ],
    ids=["the instruction quotes it", "the benchmark gives it", "hidden", "shown by option"],
)
def test_session_names_the_tasks_whose_prompts_quote_a_hidden_reference(
    *, hides: bool, instruction: str, option: bool, shown: bool
) -> None:
    script = RecordedScript("wavedeck_call(call, x=None)", hides_baseline=hides)
    task = msgspec.structs.replace(load_task("softmax"), script=script, instruction=instruction)
    options = MethodOptions(show_reference=option)
    job = SimpleNamespace(plan=SimpleNamespace(options=options, candidates={}), tasks=[task], unrecorded=[])
    assert references_shown(cast("Job", job)) == (("starter/softmax",) if shown else ())


def test_candidates_that_exist_keep_what_is_known_of_their_prompts() -> None:
    plan = SimpleNamespace(candidates={"softmax#1": ()}, references_shown=("starter/softmax",))
    assert references_shown(cast("Job", SimpleNamespace(plan=plan))) == ("starter/softmax",)


def test_benchmark_without_its_instructions_quotes_its_references(tmp_path: Path) -> None:
    registry = tmp_path / "suites.toml"
    add_suite("tritonbench-revised", clones.geak_eval(tmp_path / "GEAK-eval"), registry)

    def shown() -> tuple[str, ...]:
        tasks = load_public_suite("tritonbench-revised", registry=registry).tasks
        job = SimpleNamespace(
            plan=SimpleNamespace(options=MethodOptions(), candidates={}), tasks=[], unrecorded=tasks
        )
        return references_shown(cast("Job", job))

    assert shown() == ("tritonbench-revised/scale",)
    add_suite(
        "tritonbench-g", clones.tritonbench(tmp_path / "TritonBench"), registry, kind=SuiteKind.TRITONBENCH_G
    )
    assert shown() == ()
