"""Keys in foreign text: no spelling of a key is left, and text without a key stays as it is."""

from __future__ import annotations

import json
import re
import string
from base64 import b64encode, urlsafe_b64encode
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions.journal.masking import Masks, is_key
from suites.privacy import keys_in

KEYS = st.text(f"{string.ascii_letters}{string.digits}-_+/", min_size=8, max_size=48).filter(
    lambda key: is_key(key) and len(letters(key)) >= 6
)
CUTS = st.lists(st.integers(0, 200), max_size=6)
HONEST = f'{Path(__file__).read_text(encoding="utf-8")} "é\\u00e9\\\\n\\x41" │ \N{ROCKET}\r\n\t'
KEY = "sk-1234abcd-5678_EFGH9"


def masks_of(*values: str, shown: str = "") -> Masks:
    masks = Masks()
    masks.hide(values, shown=shown)
    return masks


def letters(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "", text.replace("\\n", ""))


def streamed(masks: Masks, text: str, cuts: list[int]) -> str:
    places = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    shown, rest = "", ""
    for start, end in pairwise(places):
        masked, rest = masks.mask_beginning(rest + text[start:end])
        shown += masked
    return shown + masks.mask(rest)


def in_lines(text: str) -> list[str]:
    return [
        text,
        f'"{text[:3]}" +\n    "{text[3:]}"',
        f"# {text[:9]}\n#  {text[9:]}\n",
        json.dumps("\n".join(text)),
    ]


@given(key=KEYS, before=st.text(string.ascii_letters, max_size=4), cuts=CUTS)
def test_no_spelling_of_a_key_is_left_however_it_is_cut(key: str, before: str, cuts: list[int]) -> None:
    masks = masks_of(key)
    for encode in (b64encode, urlsafe_b64encode):
        encoded = encode(f"{before}{key}".encode()).decode()
        for text in in_lines(encoded):
            masked = streamed(masks, text, cuts)
            assert masked == masks.mask(text)
            # A letter at the border of the key also has bits of its neighbour.
            assert len(letters(masked.replace("[key]", ""))) <= len(before) * 4 / 3 + 3
    for whole in (key, key[:12], key[-12:], key[::-1], key.encode().hex(), quote(key, safe="")):
        if len(letters(whole)) >= 6 and not letters(whole).isalpha():
            for text in in_lines(whole):
                masked = streamed(masks, f"{text};", cuts)
                assert masked == masks.mask(f"{text};")
                assert letters(masked) == "key"
                assert json.loads(masks.mask_line(json.dumps([text, 1.5e9]).encode())) == [
                    masks.mask(text),
                    1.5e9,
                ]


@given(keys=st.lists(KEYS, max_size=9), text=st.one_of(st.text(), st.just(HONEST)), cuts=CUTS)
def test_text_without_a_key_stays_as_it_is(keys: list[str], text: str, cuts: list[int]) -> None:
    masks = masks_of(*(f"Zq7xW{key}x9~Qz" for key in keys), "/tmp/socket-A1", "softmax_kernel", "12345678")
    assert streamed(masks, text, cuts) == text
    line = json.dumps({"text": text, text: 1e300}, ensure_ascii=False).encode("utf-8", "replace")
    assert masks.mask_line(line) == line


def test_text_is_held_back_only_as_long_as_it_may_be_a_key() -> None:
    masks = masks_of(KEY)
    assert masks.mask_beginning("Look: sk-1234\n") == ("Look: ", "sk-1234\n")
    assert masks.mask_beginning("sk-1234\nso far. ") == ("sk-1234\nso far. ", "")
    assert masks.mask_beginning(f"A {KEY[:12]}") == ("A ", KEY[:12])  # the whole key may come
    assert masks.mask_beginning(f"{KEY[:12]}, done. ") == ("[key]-, done. ", "")


@pytest.mark.parametrize(
    "value", [KEY, "hunter22", "p@ss*word", "correct horse battery", "Token Abc123Def456", "/Aq3x9/c2Vj/cmV0"]
)
def test_a_value_that_no_kernel_has_by_accident_is_masked(value: str) -> None:
    assert value.split()[-1] not in masks_of(value).mask(f"password = {value}")


@pytest.mark.parametrize(
    "value",
    [
        "abc-123",
        "softmax_kernel",
        "12345678",
        "NOT_NEEDED",
        "/tmp/ssh-Gone12/agent.77",
        "~/.Xauthority1",
        "https://github.com/login/oauth2",
    ],
)
def test_words_numbers_and_places_are_not_masked(value: str) -> None:
    masks = masks_of(value)
    assert masks.mask(f"x = {value}  # {value}") == f"x = {value}  # {value}"


def test_keys_of_an_environment() -> None:
    environ = {
        "A_PASS": KEY,
        "URL": "http://me:p%40ss%2Aword@host/x",
        "HOME": "/home/m3",
        "X_HEADERS": "key=Abc123Def",
    }
    masks = masks_of(*keys_in(environ))
    assert masks.mask(f"{KEY} p@ss*word p%40ss%2Aword; /home/m3; http://me") == "[key]; /home/m3; http://me"
    assert masks.mask("key=Abc123Def") == "[key]"


def test_a_shortened_key_is_masked_as_far_as_it_goes() -> None:
    masks = masks_of(KEY)
    for shortened in (KEY[:18], KEY[5:], KEY.encode().hex()[:30], b64encode(KEY.encode()).decode()[:24]):
        assert masks.mask(f"{shortened} ...") == "[key] ..."


def test_a_value_in_the_tasks_own_text_is_not_masked() -> None:
    masks = masks_of("tile_128x64", KEY, "Softmax_Kernel_v2", shown="def tile_128x64(x): Softmax_Kernel")
    kernel = "def tile_128x64(x): return Softmax_Kernel[1,](x)"
    assert masks.mask(kernel) == kernel
    assert masks.mask(f"{kernel}  # {KEY}") == f"{kernel}  # [key]"
