"""The plots of a report by matplotlib: bars of the winners' speedups, and curves with bands."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui.facts.report.bars import scale_end
from tui.facts.report.document import Document
from tui.facts.report.section import Bars, NamedSpeed, Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_IN, HEIGHT_IN, BAR_IN = 6.4, 3.0, 0.22
STYLE = {
    "font.size": 9,
    "svg.fonttype": "none",  # text stays text
    "pdf.fonttype": 42,
    "text.parse_math": False,  # names have dollar signs
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def plots_of(document: Document) -> list[Plot | Bars]:
    """Return the plots of all sections."""
    return [plot for section in document.sections for plot in section.plots]


def draw(plots: Sequence[Plot | Bars], form: str) -> bytes:
    """Return the plots below each other in one figure, as `svg` or `pdf`. Equal plots give equal bytes."""
    import matplotlib
    from matplotlib.figure import Figure

    heights = [BAR_IN * len(plot.speeds) + 0.9 if isinstance(plot, Bars) else HEIGHT_IN for plot in plots]
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": repr(plots)}):
        figure = Figure(figsize=(WIDTH_IN, sum(heights)), layout="constrained")
        panels = figure.subplots(len(plots), 1, squeeze=False, height_ratios=heights)
        for axes, plot in zip(panels[:, 0], plots, strict=True):
            if isinstance(plot, Bars):
                _draw_bars(axes, plot.speeds)
            else:
                _draw_curves(axes, plot)
        file = io.BytesIO()
        none = {"Date": None, "Creator": None} if form == "svg" else {"CreationDate": None}
        figure.savefig(file, format=form, transparent=form == "svg", metadata=none)
    return file.getvalue()


def svg_element(plot: Plot | Bars) -> str:
    """Return a plot as an element for a page, in the colour of the text around it."""
    text = draw([plot], "svg").decode()
    return text[text.index("<svg") :].replace("#000000", "currentColor").strip()


def _draw_bars(axes: Axes, speeds: Sequence[NamedSpeed]) -> None:
    for place, (_, speed) in enumerate(speeds):
        ends = speed.interval
        spread = None if ends is None else [[max(speed.value - ends[0], 0)], [max(ends[1] - speed.value, 0)]]
        colour = "C2" if speed.is_gain else "C3" if speed.is_loss else "C0"
        axes.barh(place, speed.value, xerr=spread, color=colour, height=0.6, alpha=0.8)
        axes.text(1.01, place, speed.words, va="center", transform=axes.get_yaxis_transform())
    axes.axvline(1.0, color="grey", linestyle=":", linewidth=1)
    axes.set_yticks(range(len(speeds)), [name for name, _ in speeds])
    axes.set(
        xlim=(0, scale_end(speeds)),
        ylim=(len(speeds) - 0.4, -0.6),
        xlabel="speedup; a longer bar is cut at the end of the scale",
    )


def _draw_curves(axes: Axes, plot: Plot) -> None:
    """A line is a step: its value holds until the next point."""
    for number, curve in enumerate(plot.curves):
        x, y, low, high = zip(*curve.points, strict=True)
        line = ("-", "--", ":", "-.")[number % 4]
        axes.step(x, y, where="post", label=curve.name, linestyle=line)
        axes.plot(x[-1:], y[-1:], "o", color=f"C{number % 10}", markersize=4)
        axes.fill_between(x, low, high, step="post", alpha=0.15)
    axes.set(xlabel=plot.x, ylabel=plot.y, xlim=(0, None))
    axes.grid(visible=True, axis="y", alpha=0.3)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=8)
