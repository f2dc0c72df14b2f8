"""LaTeX of reports: each sign is printed, and no table is wider or longer than a page."""

from __future__ import annotations

import re

from sessions import fold
from tests.support.sessions.measured_sessions import measured
from tests.support.sessions.rows import row
from tui.facts.report import report_of
from tui.facts.report.document import Document
from tui.facts.report.reading import ReportReader
from tui.facts.report.tables import TABLES, RowSet
from tui.print.report import as_latex
from tui.print.report.latex import escaped

TABULAR = re.compile(
    r"\\begin\{adjustbox\}\{max width=\\textwidth\}\n\\begin\{tabular\}\{@\{\}([^\n]*)@\{\}\}\n(.*?)"
    r"\\end\{tabular\}\n\\end\{adjustbox\}",
    re.DOTALL,
)
PLACE = re.compile(r">\{\\raggedright\\arraybackslash\}p\{0.4\\textwidth\}|[lr]")


def test_each_table_shrinks_to_the_text_and_folds_long_words() -> None:
    whole = ReportReader([report_of(fold(measured()))], None).document(kernels=False)
    page = as_latex(whole)
    sections = [section for section in whole.sections if section.rows]
    assert page.count("\\begin{tabular}") == len(sections)
    for section, (places, body) in zip(sections, TABULAR.findall(page), strict=True):
        columns = PLACE.findall(places)
        lines = [re.split(r"(?<!\\) & ", line) for line in body.splitlines() if line.endswith(r" \\")]
        assert {len(cells) for cells in lines} == {len(columns)}
        texts = zip(*section.printed()[1], strict=True)
        assert [column.startswith(">") for column in columns] == [max(map(len, own)) >= 40 for own in texts]
    assert r"starter/\allowbreak{}softmax/\allowbreak{}1" in page, "a branch may break"


def test_long_table_goes_on_in_further_tables() -> None:
    rows = tuple(row(f"suite/{number}", speedup=2.0) for number in range(184))
    page = as_latex(Document("Winners", {}, (TABLES["winners"](RowSet(rows)),)))
    assert (page.count(r"\label{tab:winners}"), page.count(", continued}")) == (1, 4)
    assert page.index("184 of 184 tasks are solved") > page.rindex(r"\bottomrule"), (
        "notes are behind the last"
    )


def test_latex_prints_every_sign() -> None:
    assert escaped(r"`!` a_b & 50 % >= 2 <3 #1 ~ \x {y} $ ^ ≈") == (
        r"'!' a\_b \& 50 \% $\geq$ 2 $<$3 \#1 \textasciitilde{} \textbackslash{}x \{y\} \$ \textasciicircum{} "
        r"\textbackslash{}u2248"
    )
