"""Which page a tab shows, and what `y` copies there."""

from __future__ import annotations

from sessions.state.state import AttemptState
from tui.cockpit.lines import line
from tui.cockpit.pages.page import Page, PageSubject
from tui.cockpit.pages.profile import has_profile, profile_lines
from tui.cockpit.pages.prompt import prompt_lines, prompt_text
from tui.cockpit.pages.resources import resource_lines
from tui.cockpit.pages.speed import speed_lines
from tui.cockpit.pages.stages import stage_lines
from tui.cockpit.pages.verdict import verdict_page


def page_of(tab: str, subject: PageSubject, width: int) -> Page:
    """Return the page of a tab: `verdict`, `speed`, `resources`, `profile`, `stages` or `prompt`."""
    attempt = subject.attempt
    evaluation = attempt.evaluation
    if tab == "verdict":
        return verdict_page(subject, width)
    if tab == "stages":
        return Page(stage_lines(attempt, width))
    if tab == "prompt":
        return Page(prompt_lines(attempt, width))
    if evaluation is None:
        return Page([line("No verdict yet.", "dim")])
    if tab == "speed":
        return Page(speed_lines(attempt, evaluation, width))
    if tab == "profile":
        return Page(profile_lines(evaluation, width))
    return Page(resource_lines(evaluation, width))


def is_there(tab: str, attempt: AttemptState | None) -> bool:
    """Return whether a tab has anything to show: the profile may have nothing."""
    evaluation = attempt.evaluation if attempt is not None else None
    return tab != "profile" or (evaluation is not None and has_profile(evaluation))


def copy_text(tab: str, attempt: AttemptState) -> str:
    """Return what `y` copies where that is not what is drawn: the exact prompt, the whole trace; else nothing."""
    if tab == "prompt":
        return prompt_text(attempt)
    error = attempt.evaluation.error if attempt.evaluation is not None else None
    if tab == "verdict" and error is not None and error.trace:
        return f"{error.message}\n\n{error.trace}"
    return ""
