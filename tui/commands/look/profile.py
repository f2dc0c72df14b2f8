"""`wavedeck profile`: what the hardware counted in one call of an attempt."""

from __future__ import annotations

import asyncio
import time

import click

from harness import Verdict
from harness.wire.results.kernel_counts import Profile
from sessions import JournalTail, SessionState
from sessions.events import ProfileAsked, ProfileTaken
from sessions.store.decidable import find_attempt
from tui.actions.send import give
from tui.commands.opening import OpenedSession, complete_words, open_attempt
from tui.commands.options import json_option
from tui.commands.trust import ask_for_trust, trust_option
from tui.diagnostics import Complaint, ExitCode, say
from tui.facts.profiling.profile_tables import BASELINE, profile_tables
from tui.print.plain import emit, emit_json, tables_text

POLL_S = 0.2


@click.command(name="profile")
@click.argument("words", nargs=-1, required=True, metavar="[SESSION] ATTEMPT", shell_complete=complete_words)
@click.option(
    "--case",
    default="",
    help="Open case to call. [that of the kept profile, else the one farthest from its roof]",
)
@click.option(
    "--gpu", metavar="N", help="GPU to use, as the session names it. [the GPU that judged the attempt]"
)
@click.option(
    "--against", metavar="OTHER", help="Show also the profile of this attempt, or of the `baseline`."
)
@click.option("--again", is_flag=True, help="Profile again, even if the session has a profile.")
@json_option
@trust_option
def profile_command(
    words: tuple[str, ...],
    *,
    case: str,
    gpu: str | None,
    against: str | None,
    again: bool,
    as_json: bool,
    trusts: bool,
) -> None:
    """Show what the hardware counted in one call of a correct ATTEMPT.

    The first time, the call runs under ncu, rocprofv3 or Proton, alone on the GPU; a stopped or finished session goes on for
    that. Exit code: 3 if the profiler failed. docs/inside.md explains each row.
    """
    opened, _, attempt, instance = open_attempt(words)
    compared = attempt
    if against is not None and against != BASELINE:
        compared, its_instance = find_attempt(opened.state, against)
        if compared.attempt == attempt.attempt or its_instance.task != instance.task:
            raise Complaint(f"--against needs another attempt on {instance.task}, or `{BASELINE}`")
        if compared.verdict is not Verdict.CORRECT:  # before minutes of the first profile
            raise Complaint(f"{against} is not correct; profile a correct attempt")
    first = _profile(opened, attempt.attempt, case=case, gpu=gpu, again=again, trusts=trusts)
    profiles = {attempt.attempt: first}
    if against is not None:
        profiles[against] = _profile(
            opened,
            compared.attempt,
            case=first.case,
            gpu=gpu,
            device=first.device,
            again=again,
            trusts=trusts,
            of_baseline=against == BASELINE,
        )
    if as_json:
        emit_json({"session": opened.name, "profiles": profiles})
    else:
        emit(tables_text(profile_tables(profiles)))


def _profile(
    opened: OpenedSession,
    attempt: str,
    *,
    case: str,
    gpu: str | None,
    device: str = "",
    again: bool,
    trusts: bool,
    of_baseline: bool = False,
) -> Profile:
    """Return the kept profile, or take one on `gpu`, else on `device`. Raises `Complaint` if there is none."""
    state = opened.state
    shown, instance = find_attempt(state, attempt)
    kept = state.baseline_profiles.get(instance.task, {}) if of_baseline else shown.profiles
    profile = kept.get(case) if case else next(reversed(kept.values()), None)
    if profile is not None and not again and gpu in (None, profile.device):
        return profile
    ask_for_trust(opened.home, opened.name, trusts=trusts)
    command = ProfileAsked(attempt=attempt, device=gpu or device, case=case, of_baseline=of_baseline)
    asyncio.run(give(opened.home, opened.name, command))
    subject = f"the baseline of {attempt}" if of_baseline else attempt
    say(f"{subject} is being profiled, in {opened.name}")
    taken = _wait(opened, attempt, case=case, before=state, of_baseline=of_baseline)
    if taken.profile is None:
        raise Complaint(taken.failure, code=ExitCode.FAILED)
    return taken.profile


def _wait(
    opened: OpenedSession, attempt: str, *, case: str, before: SessionState, of_baseline: bool
) -> ProfileTaken:
    """Wait for the answer to a request, given the state before it. Raises `Complaint` if the engine ends before."""
    live, wanted = opened.home.files(opened.name), (attempt, of_baseline, case)
    # An engine may have ended before it took a profile that was asked for earlier.
    requests = {
        earlier.seq
        for earlier in before.profiles_asked
        if (earlier.attempt, earlier.of_baseline) == (attempt, of_baseline)
    }
    after = before.last_seq
    with JournalTail(live.journal, after=after) as tail:
        while True:
            # Check the lock before reading: then no event of an engine that released the lock is lost.
            running = live.running
            # An engine that ended at once has moved the journal to the store.
            events = tail.read_new() if running else opened.journal.events
            for event in (event for event in events if event.seq > after):
                if (
                    isinstance(event, ProfileAsked)
                    and (event.attempt, event.of_baseline, event.case) == wanted
                ):
                    requests.add(event.seq)
                if isinstance(event, ProfileTaken) and event.asked in requests:
                    return event
            if not running:
                why = f": {reason}" if (reason := opened.state.stopped) else ""
                raise Complaint(
                    f"the engine of {opened.name} ended before the profile{why}; see {live.log}",
                    code=ExitCode.FAILED,
                )
            time.sleep(POLL_S)
