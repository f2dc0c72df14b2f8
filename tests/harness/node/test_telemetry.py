"""Protects telemetry: disturbed samples, processes of others, the vendor libraries' formats, and the sampler process."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.linux.worker_start import command
from harness.node.telemetry.amd import AmdSmi
from harness.node.telemetry.nvml import Nvml
from harness.node.telemetry.other_processes import Family, count_others, is_hidden, is_judge
from harness.node.telemetry.reading import Occupant, Reading, SourceUnavailable
from harness.node.telemetry.samples import DevicePoint
from harness.node.telemetry.sysfs import Sysfs, marked_level
from harness.node.telemetry.watcher import Telemetry
from harness.node.telemetry.window_summary import SpanState, span_states, summarize_window
from harness.wire.results.provenance import Provenance
from tests.support.waiting import wait_until

ADDRESS = "0000:c1:00.0"


def series(*clocks: int, others: int | None = 0) -> list[DevicePoint]:
    return [
        DevicePoint(at_s=0.02 * number, clock_mhz=clock, others=others) for number, clock in enumerate(clocks)
    ]


def disturbed(points: list[DevicePoint], *spans: tuple[float, float]) -> list[bool]:
    return [state.disturbed for state in span_states(points, spans)]


def test_span_has_the_lowest_busy_clock_near_it() -> None:
    points = series(1980, 1980, 1965, 1980, 1200, 1980, 1980, 1950)
    points[1] = DevicePoint(at_s=0.02, clock_mhz=345, idle=True)
    spans = [(0.0, 0.03), (0.075, 0.085), (0.13, 0.14)]
    assert [state.clock_mhz for state in span_states(points, spans)] == [1965, 1200, 1950]


def test_sample_beside_a_new_process_is_disturbed() -> None:
    points = [
        *series(1980, 1980),
        DevicePoint(0.04, 1980, 2),
        *(DevicePoint(at, 1980, 0) for at in (0.06, 0.08)),
    ]
    assert disturbed(points, (0.001, 0.01), (0.03, 0.05), (0.07, 0.08)) == [False, True, False]


def test_process_that_only_waits_disturbs_nothing() -> None:
    waiting = series(*[1980] * 6, others=2)
    assert disturbed(waiting, (0.001, 0.01), (0.03, 0.05)) == [False, False]
    third = [*waiting, DevicePoint(at_s=0.12, clock_mhz=1980, others=3)]
    assert disturbed(third, (0.001, 0.01), (0.11, 0.13)) == [False, True]


def test_span_without_a_near_point_has_an_unknown_state() -> None:
    unseen = [DevicePoint(0.0), DevicePoint(0.02)]
    assert span_states(unseen, [(0.0, 0.02)]) == span_states([], [(0.0, 0.02)]) == (SpanState(),)
    assert span_states(series(1980, 900), [(5.0, 6.0)]) == (SpanState(),)


def test_window_has_lowest_busy_clock_and_highest_heat() -> None:
    readings = [
        Reading(0.0, clock_mhz=345, idle=True, hotspot_c=40.0, power_w=90.0, reasons=()),
        Reading(1.0, clock_mhz=1980, hotspot_c=61.0, power_w=500.0, reasons=()),
        Reading(2.0, clock_mhz=1755, hotspot_c=58.0, power_w=700.0, reasons=("power cap",)),
    ]
    window = summarize_window(
        "nvml", readings, [DevicePoint(reading.at_s, reading.clock_mhz, None) for reading in readings]
    )
    assert (window.clock_mhz, window.clock_usual_mhz) == (1755, 1868)
    assert (window.seconds, window.hotspot_c, window.power_w) == (2.0, 61.0, 430.0)
    assert window.throttled == {"power cap": 0.5}, "an idle device is not throttled"
    assert (window.memory_c, window.other_processes) == (None, None), "an unknown value is not 0"


# Other processes on the device.


PARENTS = {10: 1, 11: 10, 12: 11, 98: 1, 99: 1, 1: 0}
"""Our engine is 10; 98 is the judge of another engine, and 77 belongs to another user: `hidepid` hides its parent."""
FAMILY = Family((10,), PARENTS.get, {98}.__contains__, {77}.__contains__)
OURS, JUDGE, STRANGER, GIB = Occupant(11, 1 << 30), Occupant(98, 6 << 30), Occupant(99), 1 << 30


@pytest.mark.parametrize(
    ("occupants", "used_bytes", "host", "count"),
    [
        ([Occupant(12), STRANGER], None, True, 1),
        ([Occupant(12)], None, True, 0),
        (None, None, True, None),
        ([OURS, JUDGE], None, True, 0),  # it comes and goes on the GPU, but its engine keeps the lease
        ([JUDGE, STRANGER], None, True, 1),
        ([OURS, Occupant(77)], None, True, 1),
        ([OURS, Occupant(78)], None, True, 0),  # ended, and still listed
        # In a PID namespace, the numbers of processes may be those of the host.
        ([], 0, False, None),
        ([OURS], GIB, False, None),
        ([OURS, JUDGE], 7 * GIB, False, None),
        ([OURS, JUDGE], 12 * GIB, False, 1),  # a process that the list does not show
        ([OURS, STRANGER], None, False, 1),  # our process is listed, so the numbers are valid here
        ([Occupant(4000)], None, False, None),  # it may be ours under a different number
    ],
)
def test_processes_outside_the_family_are_counted(
    occupants: list[Occupant] | None, used_bytes: int | None, count: int | None, *, host: bool
) -> None:
    assert count_others(occupants, FAMILY, used_bytes, host=host) == count


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it starts a process of another user")
def test_process_of_another_user_is_seen_without_proc() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, user=12345) as stranger:
        assert not is_hidden(stranger.pid), "root sees everything"
        os.seteuid(65534)
        try:
            assert is_hidden(stranger.pid)
        finally:
            os.seteuid(0)
    assert not is_hidden(stranger.pid), "it has ended"


def test_process_of_a_judge_is_recognized() -> None:
    module = command("json.tool")  # waits for its input
    with subprocess.Popen(module, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as judge:
        wait_until(lambda: is_judge(judge.pid), "the command line, which exec sets after Popen returns")
        judge.communicate(b"1")
    assert not is_judge(os.getpid())
    assert not is_judge(judge.pid), "it has ended"


def test_process_of_a_judge_that_ends_is_recognized() -> None:
    """For as long as the driver needs to free its context, it is listed and has no command line."""
    fork = (
        "import os, sys",
        "pid = os.fork()",
        "if not pid: os._exit(0)",
        "print(pid, flush=True)",
        "sys.stdin.read()",
    )
    with subprocess.Popen(
        command("timeit", "-n", "1", "-r", "1", *fork),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as warden:
        assert warden.stdout is not None
        worker = int(warden.stdout.readline())
        no_words = Path(f"/proc/{worker}/cmdline")
        wait_until(lambda: not no_words.read_bytes(), "the end of the worker, which nobody reaps")
        assert is_judge(worker)
        warden.communicate("")
    with subprocess.Popen(["true"]) as stranger:
        no_words = Path(f"/proc/{stranger.pid}/cmdline")
        wait_until(lambda: not no_words.read_bytes(), "the end of a process that nobody reaps")
        assert not is_judge(stranger.pid)


# NVML: answers in the format of nvidia-ml-py.


class NvmlFailed(Exception):
    """The library's error."""


