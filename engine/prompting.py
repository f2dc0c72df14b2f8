"""From facts to messages: pure functions over templates one can read (`engine/prompts/*.j2`, `engine/knowledge/*.md`).

Every prompt is a system message (rules and knowledge, the same for a task from first to last call, so that a provider
can cache it) and a user message. A fact that a template names and nobody gave is an error, never an empty string.
No oracle, no seed and no tolerance figure is given to these functions, so none can reach a prompt.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from engine.candidate import Unusable
from engine.facts import (
    ErrorFacts,
    FailedCandidate,
    JudgedCandidate,
    case_facts,
    error_facts,
    lost_ground,
    precision,
    shortened,
)
from engine.figures import achieved, byte_words
from engine.knowledge import FOLDER as KNOWLEDGE
from engine.knowledge import pages_for
from engine.markdown import fenced, number, percent, quoted, sizes, tidy
from engine.measurements import measurements
from engine.profiles import task_module
from harness import Target, TimeLimits, Verdict, hardware
from harness.hardware.product import Product
from harness.stages.static.inspection import SLOW_IN_INTERPRETER
from sessions.events import Message
from suites import Task

PROMPTS = Path(__file__).resolve().parent / "prompts"
ROUNDS_BEFORE_CHANGE = 2
"""Correct candidates in a row without gain after which another strategy is asked for, not another edit."""
QUOTED_CHARACTERS = 4000
"""Of an unusable reply, in the corrective request."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What stays the same for an instance."""

    task: Task
    targets: tuple[Target, ...]
    """What launches are compiled for; the first is the one that can fail a candidate on device `cpu`."""
    device: str = "cpu"
    """Where candidates are judged: `cpu`, or a GPU in words."""
    product: Product | None = None
    """What that is; `None` for `cpu`, and where it is not known: targets then stand with their reference products."""
    profile: str = "chat"
    """The format that the model expects (`engine.profiles`)."""
    short: bool = False
    """For a context that is too long: no example, and of the history only the best and the latest (`trimmed`)."""
    knowledge: bool = True
    """Whether the system message holds pages of knowledge."""


@dataclass(frozen=True, slots=True)
class Example:
    """A correct kernel for another task, shown as the 1-shot example."""

    task: str
    """Title of the task it solves."""
    source: str
    module: str = ""
    """That task as a PyTorch module; empty where it has none."""
    bound: str = ""
    """`ModelNew` over `source`, which then is the module's counterpart."""


class Place(NamedTuple):
    """Which of several candidates, that are written independently at one point, this one is."""

    number: int
    """From 1."""
    of: int


def first_prompt(
    setting: Setting, *, example: Example | None = None, unusable: str = "", place: Place | None = None
) -> tuple[Message, ...]:
    """For a generator that has nothing yet. `unusable`: why the iteration before brought no code; empty when it did.

    `place`: candidates written side by side each start from another idea; `None` where there is one.
    """
    return prompt(
        setting,
        "first.j2",
        example=None if setting.short else example,
        unusable=unusable,
        approach=place.number if place else None,
        approaches=place.of if place else None,
    )


def repair_prompt(
    setting: Setting,
    *,
    failed: FailedCandidate,
    failures: int,
    trap: int | None,
    before: JudgedCandidate | None = None,
    best: JudgedCandidate | None = None,
    example: Example | None = None,
    unusable: str = "",
) -> tuple[Message, ...]:
    """For a generator whose last candidate failed: code, error, reflection, and what must not be lost.

    `failures` in a row on this line, of `trap` at which it is dropped; `None` where it never is. `before` is what the failed one was derived from;
    when it came less far, that is said. `best` is the best correct kernel so far.
    """
    return prompt(
        setting,
        "repair.j2",
        failed=failed,
        error=error_of(failed),
        failures=failures,
        trap=trap,
        lost_ground=lost_ground(before, failed) if before else "",
        best=best,
        example=None if setting.short else example,
        unusable=unusable,
    )


