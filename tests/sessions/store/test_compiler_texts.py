"""The compiler's texts: in the live folder, in the store, and in words about a difference."""

from __future__ import annotations

import shutil

import msgspec
import pytest

from harness import Evaluation, Latency
from sessions import Home
from sessions import events as ev
from sessions.state.code_facts import code_difference
from sessions.store import compiler_texts
from sessions.store.compiler_texts import read_text
from sessions.store.reconcile import record_at_rest, take_up
from tests.support.judge.assemblies import AMD, packed, with_assembly
from tests.support.sessions import story
from tests.support.sessions.journals import correct
from tests.support.sessions.story import SESSION


async def test_texts_are_in_the_folder_and_in_the_store(home: Home) -> None:
    digest, data = packed(AMD)
    recorder = story.begin(home)
    recorder.files.keep_texts({digest: data})
    assert read_text(home, SESSION, digest) == AMD
    evaluation = with_assembly(correct(), AMD)
    [row] = evaluation.resources["gfx942"]
    evaluation = msgspec.structs.replace(
        evaluation, resources={"gfx942": (msgspec.structs.replace(row, texts={"amdgcn": digest}),)}
    )
    recorder.record(ev.AttemptStarted(attempt="softmax#1/1", origin=ev.Origin.FRESH))
    recorder.record(ev.AttemptJudged(attempt="softmax#1/1", evaluation=evaluation))
    await recorder.finish()
    assert read_text(home, SESSION, digest) == AMD
    shutil.rmtree(home.files(SESSION).folder)
    record_at_rest(home, SESSION, ev.SessionTitled(title="mine"))
    assert read_text(home, SESSION, digest) == AMD
    branch = story.git(home.store, "rev-parse", f"{SESSION}/_journal")
    story.loosen(home.store)
    story.lose(home, f"{SESSION}/_journal^{{tree}}")
    take_up(home, SESSION).close()
    assert story.git(home.store, "rev-parse", f"{SESSION}/_journal") == branch, "written anew with its texts"


@pytest.mark.parametrize("digest", ["/etc/passwd", "../../../store.key", "x" * 5000, "a\0b"])
def test_digest_of_a_stranger_names_no_file(home: Home, digest: str) -> None:
    home.files(SESSION).texts.mkdir(parents=True)
    assert read_text(home, SESSION, digest) is None
    assert home.files(SESSION).text(digest) is None


def test_text_that_is_missing_changed_or_too_long_is_no_error(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest, data = packed(AMD)
    live = home.files(SESSION)
    live.folder.mkdir(parents=True)
    assert read_text(home, SESSION, digest) is None
    live.keep_texts({digest: data[:-1]})
    assert read_text(home, SESSION, digest) is None
    monkeypatch.setattr(compiler_texts, "MOST_CHARACTERS", 100)
    long, data = packed("0" * 200)
    live.keep_texts({long: data})
    assert read_text(home, SESSION, long) == "0" * 100


def test_difference_names_what_changed_by_loop_and_nothing_else() -> None:
    wide = AMD.replace("buffer_load_ushort v8,", "buffer_load_dwordx4 v[20:23],").replace("\ts_barrier\n", "")
    before, after = with_assembly(correct(), AMD, vgprs=96), with_assembly(correct(), wide, vgprs=64)
    assert code_difference(before, after) == (
        "In fp32 `kernel`: registers 96 -> 64; loop at line 5: loads of 128 bits 1 -> 2, "
        "loads of 16 bits 1 -> 0, barriers 1 -> 0."
    )
    assert code_difference(before, before) == ""
    assert code_difference(correct(), after) == "", "an older session has no counts"


def test_difference_begins_with_the_longest_case() -> None:
    (row,) = with_assembly(correct(), AMD).resources["gfx942"]

    def of(vgprs: int) -> Evaluation:
        cases = {"short": 0.01, "long": 0.2}
        rows = tuple(msgspec.structs.replace(row, kernel=name, case=name, vgprs=vgprs) for name in cases)
        latency = tuple(Latency("0", name, ms, ms, 1.0, None, "tape") for name, ms in cases.items())
        return msgspec.structs.replace(correct(), resources={"gfx942": rows}, latency=latency, full_sizes=())

    assert code_difference(of(96), of(200)) == (
        "In long `long`: registers 96 -> 200. In short `short`: registers 96 -> 200."
    )


def test_difference_is_that_of_the_code_that_runs() -> None:
    before = after = with_assembly(correct(), AMD)
    (row,) = after.resources["gfx942"]
    configs = [
        msgspec.structs.replace(
            row, autotune_index=0, autotune_config=f"BLOCK: {block}, num_ctas: 1", vgprs=vgprs, lds_bytes=lds
        )
        for block, vgprs, lds in ((64, 32, 0), (128, 200, 8192))
    ]
    config = {"kernel": "BLOCK: 128, num_ctas: 1"}
    timed = Latency("0", "fp32", 0.2, 0.2, 1.0, None, "tape", configs=config)
    tuned = msgspec.structs.replace(after, resources={"gfx942": tuple(configs)}, latency=(timed,))
    words = "In fp32 `kernel`: registers 96 -> 200, bytes of LDS 0 -> 8192."
    assert code_difference(before, tuned) == words
    missing = msgspec.structs.replace(tuned, resources={"gfx942": tuple(configs[:1])})
    assert code_difference(before, missing) == "", "the code of the chosen config is not known"
    on_nvidia = [msgspec.structs.replace(row, vgprs=None, registers=96, lds_bytes=lds) for lds in (16, 4096)]
    pair = [msgspec.structs.replace(after, resources={"sm_90": (row,)}) for row in on_nvidia]
    assert code_difference(*pair) == "In fp32 `kernel`: bytes of shared memory 16 -> 4096."