def unsupported(*_: object) -> object:
    raise NvmlFailed("Not Supported")


def nvml(**changed: object) -> SimpleNamespace:
    field = SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(uiVal=71))
    members: dict[str, object] = {
        "NVMLError": NvmlFailed,
        "NVML_CLOCK_SM": 1,
        "NVML_TEMPERATURE_GPU": 0,
        "NVML_FI_DEV_MEMORY_TEMP": 82,
        "NVML_SUCCESS": 0,
        "nvmlMemory_v2": 33554472,
        "nvmlInit": lambda: None,
        "nvmlDeviceGetHandleByPciBusId": {ADDRESS.encode(): "gpu"}.__getitem__,
        "nvmlSystemGetDriverVersion": lambda: "570.86.15",
        "nvmlDeviceGetName": lambda *_: "NVIDIA H200",
        "nvmlDeviceGetVbiosVersion": lambda *_: "96.00.AF.00.01",
        "nvmlDeviceGetClockInfo": lambda *_: 1755,
        "nvmlDeviceGetMaxClockInfo": lambda *_: 1980,
        "nvmlDeviceGetCurrentClocksEventReasons": lambda *_: 0x04 | 0x20,
        "nvmlDeviceGetTemperature": lambda *_: 64,
        "nvmlDeviceGetFieldValues": lambda *_: [field],
        "nvmlDeviceGetPowerUsage": lambda *_: 689_500,
        "nvmlDeviceGetEnforcedPowerLimit": lambda *_: 700_000,
        "nvmlDeviceGetMemoryInfo": lambda *_: SimpleNamespace(used=4 << 30, total=141 << 30),
        "nvmlDeviceGetUtilizationRates": lambda *_: SimpleNamespace(gpu=97, memory=40),
        "nvmlDeviceGetMigMode": unsupported,
        "nvmlDeviceGetComputeRunningProcesses": lambda *_: [SimpleNamespace(pid=77, usedGpuMemory=None)],
    }
    return SimpleNamespace(**(members | changed))


