"""Prompts: each contains its required facts and no hidden facts; a missing fact is an error."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import jinja2
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.prompting.baseline_facts import BaselineFacts, baseline_facts
from engine.prompting.profiles import PROFILES
from engine.prompting.prompting import (
    PROMPTS,
    Example,
    Setting,
    escape_prompt,
    fenced,
    first_prompt,
    optimize_prompt,
    reflect_prompt,
    repair_prompt,
    templates,
)
from engine.prompting.tolerance_words import tolerance_words
from engine.reply.candidate import fenced_blocks
from harness import ErrorReport, Verdict, target
from harness.hardware.product_tables import find_product
from harness.wire.messages.server import Language
from harness.wire.results.provenance import Provenance
from sessions.events import Message
from suites import Task, Tolerance, load_suite, load_task
from suites.task import RecordedScript
from tests.support.engine.prompts import SETTING, text
from tests.support.judge.judged_attempts import judge_again
from tests.support.judge.judged_candidates import failing, mismatch, passing
from tests.support.programs import python
from tests.support.tasks.packaged_task import write_packaged_task

EXAMPLE = Example("Sum of two vectors", "def vector_add(x, y): ...\n")


def every_prompt(setting: Setting = SETTING) -> dict[str, tuple[Message, ...]]:
    failed, good = failing(reflection="The mask is missing."), passing()
    return {
        "first": first_prompt(setting, example=EXAMPLE),
        "repair": repair_prompt(setting, failed=failed, failures=2, trap=5, best=good, example=EXAMPLE),
        "optimize": optimize_prompt(setting, history=[good]),
        "escape with history": escape_prompt(setting, history=[good], given_up=[failed], trap=5),
        "escape without": escape_prompt(setting, given_up=[failed], trap=5, example=EXAMPLE),
        "reflect": reflect_prompt(setting, failed=failed, best=good),
    }


def test_a_task_of_a_script_promises_no_hidden_sizes_and_no_float64_reference() -> None:
    task = msgspec.structs.replace(load_task("softmax"), script=RecordedScript("wavedeck_call(call, x=None)"))
    system, user = first_prompt(Setting(task, SETTING.targets))
    assert "makes the calls that the request lists" in system.content
    assert "Hidden cases" not in system.content
    assert "float64" not in system.content.partition("# Triton")[0] + user.content
    assert "| case | dtype |" not in user.content
    assert "**Returns**: by call, in the list above." in user.content


def recorded(**fields: object) -> Task:
    """Return a task of recorded calls with this `[script]`."""
    script = msgspec.structs.replace(RecordedScript("wavedeck_call(call, x=None)"), **fields)
    return msgspec.structs.replace(load_task("softmax"), script=script)


def test_a_hidden_reference_leaves_the_meaning_open_and_values_help() -> None:
    task = recorded(hides_baseline=True, examples=("call-2: `x = [1, 2]`", "call-2: `out = [3]` (returned)"))
    setting = Setting(task, SETTING.targets)
    system, user = first_prompt(setting)
    assert "do not guess" not in system.content
    assert "**What is computed** is open" in user.content
    assert "Check it with these values of one run:\n\n- call-2: `x = [1, 2]`\n" in user.content
    without = text(first_prompt(dataclasses.replace(setting, examples=False)))
    assert "**What is computed** is open" in without
    assert "x = [1, 2]" not in without
    shown = dataclasses.replace(
        setting, baseline=BaselineFacts("triton", reference="@triton.jit\n# answer\n")
    )
    system, user = first_prompt(shown)
    assert "do not guess" in system.content
    assert "# answer" in user.content
    assert "**What is computed**" not in user.content
    assert "# answer" in text(repair_prompt(shown, failed=failing(), failures=1, trap=5))
    assert "# answer" not in text(optimize_prompt(shown, history=[passing()])), "a correct kernel is there"


def test_a_pytorch_reference_is_no_kernel_to_build_on() -> None:
    task = msgspec.structs.replace(recorded(), quantization=load_task("matmul_w8a8").quantization)
    facts = BaselineFacts("eager", reference="return torch.mm(x, y)\n")
    on_cpu = Setting(task, SETTING.targets, baseline=facts)
    prompt = text(repair_prompt(on_cpu, failed=failing(), failures=1, trap=5))
    assert "return torch.mm(x, y)" in prompt, "a repair needs the meaning, too"
    assert "Its operators are refused outside kernels. Its code does not quantize" in prompt
    assert "build on it" not in prompt
    assert "peedups are against" not in prompt + first_prompt(on_cpu)[1].content
    on_gpu = text(first_prompt(dataclasses.replace(on_cpu, device="MI300X")))
    assert "Speedups are against it (eager)." in on_gpu
    allowing = dataclasses.replace(on_cpu, task=msgspec.structs.replace(task, allowed_operators=("mm",)))
    prompt = text(first_prompt(allowing))
    assert "refused outside kernels, unless they are allowed below" in prompt
    assert "may use them outside its kernels too, also for what it returns: `mm`." in prompt


def test_baseline_times_of_another_product_are_left_out() -> None:
    evaluation = passing(speedup=1.0).evaluation
    h200, facts = find_product("H200 SXM"), Provenance(product="H100 SXM5", triton="3.7.1")
    measured = msgspec.structs.replace(evaluation, provenance=facts)
    setting = Setting(
        SETTING.task,
        (target("sm_90"),),
        h200.name,
        product=h200,
        baseline=baseline_facts("triton", "# the baseline\n", measured),
    )
    assert "baseline, us" not in text(first_prompt(setting))
    same = dataclasses.replace(setting, product=find_product("H100 SXM5"))
    assert "baseline, us" in text(first_prompt(same))


def test_rules_name_the_installed_triton() -> None:
    language = Language("3.9.0", ("exp", "log"), {"hip": ("tanh",), "cuda": ("pow",)}, ("any",))
    rules = first_prompt(Setting(SETTING.task, SETTING.targets, language=language))[0].content
    assert (
        "- **Triton 3.9.0**. Elementary functions of `tl`: exp, log. Only `from triton.language.extra import libdevice` "
        "has tanh. `tl` has no any.\n" in rules
    )


@pytest.mark.parametrize("task", load_suite("starter"), ids=lambda task: task.name)
def test_every_prompt_contains_the_whole_task(task: Task) -> None:
    setting = Setting(load_task(task.id), (target("gfx942"), target("sm_90")))
    for messages in every_prompt(setting).values():
        prompt = text(messages)
        for entry in setting.task.entry_points:
            assert f"`{entry.signature}`" in prompt
        for case in setting.task.open_cases:
            assert re.search(rf"\| {re.escape(case.name)} \| {case.dtype} \| {case.distribution} \|", prompt)
            for name, size in (case.gpu | case.cpu).items():
                assert f"{name}={size}" in prompt or f"{name}={case.gpu[name]}" in prompt
        for output in setting.task.outputs:
            assert f"`{output.name}`" in prompt
        assert setting.task.instruction.strip() in prompt
        rules = messages[0].content
        assert "gfx942" in rules
        assert "sm_90" in rules
        assert "exactly one ```python block" in rules
        assert "# How a candidate is judged" in rules
        assert "## Strategy" in rules


@pytest.mark.parametrize("task", load_suite("starter"), ids=lambda task: task.name)
def test_no_prompt_reveals_oracle_baseline_exam_cases_or_seeds(task: Task) -> None:
    setting = Setting(load_task(task.id), (target("gfx942"),))
    hidden = [
        line.strip()
        for name in ("problem.py", "baseline.py")
        for line in (setting.task.folder / name).read_text().splitlines()
        if len(line.strip()) > 30
        and not line.strip().startswith(("import", "from", '"""', "def ", "#"))
        and "torch.Tensor" not in line  # the task states the argument types
    ]
    hidden += [case.name for case in setting.task.exam_cases]
    formats = [first_prompt(dataclasses.replace(setting, profile=profile)) for profile in PROFILES]
    for messages in (*every_prompt(setting).values(), *formats):
        prompt = "\n".join(message.content for message in messages)
        assert not [line for line in hidden if line in prompt]
        assert not re.search(r"\bseed|generator\.", prompt.replace(setting.task.instruction.strip(), ""))


