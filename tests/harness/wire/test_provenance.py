"""Protects against ratios of figures that different hardware or software gave."""

import pytest

from harness import Device, Identity
from harness.hardware.recognition import describe_device
from harness.wire.results.provenance import Provenance, runtime_of, same_provenance

MI300X = Provenance(
    product="MI300X", partition="SPX/NPS1", driver="6.12.12", torch="2.8.0+rocm7.0", triton="3.4.0", power_cap_w=750.0
)  # fmt: skip


@pytest.mark.parametrize("changed", ["product", "partition", "driver", "torch", "triton"])
def test_figures_are_compared_only_with_equal_hardware_and_software(changed: str) -> None:
    other = Provenance(
        **{name: getattr(MI300X, name) for name in MI300X.__struct_fields__} | {changed: "other"}
    )
    assert same_provenance(MI300X, MI300X)
    assert not same_provenance(MI300X, other)


def test_unknown_provenance_matches_unknown_alone() -> None:
    assert same_provenance(None, None)
    assert same_provenance(None, Provenance(python="3.12"))
    assert not same_provenance(None, MI300X)


def test_another_card_or_power_cap_of_the_moment_is_compared() -> None:
    other = Provenance(
        product="MI300X", partition="SPX/NPS1", driver="6.12.12", torch="2.8.0+rocm7.0", triton="3.4.0",
        address="0000:c1:00.0", power_cap_w=650.0, max_clock_mhz=2100,
    )  # fmt: skip
    assert same_provenance(MI300X, other)


def test_device_is_described_without_an_answer_of_its_driver() -> None:
    identity = Identity(model="NVIDIA Unheard", partition="MIG 1g.18gb")
    device = Device("0", "cuda", "sm_90", "a GPU", address="0000:c1:00.0", identity=identity)
    known = describe_device(device, Provenance(torch="2.8.0", triton="3.4.0"), None)
    assert (known.product, known.partition, known.torch, known.driver) == (
        "NVIDIA Unheard",
        "MIG 1g.18gb",
        "2.8.0",
        "",
    )


def test_runtime_is_read_from_the_version_of_torch() -> None:
    assert [runtime_of(text) for text in ("2.8.0+rocm7.0", "2.8.0+cu128", "2.8.0+cpu")] == [
        "ROCm 7.0",
        "CUDA 12.8",
        "",
    ]