def test_nvml_values_are_converted_to_our_units() -> None:
    source = Nvml(ADDRESS, nvml())
    reading = source.read()
    assert (reading.clock_mhz, reading.hotspot_c, reading.memory_c) == (1755, 64, 71.0)
    assert (reading.power_w, reading.idle) == (689.5, False)
    assert reading.reasons == ("power cap", "heat")
    assert source.occupants() == (Occupant(77, None),)
    known = source.provenance()
    assert (reading.busy_percent, reading.memory_total_bytes) == (97.0, 141 << 30)
    assert (known.product, known.driver, known.partition) == ("NVIDIA H200", "570.86.15", "")
    assert (known.firmware, known.power_cap_w, known.max_clock_mhz) == ("96.00.AF.00.01", 700.0, 1980)


def test_unsupported_nvml_values_are_none() -> None:
    source = Nvml(
        ADDRESS,
        nvml(
            nvmlDeviceGetPowerUsage=unsupported,
            nvmlDeviceGetComputeRunningProcesses=unsupported,
            nvmlDeviceGetCurrentClocksEventReasons=unsupported,
            nvmlDeviceGetCurrentClocksThrottleReasons=lambda *_: 0x01,
        ),
    )
    reading = source.read()
    assert (reading.power_w, source.occupants()) == (None, None)
    assert reading.idle, "older drivers have only the old name of the function"


# amdsmi: dictionaries of amdsmi_interface.py.


class AmdFailed(Exception):
    """The library's error."""


METRICS = {
    "temperature_edge": "N/A",
    "temperature_hotspot": 58,
    "temperature_mem": 47,
    "average_gfx_activity": 99,
    "average_socket_power": "N/A",
    "current_socket_power": 742,
    "current_gfxclk": 2100,
    "current_gfxclks": [1402, 1398, 1410, 1377, 1401, 1400, 65535, "N/A"],
    "accumulation_counter": 123_456,
    "prochot_residency_acc": 0,
    "ppt_residency_acc": 4_000,
    "socket_thm_residency_acc": 12,
    "vr_thm_residency_acc": "N/A",
    "hbm_thm_residency_acc": 0xFFFFFFFFFFFFFFFF,
}


def amdsmi(**changed: object) -> SimpleNamespace:
    members: dict[str, object] = {
        "AmdSmiException": AmdFailed,
        "amdsmi_init": lambda: None,
        "amdsmi_get_processor_handles": lambda: ["other", "gpu"],
        "amdsmi_get_gpu_device_bdf": {"other": "0000:83:00.0", "gpu": "0000:C1:00.0"}.__getitem__,
        "amdsmi_get_gpu_metrics_info": lambda *_: METRICS,
        "amdsmi_get_gpu_vram_usage": lambda *_: {"vram_total": 196_592, "vram_used": 283},
        "amdsmi_get_gpu_process_list": lambda *_: [
            {
                "name": "python",
                "pid": 77,
                "mem": 5,
                "memory_usage": {"gtt_mem": 0, "cpu_mem": 0, "vram_mem": 4096},
            }
        ],
        "amdsmi_get_gpu_compute_partition": lambda *_: "SPX",
        "amdsmi_get_gpu_memory_partition": lambda *_: "NPS1",
        "amdsmi_get_gpu_asic_info": lambda *_: {"market_name": "AMD Instinct MI300X"},
        "amdsmi_get_gpu_driver_info": lambda *_: {"driver_name": "amdgpu", "driver_version": "6.12.12"},
        "amdsmi_get_gpu_vbios_info": lambda *_: {"version": "022.040.003.043", "part_number": "113-M3000100"},
        "AmdSmiClkType": SimpleNamespace(GFX="gfx"),
        "amdsmi_get_clock_info": lambda *_: {"clk": 1402, "min_clk": 132, "max_clk": 2100},
        "amdsmi_get_power_cap_info": lambda *_: {"power_cap": 750_000_000},
    }
    return SimpleNamespace(**(members | changed))


