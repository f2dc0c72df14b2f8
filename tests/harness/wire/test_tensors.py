"""Protects arguments on their way between processes: names in order, types of scalars, layouts of tensors."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.wire.calls.tensors import CASE_SPECS, CaseSpecs, TensorSpec
from harness.wire.channels.channel import ENCODER

SIZES = st.lists(st.integers(0, 1 << 40), max_size=4).map(tuple)
OFFSETS = st.integers(0, 1 << 40)
TENSORS = st.builds(
    TensorSpec,
    dtype=st.sampled_from(["float32", "float8_e4m3fn", "bool"]),
    shape=SIZES,
    strides=SIZES,
    data=st.binary(max_size=8),
    offset=OFFSETS,
    storage=st.integers(-1, 3),
    offset_bytes=OFFSETS,
    storage_bytes=OFFSETS,
    tail_bytes=OFFSETS,
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False)
    | st.text()
)
SPECS = st.dictionaries(st.text(), st.dictionaries(st.text(), TENSORS | SCALARS, max_size=5), max_size=3)


@given(SPECS)
def test_arguments_arrive_as_they_were_sent(specs: CaseSpecs) -> None:
    arrived = CASE_SPECS.decode(ENCODER.encode(specs))
    assert arrived == specs
    for case, arguments in specs.items():
        assert list(arrived[case]) == list(arguments)
        assert [type(value) for value in arrived[case].values()] == [
            type(value) for value in arguments.values()
        ]
