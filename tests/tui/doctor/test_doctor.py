"""`wavedeck doctor`: findings about the machine, and no secret in its output."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from harness import Device, HarnessReport, Identity, Layer
from harness.node.leases import lease
from harness.sandbox import sandbox
from harness.sandbox.layers import COMPILING
from sessions import Home
from tests.support.command_line import Shell
from tests.support.sessions import stored_sessions as stored
from tui.doctor import examination, machine, model_checks
from tui.doctor.doctor_findings import DoctorFinding, DoctorSection, State, page, tally
from tui.doctor.examination import section


def finding_of(findings: Iterable[DoctorFinding], subject: str) -> DoctorFinding:
    return next(finding for finding in findings if finding.subject == subject)


@pytest.mark.judge
def test_doctor_reports_the_machine_without_keys(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
    monkeypatch.setenv("WAVEDECK_MODLE", "x")
    done = shell("doctor", "--json")
    assert (done.code, done.err) == (0, "")
    sections = {section["name"]: section["findings"] for section in json.loads(done.out)["sections"]}
    assert list(sections) == [
        "machine", "GPUs", "judge", "sandbox", "models", "agents", "configuration", "store", "detached engine", "terminal",
    ]  # fmt: skip
    assert {finding["subject"] for finding in sections["judge"]} == {"torch", "triton", "judging"}
    assert {finding["state"] for finding in sections["judge"]} == {"ok"}
    assert sections["sandbox"]
    assert sections["models"][0] == {
        "subject": "ANTHROPIC_API_KEY",
        "state": "ok",
        "found": "set",
        "follows": "--model anthropic:NAME can be used; its calls cost money",
    }
    assert "sk-ant-secret" not in done.out
    assert "did you mean WAVEDECK_MODEL?" in sections["configuration"][0]["found"]


def test_doctor_names_gateway_settings_without_their_values(tmp_path: Path) -> None:
    environ = {
        "WAVEDECK_MODEL_HEADERS": "X-Team: kernels\nX-Token: t0ken-0123456789",
        "AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com",
        "AZURE_OPENAI_API_KEY": "azure-5ecret",
        "SSL_CERT_FILE": str(tmp_path / "authority.pem"),
        "OPENAI_BASE_URL": "http://gateway/v1",
        "HTTPS_PROXY": "http://user:pa55@proxy",
    }
    findings = {finding.subject: finding for finding in model_checks.models(environ)}
    assert findings["WAVEDECK_MODEL_HEADERS"].found == "sets X-Team, X-Token"
    assert "needs OPENAI_API_VERSION" in findings["AZURE_OPENAI_ENDPOINT"].follows
    assert findings["SSL_CERT_FILE"].found == "names a path that does not exist"
    assert findings["GEMINI_API_KEY"].follows == "gemini:NAME cannot be used"
    assert findings["OPENAI_BASE_URL"].state is State.WARNING
    assert findings["proxy"].found == "HTTPS_PROXY set"
    assert not any(secret in repr(findings) for secret in ("t0ken", "5ecret", "pa55"))


def test_doctor_fits_80_columns_and_writes_nothing(
    shell: Shell, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def probed() -> HarnessReport:
        return report()

    monkeypatch.setattr(examination, "probe", probed)
    done = shell("doctor")
    assert (done.code, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= 80
    assert not home.root.exists()


def test_failed_examination_is_a_finding() -> None:
    def look() -> Iterable[DoctorFinding]:
        yield DoctorFinding("first", State.OK, "fine")
        raise PermissionError(13, "Permission denied", "/sys/thing")

    report = section("GPUs", look)
    assert [finding.subject for finding in report.findings] == ["first", "GPUs"]
    assert report.findings[1].state is State.WARNING
    assert "PermissionError" in report.findings[1].found
    assert tally([report]) == "1 ok, 0 note, 1 warning"


def test_page_shows_the_consequence_below_the_finding() -> None:
    text = page(
        DoctorSection("store", (DoctorFinding("home", State.WARNING, "overlay " * 10, "mount a volume"),))
    )
    assert text.splitlines() == [
        "store",
        "  warning  home  overlay overlay overlay overlay overlay overlay overlay overlay",
        "                 overlay overlay",
        "                 -> mount a volume",
    ]


def test_unwritable_home_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    home = Home(tmp_path / "file" / "home")
    assert (
        finding_of(examination.writable(home), "home").state is State.OK
    )  # the folder that contains the file is writable
    nowhere = Home(Path("/proc/wavedeck"))
    warned = finding_of(examination.writable(nowhere), "home")
    assert warned.state is State.WARNING
    assert "set WAVEDECK_HOME" in warned.follows


def test_store_section_counts_sessions_by_state(home: Home) -> None:
    stored.finished(home, stored.FIRST)
    stored.stopped(home, stored.SECOND)
    finding = finding_of(examination.store(os.environ), "sessions")
    assert finding.found == "1 stopped, 1 finished"


def report(**facts: object) -> HarnessReport:
    defaults: dict[str, object] = {
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
    return HarnessReport(**(defaults | facts))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("product", "number", "peaks", "follows"),
    [
        ("NVIDIA H200", 0x2335, "H200 SXM, at most 4.8 TB/s, 989.4 TFLOP/s of float16", ""),
        (
            "NVIDIA H200 NVL", 0x233B, "unknown product",
            "no efficiency is shown: NVIDIA H200 NVL, PCI 10de:233b is not in the table of products",
        ),
    ],
)  # fmt: skip
def test_gpu_finding_has_product_and_peaks_or_says_what_is_missing(
    product: str, number: int, peaks: str, follows: str
) -> None:
    identity = Identity(product, 0x10DE, number, 132, 150_109_880_320)
    description = f"{product}, 140 GiB"
    finding = machine.gpu(
        Device(name="0", kind="cuda", target="sm_90", description=description, identity=identity)
    )
    assert (finding.subject, finding.state) == ("GPU 0", State.OK)
    assert (finding.found, finding.follows) == (f"{description}, sm_90; {peaks}", follows)


def test_judge_section_names_an_untested_triton_and_what_works_without_torch() -> None:
    assert finding_of(machine.judge(report()), "triton").state is State.OK
    untested = finding_of(machine.judge(report(triton="3.4.0+rocm")), "triton")
    assert (untested.state, untested.found) == (State.NOTE, "3.4.0+rocm; tested: 3.7.1")
    findings = list(machine.judge(report(judges=False, torch=None, why_not="torch not installed")))
    assert finding_of(findings, "torch").found == "not installed"
    judging = finding_of(findings, "judging")
    assert (judging.state, judging.follows) == (State.WARNING, "replay, review and report work")


def test_every_missing_layer_has_its_reason_and_a_consequence() -> None:
    assert finding_of(machine.sandbox(report()), "network").state is State.OK
    missing = finding_of(machine.sandbox(report()), "read-allow-list")
    assert missing.found == "absent: no Landlock in this kernel"
    assert "may read your files" in missing.follows
    for name in sandbox.NAMES:
        for state in ("absent", "failed"):
            for prefix in ("", COMPILING):
                finding = machine.sandboxed(Layer(prefix + name, state, "why"))
                assert finding.state is not State.OK
                assert finding.follows


def test_control_group_limits_are_used(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    (tmp_path / "memory.max").write_text(f"{4 << 30}\n")
    assert machine.cpu_quota(tmp_path) == 1.5
    finding = machine.memory(64 << 30, machine.memory_limit(tmp_path))
    assert finding.state is State.WARNING
    assert finding.found.startswith("4 GiB (a control group's limit)")
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.cpu_quota(tmp_path) is None
    assert machine.memory_limit(tmp_path) is None


def test_missing_terminal_names_the_consequence() -> None:
    finding = finding_of(examination.terminal({"TERM": "xterm"}), "cockpit")
    assert finding.follows == "runs are headless, replay and attach print plain text"


def test_wrong_settings_are_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wavedeck.toml").write_text("instnces = 1\n")
    (finding,) = examination.configuration({"HOME": str(tmp_path)})
    assert finding.state is State.WARNING
    assert "did you mean 'instances'?" in finding.found


async def test_gpu_use_names_sessions_and_the_meaning_of_idle(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gpus = [
        Device(name=str(n), kind="hip", visibility=f"ROCR_VISIBLE_DEVICES={n}", package=f"0000:c{n}:00")
        for n in range(2)
    ]
    monkeypatch.setattr("harness.node.selection.discover_devices", lambda: tuple(gpus))
    monkeypatch.setenv("WAVEDECK_LEASES", str(tmp_path / "leases"))
    async with lease(gpus[0], exclusive=True, session="20261121-100000-geak-00aa"):
        findings = {finding.subject: finding for finding in machine.use(os.environ)}
    assert "session 20261121-100000-geak-00aa" in findings["GPU 0 is"].found
    assert (findings["GPU 1 is"].found, findings["GPU 1 is"].follows) == (
        "idle",
        "not visible here: load, memory, other processes",
    )
    assert findings["a run"].found == "--devices idle means 1"
    assert findings["leases"].found == str(tmp_path / "leases")