def test_prompts_of_a_task_have_the_same_start_for_the_cache() -> None:
    prompts = every_prompt().values()
    assert len({messages[0].content for messages in prompts}) == 1
    task_part = text(first_prompt(SETTING)).partition("# Request")[0].rstrip()
    assert all(text(messages).startswith(task_part) for messages in prompts)


def test_first_prompt_shows_the_need_of_each_case_at_full_size() -> None:
    prompt = text(first_prompt(SETTING))
    row = "| fp32 | float32 | standard | rows=8192, columns=8192 | 537 MB | rows=32, columns=512 |"
    assert row in prompt
    square = text(first_prompt(Setting(load_task("matmul"), SETTING.targets)))
    assert "m=4096, n=4096, k=4096 | 137 GFLOP |" in square
    on_gpu = text(first_prompt(Setting(SETTING.task, SETTING.targets, device="MI300X")))
    assert "interpreted" not in on_gpu


def test_a_judge_without_a_gpu_says_how_it_ranks_and_what_no_figure_counts() -> None:
    amd = first_prompt(SETTING)[0].content
    for words in (
        "**Candidates rank** by these figures for gfx942.",
        "128 bits (16 bytes) are the most.",
        "Occupancy: waves per SIMD that fit, in the kernel with the fewest. More than 4 count as 4.",
        "Filled units: workgroups per compute unit in the launch with the fewest, at most 1, in steps of 1/4.",
        "Of equal candidates the earlier stays.",
        "No figure counts the kernel's instructions",
    ):
        assert words in amd
    assert "warps per multiprocessor" in first_prompt(Setting(SETTING.task, (target("sm_90"),)))[0].content
    timed = first_prompt(Setting(SETTING.task, SETTING.targets, device="MI300X"))[0].content
    assert "Filled units" not in timed
    assert "the earlier attempt stays" in timed


