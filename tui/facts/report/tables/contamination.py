"""How much the winners' kernels resemble the tasks' own kernels and the 1-shot examples, as numbers and as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from engine.corpus.overlap import NEAR_COPY, Form, kernel_forms, similarity
from engine.reply.candidate import fenced_blocks
from sessions import AttemptState, SessionState
from sessions.events import Message
from sessions.names import split_attempt
from tui.facts.report.model import SessionReport
from tui.facts.report.section import Section, section_of
from tui.facts.tables import Field, Number
from tui.facts.vocabulary import grouped as digits

from .row_set import METHOD, MODEL, Likeness, RowSet, figure, key_fields, method_name


def likenesses(reports: Iterable[SessionReport], own_kernels: Mapping[str, str]) -> Iterator[Likeness]:
    """Yield the similarities of each winner. `own_kernels` are the texts of the tasks' own files by full task name."""
    golden = {task: kernel_forms(source) for task, source in own_kernels.items()}
    for report in reports:
        started = report.state.started
        for winner in report.winners:
            if started is not None and winner.best.source:
                forms = kernel_forms(winner.best.source)
                yield Likeness(
                    method_name(started.method, started.options.without),
                    started.model,
                    _nearest(forms, golden.get(winner.task, ())),
                    _nearest(forms, _shown_forms(report.state, winner.best)),
                )


def _shown_forms(state: SessionState, best: AttemptState) -> list[Form]:
    """Return the kernels of the examples in the prompts of an attempt's instance until it was written."""
    instance = state.instances[split_attempt(best.attempt).instance]
    prompts = (
        call.messages
        for attempt in instance.attempts
        if attempt.number <= best.number
        for call in attempt.calls
    )
    examples = dict.fromkeys(filter(None, map(shown_example, prompts)))
    return [form for example in examples for form in kernel_forms(example)]


def _nearest(forms: Sequence[Form], references: Sequence[Form]) -> float | None:
    """Return the greatest similarity of two kernels; `None` if one side has none."""
    return max((similarity(form, reference) for form in forms for reference in references), default=None)


class Resemblance(NamedTuple):
    """The winners of a method with a model, and their known similarities."""

    keys: tuple[str, str]
    winners: int
    golden: list[float]
    example: list[float]


def contamination_section(rows: RowSet) -> Section:
    """Return the similarity of the winners to the tasks' own kernels and to the 1-shot examples."""
    groups: dict[tuple[str, str], list[Likeness]] = {}
    for likeness in rows.likenesses:
        groups.setdefault((likeness.method, likeness.model), []).append(likeness)
    resemblances = [
        Resemblance(
            keys,
            len(own),
            [likeness.golden for likeness in own if likeness.golden is not None],
            [likeness.example for likeness in own if likeness.example is not None],
        )
        for keys, own in sorted(groups.items())
    ]
    fields: tuple[Field[Resemblance], ...] = (
        *key_fields((METHOD, MODEL)),
        Field(Number("n"), lambda group: figure(group.winners, digits)),
        *_similarity("own kernel", lambda group: group.golden),
        *_similarity("example", lambda group: group.example),
    )
    shown = [group for group in resemblances if group.golden or group.example]
    section = section_of("Similarity of the winners", fields, shown, lambda group: "|".join(group.keys))
    meaning = (
        "n: winners of sessions. Similarity: share of the runs of five tokens that two kernels have in common, without names "
        f"and numbers, 0 to 1; a copy has at least {NEAR_COPY:g}. own kernel: of the task's file, example: in the prompts."
    )
    apart = sum(group.winners - len(group.golden) for group in resemblances)
    reason = f"Left out: {apart} winners of tasks without an own kernel." if apart else "Left out: nothing."
    return section.named("contamination", (meaning, reason))


def _similarity(
    name: str, values: Callable[[Resemblance], list[float]]
) -> tuple[Field[Resemblance], Field[Resemblance], Field[Resemblance]]:
    """Return the mean and the greatest similarity, and the number of copies."""

    def of(statistic: Callable[[list[float]], float], words: Callable[[float], str]) -> Callable[..., object]:
        return lambda group: figure(statistic(values(group)) if values(group) else None, words)

    def copies(similarities: list[float]) -> float:
        return sum(similarity >= NEAR_COPY for similarity in similarities)

    two = "{:.2f}".format
    return (
        Field(Number(f"to {name}, mean", if_known=True), of(fmean, two)),  # type: ignore[arg-type]
        Field(Number(f"to {name}, most", if_known=True), of(max, two)),  # type: ignore[arg-type]
        Field(Number(f"copies of {name}", if_known=True), of(copies, "{:.0f}".format)),  # type: ignore[arg-type]
    )


HEADING = "# An example of the style\n"
"""The heading in `engine/prompts/_parts.j2`."""


def shown_example(messages: Iterable[Message]) -> str:
    """Returns the source of the example in these messages; empty if they show none."""
    for message in messages:
        _, heading, rest = message.content.partition(HEADING)
        if heading:
            return next((block.source for block in fenced_blocks(rest)), "")
    return ""