def optimize_prompt(
    setting: Setting,
    *,
    history: Sequence[JudgedCandidate],
    last: JudgedCandidate | None = None,
    without_gain: int = 0,
    unusable: str = "",
) -> tuple[Message, ...]:
    """For the optimizer: correct candidates in ascending order (best last), their figures, and a wish for a faster one.

    `last` is the latest correct candidate: when it is not the best, that is said. From `without_gain` of
    `ROUNDS_BEFORE_CHANGE` on another strategy is asked for. `ValueError` for an empty history.
    """
    facts = optimizer_facts(setting, history, last, without_gain)
    return prompt(setting, "optimize.j2", **facts, unusable=unusable)


def descend_prompt(
    setting: Setting,
    *,
    history: Sequence[JudgedCandidate],
    parent: JudgedCandidate,
    lineage: Sequence[FailedCandidate],
    place: Place,
    without_gain: int = 0,
    unusable: str = "",
) -> tuple[Message, ...]:
    """For one descendant of `parent`, which is in `history` (ascending, best last), written beside its siblings.

    `lineage`: what this line of descent has tried, oldest first, correct or not, each with its reflection. From
    `ROUNDS_BEFORE_CHANGE` rounds `without_gain` on another strategy is asked for. `ValueError` for an empty history.
    """
    facts = optimizer_facts(setting, history, parent, without_gain)
    tried = [
        (each, None if each.evaluation.verdict is Verdict.CORRECT else error_of(each))
        for each in (lineage[-1:] if setting.short else lineage)
    ]
    return prompt(
        setting,
        "descend.j2",
        **facts,
        parent=parent,
        lineage=tried,
        descendant=place.number,
        descendants=place.of,
        unusable=unusable,
    )


def refine_prompt(
    setting: Setting,
    *,
    attempts: Sequence[FailedCandidate],
    example: Example | None = None,
    unusable: str = "",
) -> tuple[Message, ...]:
    """For a worker with attempts of its own, oldest first, none of which passed: the latest in full, the others told.

    `ValueError` where there is none.
    """
    if not attempts:
        raise ValueError("there is no attempt to refine")
    *earlier, failed = attempts
    return prompt(
        setting,
        "refine.j2",
        failed=failed,
        error=error_of(failed),
        earlier=[] if setting.short else [(each, error_of(each)) for each in earlier],
        lost_ground=lost_ground(earlier[-1], failed) if earlier else "",
        example=None if setting.short else example,
        unusable=unusable,
    )


def escape_prompt(
    setting: Setting,
    *,
    given_up: Sequence[FailedCandidate],
    history: Sequence[JudgedCandidate] = (),
    example: Example | None = None,
    unusable: str = "",
) -> tuple[Message, ...]:
    """After a debugging trap. With a history: optimize from it, and the last idea failed; without: start anew, differently.

    `given_up` holds the last candidate of each line that was dropped; it may be empty where no reply held code.
    """
    facts = optimizer_facts(setting, history, None, 0) if history else {}
    return prompt(
        setting,
        "escape.j2",
        given_up=[(line, error_of(line)) for line in given_up],
        example=None if setting.short else example,
        unusable=unusable,
        **({"history": []} | facts),
    )


def reflect_prompt(
    setting: Setting, *, failed: FailedCandidate, best: JudgedCandidate | None = None
) -> tuple[Message, ...]:
    """For the reflector: what caused the failure, and how to mend it. A person's rejection is a failure too."""
    return prompt(setting, "reflect.j2", failed=failed, error=error_of(failed), best=best)


def error_of(candidate: FailedCandidate) -> ErrorFacts | None:
    """The judge's error; `None` for one that a person turned down, of which the judge has none to tell."""
    return None if candidate.rejection is not None else error_facts(candidate)


def corrective_prompt(asked: Sequence[Message], reply: str, unusable: Unusable) -> tuple[Message, ...]:
    """The same conversation, one short request longer: the reply held no module to judge."""
    answered = shortened(reply.strip(), QUOTED_CHARACTERS) or "(no text)"
    request = templates().get_template("corrective.j2").render(message=unusable.message)
    return (*asked, Message("assistant", answered), Message("user", request.strip()))


