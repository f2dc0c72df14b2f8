"""`wavedeck recheck --attempts`: judge the attempts of a session again, and compare the verdicts of then and now."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterable, Sequence

from engine.judge.rechecking import Rechecked, compare_sessions
from engine.plan.request import RunPlan
from engine.predictions.plans import plan_rejudge
from harness.node.selection import wait_for_devices
from harness.wire.results.evaluation import Verdict
from sessions import SessionState
from sessions.catalog import find_sessions, session_state
from sessions.home import Home, home_from
from sessions.names import split_attempt
from sessions.state.state import AttemptState
from tui.commands.keep.recording import judged_tasks
from tui.commands.opening import open_session
from tui.commands.ready import begin, go_on
from tui.commands.run.eval import say_busy
from tui.diagnostics import Complaint, ExitCode, say
from tui.facts.tables import Column, Number
from tui.facts.vocabulary import counted, words
from tui.print.plain import emit, emit_json, listing, table
from tui.print.recheck_pages import KERNELS, VERSIONS, in_order, recheck_rows, verdict_words, versions


def rejudge(session: str | None, *, settings: RunPlan, as_json: bool) -> ExitCode:
    """Judge the attempts of a session or of each session of a study again, print comparisons; return the exit code.

    Attempts without a verdict or a reply are left out. Returns `NO` if an attempt was correct and has another verdict now.
    """
    home = home_from(os.environ)
    sessions = [open_session(None).name] if session is None else find_sessions(home, session)
    codes = []
    for number, name in enumerate(sessions, start=1):
        if len(sessions) > 1:
            say(f"session {number} of {len(sessions)}: {name}")
        try:
            codes.append(_rejudge(home, name, settings, as_json=as_json))
        except Complaint as complaint:
            if len(sessions) == 1:
                raise
            say(f"{complaint}")
            codes.append(ExitCode.USAGE)
        if codes[-1] is ExitCode.INTERRUPTED:
            break
    return max(codes)


def _rejudge(home: Home, name: str, settings: RunPlan, *, as_json: bool) -> ExitCode:
    """Judge the attempts of a session again, print the comparison, and return the exit code."""
    state = session_state(home, name)
    if state.started is None:
        raise Complaint(f"session {name} has no first event, so its settings are not known")
    if source := state.started.options.rejudges:
        code, again = go_on(home, name), name
        state = session_state(home, source)
    else:
        attempts = judged_attempts(state)
        if not attempts:
            raise Complaint(f"session {name} has no attempt with a verdict and a reply to judge again")
        if home.files(name).running:
            say(
                f"{name} is still running; only its {counted(len(attempts), 'attempt')} so far are judged again"
            )
        source = name
        code, again = _judge_again(home, state, attempts, settings)
    if code is not ExitCode.DONE:
        say(
            f"{again} is not finished; this judges the rest and compares: wavedeck recheck {again} --attempts all"
        )
        return code
    rechecked = compare_sessions(state, session_state(home, again))
    if as_json:
        emit_json(rejudge_document(again, source, rechecked))
    else:
        emit(rejudge_text(rechecked))
        emit(f"\nsession {again}: wavedeck report {again}")
    lost = any(
        entry.kernel.judged is not None
        and entry.kernel.judged.verdict is Verdict.CORRECT
        and entry.now is not None
        and entry.now.verdict.is_failure
        for entry in rechecked
    )
    return ExitCode.NO if lost else ExitCode.DONE


def judged_attempts(state: SessionState) -> list[AttemptState]:
    """Return all attempts with a verdict and a reply."""
    return [attempt for attempt in state.attempts() if attempt.source is not None and attempt.verdict]


def _judge_again(
    home: Home, state: SessionState, attempts: Sequence[AttemptState], settings: RunPlan
) -> tuple[ExitCode, str]:
    """Run the new session. Return how it ended, and its name."""
    assert state.started is not None
    selected = asyncio.run(wait_for_devices(settings.devices, on_wait=say_busy))
    names = dict.fromkeys(_task(state, attempt) for attempt in attempts)
    tasks = judged_tasks(
        names, home.suites, devices=[device.name for device in selected], targets=settings.targets
    )
    for name in names:
        if isinstance(reason := tasks[name], str):
            say(f"not judged: {name}: {reason}")
    able = [attempt for attempt in attempts if not isinstance(tasks[_task(state, attempt)], str)]
    if not able:
        raise Complaint("no task of the session can be judged here, see above")
    plan = plan_rejudge(state.started, able, devices=selected, targets=settings.targets)
    return begin(plan, home), plan.session


def _task(state: SessionState, attempt: AttemptState) -> str:
    return state.instances[split_attempt(attempt.attempt).instance].task


VERDICTS = [words(verdict) for verdict in Verdict]


def verdict_counts(rechecked: Iterable[Rechecked]) -> Counter[tuple[str, str]]:
    """Return the number of attempts by verdict then and verdict now."""
    return Counter((verdict_words(entry.kernel.judged), verdict_words(entry.now)) for entry in rechecked)


def rejudge_text(rechecked: Sequence[Rechecked]) -> str:
    """Return the versions then and now, the verdicts then by now, and the attempts that differ."""
    parts = versions(rechecked)
    different = [entry for entry in in_order(rechecked) if entry.changed]
    summary = [f"{len(rechecked) - len(different)} unchanged"]
    summary += [
        f"{count} with another {part}"
        for part, count in Counter(entry.changed for entry in different).items()
    ]
    blocks = (
        listing(VERSIONS, parts) if parts else "",
        matrix_text(verdict_counts(rechecked)),
        f"{counted(len(rechecked), 'attempt')} judged again: {', '.join(summary)}",
        listing(KERNELS[:-1], different) if different else "",  # without the column of the session
    )
    return "\n\n".join(filter(None, blocks))


def matrix_text(counts: Counter[tuple[str, str]]) -> str:
    """Return the number of attempts by verdict then (a row each) and verdict now (a column each)."""
    rows, columns = (sorted({verdicts[side] for verdicts in counts}, key=_place) for side in (0, 1))
    return table(
        [Column("then \\ now", keep=True), *(Number(name, keep=True) for name in columns)],
        [[then, *(str(counts[then, now] or "") for now in columns)] for then in rows],
    )


def _place(verdict: str) -> tuple[int, str]:
    return (VERDICTS.index(verdict) if verdict in VERDICTS else len(VERDICTS)), verdict


def rejudge_document(session: str, source: str, rechecked: Sequence[Rechecked]) -> dict[str, object]:
    """Return both sessions, the matrix, and a record for each attempt with both evaluations."""
    counts = verdict_counts(rechecked)
    return {
        "session": session,
        "rejudges": source,
        "matrix": [{"then": then, "now": now, "attempts": count} for (then, now), count in counts.items()],
        "attempts": recheck_rows(rechecked),
    }
