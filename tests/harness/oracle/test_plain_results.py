"""Results with `None` and numbers beside tensors: what a call must return there, and how wrong parts are named."""

from __future__ import annotations

import msgspec
import pytest

from harness.wire.calls.signatures import Parameter, signature_error
from harness.wire.messages.guest import Plain, Returned
from harness.wire.results.evaluation import Traffic
from harness.worker.kit.in_place import without_plain
from harness.worker.oracle.integrity import plain_parts
from suites.folder import read_task
from suites.source.signature import parse_signature
from suites.task_rules import task_problems
from tests.support.tasks.packaged_task import write_packaged_task

RETURNS = ("out", "", "lse", "")


def returned(plain: tuple[Plain, ...] | None) -> Returned:
    return Returned("tuple", (), (), 0, (), Traffic(""), "", changed_output=False, plain=plain)


def test_parts_without_a_name_are_no_outputs() -> None:
    assert without_plain(("out", None, "lse", 3), RETURNS) == (("out", "lse"), (None, 3))
    assert without_plain(("out", 0.5), ("out", "")) == ("out", (0.5,))
    assert without_plain(("out", None), ()) == (("out", None), ())
    for wrong in (("out", "lse"), ("out", "text", "lse", 3), "out", None):
        assert without_plain(wrong, RETURNS) == (wrong, None)


@pytest.mark.parametrize(
    ("got", "says"),
    [
        ((None, 3, 0.5 + 1e-9), ""),
        ((None, 4, 0.5), "part 2 of the result is 4, not 3"),
        ((None, 3.0, 0.5), "part 2 of the result is 3.0, not 3"),
        ((0, 3, 0.5), "part 1 of the result is 0, not None"),
        ((None, 3, 0.6), "part 3 of the result is 0.6, not 0.5"),
        (None, "expected a tuple of 4: out, None, a number, a number"),
    ],
)
def test_wrong_parts_are_named(got: tuple[Plain, ...] | None, says: str) -> None:
    assert plain_parts(returned(got), (None, 3, 0.5), ("out", "", "", "")) == says


def test_task_names_its_outputs_in_their_order(tmp_path: object) -> None:
    task = write_packaged_task(tmp_path)  # type: ignore[arg-type]
    assert not [*task_problems(msgspec.structs.replace(task, in_place=(), returns=("x", "", "y")))]
    for wrong in (("y", "x", ""), ("x", ""), ("x", "y", "z")):
        problems = [*task_problems(msgspec.structs.replace(task, in_place=(), returns=wrong))]
        assert [key for key, _ in problems] == ["returns"]
    assert read_task(task.folder, suite="mine").returns == ()


def test_parameters_by_name_only_may_stand_anywhere() -> None:
    wanted = "norm(x, weight, *, eps=1e-6)"
    assert parse_signature(wanted).by_position == ("x", "weight")
    x, weight, eps, out = (
        Parameter("x"),
        Parameter("weight"),
        Parameter("eps", "1e-06"),
        Parameter("out", "None"),
    )
    assert signature_error(wanted, (x, weight, eps)) == ""
    assert signature_error(wanted, (x, weight, out, eps)) == ""
    assert signature_error(wanted, (x, weight)) == "parameter `eps` is missing"
    assert (
        signature_error(wanted, (x, weight, Parameter("eps", "2")))
        == "parameter `eps` defaults to 2, not 1e-06"
    )
    assert signature_error(wanted, (x, weight, eps, Parameter("y"))) == "parameter `y` is one too many"
