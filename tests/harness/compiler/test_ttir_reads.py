"""Protects the list of arguments that a kernel reads, found in Triton's real IR of both vendors, without a GPU."""

from __future__ import annotations

from typing import Any

import pytest

from harness.worker.compiler.ttir_reads import arguments_read
from tests.support.judge.drivers import drive

pytestmark = pytest.mark.judge


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return drive("read_ttir.py", TRITON_CACHE_DIR=str(tmp_path_factory.mktemp("cache")))


@pytest.mark.parametrize("name", ["gfx942", "sm_90"])
@pytest.mark.parametrize(
    ("kernel", "read"),
    [
        ("copies", {"x_ptr": True}),
        (
            "products",
            {"a_ptr": True, "b_desc": True},
        ),  # through tensor descriptors of the device and of the host
        (
            "chooses",  # an index says which row, a length how many
            {"index_ptr": True, "lengths_ptr": True, "table_ptr": False, "rows_ptr": False},
        ),
        ("masks", {"labels_ptr": True, "x_ptr": True, "lengths_ptr": False}),
        ("adds", {"x_ptr": True, "counter_ptr": True}),
        ("ends_early", {"flag_ptr": True, "x_ptr": False}),
        ("finds", None),  # an address out of memory
        ("calls", None),  # a function that is not inlined
    ],
)
def test_arguments_that_a_kernel_reads(
    reports: Any, name: str, kernel: str, read: dict[str, bool] | None
) -> None:
    assert reports[name][kernel] == read


def test_launches_give_the_bytes_that_are_read(reports: Any) -> None:
    expected = {"whole": 512, "a view": 128, "in place": 512, "a part": None, "unclear": None}
    assert reports["gfx942"]["launches"] == expected == reports["sm_90"]["launches"]


@pytest.mark.parametrize("text", ["", "module {\n}\n", "no IR"])
def test_a_text_without_a_kernel_shows_nothing(text: str) -> None:
    assert arguments_read(text) is None
