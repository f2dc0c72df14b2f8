"""The tab below the code: verdict, speed, resources, profile, stages or prompt."""

from __future__ import annotations

from tui.cockpit.widgets.line_view import LineView


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
           measurement the reason, and the roofline estimate: two bounds.
           Samples are those of the baseline + those of this attempt. Energy is
           that of the whole device over plain calls back to back
resources  a row for each binary: registers, spills, LDS, waves and what
           limits them, matrix instructions, widths of loads; then how it was
           launched
profile    time by launch, and the bytes that the interpreter counted
stages     the six stages, sandbox, proof, evidence, versions
prompt     exactly what was sent to the model

`j` `k` scroll, `h` `l` sideways, `z` gives the pane the whole screen, `y`
copies the whole trace, prompt or table.
"""
