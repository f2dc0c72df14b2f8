"""Builds prompts: pure functions from facts to messages, with templates that people can read.

The templates are `engine/prompts/*.j2` and `engine/knowledge/**/*.md`. Every prompt is a system message and a user
message. The system message has rules and knowledge and is the same for all calls of a task, so that a provider can
cache it. A template that names a missing fact raises an error.

These functions get no oracle, no seed and no exam case, so none can reach a prompt.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from msgspec.structs import replace

from engine.knowledge import FOLDER as KNOWLEDGE
from engine.knowledge import pages_for
from engine.prompting.baseline_facts import BaselineFacts
from engine.prompting.facts import (
    ErrorFacts,
    case_facts,
    error_facts,
    failure_line,
    instruction_of,
    lost_ground,
    outputs_of_calls,
    repeats,
    shorten,
)
from engine.prompting.figures import achieved_beside
from engine.prompting.history_facts import optimizer_facts
from engine.prompting.judged import JudgedCandidate
from engine.prompting.markdown import fenced, number, quoted, sizes, tidy
from engine.prompting.profiles import CHAT, task_module
from engine.prompting.subject import multiplies, named_subject, subject_of
from engine.prompting.tolerance_words import tolerance_words
from engine.reply.candidate import Unusable
from harness import Target, TimeLimits, Verdict
from harness.hardware.product import Product
from harness.hardware.targets import hardware
from harness.stages.static.inspection import SLOW_IN_INTERPRETER
from harness.wire.messages.server import Language
from sessions.events import Message
from sessions.state import ranking
from suites import Task
from suites.dtypes import NoSuchDtype, task_on

REQUEST = "\n# Request\n"
"""The heading before which a person's words are quoted."""
PROMPTS = Path(__file__).resolve().parent.parent / "prompts"
QUOTED_CHARACTERS = 4000
"""Longest quote of an unusable reply in the corrective request."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The facts that all prompts of an instance share."""

    task: Task
    targets: tuple[Target, ...]
    """Targets that launches are compiled for; on device `cpu` only the first can fail a candidate."""
    device: str = "cpu"
    """The device that judges candidates: `cpu`, or a GPU in words."""
    product: Product | None = None
    """Product of that device; `None` for `cpu` or if unknown. Prompts then show the reference products of the
    targets."""
    language: Language | None = None
    """Names that the installed Triton has and lacks; `None` if unknown."""
    profile: str = CHAT
    """The prompt format (`engine.prompting.profiles`)."""
    short: bool = False
    """Shorten the prompt for a small context: no example, and only the best and the latest of the history."""
    knowledge: bool = True
    """True if the system message has knowledge pages; it always has the judge's rules."""
    examples: bool = True
    """True if prompts may show values of a call, where the instruction leaves open what is computed."""
    baseline: BaselineFacts = field(default_factory=BaselineFacts)
    words: tuple[str, ...] = ()
    """What a person says to this attempt, one line each."""

    @property
    def is_open(self) -> bool:
        """True if prompts do not show the code that says what is computed, though the benchmark has no other definition."""
        script = self.task.script
        return script is not None and script.hides_baseline and not self.baseline.reference


@dataclass(frozen=True, slots=True)
class Example:
    """A correct kernel for another task, shown as the 1-shot example."""

    task: str
    """Title of its task."""
    source: str
    module: str = ""
    """Its task as a PyTorch module; empty if there is none."""
    bound: str = ""
    """`ModelNew` that calls `source`: the counterpart of `module`."""


class Place(NamedTuple):
    """The number of a candidate among several that are written independently at the same time."""

    number: int
    """From 1."""
    of: int


