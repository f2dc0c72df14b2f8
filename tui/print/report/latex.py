"""The tables of a report for LaTeX with the package booktabs."""

from __future__ import annotations

import re

from tui.facts.report import Section
from tui.facts.report.document import Document
from tui.facts.tables import NOTHING, Column

LONG = 40
"""Characters from which the texts of a column are folded."""
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


def as_latex(document: Document) -> str:
    """Return every section with rows as a table. The preamble of the paper needs the package booktabs."""
    tables = [_table(section) for section in document.sections if section.rows]
    return "\n\n".join([f"% {document.title}. Needs \\usepackage{{booktabs}}.", *tables])


def escaped(text: str) -> str:
    """Return a text as LaTeX prints it; characters beyond Latin-1, for which pdfLaTeX has no glyphs, become escape codes."""
    printable = text.encode("latin-1", "backslashreplace").decode("latin-1")
    return SIGN.sub(lambda sign: SIGNS[sign[0]], " ".join(printable.split()))


def _table(section: Section) -> str:
    columns, rows = section.printed()
    places = [_place(column, [row[at] for row in rows]) for at, column in enumerate(columns)]
    label = section.name or re.sub(r"\W+", "-", section.title.lower()).strip("-")
    notes = (
        [f"\\par\\smallskip\\footnotesize {escaped(' '.join(section.sentences))}"]
        if section.sentences
        else []
    )
    return "\n".join(
        [
            "\\begin{table}[ht]",
            "\\centering",
            f"\\caption{{{escaped(section.title)}}}\\label{{tab:{label}}}",
            f"\\begin{{tabular}}{{{''.join(places)}}}",
            "\\toprule",
            _line([column.title for column in columns]),
            "\\midrule",
            *map(_line, rows),
            "\\bottomrule",
            "\\end{tabular}",
            *notes,
            "\\end{table}",
        ]
    )


def _place(column: Column, texts: list[str]) -> str:
    if max(map(len, texts), default=0) > LONG:
        return "p{0.3\\linewidth}"
    return "r" if column.right else "l"


def _line(texts: list[str]) -> str:
    return " & ".join("--" if text in NOTHING and text else escaped(text) for text in texts) + r" \\"
