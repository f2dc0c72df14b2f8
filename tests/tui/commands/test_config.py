"""Configuration: precedence of its sources, and one-line errors with file, line and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui.config import Configuration, load
from tui.diagnostics import Complaint


class Place:
    """Working folder, user configuration and environment of one test."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "project"
        self.own = root / "config" / "wavedeck" / "config.toml"
        self.own.parent.mkdir(parents=True)
        self.folder.mkdir()
        self.environ = {"XDG_CONFIG_HOME": str(root / "config"), "HOME": str(root)}

    def project(self, text: str) -> None:
        (self.folder / "wavedeck.toml").write_text(text)

    def load(self, **flags: object) -> Configuration:
        named = {key.replace("_", "-"): value for key, value in flags.items()}
        return load(named, environ=self.environ, folder=self.folder)

    def complaint(self, **flags: object) -> str:
        with pytest.raises(Complaint) as caught:
            self.load(**flags)
        return str(caught.value)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "place")


def test_flag_overrides_variable_overrides_project_overrides_user_file(place: Place) -> None:
    place.own.write_text('instances = 1\niterations = 1\nmethod = "own"\nseed = 1\n')
    place.project('instances = 2\niterations = 2\nmethod = "project"\n')
    place.environ |= {"WAVEDECK_INSTANCES": "3", "WAVEDECK_ITERATIONS": "3"}
    configured = place.load(instances=4, iterations=None)
    settings = configured.settings
    assert (settings.instances, settings.iterations, settings.method, settings.seed) == (4, 3, "project", 1)
    assert {key: source.name for key, source in configured.origins.items()} == {
        "instances": "--instances",
        "iterations": "WAVEDECK_ITERATIONS",
        "method": "./wavedeck.toml",
        "seed": str(place.own),
    }


def test_names_are_lists_or_comma_separated(place: Place) -> None:
    place.project('targets = ["gfx942", "sm_90"]\n')
    assert place.load().settings.targets == ("gfx942", "sm_90")
    assert place.load(targets="gfx90a, sm_90").settings.targets == ("gfx90a", "sm_90")


def test_limits_table_changes_only_its_keys(place: Place) -> None:
    place.own.write_text("[limits]\nfirst_token_s = 900\ntries = 2\n")
    limits = place.load().settings.limits
    assert (limits.first_token_s, limits.tries, limits.silence_s) == (900.0, 2, 120.0)
    place.environ["WAVEDECK_LIMITS"] = "tries=1"
    assert place.load().settings.limits.tries == 2
    assert place.load().remarks


def test_prices_and_keys_are_tables(place: Place) -> None:
    place.own.write_text('[prices."openai:x"]\ninput = 1\noutput = 2.5\n[keys]\naccept = "A"\n')
    configured = place.load()
    price = configured.settings.prices["openai:x"]
    assert (price.input, price.output) == (1.0, 2.5)
    assert configured.preferences.keys == {"accept": "A"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\ninstnces = 4\n", "./wavedeck.toml line 2: unknown key 'instnces'; did you mean 'instances'?"),
        ("zzz = 4\n", "./wavedeck.toml line 1: unknown key 'zzz'; keys are against, agent, "),
        ("headless = true\n", "--headless is for one run at a time and has no key"),
        (
            "instances = -1\n",
            "./wavedeck.toml line 1: instances must be a whole number from 1 to 1,000,000, not -1",
        ),
        ("instances = 'four'\n", "instances must be a whole number from 1 to 1,000,000, not 'four'"),
        ("seed = 1\nmouse = 1\n", "./wavedeck.toml line 2: mouse must be true or false, not 1"),
        ("targets = []\n", "targets must be names with commas between them"),
        ('[prices."a:b"]\ninput = 1\n', "./wavedeck.toml line 1: prices"),
        ('[prices."a:b"]\ninput = -1\noutput = 1\n', "./wavedeck.toml line 1: prices"),
        ("seed = 18446744073709551616\n", "seed must be a whole number from 0 to 2^63 - 1"),
        (
            "budget-usd = inf\n",
            "budget-usd must be an amount of US dollars above 0, at most 1,000,000,000, not inf",
        ),
        ('[prices."openai:m"]\ninput = inf\noutput = 1.0\n', "prices (input) must be"),
        ("[limits]\nreply_s = 0\n", "limits (reply_s) must be a table with any of connect_s"),
        ("[limits]\nfirst_token = 3\n", "limits must be a table with any of connect_s, first_token_s"),
        (
            "budget-usd = nan\n",
            "budget-usd must be an amount of US dollars above 0, at most 1,000,000,000, not nan",
        ),
        ("seed = \n", "./wavedeck.toml line 1 column 8: invalid value; fix the TOML there"),
        (
            'model = "openai:x@http://evil/v1"\n',
            "./wavedeck.toml line 1: a project's file may not set a model's URL",
        ),
    ],
)
def test_wrong_file_error_names_line_and_fix(place: Place, text: str, message: str) -> None:
    place.project(text)
    assert message in place.complaint()


