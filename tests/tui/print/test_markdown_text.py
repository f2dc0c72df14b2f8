"""Markdown of reports and evidence: the words of a model are shown, and are never its markup."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from tui.facts.tables import Column
from tui.print.markdown_text import facts_list, inline, markdown_table, paragraph

HARMFUL = (
    "<img src=http://x/a.png>", "<script>alert(1)</script>", "<!-- hidden", "<http://x>", "![x](http://x/a.png)",
    r"\![x\](http://x)", r"\\![x](http://x)", r"\\<img src=x>", "[x]: http://x", "![x][y]", "![[x]](http://x)",
    "[x](\nhttp://x)", "see http://x/a and www.x.com", "`a``b`<img src=x>", "``<img src=x>`", "a|<img src=x>",
    r"a\|<img src=x>", "```\n<img src=x>\n```\n<img src=x>", "a\n\n<img src=x>",
    "# a", "> a", "1) a", "- a", "***", "```", "~~~", "````text", "| a |",
)  # fmt: skip


@pytest.mark.parametrize("words", HARMFUL)
def test_no_words_of_a_model_are_markup(words: str) -> None:
    renderer = MarkdownIt("gfm-like", {"html": True})
    columns = [Column("one"), Column(words)]  # the name of a model can be a title
    pieces = {
        "paragraph": paragraph(words),
        "row": markdown_table(columns, [[words, "b"], ["c", words]]),
        "list": facts_list([("idea", words)]),
        "heading": f"## {inline(words)}",
    }
    for kind, piece in pieces.items():
        page = renderer.render(f"[y]\n\n{piece}\n\nThe end.\n")
        for tag in ("<img", "<script", "<!--", "<a ", "<h1", "<blockquote", "<ol", "<hr"):
            assert tag not in page, kind
        assert page.count("<td") == (4 if kind == "row" else 0)
        assert page.count("<ul") == (kind == "list")
        assert page.endswith("<p>The end.</p>\n"), "nothing swallows the text after it"


def test_words_without_markup_stay_as_they_are() -> None:
    for words in (">= 2.5 [1.9, 3.1]", "-", "n < 3", "`wavedeck export`", "softmax#1/3", "x * y_z"):
        assert inline(words) == words
