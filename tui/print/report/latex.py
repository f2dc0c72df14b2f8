"""The tables of a report for LaTeX: booktabs, and no table wider than the text of the paper."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tui.facts.report import Section
from tui.facts.report.document import Document
from tui.facts.tables import NOTHING, Column

MOST_ROWS = 40
"""Rows of one table; further rows are in tables that continue it."""
LONG = 40
"""Characters from which a text is folded."""
FOLDED = r">{\raggedright\arraybackslash}p{0.4\textwidth}"
SIGNS = {
    ">=": r"$\geq$",
    "<=": r"$\leq$",
    ">": "$>$",
    "<": "$<$",
    "|": "$|$",
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    '"': "''",
    "`": "'",  # LaTeX joins "!`" and "?`" to other signs
    **{sign: f"\\{sign}" for sign in "{}$&#_%"},
}
SIGN = re.compile("|".join(map(re.escape, SIGNS)))
BREAK = re.compile("[/_]")
"""Signs behind which a long word may break; behind a hyphen LaTeX breaks it anyway."""


def as_latex(document: Document) -> str:
    """Return every section with rows as a table. The preamble of the paper needs booktabs, array and adjustbox."""
    head = f"% {document.title}. Needs \\usepackage{{booktabs,array,adjustbox}}."
    return "\n\n".join([head, *(_table(section) for section in document.sections if section.rows)])


def escaped(text: str) -> str:
    """Return a text as LaTeX prints it; characters beyond Latin-1, for which pdfLaTeX has no glyphs, become escape codes."""
    printable = " ".join(text.encode("latin-1", "backslashreplace").decode("latin-1").split())
    return SIGN.sub(lambda sign: SIGNS[sign[0]], printable)


def _breakable(text: str) -> str:
    return BREAK.sub(r"\g<0>\\allowbreak{}", escaped(text))


def _table(section: Section) -> str:
    columns, rows = section.printed()
    label = section.name or re.sub(r"\W+", "-", section.title.lower()).strip("-")
    parts = [
        _part(columns, rows[start : start + MOST_ROWS], section.title, label, is_first=start == 0)
        for start in range(0, len(rows), MOST_ROWS)
    ]
    notes = " ".join(map(_breakable, section.sentences))
    words = f"\\par\\smallskip\n{{\\footnotesize\\raggedright\\noindent {notes}\\par}}\n" if notes else ""
    parts[-1] = parts[-1].replace("\\end{table}", f"{words}\\end{{table}}")
    return "\n".join(parts)


def _part(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], title: str, label: str, *, is_first: bool
) -> str:
    """Return some rows as a table, which shrinks to the width of the text if it is wider."""
    import pandas

    folded = [max(len(row[place]) for row in rows) >= LONG for place in range(len(columns))]
    formats = (
        FOLDED if is_folded else "r" if column.right else "l"
        for column, is_folded in zip(columns, folded, strict=True)
    )
    body = [
        ["--" if text in NOTHING and text else _breakable(text) if is_folded else escaped(text)
         for text, is_folded in zip(row, folded, strict=True)]
        for row in rows
    ]  # fmt: skip
    page: str = (
        pandas.DataFrame(body)
        .style.hide(axis="index")
        .format_index([escaped(column.title) for column in columns].__getitem__, axis="columns")
        .to_latex(
            column_format=f"@{{}}{''.join(formats)}@{{}}",
            hrules=True,
            caption=escaped(title) + ("" if is_first else ", continued"),
            label=f"tab:{label}" if is_first else None,
            position="ht",
            position_float="centering",
        )
    )
    shrunk = page.replace("\\begin{tabular}", "\\begin{adjustbox}{max width=\\textwidth}\n\\begin{tabular}")
    return shrunk.replace("\\end{tabular}", "\\end{tabular}\n\\end{adjustbox}").rstrip()
