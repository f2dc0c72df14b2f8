"""The page of the chosen tab, and the attempt that it shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from harness.wire.results.kernel_counts import Profile
from sessions.state.state import AttemptState, InstanceState
from tui.cockpit.widgets.line_view import LineView

NO_VERDICT = "no verdict: the session stopped before it"


class PageView(LineView):
    """Shows the page of the chosen tab."""

    HELP = """\
What the judge says of the attempt; digits choose the tab.

verdict    an error: the element, expected, got, the candidate's lines (`e`
           goes there), which cases pass. A correct attempt: its speedup with
           interval, the tolerance that its worst element used, the exam, and
           its times case by case. The exam judges an instance's best attempt
           at its end on cases that no model sees.
speed      all times by case and GPU with the state of the device. Without a
           measurement the reason, and the bytes that were counted.
           Samples are those of the baseline + those of this attempt. Sustained
           times (`wavedeck eval --sustained`): this attempt / the baseline
resources  a row for each binary: registers, spills, LDS, waves and what
           limits them, matrix instructions, widths of loads; then how it was
           launched
profile    what the hardware counted in one call, the time of each launch, and
           the bytes that the interpreter counted
stages     the six stages, sandbox, proof, evidence, versions
prompt     exactly what was sent to the model

`j` `k` scroll, `h` `l` sideways, `z` gives the pane the whole screen, `y`
copies the whole trace, prompt or table.
"""


class PageSubject(NamedTuple):
    """The attempt that a page is about, with what the page compares it with."""

    attempt: AttemptState
    instance: InstanceState | None = None
    base: AttemptState | None = None
    """The attempt that it was made from."""
    profiles: Mapping[str, Profile] = {}
    """Its latest profile, by the attempt's name; beside it that of the baseline in the same case."""
    is_profiled: bool = False
    """True while a profile is taken."""
    pinned: bool = False
    """True if the first lines of the verdict are on screen above the page."""
    session: str = ""
    can_act: bool = True
    """False in a replay or a view for reading only, where no key decides."""
    elsewhere: str = ""
    """Why no engine takes a profile for this session; empty if one could."""
    stopped: bool = False
    """True if no engine works on the session, or waits for a decision."""
    chosen_error: int | None = None
    """The line of the candidate that a person went to last, of those that the error names."""

    @property
    def running_stage(self) -> str | None:
        """The stage that the judge runs now."""
        return None if self.stopped else self.attempt.stage
