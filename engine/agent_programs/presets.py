"""The agents that `wavedeck run --agent` knows: command, keys, own files and format of the output."""

from __future__ import annotations

import importlib.util
import json
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from engine.agent_programs.output import SERVER
from engine.errors import UsageProblem
from engine.models.access import PROXIES
from sessions.settings import MethodOptions
from suites.privacy import holds_key

URL = "WAVEDECK_MCP_URL"
TOKEN = "WAVEDECK_MCP_TOKEN"
TASK = "WAVEDECK_AGENT_TASK"
"""Variables with address and token of the MCP server that serves one instance, and with its task."""


GEMINI_SETTINGS = ".gemini/settings.json"
"""Gemini CLI's settings, in a home or in a work folder."""


@dataclass(frozen=True, slots=True)
class AgentProgram:
    """How an agent is started. A word of a command may have `{prompt}`, `{mcp}` (file with the MCP server) or `{url}`."""

    name: str
    command: tuple[str, ...]
    unconfined: tuple[str, ...] = ()
    """Words that are added where the kernel cannot confine it."""
    confined: tuple[str, ...] = ()
    """Words that are added where the kernel confines it: its own sandbox does not run inside ours."""
    model: tuple[str, ...] = ()
    """Words that choose its model, with `{model}`."""
    keys: tuple[str, ...] = ()
    """Variables with keys of its provider."""
    own: tuple[str, ...] = ()
    """Its own files and folders, which it may change; no other agent reads them. A file's name has a suffix."""
    variables: Mapping[str, str] | None = None
    output: str = "text"
    """Format of its output, see `engine.agent_programs.output`."""
    has_terminals: bool = False
    """True: its shell needs a terminal of its own, so it can reach those of people too."""
    has_mcp: bool = False
    """False: it judges with the command `wavedeck mcp call eval`."""

    def words(self, *, model: str, is_confined: bool, values: Mapping[str, str]) -> list[str]:
        """Returns the command with its placeholders replaced."""
        words = [*self.command, *(self.confined if is_confined else self.unconfined)]
        words += self.model if model else ()
        for name, value in {"model": model, **values}.items():
            words = [value if word == f"{{{name}}}" else word for word in words]
        return [word.replace("{url}", values["url"]) for word in words]

    def keys_for(self, model: str) -> tuple[str, ...]:
        """Returns the variables with keys; LiteLLM's agents use those of the provider before the `/` of the model."""
        provider, slash, _ = model.partition("/")
        return (*self.keys, f"{provider.upper()}_API_KEY") if slash and not self.has_mcp else self.keys


PRESETS = {
    program.name: program
    for program in (
        AgentProgram(
            "claude-code",
            ("claude", "-p", "{prompt}", "--mcp-config", "{mcp}", "--strict-mcp-config", "--output-format", "stream-json", "--verbose"),
            unconfined=("--allowedTools", f"mcp__{SERVER}"),
            confined=("--allowedTools", f"mcp__{SERVER},Bash,Edit,Write"),
            model=("--model", "{model}"),
            keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
            own=("~/.claude", "~/.claude.json"),
            variables={"MCP_CONNECTION_NONBLOCKING": "0", "MCP_CONNECT_TIMEOUT_MS": "60000"},
            output="claude",
            has_mcp=True,
        ),
        AgentProgram(
            "codex",
            (
                "codex", "exec", "--json", "--skip-git-repo-check",
                "-c", 'mcp_servers.wavedeck.url="{url}"',
                "-c", f'mcp_servers.wavedeck.bearer_token_env_var="{TOKEN}"',
                "-c", "mcp_servers.wavedeck.required=true",
                "-c", "mcp_servers.wavedeck.tool_timeout_sec=300",
                "{prompt}",
            ),
            unconfined=("-s", "workspace-write"),
            confined=("-s", "danger-full-access"),
            model=("-m", "{model}"),
            keys=("CODEX_API_KEY", "OPENAI_API_KEY"),
            own=("~/.codex",),
            output="codex",
            has_mcp=True,
        ),
        AgentProgram(
            "gemini",
            ("gemini", "-p", "{prompt}", "-o", "stream-json", "--approval-mode", "yolo"),
            model=("-m", "{model}"),
            keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            own=("~/.gemini",),
            variables={"GEMINI_CLI_TRUST_WORKSPACE": "true"},  # else it ignores the MCP server in its work folder
            output="gemini",
            has_mcp=True,
        ),
        AgentProgram(
            "openhands",
            ("openhands", "--headless", "--override-with-envs", "-t", "{prompt}"),
            keys=("LLM_API_KEY",),
            own=("~/.openhands",),
            has_terminals=True,
        ),
        AgentProgram(
            "mini-swe-agent",
            (
                "mini", "-t", "{prompt}", "-y", "--exit-immediately", "-o", "trajectory.json",
                "-c", "mini.yaml", "-c", "environment.timeout=900",
            ),
            model=("-m", "{model}"),
            own=("~/.config/mini-swe-agent",),
        ),
    )
}  # fmt: skip


