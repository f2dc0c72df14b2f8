"""Print a session as lines until it ends, then its summary and the next command."""

from __future__ import annotations

from collections.abc import Sequence

from sessions.events import AnyEvent
from sessions.home import Home
from tui.diagnostics import ExitCode, OutputGone, say, silence
from tui.follow import EventPrinter, FollowEnding, follow
from tui.plain import emit
from tui.summary import next_line, summary
from tui.vocabulary import next_command, not_stored


async def print_until_end(
    home: Home, session: str, *, as_json: bool, past: Sequence[AnyEvent] = (), stoppable: bool = True
) -> ExitCode:
    """
    Print a session's events until it ends, then its summary and the next command. `past` events are not printed again.

    With `as_json`, standard output holds only events; the next command goes to standard error.
    """
    printer = EventPrinter(as_json=as_json)
    printer.prime(past)
    try:
        ending = await follow(home, session, printer, stoppable=stoppable)
    except KeyboardInterrupt:
        say(f"{session} is still running; come back with: wavedeck attach {session}")
        return ExitCode.INTERRUPTED
    except OutputGone as gone:
        silence(1)
        say(
            f"{gone.why or 'the output was closed'}; {session} is still running; come back with: wavedeck attach {session}"
        )
        return ExitCode.FAILED
    if not as_json:
        emit("")
        emit(summary(printer.state))
    return _next_step(home, session, ending, printer, as_json=as_json)


def _next_step(
    home: Home, session: str, ending: FollowEnding, printer: EventPrinter, *, as_json: bool
) -> ExitCode:
    is_stored = ending is FollowEnding.FINISHED and not home.live(session).journal.exists()
    following = next_command(session, finished=is_stored)
    if ending is FollowEnding.GONE:
        say(
            f"the engine of {session} ended without a message, see {home.live(session).log}; "
            f"all its events are kept, go on with: {following}"
        )
        return ExitCode.FAILED
    if ending is FollowEnding.FINISHED and not is_stored:
        say(not_stored(session))
        return ExitCode.FAILED
    if as_json:
        say(f"next: {following}")
    else:
        emit(next_line(following))
    if ending is FollowEnding.FAILED:
        return ExitCode.FAILED
    return ExitCode.INTERRUPTED if printer.interrupted and ending is FollowEnding.STOPPED else ExitCode.DONE
