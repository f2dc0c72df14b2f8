r"""Masks keys in text that comes from outside: in events before they are written, and in streams.

    masks.hide(["sk-1234abcd5678efgh"])
    masks.mask("key = 'sk-1234abcd' +\n '5678efgh'")    "key = '[key]'"

A key is found whole, and by its first or last twelve characters; if it was cut, it is masked as far as it goes. It is found
plain, in base64, in hexadecimal, encoded for an address, and reversed. Between its letters and digits anything else may come:
line breaks, indentation, quotes, `+`. An agent can always invent another spelling.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

MASK = "[key]"
SHORTEST_KEY = 8
LONGEST_WORD = 15
PART = 12
FEWEST_LETTERS = 6
"""Letters and digits that a spelling needs."""
ESCAPES = re.compile(r"\\(?:[abfnrtv]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})")
"""Line breaks and other characters as code and JSON spell them."""
JOINTS = re.compile(rf"(?:{ESCAPES.pattern}|[^A-Za-z0-9])+")
"""Text between letters and digits."""
NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalnum())
JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
KINDS = tuple(map(re.compile, (r"[^\W\d_A-Z]", r"[A-Z]", r"\d", r"[^\w\s./:-]")))
"""Lower-case letters, capitals, digits, and characters that no name, number or path has."""
FOLDER = re.compile(r"(~|/[^/]{1,64})(?=/)")
ADDRESS = re.compile(r"[a-zA-Z][\w+.-]*://\S*")


def is_key(value: str) -> bool:
    """True if the value of a variable that holds a key is masked: if no honest kernel has it by accident.

    A kernel must be judged as its author wrote it, so these values are not masked:

    - shorter than 8 characters;
    - shorter than 16, with characters of one kind: `softmax_kernel`, `12345678`, `not-needed`;
    - a path, as in `XAUTHORITY`; an address, of which only the password is a key.

    Nor is a value that occurs in the task's own text (`Masks.hide`).
    """
    folder = FOLDER.match(value)
    if ADDRESS.fullmatch(value) or (folder is not None and Path(folder[0]).expanduser().is_dir()):
        return False
    return len(value) >= (SHORTEST_KEY if count_kinds(value) > 1 else LONGEST_WORD + 1)


def count_kinds(text: str) -> int:
    """Returns how many of `KINDS` a text has."""
    return sum(bool(kind.search(text)) for kind in KINDS)


def spellings(text: str) -> Iterator[str]:
    """Yield the spellings of a key, or of a part. Base64 has three: they depend on the place in the encoded text."""
    data = text.encode("utf-8", "surrogateescape")
    yield from (text, text[::-1], data.hex(), quote(data, safe=""))
    for before, start in enumerate((0, 2, 3)):
        end = (before + len(data)) * 8 // 6  # the rest depends on the neighbours of the key
        yield b64encode(bytes(before) + data).decode()[start:end]


def fold(text: str) -> bytes:
    """Returns the letters and digits of a text, without joints."""
    return ESCAPES.sub("", text).encode("ascii", "ignore").translate(None, NO_LETTERS)


class Masks:
    """The keys of a session: `mask` masks a text, `mask_line` an event, `mask_beginning` a text that comes in pieces."""

    def __init__(self) -> None:
        self._spellings: set[bytes] = set()
        """Without joints."""
        self._beginnings: set[bytes] = set()
        """The first one to six letters of each."""
        self._runs: set[bytes] = set()
        """Every twelve letters in a row: a key that was cut is masked as far as it goes."""
        self._longest = 0

    def hide(self, values: Iterable[str], *, shown: str = "") -> None:
        """Mask the keys (`is_key`) among the values from now on, unless they occur in `shown`, the text of the tasks."""
        shown_letters = fold(shown)
        texts = {text for value in values for text in (value.strip(), *value.split()[-1:])}  # `Bearer KEY`
        for key in filter(is_key, texts):
            # A key of several words is a document, such as a certificate, and documents begin and end alike.
            ends = () if re.search(r"\s", key) else (key[:PART], key[-PART:])
            parts = [key, *(end for end in ends if count_kinds(end) > 1 or end.isdigit())]
            hidden = [part for part in parts if fold(part) not in shown_letters]
            for letters in (fold(spelling) for part in hidden for spelling in spellings(part)):
                if len(letters) >= FEWEST_LETTERS:
                    self._spellings.add(letters)
                    self._beginnings.update(letters[:length] for length in range(1, FEWEST_LETTERS + 1))
                    self._longest = max(self._longest, len(letters))
                if hidden == parts:
                    self._runs.update(letters[at : at + PART] for at in range(len(letters) - PART + 1))

    def mask(self, text: str) -> str:
        """Returns a text without keys."""
        rests, rest = list[str](), 0
        for start, end in self._search(text)[0]:
            rests.append(text[rest:start])
            rest = end
        return MASK.join([*rests, text[rest:]])

    def mask_line(self, line: bytes) -> bytes:
        """Returns a line of JSON without keys in its texts."""
        text = line.decode()
        if not self._search(text)[0]:
            return line
        return JSON_STRING.sub(lambda string: self.mask(string[0]), text).encode()

    def mask_beginning(self, text: str) -> tuple[str, str]:
        """Returns a text without keys as far as it is certain, and the rest, which may be the beginning of a key."""
        places, cut = self._search(text)
        cut = next((start for start, end in places if start < cut < end), cut)
        return self.mask(text[:cut]), text[cut:]

    def _search(self, text: str) -> tuple[list[tuple[int, int]], int]:
        """Returns start and end of each key in order, and the start of a key that the text's end may cut, else its length."""
        letters = fold(text) if self._spellings else b""
        occurring = [spelling for spelling in self._spellings if spelling in letters]
        tails = range(max(0, len(letters) - self._longest), len(letters))
        cut = next((at for at in tails if self._is_beginning(letters[at:])), len(letters))
        if not occurring and cut == len(letters):
            return [], len(text)
        blanked = JOINTS.sub(lambda joint: " " * len(joint[0]), text)
        places = [*(place for place, letter in enumerate(blanked) if letter != " "), len(text)]
        marks = bytearray(len(letters))
        for match in (match for spelling in occurring for match in re.finditer(spelling, letters)):
            marks[match.start() : match.end()] = b"x" * len(match[0])
        for at in range(len(letters) if occurring else 0):
            if letters[at : at + PART] in self._runs:
                marks[at : at + PART] = b"x" * PART
        keys = [(places[run.start()], places[run.end() - 1] + 1) for run in re.finditer(b"x+", marks)]
        return keys, places[cut]

    def _is_beginning(self, letters: bytes) -> bool:
        return letters[:FEWEST_LETTERS] in self._beginnings and any(
            spelling.startswith(letters) and spelling != letters for spelling in self._spellings
        )
