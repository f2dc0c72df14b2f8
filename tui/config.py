"""Settings from flags, environment, `./wavedeck.toml` and the user's own file; the first of these wins.

Keys are the long option names of `run`, and some of the cockpit. The contract is `docs/data.md`, Configuration.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import FieldInfo, fields

from engine.agent_programs.presets import TASK, TOKEN, URL
from engine.errors import UsageProblem
from engine.models.spec import refuse_secrets
from engine.plan.request import RunPlan
from engine.plan.settings import SETTINGS, Flag, accepted_words
from sessions.settings import AGENT

from .diagnostics import Complaint

PROJECT_FILE = "wavedeck.toml"
PREFIX = "WAVEDECK_"
NOT_SETTINGS = frozenset(
    {
        "WAVEDECK_HOME",
        "WAVEDECK_LEASES",
        "WAVEDECK_MODEL_KEY",
        "WAVEDECK_MODEL_HEADERS",
        "WAVEDECK_SOAK",
        URL,
        TOKEN,
        TASK,
    }
)
"""Variables of Wavedeck that are no settings: home, leases, a key, gateway headers, the long tests, the server of an agent."""
FLAGS_ONLY = ("headless", "detach", "json")

Notify = Annotated[Literal["bell", "osc9", "off"], Meta(description="bell, osc9 or off")]
Keys = Annotated[dict[str, str], Meta(description="a table of names and keys")]


class Preferences(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the cockpit alone; `docs/cockpit.md` explains each."""

    theme: str | None = None
    """`None`: the theme that fits the terminal."""
    mouse: Flag = True
    ascii: Flag = False
    """Draw ASCII only."""
    notify: Notify = "bell"
    """How the terminal reports an attempt that waits for a person."""
    keys: Keys = {}
    """Other keys, by the name of the binding."""


TABLES = ("prices", "limits", "providers", "sampling")
"""Tables of a file that a run uses."""
ONLY_IN_FILES = (*TABLES, "keys")
FIELDS = {
    field.encode_name: field
    for struct in (RunPlan, Preferences)
    for field in fields(struct)
    if struct is Preferences or field.encode_name in (*SETTINGS, *TABLES)
}
"""Fields by key, of all keys that files may have."""


class SettingSource(msgspec.Struct, frozen=True):
    """One source of settings."""

    name: str
    """Name for messages: `--instances`, `WAVEDECK_INSTANCES`, `./wavedeck.toml`."""
    values: dict[str, Any]
    text: str = ""
    """Text of a file, to find the line of a key; empty for other sources."""
    is_flag: bool = False
    """True for an option of the command line."""

    def at(self, key: str) -> str:
        """Return the place of a key: the source, and the line if it is known."""
        pattern = rf"^\s*\[?\[?\s*[\"']?{re.escape(key)}[\"']?\s*[.=\]]"
        for number, line in enumerate(self.text.splitlines(), start=1):
            if re.match(pattern, line):
                return f"{self.name} line {number}"
        return self.name


class Configuration(msgspec.Struct, frozen=True):
    """Settings of a run and of the cockpit, the source of each key, and remarks for the user."""

    settings: RunPlan
    preferences: Preferences
    origins: dict[str, SettingSource]
    """Source by key; a key at its default is absent."""
    remarks: tuple[str, ...] = ()


def load(flags: Mapping[str, object], *, environ: Mapping[str, str], folder: Path) -> Configuration:
    """
    Merge all sources. `flags` maps names of options to values; `None` is an option that was not given.

    Raises `Complaint` for a wrong key or value, with its place and a correct form.
    """
    variables, remarks = from_environment(environ)
    sources = [
        *person_file(environ),
        *project_file(folder),
        *variables,
        *(
            SettingSource(f"--{key}", {key: value}, is_flag=True)
            for key, value in ((name.replace("_", "-"), value) for name, value in flags.items())
            if value is not None
        ),
    ]
    values: dict[str, Any] = {}
    origins: dict[str, SettingSource] = {}
    for source in sources:
        for key, value in source.values.items():
            values[key] = checked(source, key, value)
            origins[key] = source
    preferences = {key: values.pop(key) for key in Preferences.__struct_fields__ if key in values}
    settings = RunPlan(**{FIELDS[key].name: value for key, value in values.items()})
    if settings.agent or settings.agent_command:
        settings = msgspec.structs.replace(settings, method=AGENT)
    return Configuration(settings, Preferences(**preferences), origins, remarks)