def test_first_prompt_shows_the_baseline_with_its_times() -> None:
    timed = baseline_facts("triton", "# the baseline\n@triton.jit\n", passing(speedup=1.0).evaluation)
    setting = Setting(SETTING.task, SETTING.targets, device="MI300X", baseline=timed)
    prompt = text(first_prompt(setting))
    assert "# The kernel to beat" in prompt
    assert "# the baseline" in prompt
    assert re.search(r"\| fp32 \| .* \| 537 MB \| 200 \|", prompt)
    assert "baseline, us" not in text(first_prompt(SETTING)), "nothing was timed"
    assert "# the baseline" not in text(optimize_prompt(setting, history=[passing()]))


def test_a_quantization_names_its_truth_and_its_three_limits() -> None:
    own = load_task("matmul_w8a8")
    public = msgspec.structs.replace(own, script=RecordedScript(signature="wavedeck_call(call)"))
    for task, truth in ((own, "result of the stated quantization"), (public, "without any quantization")):
        words = " ".join(tolerance_words(task))
        assert all(
            part in words
            for part in (truth, "at least 0.99999", "L1 error at most 0.003", "at most 0.003 times")
        )


def test_precision_words_cover_ulps_and_long_sums() -> None:
    task = load_task("matmul")
    half = msgspec.structs.replace(task.outputs[0], name="half", tolerances={"float16": Tolerance(ulps=1.0)})
    summed = Tolerance(accumulation=4.0, reduction="k")
    single = msgspec.structs.replace(
        task.outputs[0], name="single", dtype="float32", tolerances={"float32": summed}
    )
    exact = msgspec.structs.replace(task.outputs[0], name="exact", tolerances={"float16": Tolerance()})
    prompt = list(tolerance_words(msgspec.structs.replace(task, outputs=(half, single, exact))))
    assert prompt == [
        (
            "`half`, `float16`: as exact as careful arithmetic in `float16` throughout (about 9.8e-04 relative, 2 times one rounding to "
            "`float16`); one rounding to `bfloat16` may exceed it."
        ),
        "`exact`, `float16`: exact.",
        (
            "`float32`: as exact as careful arithmetic in `float32` throughout (about 2.2e-05 relative, 360 times one rounding to "
            "`float32`); one rounding to `float16` may exceed it."
        ),
    ]


@pytest.mark.parametrize(
    ("declared", "target_name", "shown"),
    [
        ("fp8_e4m3", "gfx942", "float8_e4m3fnuz"),
        ("fp8_e4m3", "sm_90", "float8_e4m3fn"),
        ("float8_e4m3fn", "sm_90", "float8_e4m3fn"),
    ],
)
def test_prompt_names_the_eight_bit_dtype_of_an_output_on_the_target(
    declared: str, target_name: str, shown: str
) -> None:
    task = load_task("matmul")
    output = msgspec.structs.replace(
        task.outputs[0], dtype=declared, tolerances={declared: Tolerance(ulps=0.51)}
    )
    setting = Setting(msgspec.structs.replace(task, outputs=(output,)), (target(target_name),))
    prompt = text(first_prompt(setting))
    assert f"**Returns** one tensor: `{output.name}` (`{shown}`)" in prompt
    assert f"as exact as one final rounding to `{shown}`" in prompt


