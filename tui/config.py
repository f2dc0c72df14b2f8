"""What a person configured: flags over environment over `./wavedeck.toml` over the person's own file.

Keys are the long option names of `run`, and a few of the cockpit. `docs/formats.md`, Configuration, is the contract.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from engine.models import Limits
from engine.plan import MOST, Price

from .diagnostics import Complaint

PROJECT_FILE = "wavedeck.toml"
PREFIX = "WAVEDECK_"
NOT_SETTINGS = frozenset(
    {"WAVEDECK_HOME", "WAVEDECK_LEASES", "WAVEDECK_MODEL_KEY", "WAVEDECK_MODEL_HEADERS", "WAVEDECK_SOAK"}
)
"""Variables of ours that are no options: where the home and the leases are, a key, a gateway's headers, the tests' own."""
FLAGS_ONLY = ("headless", "detach", "json")

Count = Annotated[int, Meta(ge=1, le=MOST)]
Seed = Annotated[int, Meta(ge=0, le=MOST)]
Dollars = Annotated[float, Meta(gt=0, le=1e9)]
Names = Annotated[tuple[str, ...], Meta(min_length=1)]


class Settings(msgspec.Struct, frozen=True, rename="kebab"):
    """Everything configured, once all sources are laid over one another."""

    suite: str | None = None
    method: str = "geak"
    model: str | None = None
    tune: bool = False
    start: str = ""
    against: str = "task"
    spread: bool = False
    without: Names = ()
    workers: Count = 4
    descendants: Count = 8
    profile: str = "chat"
    corpus: str = ""
    instances: Count | None = None
    iterations: Count | None = None
    devices: Names = ("idle",)
    targets: Names = ()
    """Empty where nobody named any: those of the devices."""
    review: str = "auto"
    budget_usd: Dollars | None = None
    budget_tokens: Count | None = None
    seed: Seed | None = None
    theme: str | None = None
    mouse: bool = True
    keys: dict[str, str] = {}
    """Keys of the cockpit by the name of what they do."""
    prices: dict[str, Price] = {}
    """By model, `provider:NAME`."""
    limits: Limits = Limits()
    """How long a model may take and how often it is asked again."""


WISHES = {
    "instances": "a whole number, 1 or more",
    "iterations": "a whole number, 1 or more",
    "devices": "names with commas between them, as idle or 0,1",
    "targets": "names with commas between them, as gfx942,sm_90",
    "budget-usd": "an amount of US dollars above 0",
    "budget-tokens": "a whole number, 1 or more",
    "seed": "a whole number from 0 to 2^63 - 1",
    "tune": "true or false",
    "spread": "true or false",
    "without": "names with commas between them, of knowledge, one-shot, optimizer and reflection",
    "workers": "a whole number, 1 or more",
    "descendants": "a whole number, 1 or more",
    "mouse": "true or false",
    "keys": "a table of names and keys",
    "prices": 'a table for each model: [prices."anthropic:NAME"] with input, output and perhaps cached_input and cache_write',
    "limits": f"a table with any of {', '.join(Limits.__struct_fields__)}, in seconds above 0 (tries: a whole number)",
}
"""What each key takes, in words; the others take text."""

FIELDS = {field.encode_name: field for field in msgspec.structs.fields(Settings)}
ONLY_IN_FILES = ("keys", "prices", "limits")


class Source(msgspec.Struct, frozen=True):
    """One place that settings come from."""

    name: str
    """As people know it: `--instances`, `WAVEDECK_INSTANCES`, `./wavedeck.toml`."""
    values: dict[str, Any]
    text: str = ""
    """Of a file, to find lines in."""

    def at(self, key: str) -> str:
        """Where the key stands, with its line where that can be found."""
        pattern = rf"^\s*\[?\[?\s*[\"']?{re.escape(key)}[\"']?\s*[.=\]]"
        for number, line in enumerate(self.text.splitlines(), start=1):
            if re.match(pattern, line):
                return f"{self.name} line {number}"
        return self.name


class Configuration(msgspec.Struct, frozen=True):
    """Settings, where each that was set comes from, and what the person should hear about them."""

    settings: Settings
    origins: dict[str, str]
    """By key; keys that nobody set are absent."""
    remarks: tuple[str, ...] = ()


def load(flags: Mapping[str, object], *, environ: Mapping[str, str], folder: Path) -> Configuration:
    """
    All sources laid over one another. `flags` maps option names to what was typed; `None` is an option not given.

    A wrong key or value is a `Complaint` that names its place and what would be right.
    """
    variables, remarks = from_environment(environ)
    sources = [
        *person_file(environ),
        *project_file(folder),
        *variables,
        *(Source(f"--{key}", {key: value}) for key, value in flags.items() if value is not None),
    ]
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for source in sources:
        for key, value in source.values.items():
            values[key] = checked(source, key, value)
            origins[key] = source.name
    settings = Settings(**{FIELDS[key].name: value for key, value in values.items()})
    return Configuration(settings, origins, remarks)


def checked(source: Source, key: str, value: Any) -> Any:
    """The value as its field wants it. Text from flags and variables is read as numbers and lists where those are wanted."""
    if key not in FIELDS:
        raise Complaint(f"{source.at(key)}: unknown key {key!r}; {nearest(key)}")
    wanted = FIELDS[key].type
    if wanted is Names and isinstance(value, str):
        value = tuple(name for name in (part.strip() for part in value.split(",")) if name)
    try:
        return msgspec.convert(value, wanted, strict=bool(source.text))
    except msgspec.ValidationError as error:
        inside = str(error).partition(" - at `$")[2].rstrip("`").strip(".[]")
        where = f" ({inside})" if inside and inside != "0" else ""
        shown = ",".join(value) if isinstance(value, tuple) else value
        place = f"{source.at(key)}: {key}" if source.text else source.name
        raise Complaint(f"{place}{where} must be {WISHES.get(key, 'text')}, not {shown!r}") from error


def nearest(key: str) -> str:
    """What a person may have meant by a key that does not exist."""
    plain = key.lower().replace("_", "-")
    if plain in FLAGS_ONLY:
        return f"--{plain} is for one run at a time and has no key"
    near = difflib.get_close_matches(plain, FIELDS, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"keys are {', '.join(sorted(FIELDS))}"


def from_environment(environ: Mapping[str, str]) -> tuple[list[Source], tuple[str, ...]]:
    """Settings in `WAVEDECK_<OPTION>`, and a remark for each variable that looks like one and is none."""
    sources: list[Source] = []
    remarks: list[str] = []
    for variable in sorted(environ):
        if not variable.startswith(PREFIX) or variable in NOT_SETTINGS or not environ[variable]:
            continue
        key = variable.removeprefix(PREFIX).lower().replace("_", "-")
        if key in FIELDS and key not in ONLY_IN_FILES:
            sources.append(Source(variable, {key: environ[variable]}))
            continue
        near = difflib.get_close_matches(variable, [*map(variable_of, FIELDS), *NOT_SETTINGS], n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        remarks.append(f"{variable} is no setting and changes nothing{hint}")
    return sources, tuple(remarks)


def variable_of(key: str) -> str:
    """The environment variable of a key."""
    return PREFIX + key.upper().replace("-", "_")


def person_file(environ: Mapping[str, str]) -> Iterator[Source]:
    """The person's own file, where there is one."""
    base = environ.get("XDG_CONFIG_HOME", "")
    # The XDG specification: a relative path is to be ignored.
    folder = Path(base) if Path(base).is_absolute() else Path(environ.get("HOME") or Path.home()) / ".config"
    yield from read(folder / "wavedeck" / "config.toml", shown=None)


def project_file(folder: Path) -> Iterator[Source]:
    """The file in a project's folder. It may come with somebody else's project, so it cannot say where prompts are sent."""
    for source in read(folder / PROJECT_FILE, shown=f"./{PROJECT_FILE}"):
        if "://" in str(source.values.get("model", "")):
            raise Complaint(
                f"{source.at('model')}: a project's file may not set a model's URL; "
                "give it with --model, WAVEDECK_MODEL or your own config.toml"
            )
        yield source


def read(path: Path, *, shown: str | None) -> Iterable[Source]:
    """The settings in a TOML file; nothing where there is no file."""
    name = shown or str(path)
    try:
        text = path.read_text(encoding="utf-8")
        values = tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise Complaint(
            f"{name} cannot be read ({error.strerror}); mend its permissions or move it away"
        ) from error
    except UnicodeDecodeError as error:
        raise Complaint(f"{name} is not UTF-8 text; save it as such") from error
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at (.*)\)$", str(error))
        what = str(error).partition(" (at ")[0]
        at = f" {place.group(1).replace(', column', ' column')}" if place else ""
        raise Complaint(f"{name}{at}: {what[:1].lower()}{what[1:]}; mend the TOML there") from error
    return [Source(name, values, text or "\n")]
