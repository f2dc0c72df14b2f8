"""Following a session in lines to its end, and what is said then."""

from __future__ import annotations

from collections.abc import Sequence

from sessions.events import AnyEvent
from sessions.home import Home
from tui.diagnostics import ExitCode, OutputGone, say, silence
from tui.follow import Ending, Telling, follow
from tui.plain import emit
from tui.summary import summary


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
    except OutputGone:
        silence(1)
        say(f"nobody reads the output; {session} goes on; come back with: wavedeck attach {session}")
        return ExitCode.FAILED
    if not as_json:
        emit("")
        emit(summary(telling.state))
    return _next_step(home, session, ending, telling, as_json=as_json)


def _next_step(home: Home, session: str, ending: Ending, telling: Telling, *, as_json: bool) -> ExitCode:
    tell = say if as_json else emit
    match ending:
        case Ending.FINISHED:
            tell(f"replay    wavedeck replay {session}")
            return ExitCode.DONE
        case Ending.STOPPED:
            tell(f"resume    wavedeck resume {session}")
            return ExitCode.INTERRUPTED if telling.interrupted else ExitCode.DONE
        case Ending.GONE:
            say(
                f"the engine of {session} ended without a word, see {home.live(session).log}; "
                f"what it wrote is kept, go on with: wavedeck resume {session}"
            )
            return ExitCode.FAILED