def checked(source: SettingSource, key: str, value: Any, keys: Mapping[str, FieldInfo] = FIELDS) -> Any:
    """Return the value with the type of its field. Text from flags and variables is converted to numbers and lists."""
    if key not in keys:
        raise Complaint(f"{source.at(key)}: unknown key {key!r}; {nearest(key, keys)}")
    refuse_secret_urls(source, key, value)
    field = keys[key]
    if isinstance(value, str) and isinstance(field.default, tuple):
        value = tuple(name for name in (part.strip() for part in value.split(",")) if name)
    try:
        return msgspec.convert(value, field.type, strict=bool(source.text))
    except msgspec.ValidationError as error:
        inside = str(error).partition(" - at `$")[2].rstrip("`").strip(".[]")
        where = f" ({inside})" if inside and inside != "0" else ""
        shown = ",".join(value) if isinstance(value, tuple) else value
        place = f"{source.at(key)}: {key}" if source.text else source.name
        raise Complaint(f"{place}{where} must be {accepted_words(field)}, not {shown!r}") from error


def refuse_secret_urls(source: SettingSource, key: str, value: Any) -> None:
    """Raise `Complaint` if a URL in the names of models or providers can hold a key; no message shows the URL."""
    if key in ("model", "models", "prices", "providers"):
        try:
            for name in value if isinstance(value, dict | list) else (value,):
                refuse_secrets(str(name))
        except UsageProblem as error:
            raise Complaint(f"{source.at(key)}: {error}") from None


def nearest(key: str, keys: Collection[str]) -> str:
    """Return a hint for an unknown key: the nearest key, or all keys."""
    plain = key.lower().replace("_", "-")
    if plain in FLAGS_ONLY:
        return f"--{plain} is for one run at a time and has no key"
    near = difflib.get_close_matches(plain, keys, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"keys are {', '.join(sorted(keys))}"


def from_environment(environ: Mapping[str, str]) -> tuple[list[SettingSource], tuple[str, ...]]:
    """Return the settings in `WAVEDECK_<OPTION>`, and a remark for each variable that looks like a setting but is none."""
    sources: list[SettingSource] = []
    remarks: list[str] = []
    for variable in sorted(environ):
        if not variable.startswith(PREFIX) or variable in NOT_SETTINGS or not environ[variable]:
            continue
        key = variable.removeprefix(PREFIX).lower().replace("_", "-")
        if key in FIELDS and key not in ONLY_IN_FILES:
            sources.append(SettingSource(variable, {key: environ[variable]}))
            continue
        near = difflib.get_close_matches(variable, [*map(variable_of, FIELDS), *NOT_SETTINGS], n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        remarks.append(f"{variable} is not a setting and has no effect{hint}")
    return sources, tuple(remarks)


def variable_of(key: str) -> str:
    """Return the environment variable of a key."""
    return PREFIX + key.upper().replace("-", "_")


def person_file(environ: Mapping[str, str]) -> Iterator[SettingSource]:
    """Yield the settings of the user's own file, if it exists."""
    base = environ.get("XDG_CONFIG_HOME", "")
    # XDG Base Directory Specification: ignore a relative path.
    folder = Path(base) if Path(base).is_absolute() else Path(environ.get("HOME") or Path.home()) / ".config"
    yield from read(folder / "wavedeck" / "config.toml", shown=None)


def project_file(folder: Path) -> Iterator[SettingSource]:
    """Yield the settings of `./wavedeck.toml`.

    The project may be another person's, so the file may not set a model's URL, or a command.
    """
    for source in read(folder / PROJECT_FILE, shown=f"./{PROJECT_FILE}"):
        if "agent-command" in source.values:
            raise Complaint(
                f"{source.at('agent-command')}: a project's file may not set a command; give it with --agent-command"
            )
        if "://" in str(source.values.get("model", "")):
            raise Complaint(
                f"{source.at('model')}: a project's file may not set a model's URL; "
                "give it with --model, WAVEDECK_MODEL or your own config.toml"
            )
        yield source


def read(path: Path, *, shown: str | None) -> Iterable[SettingSource]:
    """Return the settings of a TOML file; empty if there is no file."""
    name = shown or str(path)
    try:
        text = path.read_text(encoding="utf-8")
        values = tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise Complaint(
            f"{name} cannot be read ({error.strerror}); fix its permissions or move it away"
        ) from error
    except UnicodeDecodeError as error:
        raise Complaint(f"{name} is not UTF-8 text; save it as such") from error
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at (.*)\)$", str(error))
        problem = str(error).partition(" (at ")[0]
        at = f" {place.group(1).replace(', column', ' column')}" if place else ""
        raise Complaint(f"{name}{at}: {problem[:1].lower()}{problem[1:]}; fix the TOML there") from error
    return [SettingSource(name, values, text or "\n")]