def first_prompt(
    setting: Setting, *, example: Example | None = None, unusable: str = "", place: Place | None = None
) -> tuple[Message, ...]:
    """Returns the prompt for a generator without an earlier candidate.

    `unusable` says why the last iteration brought no code; empty if it did. With `place`, candidates that are written
    at the same time start from different ideas.
    """
    if place is not None and place.of == 1:
        place = None
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
    failed: JudgedCandidate,
    failures: int,
    trap: int | None,
    earlier: Sequence[JudgedCandidate] = (),
    before: JudgedCandidate | None = None,
    best: JudgedCandidate | None = None,
    example: Example | None = None,
    unusable: str = "",
) -> tuple[Message, ...]:
    """Returns the prompt for a generator after a failed candidate: code, error and reflection.

    The line has `failures` in a row and is dropped at `trap`; `None`: never. `earlier` has the failed candidates before
    this one on the same line, oldest first. `before` is the base of the failed candidate; the prompt says if the
    candidate ranks lower than it. `best` is the best correct kernel so far.
    """
    return prompt(
        setting,
        "repair.j2",
        **failure_facts(failed, earlier),
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
    """Returns the prompt for the optimizer: correct candidates in ascending order (best last) with their figures.

    `last` is the latest correct candidate; the prompt says if it is not the best. If `without_gain` reaches
    `ROUNDS_BEFORE_CHANGE`, the prompt asks for another strategy. Raises `ValueError` for an empty history.
    """
    facts = optimizer_facts(history, last, without_gain, short=setting.short)
    return prompt(setting, "optimize.j2", **facts, unusable=unusable)


def descend_prompt(
    setting: Setting,
    *,
    history: Sequence[JudgedCandidate],
    parent: JudgedCandidate,
    lineage: Sequence[JudgedCandidate],
    place: Place,
    without_gain: int = 0,
    unusable: str = "",
) -> tuple[Message, ...]:
    """Returns the prompt for one descendant of `parent`, written at the same time as its siblings.

    `history` is ascending (best last) and has `parent`. `lineage` has the earlier attempts of this line, oldest
    first, correct or not, with their reflections. If `without_gain` reaches `ROUNDS_BEFORE_CHANGE` rounds, the prompt
    asks for another strategy. Raises `ValueError` for an empty history.
    """
    facts = optimizer_facts(history, parent, without_gain, short=setting.short)
    tried = [
        (attempt, None if attempt.evaluation.verdict is Verdict.CORRECT else error_of(attempt))
        for attempt in (lineage[-1:] if setting.short else lineage)
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
    attempts: Sequence[JudgedCandidate],
    example: Example | None = None,
    unusable: str = "",
) -> tuple[Message, ...]:
    """Returns the prompt for a worker after failed attempts: the latest in full, the earlier ones in short.

    `attempts` are oldest first. Raises `ValueError` if it is empty.
    """
    if not attempts:
        raise ValueError("there is no attempt to refine")
    *earlier, failed = attempts
    return prompt(
        setting,
        "refine.j2",
        **failure_facts(failed, () if setting.short else earlier),
        lost_ground=lost_ground(earlier[-1], failed) if earlier else "",
        example=None if setting.short else example,
        unusable=unusable,
    )


def escape_prompt(
    setting: Setting,
    *,
    given_up: Sequence[JudgedCandidate],
    trap: int,
    history: Sequence[JudgedCandidate] = (),
    example: Example | None = None,
    unusable: str = "",
) -> tuple[Message, ...]:
    """Returns the prompt after `trap` failures in a row.

    With a history, the prompt says that the last idea failed and asks to optimize from the history. Without one, it
    asks for a different start. `given_up` has the last candidate of each dropped line; it may be empty if no reply
    had code.
    """
    facts = optimizer_facts(history, None, 0, short=setting.short) if history else {"best": None}
    return prompt(
        setting,
        "escape.j2",
        given_up=[(line, error_of(line)) for line in given_up],
        example=None if setting.short else example,
        unusable=unusable,
        trap=trap,
        **facts,
    )


def reflect_prompt(
    setting: Setting,
    *,
    failed: JudgedCandidate,
    earlier: Sequence[JudgedCandidate] = (),
    best: JudgedCandidate | None = None,
) -> tuple[Message, ...]:
    """Returns the prompt for the reflector: the cause of the failure, and how to fix it.

    A person's rejection is a failure too. `earlier` is as in `repair_prompt`.
    """
    return prompt(setting, "reflect.j2", **failure_facts(failed, earlier), best=best)


def failure_facts(failed: JudgedCandidate, earlier: Sequence[JudgedCandidate]) -> dict[str, object]:
    """Returns the facts about a failed candidate and the failures before it."""
    return {
        "failed": failed,
        "error": error_of(failed),
        "earlier": [failure_line(failure) for failure in earlier],
        "repeats": repeats([*earlier, failed]),
    }


def error_of(candidate: JudgedCandidate) -> ErrorFacts | None:
    """Returns the judge's error; `None` if a person rejected the candidate, because the judge then has no error."""
    return None if candidate.rejection is not None else error_facts(candidate)


def corrective_prompt(messages: Sequence[Message], reply: str, unusable: Unusable) -> tuple[Message, ...]:
    """Returns the conversation with one more request, because the reply had no module to judge."""
    answered = shorten(reply.strip(), QUOTED_CHARACTERS) or "(no text)"
    request = templates().get_template("corrective.j2").render(message=unusable.message)
    return (*messages, Message("assistant", answered), Message("user", request.strip()))


def prompt(setting: Setting, template: str, **facts: object) -> tuple[Message, ...]:
    """Returns system and user message; only a user message if the profile has no system message.

    A missing fact raises `jinja2.UndefinedError`. Figures with another provenance than those of the fact `best` are left out.
    """
    task = setting.task
    with suppress(NoSuchDtype):  # the judge says so
        task = task_on(task, setting.targets[0].name)
    cases = case_facts(task, setting.targets[0], setting.product)
    best = facts.get("best")
    figures_of = best.evaluation if isinstance(best, JudgedCandidate) else None
    request = (
        templates()
        .select_template([f"profiles/{setting.profile}/{template}", template])
        .render(
            setting=setting,
            task=replace(task, outputs=outputs_of_calls(task), instruction=instruction_of(task)),
            module=task_module(task),
            baseline=setting.baseline.beside(figures_of, setting.product),
            signatures=signatures_of(task),
            cases=cases,
            is_long=any(case.is_long for case in cases),
            all_long=all(case.is_long for case in cases),
            products=multiplies(task),
            is_short=all(case.is_short for case in cases),
            reference=hardware(setting.targets[0], setting.product),
            precision=tuple(tolerance_words(task)),
            achieved=partial(achieved_beside, best=figures_of),
            **facts,
        )
    )
    system = system_text(setting)
    return (
        *([Message("system", system)] if system else []),
        Message("user", add_words(tidy(request), setting.words)),
    )


def system_text(setting: Setting) -> str:
    """Returns rules and knowledge; for a profile other than `chat` its own system text, if any.

    The judge's rules come first, then the knowledge: general, by category, by target.
    """
    name = "system.j2"
    if setting.profile != CHAT:
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
            language=setting.language,
            is_open=setting.is_open,
            recorded=setting.task.script is not None,
            weights=setting.task.shares,
            slow=sorted(SLOW_IN_INTERPRETER),
            subject=named_subject(setting.task),
            ranking=ranking,
            case_cpu_s=TimeLimits().case_cpu_s,
        )
    )


