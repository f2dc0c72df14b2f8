"""Pages of knowledge in prompts: which ones fit a task and a target, and where their figures come from."""

from __future__ import annotations

import msgspec
import pytest

from engine import knowledge
from engine.prompting.prompting import Setting, knowledge_for
from harness import Target, target
from harness.hardware.targets import hardware, targets
from suites import CATEGORIES, load_task
from tests.support.engine.prompts import SETTING


@pytest.mark.parametrize("category", CATEGORIES)
def test_knowledge_fits_every_category_and_target(category: str) -> None:
    task = msgspec.structs.replace(SETTING.task, category=category)
    for gpu in targets():
        pages = "\n".join(knowledge_for(Setting(task, (gpu,))))
        assert hardware(gpu).name in pages
        assert "{{" not in pages
        assert "{%" not in pages
        assert ("# Quantization contracts" in pages) == (category == "Quantization")
        assert len([gpu for gpu in targets() if hardware(gpu).name in pages]) == 1


@pytest.mark.parametrize("gpu", targets(), ids=lambda gpu: gpu.name)
def test_only_tasks_that_multiply_matrices_get_advice_on_products(gpu: Target) -> None:
    of_products = ("MFMA", "XCD", "Infinity Cache", "tensor core", "input_precision", "matrix peak", "tl.dot")
    softmax = "\n".join(knowledge_for(Setting(SETTING.task, (gpu,))))
    assert not [words for words in of_products if words in softmax]
    assert not [words for words in ("FNUZ", "8-bit", "int8") if words in softmax]
    pages = "\n".join(knowledge_for(Setting(load_task("matmul"), (gpu,))))
    assert "# Matrix products" in pages
    assert ("MFMA" in pages) == (gpu.backend == "hip")
    assert ("XCDs**: workgroups" in pages) == (hardware(gpu).dies > 1)
    for option in ("waves_per_eu", "kpack", "matrix_instr_nonkdim"):
        assert gpu.backend == "hip" or option not in pages


def test_advice_on_bandwidth_is_left_out_where_every_case_is_shorter_than_its_launch() -> None:
    task = load_task("vector_add")
    tiny = tuple(msgspec.structs.replace(case, gpu=case.cpu) for case in task.open_cases)
    short = "\n".join(knowledge_for(Setting(msgspec.structs.replace(task, cases=tiny), SETTING.targets)))
    full = "\n".join(knowledge_for(Setting(task, SETTING.targets)))
    for words in ("Wide accesses", "Wide loads", "many times 304 workgroups"):
        assert words in full
        assert words not in short
    assert "Launches cost more than the memory traffic here" in short


def test_knowledge_pages_are_short_and_name_their_sources() -> None:
    for page in knowledge.pages():
        assert page.text.count("\n") < 120
        assert page.sources
        assert page.text.startswith("# ")


def test_hardware_figures_come_from_the_table() -> None:
    about = [page for page in knowledge.pages() if "gfx942" in page.targets]
    facts = hardware(target("gfx942"))
    bandwidth = f"{facts.memory_bytes_per_s / 1e12:.2f} TB/s"
    filled = "\n".join(knowledge_for(Setting(load_task("matmul"), SETTING.targets)))
    for figure in (
        f"compute units | {facts.compute_units}",
        f"{facts.last_level_bytes >> 20} MiB",
        bandwidth,
    ):
        assert not [page.name for page in about if figure in page.text]
        assert figure in filled
