"""Following a session in lines to its end, and what is said then."""

from __future__ import annotations

from collections.abc import Sequence

from sessions.events import AnyEvent
from sessions.home import Home
from tui.diagnostics import ExitCode, OutputGone, say, silence
from tui.follow import Ending, Telling, follow
from tui.next_step import next_command
from tui.plain import emit
from tui.summary import next_line, summary


async def tell_until_end(
    home: Home, session: str, *, as_json: bool, known: Sequence[AnyEvent] = (), stoppable: bool = True
) -> ExitCode:
    """
    Tell a session's events until it ends, then its summary and how to go on. `known` events are not told again.

    With `as_json` standard output carries events and nothing else; what to do next is said on standard error.
    """
    telling = Telling(as_json=as_json)
    telling.prime(known)
    try:
        ending = await follow(home, session, telling, stoppable=stoppable)
    except KeyboardInterrupt:
        say(f"{session} goes on; come back with: wavedeck attach {session}")
        return ExitCode.INTERRUPTED
    except OutputGone as gone:
        silence(1)
        say(
            f"{gone.why or 'nobody reads the output'}; {session} goes on; come back with: wavedeck attach {session}"
        )
        return ExitCode.FAILED
    if not as_json:
        emit("")
        emit(summary(telling.state))
    return _next_step(home, session, ending, telling, as_json=as_json)


def _next_step(home: Home, session: str, ending: Ending, telling: Telling, *, as_json: bool) -> ExitCode:
    following = next_command(session, finished=ending is Ending.FINISHED)
    if ending is Ending.GONE:
        say(
            f"the engine of {session} ended without a word, see {home.live(session).log}; "
            f"what it wrote is kept, go on with: {following}"
        )
        return ExitCode.FAILED
    if as_json:
        say(f"next: {following}")
    else:
        emit(next_line(following))
    if ending is Ending.FAILED:
        return ExitCode.FAILED
    return ExitCode.INTERRUPTED if telling.interrupted and ending is Ending.STOPPED else ExitCode.DONE