def knowledge_for(setting: Setting) -> list[str]:
    """Returns the rendered knowledge pages for this task and these targets; without pages of which only headings remain."""
    subject = subject_of(setting.task, setting.targets[0], setting.product)
    shared = {"device": setting.device, "targets": setting.targets, "subject": subject}
    texts: list[str] = []
    for page in pages_for(subject):
        if page.targets and subject.short and not subject.products:
            continue  # no resource of a device limits a launch that does next to nothing
        template = _compile_page(page.text)
        if page.targets:
            targets = [target for target in setting.targets if target.name in page.targets]
            texts += [
                template.render(shared, target=target, hardware=hardware(target, setting.product))
                for target in targets
            ]
        else:
            texts.append(template.render(shared))
    return [text.strip() for text in texts if re.search(r"^(- |\d\. |\|)", text, re.MULTILINE)]


def signatures_of(task: Task) -> tuple[str, ...]:
    """Returns the signatures of the entry points; of a recorded task as its script calls them."""
    recorded = task.script.signatures if task.script is not None else ()
    return recorded or tuple(entry.signature for entry in task.entry_points)


@cache
def _compile_page(text: str) -> Template:
    """Compile a knowledge page; cached, because compiling takes most of a prompt's time."""
    return templates().from_string(text)


@cache
def templates() -> Environment:
    """Returns the template environment; an undefined name raises an error."""
    environment = Environment(
        loader=FileSystemLoader(PROMPTS),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Prompts are Markdown for a model, not HTML.
        autoescape=False,
    )
    environment.filters |= {
        "fenced": fenced,
        "sizes": sizes,
        "number": number,
        "quoted": quoted,
    }
    return environment


def template_hashes() -> dict[str, str]:
    """Returns the sha256 of every template and knowledge page, sorted by file name.

    Names are `first.j2`, `knowledge/triton.md`, ...
    """
    files = {file.relative_to(PROMPTS).as_posix(): file for file in PROMPTS.rglob("*.j2")}
    files |= {f"knowledge/{file.name}": file for file in KNOWLEDGE.rglob("*.md")}
    return {name: hashlib.sha256(files[name].read_bytes()).hexdigest() for name in sorted(files)}


def add_words(text: str, words: Sequence[str]) -> str:
    """Returns a prompt with a person's words before its request, or at its end if the format has no such heading."""
    if not words:
        return text
    part = "\n".join(["# What a person says", "", *(f"- {line}" for line in words)])
    before, heading, request = text.rpartition(REQUEST)
    return f"{before}\n{part}\n{heading}{request}" if heading else f"{text.rstrip()}\n\n{part}\n"