def prompt(setting: Setting, template: str, **facts: object) -> tuple[Message, ...]:
    """System and user message, or one message where the profile knows no system. A missing fact is a `jinja2.UndefinedError`."""
    task = setting.task
    request = (
        templates()
        .select_template([f"profiles/{setting.profile}/{template}", template])
        .render(
            setting=setting,
            task=task,
            module=task_module(task),
            cases=case_facts(task, setting.targets[0], setting.product),
            reference=hardware(setting.targets[0], setting.product),
            precision=precision(task),
            achieved=achieved,
            **facts,
        )
    )
    system = system_text(setting)
    return (*([Message("system", system)] if system else []), Message("user", tidy(request)))


def system_text(setting: Setting) -> str:
    """Rules and knowledge: general first, then by target, by category, and what the judge checks. Of a profile: its own, if any."""
    name = "system.j2"
    if setting.profile != "chat":
        name = f"profiles/{setting.profile}/system.j2"
        if name not in templates().list_templates():
            return ""
    return tidy(
        templates()
        .get_template(name)
        .render(
            knowledge=knowledge_for(setting) if setting.knowledge else [],
            targets=setting.targets,
            device=setting.device,
        )
    )


def knowledge_for(setting: Setting) -> list[str]:
    """The pages for this task and these targets, filled in."""
    shared = {
        "device": setting.device,
        "targets": setting.targets,
        "slow": sorted(SLOW_IN_INTERPRETER),
        "case_cpu_s": TimeLimits().case_cpu_s,
    }
    written: list[str] = []
    for page in pages_for(setting.task.category):
        template = compiled(page.text)
        if page.targets:
            about = [target for target in setting.targets if target.name in page.targets]
            written += [
                template.render(shared, target=target, hardware=hardware(target, setting.product))
                for target in about
            ]
        else:
            written.append(template.render(shared))
    return [text.strip() for text in written]


def trimmed(history: Sequence[JudgedCandidate], last: JudgedCandidate | None) -> Sequence[JudgedCandidate]:
    """What is kept of a history in a prompt that has to be short: the best, and `last` where the history holds it."""
    best = history[-1]
    return [each for each in history if each is best or (last and each.attempt == last.attempt)]


def optimizer_facts(
    setting: Setting, history: Sequence[JudgedCandidate], last: JudgedCandidate | None, without_gain: int
) -> dict[str, object]:
    """What the optimizing prompts tell."""
    if not history:
        raise ValueError("there is no correct candidate to optimize")
    best = history[-1]
    kept = trimmed(history, last) if setting.short else history
    return {
        "history": [(candidate, measurements(candidate.evaluation)) for candidate in kept],
        "left_out": len(history) - len(kept),
        "best": best,
        "timed": best.evaluation.speedup is not None,
        "lost_ground": lost_ground(best, last) if last and last.attempt != best.attempt else "",
        "change_strategy": without_gain >= ROUNDS_BEFORE_CHANGE,
        "without_gain": without_gain,
    }


@cache
def compiled(text: str) -> Template:
    """A page of knowledge as a template: compiling takes most of a prompt's time, and there are few pages."""
    return templates().from_string(text)


@cache
def templates() -> Environment:
    """The templates; what they name has to be there."""
    environment = Environment(
        loader=FileSystemLoader(PROMPTS),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Prompts are Markdown for a model; nothing here becomes HTML.
        autoescape=False,
    )
    environment.filters |= {
        "fenced": fenced,
        "sizes": sizes,
        "number": number,
        "quoted": quoted,
        "bytes": byte_words,
        "percent": percent,
    }
    return environment


def template_hashes() -> dict[str, str]:
    """sha256 of every template and page of knowledge, by file name (`first.j2`, `knowledge/triton.md`), sorted."""
    files = {file.relative_to(PROMPTS).as_posix(): file for file in PROMPTS.rglob("*.j2")}
    files |= {f"knowledge/{file.name}": file for file in KNOWLEDGE.glob("*.md")}
    return {name: hashlib.sha256(files[name].read_bytes()).hexdigest() for name in sorted(files)}