def test_prompts_do_not_change_with_an_added_exam_case() -> None:
    task = load_task("softmax")
    hidden = msgspec.structs.replace(
        task.open_cases[0], name="for-the-exam", dtype="bfloat16", cpu={"rows": 13, "columns": 1741},
        gpu={"rows": 3571, "columns": 9973}, exam=True,
    )  # fmt: skip
    kept = msgspec.structs.replace(
        task, cases=(*task.cases, hidden), tolerances=task.tolerances | {"bfloat16": Tolerance(rtol=0.1)}
    )
    with_hidden_case, without = every_prompt(Setting(kept, SETTING.targets)), every_prompt(SETTING)
    assert with_hidden_case == without


def test_repair_prompt_contains_code_error_line_and_reflection() -> None:
    failed = failing(
        error=ErrorReport(
            kind="mismatch",
            message="case fp32-ragged: output `out` is wrong at index [3, 780]: expected 0.00128, got 0.5",
            trace='File "kernel.py", line 5, in softmax',
            line=5,
            mismatch=mismatch(wrong_share=0.01, nan_got=3),
        ),
        reflection="Lane 781 took part in the sum.",
    )
    prompt = text(repair_prompt(SETTING, failed=failed, failures=3, trap=5, best=passing()))
    for fact in (
        failed.source,
        "> One row a program.",
        "expected 0.00128, got 0.5",
        "Verdict **wrong** in stage *execution* (mismatch)",
        "static passed, call passed, compile passed, execution failed, integrity not reached",
        'File "kernel.py", line 5',
        "Line 5 of the module: `return x`",
        "NaN came out where none is expected",
        "Lane 781 took part in the sum.",
        "failed 3 times in a row; after 5 failures it is dropped",
        "# The best correct kernel so far: softmax#1/2\n\nrequests 2.00 times the needed bytes",
    ):
        assert fact in prompt
    assert "best correct kernel" not in text(repair_prompt(SETTING, failed=failed, failures=1, trap=5))
    assert "failed 1 time in a row" in text(repair_prompt(SETTING, failed=failed, failures=1, trap=5))


def test_repair_prompt_names_a_step_backwards() -> None:
    failed = failing("softmax#1/3", verdict=Verdict.COMPILE_ERROR, stage="compile")
    prompt = text(repair_prompt(SETTING, failed=failed, before=failing("softmax#1/2"), failures=2, trap=5))
    assert "**This change lost ground.** softmax#1/3 passed fewer stages than softmax#1/2" in prompt
    broke = text(repair_prompt(SETTING, failed=failed, before=passing("softmax#1/2"), failures=1, trap=5))
    assert "softmax#1/3 broke what worked in softmax#1/2" in broke
    further = text(repair_prompt(SETTING, failed=failing("a#1/2"), before=failed, failures=2, trap=5))
    assert "lost ground" not in further


def test_prompt_after_a_rejection_contains_the_reason() -> None:
    rejected = passing(rejection="It reads each row twice.")
    for prompt in (
        text(reflect_prompt(SETTING, failed=rejected)),
        text(repair_prompt(SETTING, failed=rejected, failures=1, trap=5)),
    ):
        assert "The judge accepted it. A person rejected it:" in prompt
        assert "> It reads each row twice." in prompt
        assert "Verdict" not in prompt
    assert "rejected it without a reason" in text(reflect_prompt(SETTING, failed=passing(rejection="")))


def test_prompt_after_unsupported_names_no_mistake() -> None:
    failed = failing(verdict=Verdict.UNSUPPORTED, stage="call")
    assert "cannot run such code" in text(repair_prompt(SETTING, failed=failed, failures=1, trap=5))


def test_escape_prompt_names_failed_ideas_and_the_start() -> None:
    dropped = [
        failing("softmax#1/6", strategy="Split rows\nover programs."),
        passing("softmax#1/9", rejection="too clever"),
    ]
    anew = text(escape_prompt(SETTING, given_up=dropped, trap=5))
    assert "The last 5 attempts failed, so their idea was dropped." in anew
    assert "softmax#1/6: Split rows over programs." in anew
    assert "Result: wrong: words of the judge" in anew
    assert "Result: rejected by a person: too clever." in anew
    assert "Start anew with a different and simpler approach" in anew
    onwards = text(escape_prompt(SETTING, given_up=dropped, trap=5, history=[passing()]))
    assert "softmax#1/6" in onwards
    assert "Start from the best kernel above" in onwards
    assert "The best kernel so far: softmax#1/2" in onwards
    assert "Start anew" in text(escape_prompt(SETTING, given_up=[], trap=5))


