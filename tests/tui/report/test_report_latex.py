"""LaTeX of reports: each sign is printed, methods and models have labels, and no table is wider than the text."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import matplotlib
import msgspec
import pytest

from sessions import fold
from sessions.metrics.attempt_row import attempt_rows
from sessions.metrics.task_kinds import TaskKind
from tests.support.sessions.invented_study import study
from tests.support.sessions.measured_sessions import measured
from tui.facts.report import report_of
from tui.facts.report.document import Document, rows_document
from tui.facts.report.reading import ReportReader
from tui.facts.report.tables import RowSet, tables_of
from tui.print.report import as_latex
from tui.print.report.latex import escaped

TEXT_PT = 345.0
SIZES = {"small": 0.925, "footnotesize": 0.85, "scriptsize": 0.797}
"""Widths of Computer Modern at 9, 8 and 7 pt relative to 10 pt: the digits of cmr9, cmr8 and cmr7."""
TABULAR = re.compile(r"\\begin\{(tabular|longtable)\}\{@\{\}([^@]*)@\{\}\}\n(.*?)\\end\{\1\}", re.DOTALL)
PLACE = re.compile(r">\{\\raggedright\\arraybackslash\}p\{([\d.]+)pt\}|([lr])")
SIGNS = {
    r"$\geq$": "=",
    r"$\leq$": "=",
    "$>$": "=",
    "$<$": "=",
    "$|$": ".",
    r"\textbackslash{}": "0",
    r"\_": "a",
}
"""Macros of LaTeX, by a character of the same width or a wider one."""


@cache
def advances() -> dict[str, float]:
    """Return the width of each ASCII character of cmr10 at 10 pt, from Adobe's metrics of the font."""
    file = Path(matplotlib.get_data_path(), "fonts", "afm", "cmr10.afm")
    glyphs = re.findall(r"^C (\d+) ; WX ([\d.]+)", file.read_text(), re.MULTILINE)
    return {chr(int(code)): float(width) / 100 for code, width in glyphs} | {" ": 3.34, "'": 2.78}


def width(text: str) -> float:
    """Return the width of a line of LaTeX in pt at 10 pt."""
    for macro, sign in SIGNS.items():
        text = text.replace(macro, sign)
    text = re.sub(r"\\(.)", r"\1", text)
    return sum(advances().get(sign, 10.0) for sign in text)


def widths(page: str) -> list[float]:
    """Return the width in pt of each table of a page, and of each word that does not break in a folded column."""
    tables = []
    for match in TABULAR.finditer(page):
        size = SIZES[re.findall(r"\\(small|footnotesize|scriptsize)\\set", page[: match.start()])[-1]]
        places = PLACE.findall(match[2])
        body = re.sub(r"\\endfirsthead.*?\\endlastfoot", "", match[3], flags=re.DOTALL)
        rows = [line[: -len(r" \\")] for line in body.splitlines() if line.endswith(r" \\")]
        rows = [row for row in rows if not row.startswith(r"\caption")]
        cells = [re.split(r"(?<!\\) & ", row) for row in rows]
        assert {len(row) for row in cells} == {len(places)}
        columns = []
        for number, (folded, _) in enumerate(places):
            parts = [part for row in cells for part in _parts(row[number], breaks=bool(folded))]
            natural = max(map(width, parts)) * size
            assert not folded or natural <= float(folded) + 0.1, parts
            columns.append(float(folded or natural))
        tables.append(sum(columns) + 6 * (len(columns) - 1))
    return tables


def _parts(cell: str, *, breaks: bool) -> list[str]:
    """Return the lines of a title, or the parts of a folded cell that LaTeX does not break."""
    if title := re.fullmatch(r"\\shortstack\[.\]\{(.*)\}", cell):
        return title[1].split(r"\\")
    return re.split(r" |\\allowbreak ", cell) if breaks else [cell]


def big() -> Document:
    """Return the report of two methods with three models on 184 tasks."""
    tasks = [f"tritonbench-revised/matrix_vector_multip_kernel_{number}" for number in range(184)]
    names = {"m1": "anthropic:claude-opus-4-1-20250805", "m2": "openai:gpt-5.4-codex-max", "m3": "m3"}
    rows = [
        msgspec.structs.replace(row, model=names[row.model])
        for events in study(tasks, seeds=(1, 2), instances=1, iterations=2)
        for row in attempt_rows(fold(events))
    ]
    kinds = {
        task: TaskKind(f"Linear Algebra & Reductions {n % 7}", n % 5, 184) for n, task in enumerate(tasks)
    }
    rows_of_study = RowSet(tuple(rows), kinds)
    return rows_document(rows_of_study, tables=tables_of(rows_of_study))


@pytest.mark.parametrize(
    "document",
    [big, lambda: ReportReader([report_of(fold(measured()))], None).document(kernels=False, metrics=False)],
    ids=["study", "session"],
)
def test_no_table_is_wider_than_the_text(document) -> None:
    whole = document()
    page = as_latex(whole)
    assert len(widths(page)) >= len([section for section in whole.sections if section.rows]) > 9
    assert max(widths(page)) <= TEXT_PT


def test_methods_and_models_have_labels_with_a_legend_below() -> None:
    page = as_latex(big())
    legend = "M1: anthropic:\\allowbreak claude-\\allowbreak opus-"
    assert page.count("\\label{tab:overall}") == 1
    overall = page[page.index("tab:overall") :].partition("\\end{table}")[0]
    assert "A & M1 & " in overall
    assert legend in overall
    assert "& anthropic" not in page


def test_latex_prints_every_sign() -> None:
    assert escaped(r"`!` a_b & 50 % >= 2 <3 #1 ~ \x {y} $ ^ ≈") == (
        r"'!' a\_b \& 50 \% $\geq$ 2 $<$3 \#1 \textasciitilde{} \textbackslash{}x \{y\} \$ \textasciicircum{} "
        r"\textbackslash{}u2248"
    )
