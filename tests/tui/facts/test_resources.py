"""The table of resources merges launches of one code, and says of each case how its grid fills the device."""

from __future__ import annotations

import msgspec

from harness.wire.results.evaluation import GridFit
from tests.support.engine.surveys import compiled
from tests.support.judge.assemblies import AMD, with_assembly
from tests.support.sessions import reviews
from tests.support.sessions.journals import correct
from tui.cockpit.draw.grid import tables_lines
from tui.cockpit.draw.lines import plain
from tui.facts.evaluation.resources import code_changes, resource_tables
from tui.print.plain import tables_text


def text_of(*fits: GridFit) -> str:
    """Return the printed table of a kernel with one launch for each fit."""
    [kernel] = compiled("code").resources
    launches = tuple(
        msgspec.structs.replace(kernel, case=fit.case, grid=fit.grid, fits=(fit,)) for fit in fits
    )
    judged = msgspec.structs.replace(reviews.candidate(1.5), resources={"gfx942": launches})
    return tables_text(resource_tables(judged))


def test_cases_with_different_grids_show_ranges_and_a_phrase_each() -> None:
    large = GridFit("large", (8192, 1, 1), 8192, 304, 2, 14, 0.53, 0.0, 0, 8, 1024, 1024)
    small = GridFit("small", (64, 1, 1), 64, 304, 2, 1, 0.89, 0.8, 240, 8, 8, 8)
    text = text_of(large, small)
    assert "1-14" in text
    assert "53-89 %" in text
    assert "large: 8,192 workgroups" in text
    assert "small: 64 workgroups" in text


def test_equal_grids_show_one_value() -> None:
    fits = [GridFit(case, (64, 1, 1), 64, 304, 2, 1, 0.89, 0.8, 240, 8, 8, 8) for case in ("fp32", "fp16")]
    text = text_of(*fits)
    assert "89 %" in text
    assert text.count("64 workgroups") == 1
    assert "fp32: 64" not in text


def test_changes_of_the_code_have_a_row_for_each_figure_that_differs() -> None:
    wide = AMD.replace("buffer_load_ushort v8,", "buffer_load_dwordx4 v[20:23],").replace("\ts_barrier\n", "")
    before, after = with_assembly(correct(), AMD, vgprs=96), with_assembly(correct(), wide, vgprs=64)
    table = code_changes(before, after)
    shown = {row.cells[0].text: row.cells[1].text for row in table.rows}
    assert shown["registers"] == "96 -> 64"
    assert shown["barriers"] == "1 -> 0"
    assert "waits" not in shown
    assert not code_changes(before, before).has_content


def test_rows_of_a_kernel_name_their_cases_in_a_narrow_table() -> None:
    [kernel] = compiled("code").resources
    rows = tuple(
        msgspec.structs.replace(kernel, kernel="cross_entropy_wide_kernel", case=case, vgprs=registers)
        for case, registers in (("fp32", 40), ("fp32-ragged", 60))
    )
    judged = msgspec.structs.replace(reviews.candidate(1.5), resources={"gfx942": rows})
    lines = [plain(line) for line in tables_lines(resource_tables(judged), 78)]
    assert sum("fp32-ragged" in line for line in lines if line.startswith("cross_entropy_wide_kernel  ")) == 1
