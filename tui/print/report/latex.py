"""The tables of a report for LaTeX: booktabs, methods and models by label, and no table wider than the text of an article."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from tui.facts.report import Section
from tui.facts.report.document import Document
from tui.facts.tables import NOTHING

TEXT_PT = 345.0
"""Width of the text in the class `article` at 10 pt."""
GAP_PT = 6.0
"""Between two columns."""
SIZES = ((r"\small", 9.25), (r"\footnotesize", 8.5), (r"\scriptsize", 7.97))
"""Sizes of the text, with that of Computer Modern Roman 10 pt with equally wide digits."""
LONG = 40
"""Rows from which a table may break across pages."""
LABELLED = {"method": "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "model": ""}
"""Columns with values that become labels: letters, or `M` with a number."""
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
OTHER_WIDTHS = {
    ">": 7.78,
    "<": 7.78,
    "≥": 7.78,
    "≤": 7.78,
    "|": 2.78,
    "\\": 5.0,
    "_": 3.6,
    "{": 5.0,
    "}": 5.0,
    "^": 5.0,
}
"""Widths of signs that are not in the font, or are printed as others, at 10 pt."""
PIECE = re.compile(r"[^\s_/:#=-]{1,16}[_/:#=-]?|[_/:#=-]")
"""A part of a word that LaTeX does not break."""


class Layout(NamedTuple):
    """Some columns of a table that fit beside each other."""

    size: str
    places: tuple[int, ...]
    """The columns, by number."""
    folded: tuple[float | None, ...]
    """Width in pt of each folded column; `None`: as wide as its cells."""


def as_latex(document: Document) -> str:
    """Return every section with rows as a table. The preamble of the paper needs booktabs, array and longtable."""
    labels = _labels(document.sections)
    tables = [_table(section, labels) for section in document.sections if section.rows]
    return "\n\n".join([f"% {document.title}. Needs \\usepackage{{booktabs,array,longtable}}.", *tables])


def escaped(text: str) -> str:
    """Return a text as LaTeX prints it; characters beyond Latin-1, for which pdfLaTeX has no glyphs, become escape codes."""
    return SIGN.sub(lambda sign: SIGNS[sign[0]], _printable(text))


def _printable(text: str) -> str:
    return " ".join(text.encode("latin-1", "backslashreplace").decode("latin-1").split())


def _breakable(text: str) -> str:
    """Return an escaped text that LaTeX may break within long words."""
    words = (r"\allowbreak ".join(map(escaped, PIECE.findall(word))) for word in _printable(text).split())
    return " ".join(words)


def _labels(sections: Sequence[Section]) -> dict[str, dict[str, str]]:
    """Return the label of each method and model by the title of its column."""
    labels: dict[str, dict[str, str]] = {title: {} for title in LABELLED}
    for section in sections:
        columns, rows = section.printed()
        for place, column in enumerate(columns):
            for row in rows if section.name and column.title in labels else ():
                own, letters = labels[column.title], LABELLED[column.title]
                number = len(own)
                own.setdefault(row[place], letters[number] if number < len(letters) else f"M{number + 1}")
    return labels


def _table(section: Section, labels: dict[str, dict[str, str]]) -> str:
    columns, rows = section.printed()
    labels = labels if section.name else {}
    models = labels.get("model", {})
    titles = [models.get(column.title, column.title) for column in columns]
    shown = {models[column.title]: column.title for column in columns if column.title in models}
    cells = []
    for row in rows:
        line = []
        for column, text in zip(columns, row, strict=True):
            label = labels.get(column.title, {}).get(text)
            shown |= {label: text} if label else {}
            line.append(label or ("--" if text in NOTHING and text else text))
        cells.append(line)
    legend = "; ".join(f"{label}: {text}" for label, text in sorted(shown.items()))
    notes = [*section.sentences, *([f"{legend}."] if legend else [])]
    layouts = list(_layouts(titles, cells, [column.right for column in columns]))
    parts = [
        _tabular(section, layout, titles, cells, [column.right for column in columns], first=not number)
        for number, layout in enumerate(layouts)
    ]
    words = (
        f"{{\\footnotesize\\raggedright\\noindent {' '.join(map(_breakable, notes))}\\par}}" if notes else ""
    )
    last, end, _ = parts[-1].rpartition("\\end{table}")
    parts[-1] = f"{last}\\par\\smallskip\n{words}\n{end}" if end else f"{parts[-1]}\n{words}"
    return "\n".join(parts)


def _tabular(
    section: Section,
    layout: Layout,
    titles: list[str],
    cells: list[list[str]],
    right: list[bool],
    *,
    first: bool,
) -> str:
    import pandas

    label = section.name or re.sub(r"\W+", "-", section.title.lower()).strip("-")
    heads = [_head(titles[place], [row[place] for row in cells], right[place]) for place in layout.places]
    body = [
        [
            (escaped if width is None else _breakable)(row[place])
            for place, width in zip(layout.places, layout.folded, strict=True)
        ]
        for row in cells
    ]
    formats = [
        f">{{\\raggedright\\arraybackslash}}p{{{width:.1f}pt}}"
        if width is not None
        else "r"
        if right[place]
        else "l"
        for place, width in zip(layout.places, layout.folded, strict=True)
    ]
    is_long = len(cells) > LONG
    page: str = (
        pandas.DataFrame(body)
        .style.hide(axis="index")
        .format_index(heads.__getitem__, axis="columns")
        .to_latex(
            column_format=f"@{{}}{''.join(formats)}@{{}}",
            hrules=True,
            caption=escaped(section.title) + ("" if first else ", continued"),
            label=f"tab:{label}" if first else None,
            position=None if is_long else "ht",
            position_float=None if is_long else "centering",
            environment="longtable" if is_long else None,
        )
    )
    setting = f"{layout.size}\\setlength{{\\tabcolsep}}{{{GAP_PT / 2:g}pt}}"
    return (
        f"{{{setting}\n{page}}}"
        if is_long
        else page.replace("\\centering\n", f"\\centering{setting}\n", 1).rstrip()
    )


def _head(title: str, texts: Sequence[str], right: bool) -> str:  # noqa: FBT001
    """Return the title of a column in lines that are no wider than its cells or its longest word."""
    lines: list[str] = []
    room = max(_width(text) for text in (*title.split(), *texts, ""))
    for word in title.split():
        if lines and _width(f"{lines[-1]} {word}") <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    text = r"\\".join(map(escaped, lines))
    return f"\\shortstack[{'r' if right else 'l'}]{{{text}}}" if len(lines) > 1 else text


def _layouts(
    titles: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool]
) -> Iterator[Layout]:
    """Yield the layout of all columns in the largest size that fits, else of as many as fit beside the first, and so on."""
    natural, least = [], []
    for place, title in enumerate(titles):
        texts = [row[place] for row in cells]
        words = max((_width(word) for word in title.split()), default=0.0)
        pieces = (_width(piece) for text in texts for piece in PIECE.findall(_printable(text)))
        natural.append(max([words, *map(_width, texts)]))
        least.append(natural[-1] if right[place] else max([words, *pieces]))
    keys = [place for place, title in enumerate(titles) if title in LABELLED] or [0]
    rest = [place for place in range(len(titles)) if place not in keys]
    while rest or keys:
        for count in range(len(rest), -1, -1):
            places = sorted([*keys, *rest[:count]])
            folded = next(filter(None, (_folded(places, natural, least, size) for size in SIZES)), None)
            if folded is not None or count <= 1:
                yield folded or Layout(SIZES[-1][0], tuple(places), tuple(least[place] for place in places))
                rest = rest[max(count, 1) :]
                break
        if not rest:
            return


def _folded(
    places: Sequence[int], natural: Sequence[float], least: Sequence[float], size: tuple[str, float]
) -> Layout | None:
    """Return the layout of these columns in a size; its widest texts are folded. `None` if they do not fit."""
    name, points = size
    room = (TEXT_PT - GAP_PT * (len(places) - 1)) * 10 / points - 2
    widths = {place: natural[place] for place in places}
    while sum(widths.values()) > room:
        wide = [place for place in places if widths[place] > least[place]]
        if not wide:
            return None
        widest = max(wide, key=lambda place: widths[place])
        widths[widest] = max(least[widest], widths[widest] - 1)
    folded = (widths[place] * points / 10 if widths[place] < natural[place] else None for place in places)
    return Layout(name, tuple(places), tuple(folded))


@cache
def _glyph(sign: str) -> float:
    """The width of a character of Computer Modern Roman at 10 pt."""
    from matplotlib import get_data_path
    from matplotlib.ft2font import FT2Font, LoadFlags

    if sign in OTHER_WIDTHS:
        return OTHER_WIDTHS[sign]
    font = FT2Font(f"{get_data_path()}/fonts/ttf/cmr10.ttf")
    font.set_size(10, 72)
    return font.load_char(ord(sign), LoadFlags.NO_HINTING).linearHoriAdvance / 65536


def _width(text: str) -> float:
    """Return the width of a text in pt at 10 pt."""
    return sum(map(_glyph, _printable(text).replace(">=", "≥").replace("<=", "≤")))