def program_of(options: MethodOptions) -> AgentProgram | None:
    """Returns the agent that the engine starts; `None` if a person starts it. `UsageProblem` if there is no such agent."""
    if options.agent and options.agent not in PRESETS:
        raise UsageProblem(
            f"--agent knows {', '.join(PRESETS)}, not {options.agent!r}; start another one with --agent-command"
        )
    program = PRESETS.get(options.agent)
    if not options.agent_command:
        return program
    try:
        words = tuple(shlex.split(options.agent_command))
    except ValueError as error:
        raise UsageProblem(f"--agent-command is no command line: {error}") from error
    if "{prompt}" not in words:
        raise UsageProblem(
            "--agent-command needs {prompt} as a word of its own: the text of the task comes there"
        )
    if program is None:
        return AgentProgram(Path(words[0]).name, words, output="own")
    return replace(program, command=words, confined=(), unconfined=())


def check_program(options: MethodOptions, model: str, environ: Mapping[str, str]) -> AgentProgram | None:
    """Returns the agent as `program_of`; `UsageProblem` if its program is not installed or takes no model."""
    program = program_of(options)
    if program is None:
        return None
    if shutil.which(program.command[0], path=environ.get("PATH")) is None:
        option = "--agent-command" if options.agent_command else "--agent"
        raise UsageProblem(f"{option}: the program {program.command[0]} is not on the path; install it first")
    if importlib.util.find_spec("mcp") is None:
        raise UsageProblem("--agent needs the MCP SDK, which is not installed; pip install 'wavedeck[mcp]'")
    if model and not program.model:
        raise UsageProblem(f"{program.name} takes no --model here; choose it in the agent's own settings")
    return program


def server_settings(url: str, token: str) -> tuple[str, str]:
    """Returns the JSON with Wavedeck's MCP server for Claude Code, and for Gemini CLI."""
    headers = {"Authorization": f"Bearer {token}"}
    claude = {"type": "http", "url": url, "headers": headers, "alwaysLoad": True}
    gemini = {"httpUrl": url, "headers": headers, "trust": True, "timeout": 600_000}
    return json.dumps({"mcpServers": {SERVER: claude}}), json.dumps({"mcpServers": {SERVER: gemini}})


def agent_environment(
    program: AgentProgram,
    model: str,
    environ: Mapping[str, str],
    folder: Path,
    *,
    task: str,
    url: str,
    token: str,
) -> dict[str, str]:
    """Returns the environment of an agent: without keys of others, settings of Wavedeck, and shared temporary files."""
    keys = program.keys_for(model)
    kept = {
        name: value
        for name, value in environ.items()
        if name in (*keys, *PROXIES) or not (holds_key(name, value) or name.startswith("WAVEDECK_"))
    }
    return kept | {
        **(program.variables or {}),
        "PATH": f"{folder / 'bin'}:{environ.get('PATH', '')}",
        "PWD": str(folder),
        "TMPDIR": str(folder / "tmp"),
        URL: url,
        TOKEN: token,
        TASK: task,
    }
