"""The plan of a run from settings: what `wavedeck run` and the form of a new run share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from engine.methods import open_method
from engine.models import parse_models
from engine.models.access import PROVIDERS
from engine.plan.prices import SHIPPED
from engine.plan.request import RunPlan
from engine.plan.settings import RECORDED
from suites import load_task
from suites.registry import OWN
from tui.config import SettingSource


def from_own_kernel(settings: RunPlan, tasks: Sequence[str], registry: Path) -> RunPlan:
    """Return the settings of a run; on one task of the suite `OWN`, its kernel is the first attempt, unless another is named."""
    takes = open_method(settings.method).takes
    is_usual = not settings.start and settings.prompt_style == RunPlan().prompt_style
    if len(tasks) != 1 or tasks[0].partition("/")[0] != OWN or "start" not in takes or not is_usual:
        return settings
    baseline = load_task(tasks[0], registry=registry).folder / "baseline.py"
    return msgspec.structs.replace(settings, start=str(baseline))


def shipped_price_words(requested: RunPlan) -> str:
    """Return which shipped prices a budget in USD uses; empty if it uses none."""
    if requested.budget_usd is None or not requested.model:
        return ""
    specs = parse_models(requested.model, open_method(requested.method).roles).values()
    models = dict.fromkeys(map(str, specs))
    used = {model: SHIPPED[model] for model in models if model in SHIPPED and model not in requested.prices}
    shown = ", ".join(
        f"{model} ${price.input:g} in, ${price.output:g} out for a million tokens ({price.date})"
        for model, price in used.items()
    )
    return f'shipped prices: {shown}; [prices."MODEL"] in your config.toml replaces them' if used else ""


def model_of(
    settings: RunPlan, origins: Mapping[str, SettingSource], environ: Mapping[str, str]
) -> tuple[str, str]:
    """
    Return the model of the settings, empty for a method without a model, and a remark on where it comes from.

    Without a setting this is the shipped recording, whatever keys are set: no run costs money by default.
    """
    if not open_method(settings.method).asks_model:
        return settings.model if "model" in origins and origins["model"].is_flag else "", ""
    if (origin := origins.get("model")) is not None:
        return settings.model, "" if origin.is_flag else f"model {settings.model}, from {origin.name}"
    keys = [
        provider.key_variable
        for provider in PROVIDERS.values()
        if environ.get(provider.key_variable, "").strip()
    ]
    names = " or ".join(
        f"--model {name}:NAME" for name, provider in PROVIDERS.items() if provider.key_variable in keys
    )
    hint = f"; {' and '.join(keys)} set: {names} calls a real model" if keys else ""
    return (
        RECORDED,
        f"no --model given: playing {RECORDED}, recorded replies of a real model, at no cost{hint}",
    )
