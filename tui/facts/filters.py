"""The filter language of lists: `wavedeck sessions list --filter` and `/` in the cockpit read the same words.

    softmax                 a text field contains the word
    task:softmax            this text field contains the word; verdict:wrong, state:running, title:"paged attention"
    speedup>1.2             number fields: > >= < <= =
    -state:finished         a leading - negates

All terms must match. Upper and lower case are equal.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from tui.diagnostics import Complaint

Value = str | float | None

NUMBERS = frozenset(
    {"attempts", "confirmed", "cost", "gpu", "number", "solved", "speedup", "tokens", "waiting"}
)
"""Fields that hold a number: `cost` in USD, `speedup` as a ratio, the others are counts or indices."""
TEXTS = frozenset(
    {
        "attempt",
        "case",
        "exam",
        "instance",
        "method",
        "model",
        "name",
        "origin",
        "state",
        "task",
        "title",
        "verdict",
    }
)
FIELDS = NUMBERS | TEXTS
"""Every field that any list has."""

COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
TERM = re.compile(r'(-?)(?:([A-Za-z_]+)(:|>=|<=|>|<|=))?("[^"]*"|\S*)')


@dataclass(frozen=True, slots=True)
class Term:
    """One condition of a filter."""

    field: str
    """Empty: any text field."""
    sign: str
    """`:`, `=`, or a key of `COMPARISONS`."""
    wanted: str
    """Lower case."""
    number: float | None
    """The wanted number; `None` if the field holds text."""
    negated: bool

    def matches(self, fields: Mapping[str, Value]) -> bool:
        """Return True if the row with these fields meets the condition."""
        if not self.field:
            met = any(isinstance(value, str) and self.wanted in value.casefold() for value in fields.values())
        else:
            met = self._is_met(fields.get(self.field))
        return met is not self.negated

    def _is_met(self, value: Value) -> bool:
        if value is None:
            return False
        if isinstance(value, str):
            text = value.casefold()
            return self.wanted in text if self.sign == ":" else self.wanted in (text, *text.split())
        if self.number is None:
            return self.wanted in f"{value:g}"
        compare = COMPARISONS.get(self.sign)
        if compare is not None:
            return compare(value, self.number)
        # Equal to the digits that the user typed: a screen shows 1.84 for 1.8412.
        return round(value, len(self.wanted.partition(".")[2])) == self.number


@dataclass(frozen=True, slots=True)
class Filter:
    """The conditions of a filter; a filter without conditions matches every row."""

    terms: tuple[Term, ...] = ()

    def matches(self, fields: Mapping[str, Value]) -> bool:
        """Return True if a row with these fields meets every condition.

        An unknown value (`None`) meets no condition, so it meets every negated condition.
        """
        return all(term.matches(fields) for term in self.terms)


def parse(text: str, fields: Collection[str] = FIELDS) -> Filter:
    """Return the filter that the text describes; `fields` are the fields of the list.

    Raises `Complaint` with one line for an unknown field, a missing number, or a comparison of text.
    """
    terms = []
    place = 0
    while place < len(text):
        match = TERM.match(text, place)
        if text[place].isspace() or match is None:
            place += 1
            continue
        place = match.end()
        negation, field, sign, wanted = match.groups()
        if field or wanted:
            terms.append(_term((field or "").lower(), sign or ":", wanted, fields, negated=bool(negation)))
    return Filter(tuple(terms))


def _term(field: str, sign: str, wanted: str, fields: Collection[str], *, negated: bool) -> Term:
    wanted = wanted.strip('"').casefold()
    if field and field not in fields:
        raise Complaint(f"no field {field!r} to filter by; {_nearest(field, fields)}")
    if field not in NUMBERS:
        if sign in COMPARISONS:
            raise Complaint(f"{field} holds text, so {sign} cannot compare it; write {field}:{wanted}")
        return Term(field, sign, wanted, None, negated)
    wanted = wanted.strip("$x")
    try:
        return Term(field, "=" if sign == ":" else sign, wanted, float(wanted), negated)
    except ValueError:
        shown = ">" if sign == ":" else sign
        raise Complaint(f"{field} holds a number; write for example {field}{shown}1.2") from None


def _nearest(field: str, fields: Collection[str]) -> str:
    near = difflib.get_close_matches(field, sorted(fields), n=1, cutoff=0.5)
    return f"nearest: {near[0]}" if near else f"fields: {', '.join(sorted(fields))}"
