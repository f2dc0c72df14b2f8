"""Programs of agents: their environment, what their output says, and what they may read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.agent_programs.guard import all_but
from engine.agent_programs.output import LONGEST_LINE, AgentOutput
from engine.agent_programs.presets import PRESETS, agent_environment, program_of
from sessions.events import Usage
from sessions.settings import MethodOptions

ENVIRON = {
    "PATH": "/bin", "ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o", "AWS_SECRET_ACCESS_KEY": "s",
    "GITHUB_TOKEN": "g", "npm_config__authToken": "n", "SSH_AUTH_SOCK": "/agent", "WAVEDECK_HOME": "/home",
    "MY_DB_PASS": "d", "SSHPASS": "s", "GITHUB_PAT": "p", "MAIL_PASSWD": "m", "PGP_PASSPHRASE": "p", "MYSQL_PWD": "q",
    "AWS_CREDENTIALS": "c", "NPM_AUTH": "a", "SENTRY_DSN": "d", "STORAGE_CONNECTION_STRING": "s", "SLACK_WEBHOOK": "w",
    "DATABASE_URL": "postgres://me:word@host/db",
}  # fmt: skip
HARMLESS = {
    "LANG": "C", "PWD": "/", "OLDPWD": "/", "GIT_AUTHOR_NAME": "Jo", "TOKENIZERS_PARALLELISM": "false", "NO_BYPASS": "1",
    "COMPASS_HOME": "/c", "PATTERN": "x", "PIP_INDEX_URL": "https://pypi.org:443?mail=me@home", "HTTPS_PROXY": "http://me:word@proxy:80",
}  # fmt: skip


def environment(agent: str, model: str = "") -> dict[str, str]:
    environ = ENVIRON | HARMLESS
    return agent_environment(PRESETS[agent], model, environ, Path("/opt"), task="softmax", url="u", token="t")


def lines(*events: object) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


@pytest.mark.parametrize(
    ("agent", "model", "keys"),
    [
        ("claude-code", "", {"ANTHROPIC_API_KEY"}),
        ("codex", "", {"OPENAI_API_KEY"}),
        ("gemini", "", set()),
        ("mini-swe-agent", "anthropic/claude", {"ANTHROPIC_API_KEY"}),
        ("mini-swe-agent", "", set()),
    ],
)
def test_an_agent_gets_only_the_keys_of_its_provider(agent: str, model: str, keys: set[str]) -> None:
    received = environment(agent, model)
    assert {name for name in received if name in ENVIRON} == {"PATH"} | keys
    assert {name: received[name] for name in HARMLESS} == HARMLESS | {"PWD": "/opt"}
    assert received["PATH"] == "/opt/bin:/bin"


def test_a_command_replaces_that_of_a_preset() -> None:
    options = MethodOptions(
        agent="claude-code", agent_command="claude -p {prompt} --mcp-config {mcp} --max-budget-usd 2"
    )
    program = program_of(options)
    assert program is not None
    values = {"prompt": "Make {mcp} fast; $(true)", "mcp": "/m.json", "url": "http://x"}
    words = program.words(model="opus", is_confined=True, values=values)
    assert words[:5] == ["claude", "-p", values["prompt"], "--mcp-config", "/m.json"]
    assert words[5:] == ["--max-budget-usd", "2", "--model", "opus"]
    assert program.keys == PRESETS["claude-code"].keys


def test_claude_says_tokens_and_cost_as_it_counts_them() -> None:
    output = AgentOutput("claude")
    text = output.read(
        lines(
            {"type": "system", "subtype": "init", "model": "m", "claude_code_version": "2"},
            {"type": "assistant", "message": {"content": [{"type": "text", "text": "I try."}]}},
            {
                "type": "assistant",
                "message": {"content": [{"type": "tool_use", "name": "Bash", "input": {"a": 1}}]},
            },
            {
                "type": "assistant",
                "message": {"content": [{"type": "tool_use", "id": "t", "name": "mcp__wavedeck__eval"}]},
            },
            {
                "type": "user",
                "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": "verdict"}]},
            },
            {
                "type": "result",
                "total_cost_usd": 0.5,
                "usage": {"input_tokens": 5, "cache_read_input_tokens": 3, "output_tokens": 2},
            },
        )
    )
    assert text == 'Claude Code 2, model m\nI try.\n> Bash {"a": 1}\n> eval\n'
    spending = output.take_spending()
    assert (spending.usage, spending.cost_usd) == (Usage(8, 2, 3, None), 0.5)
    assert output.take_spending().usage == Usage()  # said once, counted once


def test_claude_says_tokens_of_each_message_while_it_works() -> None:
    output = AgentOutput("claude")

    def message(name: str, **usage: int) -> dict[str, object]:
        return {"type": "assistant", "message": {"id": name, "usage": usage, "content": []}}

    first = message("a", input_tokens=1, cache_read_input_tokens=7, output_tokens=2)
    output.read(lines(first, first, message("b", input_tokens=10, output_tokens=3)))
    assert output.take_spending().usage == Usage(18, 5, 7, None), "two parts of a message count once"
    # The result has the tokens of whole messages.
    usage = {"input_tokens": 11, "cache_read_input_tokens": 7, "output_tokens": 50}
    output.read(lines(message("c", output_tokens=1), {"type": "result", "usage": usage, "total_cost_usd": 1}))
    assert output.take_spending() == (Usage(0, 45, 0, None), 1.0)
    assert output.stated.usage == Usage(18, 50, 7, None)


def test_agent_without_preset_states_its_totals_in_a_line_of_json() -> None:
    output = AgentOutput("own")
    stated = {"input_tokens": 5000, "output_tokens": 900, "cost_usd": 0.03}
    text = output.read(b"I try.\n" + lines({"wavedeck": stated}, {"other": 1}))
    assert text == 'I try.\n{"other": 1}\n'
    assert output.take_spending() == (Usage(5000, 900, None, None), 0.03)
    output.read(lines({"wavedeck": {**stated, "output_tokens": 1000}}))
    assert output.take_spending().usage.output_tokens == 100


def test_pieces_of_a_message_are_one_line() -> None:
    output = AgentOutput("gemini")
    pieces = [
        {"type": "message", "role": "assistant", "content": word, "delta": True} for word in ("I ", "try.")
    ]
    assert (
        output.read(lines(*pieces, {"type": "tool_use", "tool_name": "mcp_wavedeck_eval"}))
        == "I try.\n> eval\n"
    )


@pytest.mark.parametrize("format_name", ["claude", "codex", "gemini"])
def test_output_of_another_form_is_shown_as_it_is(format_name: str) -> None:
    output = AgentOutput(format_name)
    odd = [
        b"plain words\n",
        b"[1]\n",
        b'{"type": "assistant", "message": 3}\n',
        b'{"type": "item.completed", "item": []}\n',
    ]
    odd += [
        b'{"type": "result", "usage": {"input_tokens": -1}, "total_cost_usd": "NaN", "stats": 1}\n',
        b"\xff\xfe",
    ]
    text = "".join(output.read(part) for part in odd) + output.read(b"", last=True)
    assert text == "plain words\n[1]\n\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}\n"
    assert (output.usage, output.cost_usd) == (Usage(), None)


@pytest.mark.parametrize(
    "line", [b'{"a": ' + b"[" * 100_000, b'{"type": "result", "total_cost_usd": 1' + b"0" * 400 + b"}"]
)
def test_json_that_python_cannot_hold_is_shown_as_it_is(line: bytes) -> None:
    output = AgentOutput("claude")
    assert output.read(line + b"\n") == line.decode() + "\n"
    assert output.cost_usd is None


def test_calls_without_end_take_bounded_memory() -> None:
    output = AgentOutput("gemini")
    for call in range(3000):
        output.read(lines({"type": "tool_use", "tool_name": "mcp_wavedeck_eval", "tool_id": str(call)}))
    assert len(output.judge_calls) <= 1000


def test_a_line_without_end_takes_bounded_memory() -> None:
    output = AgentOutput("codex")
    for _ in range(40):
        assert output.read(b"x" * 65536) == ""
    text = output.read(b'\n{"type": "error", "message": "over"}\n')
    assert len(text) == LONGEST_LINE + len("\nover\n")


def test_an_agent_reads_everything_but_what_is_hidden(tmp_path: Path) -> None:
    machine = tmp_path / "machine"
    for name in ("person/notes", "person/wavedeck/store", "tmp/other", "tmp/wavedeck-guest"):
        (machine / name).mkdir(parents=True)
    (machine / "person" / "link").symlink_to(machine / "person" / "wavedeck")
    hidden = {machine / "person" / "wavedeck", machine / "tmp" / "wavedeck-guest"}
    paths = set(all_but(hidden, opened={machine / "tmp"}))
    assert {path for path in paths if path.is_relative_to(machine)} == {
        machine / "person" / "notes",
        machine / "tmp" / "other",
    }
    assert not any(inner.is_relative_to(path) for inner in hidden for path in paths)
    assert Path("/usr") in paths
