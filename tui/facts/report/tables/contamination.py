"""How much the winners' kernels resemble the tasks' own kernels and the 1-shot examples, as numbers and as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from engine.corpus.overlap import NEAR_COPY, Form, kernel_forms, similarity
from engine.reply.candidate import fenced_blocks
from sessions import AttemptState, SessionState
from sessions.events import Message
from sessions.metrics.attempts import method_name
from sessions.names import split_attempt
from tui.facts.report.model import SessionReport
from tui.facts.report.section import Section

from .row_set import Likeness, RowSet, by, frame_of, table_section

if TYPE_CHECKING:
    from pandas import DataFrame


def likenesses(reports: Iterable[SessionReport], own_kernels: Mapping[str, str]) -> Iterator[Likeness]:
    """Yield the similarities of each winner. `own_kernels` are the texts of the tasks' own files by full task name."""
    golden = {task: kernel_forms(source) for task, source in own_kernels.items()}
    for report in reports:
        started = report.state.started
        for winner in report.winners:
            if started is not None and winner.best.source:
                forms = kernel_forms(winner.best.source)
                yield Likeness(
                    method_name(
                        started.method,
                        started.options.without,
                        reference_shown=started.shows_reference(winner.task),
                        label=started.label,
                    ),
                    started.model_label or started.model,
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


def contamination(rows: RowSet) -> Section:
    """Return the similarity of the winners to the tasks' own kernels and to the 1-shot examples."""
    alike = frame_of(likeness._asdict() for likeness in rows.likenesses)

    def figures(own: DataFrame) -> dict[str, Any]:
        columns: dict[str, Any] = {"n": len(own)}
        for name, column in (("own kernel", "golden"), ("example", "example")):
            values = own[column].astype("float64").dropna()
            columns |= {
                f"to {name}, mean": values.mean(),
                f"to {name}, most": values.max(),
                f"copies of {name}": float((values >= NEAR_COPY).sum()) if len(values) else None,
            }
        return columns

    compared = alike[alike.golden.notna() | alike.example.notna()] if len(alike) else alike
    meaning = (
        "n: winners of sessions. Similarity: share of the runs of five tokens that two kernels have in common, without names "
        f"and numbers, 0 to 1; a copy has at least {NEAR_COPY:g}. own kernel: of the task's file, example: in the prompts."
    )
    apart = len(alike) - int(alike.golden.notna().sum()) if len(alike) else 0
    reason = f"{apart} winners of tasks without an own kernel" if apart else "nothing"
    table = by(alike, {"method": "method", "model": "model"}, figures) if len(compared) else compared
    sentences = (meaning, f"Left out: {reason}.")
    title = "Similarity of the winners"
    return table_section("contamination", title, table, *sentences, words="{:.2f}".format)


HEADING = "# An example of the style\n"
"""The heading in `engine/prompts/_parts.j2`."""


def shown_example(messages: Iterable[Message]) -> str:
    """Returns the source of the example in these messages; empty if they show none."""
    for message in messages:
        _, heading, rest = message.content.partition(HEADING)
        if heading:
            return next((block.source for block in fenced_blocks(rest)), "")
    return ""