def test_amdsmi_values_are_converted_and_slowest_die_is_the_clock() -> None:
    source = AmdSmi(ADDRESS, amdsmi())
    reading = source.read()
    assert (reading.clock_mhz, reading.hotspot_c, reading.memory_c, reading.power_w) == (1377, 58, 47, 742)
    assert reading.counters == {"processor hot": 0, "power cap": 4_000, "heat": 12}
    assert (reading.ticks, source.occupants()) == (123_456, (Occupant(77, 4096),))
    assert reading.memory_used_bytes == 283 << 20
    known = source.provenance()
    assert (known.product, known.driver, known.partition) == ("AMD Instinct MI300X", "6.12.12", "SPX/NPS1")
    assert (known.firmware, known.power_cap_w, known.max_clock_mhz) == ("022.040.003.043", 750.0, 2100)


# Files of the amdgpu driver.


def test_amdgpu_driver_files_are_read(tmp_path: Path) -> None:
    gpu = tmp_path / ADDRESS
    hwmon = gpu / "hwmon" / "hwmon4"
    hwmon.mkdir(parents=True)
    files = {
        "gpu_busy_percent": "37",
        "mem_info_vram_used": "297009152",
        "mem_info_vram_total": "206141652992",
        "vbios_version": "113-M3000100-102",
        "current_compute_partition": "CPX",
        "current_memory_partition": "NPS4",
        "pp_dpm_sclk": "0: 132Mhz\n1: 1254Mhz *\n2: 2100Mhz",
    }
    sensors = {
        "temp1_label": "edge",
        "temp2_label": "junction",
        "temp2_input": "56000",
        "temp3_label": "mem",
        "temp3_input": "44000",
        "power1_input": "312000000",
        "power1_cap": "750000000",
    }
    for folder, texts in ((gpu, files), (hwmon, sensors)):
        for name, text in texts.items():
            (folder / name).write_text(text + "\n")
    source = Sysfs(ADDRESS, tmp_path)
    reading = source.read()
    assert (reading.clock_mhz, reading.hotspot_c, reading.memory_c, reading.power_w) == (
        1254,
        56.0,
        44.0,
        312.0,
    )
    known = source.provenance()
    assert reading.busy_percent == 37.0
    assert (known.partition, known.power_cap_w, known.max_clock_mhz) == ("CPX/NPS4", 750.0, 2100)
    assert known.firmware == "113-M3000100-102"
    assert marked_level("0: 500Mhz\n1: 2100Mhz\n") is None, "no level is marked"
    with pytest.raises(SourceUnavailable):
        Sysfs("0000:05:00.0", tmp_path)


# The sampler process.


def telemetry(*readings: dict[str, object]) -> Telemetry:
    command = (sys.executable, "-m", "tests.support.timing.scripted_sampler", json.dumps(readings))
    return Telemetry(ADDRESS, "cuda", command=command)


async def test_window_covers_readings_from_begin_to_end() -> None:
    first, last = {"clock_mhz": 1980, "pids": [os.getpid()]}, {"clock_mhz": 1500, "pids": [os.getpid(), 1]}
    async with telemetry(first, last) as watch:
        assert (await watch.state()).clock_mhz == 1980
        assert watch.provenance == Provenance(product="A GPU", driver="570.86.15")
        await watch.begin([os.getpid()])
        assert (await watch.state()).clock_mhz == 1500, "the state can be read during a window"
        watched = await watch.end()
        assert (watched.window.source, watched.window.clock_mhz) == ("nvml", 1500)
        assert len(watched.points) >= 2
        times = [point.at_s for point in watched.points]
        assert times == sorted(times)
        await watch.begin([os.getpid()])
        assert (await watch.end()).window.other_processes == 1


async def test_dead_sampler_is_restarted_once_and_loses_its_window() -> None:
    async with telemetry({"clock_mhz": 1980}, {"die": True}) as watch:
        await watch.begin()
        watched = await watch.end()
        assert watched.window.source == ""
        assert (await watch.state()).clock_mhz == 1980, "the second sampler answers"


async def test_sampler_that_dies_twice_is_given_up_with_a_note() -> None:
    async with telemetry({"die": True}) as watch:
        await watch.begin()
        watched = await watch.end()
        assert (watched.window.source, watched.points) == ("", ())
        assert (await watch.state()).clock_mhz is None
        assert watch.provenance is None
        assert watch.source == ""
        assert watch.note == "the telemetry process ended twice"


async def test_real_sampler_without_driver_says_what_to_install() -> None:
    async with Telemetry("0000:ff:1f.7", "hip") as watch:
        assert await watch.state() == (await watch.state())
        assert watch.source == ""
        assert "amdsmi" in watch.note
        await watch.begin()
        assert "amdsmi" in (await watch.end()).note
