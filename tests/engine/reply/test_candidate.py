"""Replies: which code block becomes the candidate, and which replies are unusable."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.models.client import cut_at
from engine.reply.candidate import Candidate, Unusable, fenced_blocks, read_reply, strategy_of

MODULE = "import triton\n\n\ndef softmax(x):\n    return x\n"
SECOND_MODULE = "def softmax(x):\n    return -x\n"
KERNEL = """import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    row = tl.load(x_ptr + lanes, mask=lanes < n, other=-float("inf"))
    tl.store(y_ptr + lanes, tl.exp(row - tl.max(row)), mask=lanes < n)
"""
WRAPPER = """def softmax(x):
    y = torch.empty_like(x)
    softmax_kernel[(1,)](x, y, x.numel(), BLOCK=triton.next_power_of_2(x.numel()), num_warps=4)
    return y
"""
PART = "@triton.jit\ndef kernel(x_ptr):\n    pass\n"


def fenced(source: str, language: str = "python", fence: str = "```") -> str:
    return f"{fence}{language}\n{source}{fence}\n"


def source_of(reply: str, stop_reason: str = "end") -> str:
    answer = read_reply(reply, ["softmax"], stop_reason=stop_reason)
    return answer.source


def reason_of(reply: str, stop_reason: str = "end") -> str:
    answer = read_reply(reply, ["softmax"], stop_reason=stop_reason)
    assert isinstance(answer, Unusable), answer
    assert answer.message.endswith(".")
    return answer.reason


@pytest.mark.parametrize(
    "reply",
    [
        fenced(MODULE),
        "Here you are:\n\n" + fenced(MODULE) + "\nIt is fast.",
        fenced(MODULE, "py"),
        fenced(MODULE, ""),
        fenced(MODULE, "Python"),
        fenced(MODULE, fence="~~~~"),
        "text\r\n" + fenced(MODULE).replace("\n", "\r\n"),
        "<think>maybe\n" + fenced(SECOND_MODULE) + "no</think>\n" + fenced(MODULE),
        "maybe " + fenced(SECOND_MODULE) + "\n</think>\n" + fenced(MODULE),
        fenced("pip install triton\n", "bash") + fenced(MODULE) + fenced("out\n", "text"),
        fenced(PART) + "and whole:\n" + fenced(MODULE),
        fenced(MODULE) + "The kernel alone:\n" + fenced(PART),
        fenced(SECOND_MODULE) + "Better:\n" + fenced(MODULE),
        "```python\n" + MODULE,
        "A `softmax` in ```python``` now:\n" + fenced(MODULE),
        MODULE,
        "Here is the kernel.\n\n" + MODULE + "\nIt reads each row once.",
        "```python\n" + MODULE + "\nThis version reads each row once.",
        "```python\n" + MODULE.rstrip() + "```",
        "1. The kernel:\n\n" + textwrap.indent(fenced(MODULE), "    ") + "\n2. Done.",
        fenced(MODULE, "python:softmax.py"),
        fenced(MODULE, "{.python}"),
        fenced(MODULE, "python title='softmax.py'"),
        fenced(MODULE, "text"),
        fenced(MODULE, "") + "Usage:\n" + fenced("print(softmax(torch.ones(3)))\n"),
    ],
)
def test_reply_gives_its_module(reply: str) -> None:
    assert source_of(reply) == MODULE


@pytest.mark.parametrize(
    ("reply", "stop_reason", "reason"),
    [
        ("", "end", "empty"),
        (" \n\t", "end", "empty"),
        ("<think>hmm</think>", "end", "empty"),
        ("<think>hmm, so", "truncated", "truncated"),
        ("", "truncated", "truncated"),
        ("I would use tiles.", "end", "no_code_block"),
        (MODULE, "truncated", "truncated"),
        ("Define `softmax` first.\n\n" + PART, "end", "no_code_block"),
        ("```python\n" + WRAPPER + "\n" + KERNEL[:-20], "end", "truncated"),
        (fenced("ls\n", "bash"), "end", "no_code_block"),
        ("```python\n```\n", "end", "no_code_block"),
        ("I would use", "truncated", "truncated"),
        ("```python\n" + MODULE + "    y = (", "end", "truncated"),
        ("```python\n" + MODULE, "truncated", "truncated"),
        (fenced(SECOND_MODULE) + "Better:\n```python\n" + MODULE[:30], "truncated", "truncated"),
        (fenced(PART) + "and the wrapper\n" + fenced("def run(x):\n    pass\n"), "end", "several_modules"),
    ],
)
def test_unusable_reply_has_a_reason(reply: str, stop_reason: str, reason: str) -> None:
    assert reason_of(reply, stop_reason) == reason


def test_kernel_and_wrapper_in_two_blocks_are_joined() -> None:
    usage = "x = torch.ones(4, device='cuda')\nprint(softmax(x))\n"
    reply = f"First the kernel:\n{fenced(KERNEL)}Then the wrapper:\n{fenced(WRAPPER)}Use it:\n{fenced(usage)}"
    assert source_of(reply) == f"{KERNEL}\n\n{WRAPPER}"
    backwards = f"The wrapper:\n{fenced(WRAPPER)}The kernel:\n{fenced(KERNEL)}"
    assert source_of(backwards) == f"{WRAPPER}\n\n{KERNEL}"


def test_newer_wrapper_alone_keeps_the_kernel_of_the_module_before() -> None:
    newer = WRAPPER.replace("num_warps=4", "num_warps=8")
    source = source_of(f"{fenced(KERNEL + WRAPPER)}With eight warps:\n{fenced(newer)}")
    assert source.startswith(KERNEL)
    assert source.endswith(newer)


def test_join_that_python_refuses_is_not_made() -> None:
    late = "from __future__ import annotations\n" + WRAPPER
    assert source_of(fenced(KERNEL) + fenced(late)) == late


def test_whole_module_in_a_truncated_reply_counts() -> None:
    assert source_of(fenced(MODULE) + "In conclusion, thi", "truncated") == MODULE


def test_reply_that_the_client_cut_gives_its_last_whole_block() -> None:
    repeated = fenced(SECOND_MODULE) + "Better:\n```python\n" + MODULE[:30]
    assert source_of(repeated, cut_at(2000)) == SECOND_MODULE
    for reply in (
        "",
        "<think>hmm, so",
        "```python\n" + MODULE[:30],
        "```python\n```\nwait",
        fenced("x = 1\n") * 2,
    ):
        assert reason_of(reply, cut_at(2000)) == "cut at 2,000 bytes"


@pytest.mark.parametrize(
    "text",
    [
        "~" * 10**6 + "`",
        "```" + " " * 10**6 + "`",
        "a</think>" + "<think>" * 10**5,
        "# a" + " " * 10**6 + "b",
    ],
)
def test_odd_reply_of_a_million_characters_is_read_in_a_moment(text: str) -> None:
    # A search with backtracking takes hours.
    assert isinstance(read_reply(text, ["softmax"]), Unusable)
    assert strategy_of(text) == ""


def test_single_block_goes_to_the_judge_unchecked() -> None:
    assert source_of(fenced("def softmx(x):\n    return x\n")) == "def softmx(x):\n    return x\n"
    assert source_of(fenced("def softmax(x:\n")) == "def softmax(x:\n"


def test_module_must_define_every_entry_point() -> None:
    both = "def forward(x): ...\n\n\ndef backward(x): ...\n"
    reply = fenced(both) + fenced("def forward(x): ...\n")
    answer = read_reply(reply, ["forward", "backward"])
    assert answer.source == both


@pytest.mark.parametrize(
    "heading", ["## Strategy", "**Strategy**", "# My strategy: tiles", "### Strategy ###"]
)
def test_strategy_is_the_text_under_its_heading(heading: str) -> None:
    reply = f"Hello.\n\n{heading}\n\nOne pass,\nthen another.\n\n## Code\n\n{fenced(MODULE)}"
    assert read_reply(reply, ["softmax"]) == Candidate(MODULE, "One pass,\nthen another.")


def test_reply_without_strategy_section_has_empty_strategy() -> None:
    assert read_reply("My strategy is tiles.\n" + fenced(MODULE), ["softmax"]) == Candidate(MODULE, "")


LINES = st.lists(
    st.text(st.characters(blacklist_categories=("Cc", "Cs", "Zl", "Zp")), max_size=20)
    | st.sampled_from(
        ["```", "```python", "~~~", "## Strategy", "    return x", "<think>", "def softmax(x):"]
    ),
    max_size=12,
)


@given(LINES)
def test_read_reply_accepts_any_arrangement_of_fences(lines: list[str]) -> None:
    answer = read_reply("\n".join(lines), ["softmax"])
    if isinstance(answer, Candidate):
        assert answer.source.strip()


PROSE = st.text(
    st.characters(blacklist_categories=("Cc", "Cs", "Zl", "Zp"), blacklist_characters="`~<>#*"), max_size=60
)
CODE = st.lists(
    st.sampled_from(["x = 1", "", "# a ``` in a comment", "y = '~~~'", "def f(): ..."]), max_size=6
).map(lambda lines: "".join(f"{line}\n" for line in lines))


@given(PROSE, CODE, PROSE, st.sampled_from(["```", "````", "~~~"]))
def test_code_between_fences_is_unchanged(before: str, code: str, after: str, fence: str) -> None:
    module = code + SECOND_MODULE
    assert source_of(f"{before}\n{fenced(module, fence=fence)}{after}") == module


def test_unusual_line_separators_inside_code_stay() -> None:
    module = "x = '\u2028'  # \x0c\n" + SECOND_MODULE
    assert source_of(fenced(module)) == module


def test_fence_is_closed_only_by_its_own_kind() -> None:
    blocks = list(fenced_blocks("````python\n```\nx\n```\n````\n"))
    assert [block.source for block in blocks] == ["```\nx\n```\n"]
