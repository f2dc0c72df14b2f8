"""What the judge says of an attempt."""

from __future__ import annotations

from textual import events
from textual.message import Message

from tui.cockpit.widgets.line_view import LineView


class DetailPane(LineView):
    """What the judge says: verdict, resources, speed, stages; or the prompt."""

    class Resized(Message):
        """Its lines depend on its width, which it knows only now."""

    HELP = """\
What the judge made of the attempt; the digits choose.

verdict    why, where and by how much; `e` goes through the lines of the
           candidate that the error names. Of a correct one the margin left to
           each tolerance, and the exam: at its end an agent's best attempt is
           judged on cases that no model hears of; passed, it is confirmed
resources  per target a row a binary: registers, spills, LDS, waves and what
           limits them, matrix instructions, widths of loads; below with
           which configuration each was launched, case by case
speed      measured latencies against the baseline, with --spread a winner's on
           every GPU; where there are none, bytes counted by the interpreter and
           the roofline estimate: two bounds, never a measurement. `a call` is
           the whole device's energy, candidate's / baseline's, over plain calls
           back to back with caches as these leave them
stages     the six stages, sandbox, proof, evidence, versions
prompt     exactly what was sent to the model

`j` `k` scroll, `h` `l` sideways, `z` gives the pane the whole screen, `y` copies
the whole trace, prompt or table.
"""

    def on_resize(self, event: events.Resize) -> None:
        """Ask for lines of this width."""
        self.post_message(self.Resized())
