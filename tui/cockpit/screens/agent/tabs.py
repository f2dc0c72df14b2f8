"""Which page a tab shows, and what `y` copies there."""

from __future__ import annotations

from collections.abc import Iterator

from harness import Evaluation, Verdict
from harness.assembly.code_texts import all_assembly
from harness.wire.device import is_cpu
from sessions.state.speed import missing_speed
from sessions.state.state import AttemptState
from tui.cockpit.draw.grid import paragraph, spaced, tables_lines
from tui.cockpit.draw.lines import Line, line
from tui.cockpit.screens.agent.page import PageSubject
from tui.cockpit.screens.agent.verdict import verdict_page
from tui.facts.evaluation.counted import traffic_table
from tui.facts.evaluation.resources import LEGEND, resource_tables
from tui.facts.evaluation.spread import spread_tables
from tui.facts.evaluation.stages import stages_table, trust_tables
from tui.facts.evaluation.times import exam_tables, serving_table, times_tables
from tui.facts.profiling.profile_tables import profile_tables
from tui.facts.tables import Table


def page_of(tab: str, subject: PageSubject, width: int) -> list[Line]:
    """Return the page of a tab: `verdict`, `speed`, `resources`, `profile`, `stages` or `prompt`."""
    attempt = subject.attempt
    if tab == "verdict":
        return verdict_page(subject, width)
    if tab == "prompt":
        return _prompt_lines(attempt, width)
    if tab != "stages" and attempt.evaluation is None:
        return [line("No verdict yet.", "dim")]
    if tab == "profile":
        return tables_lines(_profile_tables(subject), width)
    return tables_lines(_tables(tab, subject), width)


def _prompt_lines(attempt: AttemptState, width: int) -> list[Line]:
    """Every message of every call, exactly as it was sent to the model."""
    messages = [
        [
            line(f"{call.role.value} {call.call.rpartition('/')[2]} · {message.role}", "rule"),
            *paragraph(message.content, width),
        ]
        for call in attempt.calls
        for message in call.messages
    ]
    return spaced(messages) or [line("Nothing was sent to a model yet.", "dim")]


def _tables(tab: str, subject: PageSubject) -> Iterator[Table]:
    attempt, evaluation = subject.attempt, subject.attempt.evaluation
    if tab == "stages":
        yield stages_table(attempt.stages, running=subject.running_stage)
    if evaluation is None:
        return
    if tab == "stages":
        yield from trust_tables(evaluation)
    elif tab == "speed":
        yield from _speed_tables(attempt, evaluation)
    else:
        yield from resource_tables(evaluation)
        compiled = bool(evaluation.resources or evaluation.compile_errors)
        yield Table("").with_sentences(LEGEND if compiled else "Nothing was compiled.", style="dim")


def _speed_tables(attempt: AttemptState, evaluation: Evaluation) -> Iterator[Table]:
    """The times of the verdict, of the exam and of each GPU; without times the reason, and the traffic."""
    if not evaluation.latency:
        yield Table("").with_sentences(f"Not measured: {missing_speed(evaluation)}", style="warn")
    is_timed_again = attempt.exam is not None and bool(attempt.exam.latency)
    yield from times_tables(evaluation, when=" before the exam" if is_timed_again else "")
    yield serving_table(evaluation)
    yield Table("notes").with_sentences(*evaluation.notes, style="warn")
    if not evaluation.latency:
        yield traffic_table(evaluation)
    yield from exam_tables(attempt.exam)
    yield from spread_tables(attempt)


def _profile_tables(subject: PageSubject) -> Iterator[Table]:
    if subject.is_profiled:
        yield Table("").with_sentences("A profiler runs one call of it.", style="busy")
    if subject.profiles:
        yield from profile_tables(subject.profiles)
    evaluation = subject.attempt.evaluation
    if evaluation is None:
        return
    if not (subject.is_profiled or subject.profiles):
        yield Table("").with_sentences(_no_profile(subject, evaluation), style="dim")
    yield traffic_table(evaluation)


def _no_profile(subject: PageSubject, evaluation: Evaluation) -> str:
    """Say why there is no profile, and what to press or run."""
    if is_cpu(evaluation.device):
        way = " On a GPU, P takes a profile." if subject.can_act else ""
        return f"The hardware counted nothing: no GPU judged it.{way}"
    if evaluation.verdict is not Verdict.CORRECT:
        way = " Go to a correct attempt and press P." if subject.can_act else ""
        return f"No profile: only a correct attempt gets one.{way}"
    if subject.elsewhere:
        return f"No profile: {subject.elsewhere}."
    if subject.can_act:
        return "No profile yet: P takes one."
    return f"No profile yet: `wavedeck profile {subject.session} {subject.attempt.attempt}` takes one."


def is_there(tab: str, attempt: AttemptState | None) -> bool:
    """Return whether a tab has anything to show; without compiled code, the assembly has nothing."""
    if tab != "assembly":
        return True
    return attempt is not None and attempt.evaluation is not None and bool(all_assembly(attempt.evaluation))


def copy_text(tab: str, attempt: AttemptState) -> str:
    """Return what `y` copies where that is not what is drawn: the exact prompt, the whole trace; else nothing."""
    if tab == "prompt":
        return "\n\n".join(message.content for call in attempt.calls for message in call.messages)
    error = attempt.evaluation.error if attempt.evaluation is not None else None
    if tab == "verdict" and error is not None and error.trace:
        return f"{error.message}\n\n{error.trace}"
    return ""