def test_user_file_may_set_a_model_url(place: Place) -> None:
    place.own.write_text('model = "openai:x@http://localhost:8000/v1"\n')
    assert place.load().settings.model == "openai:x@http://localhost:8000/v1"


@pytest.mark.parametrize(
    "text",
    [
        'model = "{}"',
        'model = ["{}"]',
        '[prices."{}"]\ninput = "wrong"',
        '[prices."{}"]\ninput = 1\noutput = 1',
        '[providers."{}"]\nconcurrency = 1',
    ],
)
def test_key_in_an_address_is_refused_in_every_source_and_not_shown(place: Place, text: str) -> None:
    address = "openai:x@http://host/v1?api_key=SECRET"
    own = place.own
    own.write_text(text.format(address))
    complaint = place.complaint()
    assert complaint.startswith(f"{own} line 1: a model's URL with")
    assert "SECRET" not in complaint
    own.unlink()
    place.environ["WAVEDECK_MODEL"] = address
    assert place.complaint().startswith("WAVEDECK_MODEL: a model's URL with")
    del place.environ["WAVEDECK_MODEL"]
    assert place.complaint(model=address).startswith("--model: a model's URL with")


def test_wrong_variable_or_flag_is_named_as_given(place: Place) -> None:
    place.environ["WAVEDECK_INSTANCES"] = "many"
    assert place.complaint() == "WAVEDECK_INSTANCES must be a whole number from 1 to 1,000,000, not 'many'"
    place.environ["WAVEDECK_INSTANCES"] = "2"
    assert (
        place.complaint(budget_usd=-1.0)
        == "--budget-usd must be an amount of US dollars above 0, at most 1,000,000,000, not -1.0"
    )


def test_misspelt_variable_alone_gives_a_remark(place: Place) -> None:
    place.environ |= {
        "WAVEDECK_MODLE": "anthropic:x",
        "WAVEDECK_HOME": "/somewhere",
        "WAVEDECK_MODEL_KEY": "k",
        "WAVEDECK_MODEL_HEADERS": "X-Team: kernels",
    }
    configured = place.load()
    assert configured.settings.model == ""
    assert configured.remarks == (
        "WAVEDECK_MODLE is not a setting and has no effect; did you mean WAVEDECK_MODEL?",
    )


def test_unreadable_file_is_an_error(place: Place) -> None:
    (place.folder / "wavedeck.toml").mkdir()
    assert "./wavedeck.toml cannot be read" in place.complaint()
    (place.folder / "wavedeck.toml").rmdir()
    (place.folder / "wavedeck.toml").write_bytes(b'model = "\xff"\n')
    assert place.complaint() == "./wavedeck.toml is not UTF-8 text; save it as such"
