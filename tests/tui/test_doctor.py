from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from harness import Device, HarnessReport, Identity, Layer
from harness.layers import COMPILING
from harness.leases import lease
from harness.worker.sandbox import sandbox
from sessions import Home
from tests.tui import stored
from tests.tui.running import Shell
from tui.doctor import machine, outside, store
from tui.doctor.examination import Examination, section
from tui.doctor.findings import Finding, Section, State, page, tally


def found(findings: Iterable[Finding], subject: str) -> Finding:
    return next(finding for finding in findings if finding.subject == subject)


@pytest.mark.judge
def test_doctor_says_what_this_machine_has_and_tells_no_key(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
    monkeypatch.setenv("WAVEDECK_MODLE", "x")
    done = shell("doctor", "--json")
    assert (done.code, done.err) == (0, "")
    sections = {section["name"]: section["findings"] for section in json.loads(done.out)["sections"]}
    assert list(sections) == [
        "machine", "GPUs", "judge", "sandbox", "models", "configuration", "store", "detached engine", "terminal",
    ]  # fmt: skip
    assert {finding["subject"] for finding in sections["judge"]} == {"torch", "triton", "judging"}
    assert {finding["state"] for finding in sections["judge"]} == {"ok"}
    assert sections["sandbox"]
    assert sections["models"][0] == {
        "subject": "ANTHROPIC_API_KEY",
        "state": "ok",
        "found": "set",
        "follows": "--model anthropic:NAME can be used, and is paid for",
    }
    assert "sk-ant-secret" not in done.out
    assert "did you mean WAVEDECK_MODEL?" in sections["configuration"][0]["found"]


def test_doctor_tells_what_leads_to_a_gateway_by_name_alone() -> None:
    environ = {
        "WAVEDECK_MODEL_HEADERS": "X-Team: kernels\nX-Token: t0ken-0123456789",
        "AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com",
        "AZURE_OPENAI_API_KEY": "azure-5ecret",
        "SSL_CERT_FILE": "/nowhere/authority.pem",
    }
    found = {finding.subject: finding for finding in outside.models(environ)}
    assert found["WAVEDECK_MODEL_HEADERS"].found == "sets X-Team, X-Token"
    assert "needs OPENAI_API_VERSION" in found["AZURE_OPENAI_ENDPOINT"].follows
    assert found["SSL_CERT_FILE"].found == "names nothing that exists"
    assert found["GEMINI_API_KEY"].follows == "gemini:NAME cannot be used"
    assert "t0ken" not in repr(found)
    assert "5ecret" not in repr(found)


@pytest.mark.judge
def test_doctor_fits_80_columns_and_leaves_nothing_behind(shell: Shell, home: Home) -> None:
    done = shell("doctor")
    assert (done.code, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= 80
    assert not home.root.exists()


def test_what_cannot_be_looked_into_is_a_finding() -> None:
    def look() -> Iterable[Finding]:
        yield Finding("first", State.OK, "fine")
        raise PermissionError(13, "Permission denied", "/sys/thing")

    told = section(Examination("GPUs", look))
    assert [finding.subject for finding in told.findings] == ["first", "GPUs"]
    assert told.findings[1].state is State.WARNING
    assert "PermissionError" in told.findings[1].found
    assert tally([told]) == "1 ok, 0 note, 1 warning"


def test_what_follows_stands_below_what_is() -> None:
    told = page(Section("store", (Finding("home", State.WARNING, "overlay " * 10, "mount a volume"),)))
    assert told.splitlines() == [
        "store",
        "  warning  home  overlay overlay overlay overlay overlay overlay overlay overlay",
        "                 overlay overlay",
        "                 -> mount a volume",
    ]


def test_a_home_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    home = Home(tmp_path / "file" / "home")
    assert found(store.writable(home), "home").state is State.OK  # the folder above the file can be written
    nowhere = Home(Path("/proc/wavedeck"))
    warned = found(store.writable(nowhere), "home")
    assert warned.state is State.WARNING
    assert "set WAVEDECK_HOME" in warned.follows


def test_the_store_section_counts_sessions_by_state(home: Home) -> None:
    stored.finished(home, stored.FIRST)
    stored.stopped(home, stored.SECOND)
    told = found(store.store(os.environ), "sessions")
    assert told.found == "1 stopped, 1 finished"


def report(**facts: object) -> HarnessReport:
    usual: dict[str, object] = {
        "judges": True,
        "why_not": "",
        "torch": "2.13.0+cpu",
        "triton": "3.7.1",
        "tested_triton": ("3.7.1",),
        "forks": True,
        "fork_detail": "forked workers pass the self-test",
        "sandbox": (
            Layer("network", "active"),
            Layer("read-allow-list", "absent", "no Landlock in this kernel"),
        ),
        "devices": (),
    }
    return HarnessReport(**(usual | facts))  # type: ignore[arg-type]


def test_a_gpu_is_told_with_its_product_and_peaks() -> None:
    seen = Identity("NVIDIA H200", 0x10DE, 0x2335, 132, 150_109_880_320)
    device = Device(name="0", kind="cuda", target="sm_90", description="NVIDIA H200, 140 GiB", identity=seen)
    told = machine.gpu(device)
    assert (told.subject, told.state) == ("GPU 0", State.OK)
    assert told.found == "NVIDIA H200, 140 GiB, sm_90; H200 SXM, at most 4.8 TB/s, 989.4 TFLOP/s of float16"
    assert told.follows == ""


def test_a_gpu_that_is_no_known_product_says_why_and_what_is_missing() -> None:
    seen = Identity("NVIDIA H200 NVL", 0x10DE, 0x233B, 132, 150_109_880_320)
    device = Device(
        name="1", kind="cuda", target="sm_90", description="NVIDIA H200 NVL, 140 GiB", identity=seen
    )
    told = machine.gpu(device)
    assert told.found.endswith("sm_90; unknown product")
    assert told.follows == (
        "no efficiency is shown: NVIDIA H200 NVL, PCI 10de:233b is not in the table of products"
    )


def test_an_untested_triton_is_told_with_the_tested_ones() -> None:
    assert found(machine.judge(report()), "triton").state is State.OK
    untested = found(machine.judge(report(triton="3.4.0+rocm")), "triton")
    assert (untested.state, untested.found) == (State.NOTE, "3.4.0+rocm; tested: 3.7.1")


def test_a_machine_without_torch_says_what_still_works() -> None:
    findings = list(machine.judge(report(judges=False, torch=None, why_not="torch not installed")))
    assert found(findings, "torch").found == "not installed"
    judging = found(findings, "judging")
    assert (judging.state, judging.follows) == (State.WARNING, "replay, review and report work")


def test_a_missing_sandbox_layer_is_told_with_its_reason() -> None:
    findings = list(machine.sandbox(report()))
    assert found(findings, "network").state is State.OK
    missing = found(findings, "read-allow-list")
    assert (missing.state, missing.found) == (State.WARNING, "absent: no Landlock in this kernel")
    assert "may read your files" in missing.follows


def test_every_layer_says_what_its_absence_means() -> None:
    for name in sandbox.NAMES:
        for state in ("absent", "failed"):
            for prefix in ("", COMPILING):
                told = machine.sandboxed(Layer(prefix + name, state, "why"))
                assert told.state is not State.OK
                assert told.follows


def test_a_control_groups_limits_are_believed(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    (tmp_path / "memory.max").write_text(f"{4 << 30}\n")
    assert machine.cpu_quota(tmp_path) == 1.5
    told = machine.memory({"MemTotal": 64 << 30, "MemAvailable": 60 << 30}, machine.memory_limit(tmp_path))
    assert told.state is State.WARNING
    assert told.found.startswith("4.0 GiB (a control group's limit)")
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.cpu_quota(tmp_path) is None
    assert machine.memory_limit(tmp_path) is None


def test_meminfo_is_read_in_bytes(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal:       16384 kB\nHugePages_Total:       0\n")
    assert machine.meminfo(tmp_path / "meminfo") == {"MemTotal": 16 << 20}


def test_keys_and_redirections_are_told_by_name() -> None:
    findings = list(
        outside.models({"OPENAI_BASE_URL": "http://gateway/v1", "HTTPS_PROXY": "http://user:pass@proxy"})
    )
    assert found(findings, "OPENAI_BASE_URL").state is State.WARNING
    assert found(findings, "proxy").found == "HTTPS_PROXY set"
    assert not any("pass" in finding.found + finding.follows for finding in findings)


def test_a_terminal_that_is_none_is_told_with_what_happens_then() -> None:
    (told,) = [finding for finding in outside.terminal({"TERM": "xterm"}) if finding.subject == "cockpit"]
    assert told.follows == "runs are headless, replay and attach print plain text"


def test_wrong_settings_are_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wavedeck.toml").write_text("instnces = 1\n")
    (told,) = outside.configuration({"HOME": str(tmp_path)})
    assert told.state is State.WARNING
    assert "did you mean 'instances'?" in told.found


async def test_who_is_on_a_gpu_and_what_idle_means_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gpus = [
        Device(name=str(n), kind="hip", visibility=f"ROCR_VISIBLE_DEVICES={n}", package=f"0000:c{n}:00")
        for n in range(2)
    ]
    monkeypatch.setattr("harness.selection.discover_devices", lambda: tuple(gpus))
    monkeypatch.setenv("WAVEDECK_LEASES", str(tmp_path / "leases"))
    async with lease(gpus[0], exclusive=True, session="20261121-100000-geak-00aa"):
        told = {finding.subject: finding for finding in machine.use(os.environ)}
    assert "session 20261121-100000-geak-00aa" in told["GPU 0 is"].found
    assert (told["GPU 1 is"].found, told["GPU 1 is"].follows) == (
        "idle",
        "not visible here: load, memory, other processes",
    )
    assert told["a run"].found == "--devices idle means 1"
    assert told["leases"].found == str(tmp_path / "leases")
