"""The facts that an agent gets which is not Wavedeck's own: the task, its earlier attempts, how it sends a candidate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.prompting.figures import achieved
from engine.prompting.judged import JudgedCandidate
from engine.prompting.markdown import fenced
from engine.prompting.prompting import REQUEST, Setting, first_prompt
from sessions.state.state import SessionState

ANSWER_FORMAT = "# What to answer with"
"""Heading of the part of a prompt that is for replies of models; an agent sends code by a tool."""
BEST_FILE = "best.py"
LONGEST_SHOWN = 40_000
"""Characters of the best module above which a prompt names only its file: a program's argument has at most 128 KiB."""

WORK = """Write one complete Python module for this task, as fast as you can make it. Only the judge's verdict counts: nothing \
that you print or write elsewhere is read as a result. Improve the module by the facts of each verdict. Follow what `person` says \
in an answer."""
BY_TOOLS = """Send a module with the tool `eval` of the MCP server `wavedeck` (task: {task}). If the answer is not `judged`, call \
`wait` with its `attempt`. When you are done, call `submit`; do not end before."""
BY_COMMAND = """Write a module into a file and send it with this command, which prints the verdict as JSON:

    wavedeck mcp call eval {session} FILE --note "one sentence on what the module changes and why"

Judging takes from seconds to minutes: give the command 10 minutes. When you are done, end."""


def task_facts(setting: Setting) -> str:
    """Returns the facts of a first prompt in Markdown, without its request and without the format of replies."""
    system, user = (message.content for message in first_prompt(setting))
    rules, facts = system.partition(ANSWER_FORMAT)[0].strip(), user.rpartition(REQUEST)[0].strip()
    return f"{facts}\n\n{rules}\n"


def agent_prompt(
    setting: Setting,
    *,
    session: str,
    best: JudgedCandidate | None,
    used: int,
    remaining: int,
    has_tools: bool,
) -> str:
    """Returns the prompt with which an agent's program starts; `used` and `remaining` count evaluations."""
    how = (BY_TOOLS if has_tools else BY_COMMAND).format(task=setting.task.short_id, session=session)
    parts = [
        task_facts(setting),
        "# Your work",
        WORK,
        how,
        f"Each module that you send uses one of your evaluations; {remaining} are left.",
    ]
    if used:
        parts.append(f"You worked on this before and were interrupted: {used} evaluations are used.")
    if best is not None:
        parts.append(
            f"Your best correct attempt is {best.attempt}: {achieved(best.evaluation)}. Its code is in `{BEST_FILE}`. Go on from it."
        )
        if len(best.source) <= LONGEST_SHOWN:
            parts.append(fenced(best.source))
    return "\n\n".join(parts)


def judged_of(state: SessionState, instance: str) -> Iterator[JudgedCandidate]:
    """Yield the attempts of an instance that have a verdict, oldest first."""
    chain = state.instances.get(instance)
    for attempt in chain.attempts if chain is not None else ():
        if attempt.verdict is not None:
            rejection = attempt.decision.why if attempt.rejected and attempt.decision else None
            yield JudgedCandidate(attempt, rejection=rejection)


def best_of(judged: Iterable[JudgedCandidate]) -> JudgedCandidate | None:
    """Returns the best correct attempt that no person rejected, by its verdict alone: an exam must not show in it."""
    return max(
        (candidate for candidate in judged if candidate.passed), key=lambda passed: passed.rank, default=None
    )


def best_of_agent(state: SessionState, instance: str) -> JudgedCandidate | None:
    """Returns `best_of` the attempts of an instance."""
    return best_of(judged_of(state, instance))