def test_earlier_failures_of_a_line_take_one_line_each() -> None:
    first, second, third = (
        failing(
            f"softmax#1/{number}",
            error=ErrorReport(
                kind="mismatch", message=f"wrong at index [{number}, 7]: expected 1\nevery row is wrong"
            ),
        )
        for number in (1, 2, 3)
    )
    for prompt in (
        text(repair_prompt(SETTING, failed=third, earlier=[first, second], failures=3, trap=5)),
        text(reflect_prompt(SETTING, failed=third, earlier=[first, second])),
    ):
        assert (
            "- softmax#1/1: wrong in execution: wrong at index [1, 7]: expected 1\n- softmax#1/2: wrong"
            in prompt
        )
        assert "**The same error came 3 times.**" in prompt
    other = failing("softmax#1/2", verdict=Verdict.COMPILE_ERROR, stage="compile")
    between = repair_prompt(SETTING, failed=third, earlier=[first, other], failures=3, trap=5)
    assert "The same error" not in text(between)


def test_reflection_prompt_requests_words_not_code() -> None:
    prompt = text(reflect_prompt(SETTING, failed=failing(), best=passing()))
    assert "Do not write the module" in prompt
    assert "words of the judge" in prompt
    assert "softmax#1/2: requests 2.00 times" in prompt


def test_prompt_after_a_reply_without_code_says_so() -> None:
    why = "Your reply held no ```python block."
    good, failed = passing(), failing()
    for messages in (
        first_prompt(SETTING, unusable=why),
        repair_prompt(SETTING, failed=failed, failures=1, trap=5, unusable=why),
        optimize_prompt(SETTING, history=[good], unusable=why),
        escape_prompt(SETTING, given_up=[], trap=5, unusable=why),
    ):
        assert f"could be judged.** {why}" in text(messages)


def test_missing_fact_is_an_error() -> None:
    for template in PROMPTS.glob("*.j2"):
        if template.name not in ("_parts.j2", "_hardware.j2", "_judge.j2"):
            with pytest.raises(jinja2.UndefinedError):
                templates().get_template(template.name).render()
    with pytest.raises(ValueError, match="it has no error"):
        repair_prompt(SETTING, failed=passing(), failures=1, trap=5)
    with pytest.raises(ValueError, match="no correct candidate"):
        optimize_prompt(SETTING, history=[])


def test_long_facts_are_shortened_with_a_remark() -> None:
    failed = failing(error=ErrorReport(kind="exception", message="m" * 9000, trace="frame\n" * 500))
    prompt = text(repair_prompt(SETTING, failed=failed, failures=1, trap=5))
    assert "characters left out" in prompt
    assert prompt.count("frame") == 40


def test_prompt_of_a_kernel_in_a_package_says_where_it_lives(tmp_path: Path) -> None:
    setting = Setting(write_packaged_task(tmp_path), SETTING.targets)
    prompt = text(first_prompt(setting))
    assert "The module is `ops/scale.py` of the package `ops`: it is imported as `ops.scale`" in prompt
    assert "imports: `ops.utils` (`cfg`, `scaled`)" in prompt
    assert "paths from `__file__`" in prompt
    assert "of the package" not in text(first_prompt(SETTING))


@given(st.text(st.characters(blacklist_categories=("Cs", "Cc")) | st.sampled_from("`~\n"), max_size=80))
def test_source_cannot_close_its_code_block(source: str) -> None:
    module = f"x = 0\n{source}\nx = 1"
    [block] = fenced_blocks(fenced(module, "python"))
    assert block.source == module + "\n"
    assert block.closed


@settings(max_examples=5)
@given(st.text(max_size=200), st.text(max_size=200), st.text(max_size=200))
def test_candidate_text_is_never_rendered_as_a_template(source: str, strategy: str, message: str) -> None:
    failed = failing(
        source=source + "{{ 1 + 1 }}{% raise %}", strategy=strategy + "{{ x }}", reflection="{% endif %}"
    )
    judge_again(failed.record, failing(error=ErrorReport(kind="k", message=message + "{{ y }}")).evaluation)
    prompt = text(repair_prompt(SETTING, failed=failed, failures=1, trap=5))
    assert "{{ 1 + 1 }}{% raise %}" in prompt


def test_prompts_are_equal_in_every_process() -> None:
    code = (
        "from engine.prompting.prompting import *; from harness import target; from suites import load_task;"
        "import sys; sys.stdout.write(first_prompt(Setting(load_task('softmax'), (target('gfx942'),)))[0].content)"
    )
    assert python(code, PYTHONHASHSEED="1") == first_prompt(SETTING)[0].content
