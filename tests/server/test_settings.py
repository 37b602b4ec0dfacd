"""Options: one table, read from flags, environment and file, and refused by name."""

from __future__ import annotations

import pytest

from atem.errors import OptionError
from atem.server.settings import Settings, options, read_settings
from tests.golden.expectation import ROOT


@pytest.fixture
def file(tmp_path):
    def written(text):
        path = tmp_path / "serve.toml"
        path.write_text(text)
        return path

    return written


def test_a_flag_wins_over_the_environment_that_over_the_file_that_over_the_default(file):
    toml = file("port = 1\nqueue = 1\nhost = '::1'")
    environment = {"ATEM_SERVE_PORT": "2", "ATEM_SERVE_QUEUE": "2", "PATH": "/bin"}
    read = read_settings({"port": 3, "queue": None, "cors_origin": ()}, environment, toml)
    assert (read.port, read.queue, read.host) == (3, 2, "::1")
    assert read.heartbeat == Settings().heartbeat


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("store_days", "1.5", 1.5),
        ("websocket", "no", False),
        ("websocket", "TRUE", True),
        ("heartbeat", "comment", "comment"),
        ("cors_origin", "https://a, https://b", ("https://a", "https://b")),
        ("running", "4", 4),
    ],
)
def test_a_text_of_the_environment_is_read_by_the_type_of_its_option(name, text, value):
    assert getattr(read_settings({}, {f"ATEM_SERVE_{name.upper()}": text}), name) == value


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"ATEM_SERVE_PORT": "many"}, "ATEM_SERVE_PORT: it is a whole number"),
        ({"ATEM_SERVE_PORT": "70000"}, "port=70000; it is from 0 to 65535"),
        ({"ATEM_SERVE_WEBSOCKET": "maybe"}, "true or false"),
        ({"ATEM_SERVE_HEARTBEAT": "loud"}, "one of these: in_progress, keepalive, comment, off"),
        ({"ATEM_SERVE_STORE_DAYS": "nan"}, "store_days=nan"),
        ({"ATEM_SERVE_COLOUR": "red"}, "there is no option 'colour'"),
        ({"ATEM_SERVE_CORS_ORIGIN": "*"}, "name the origins"),
        ({"ATEM_SERVE_API_KEY": "long-enough-key,"}, "ATEM_SERVE_API_KEY: it is a list"),
    ],
)
def test_what_can_not_work_is_refused_by_its_name(environment, message):
    with pytest.raises(OptionError, match=message):
        read_settings({}, environment)


@pytest.mark.parametrize("text", ["port =", "port = true", "port = [1]", "colour = 'red'"])
def test_a_file_that_can_not_be_read_is_refused_by_its_name(file, text):
    with pytest.raises(OptionError, match=r"serve\.toml"):
        read_settings({}, {}, file(text))


def test_a_refusal_never_quotes_the_value_which_may_be_a_key():
    with pytest.raises(OptionError) as refused:
        read_settings({"api_key": ["sesame-open", 5]}, {})
    assert "sesame" not in str(refused.value)


def test_every_option_says_what_it_does_in_one_sentence():
    assert [each.name for each in options()] == list(Settings.__dataclass_fields__)
    assert all(each.help.endswith((".", "...")) for each in options())


def test_the_page_has_each_option_with_its_default_and_what_it_does():
    lines = (ROOT / "docs" / "server.md").read_text().splitlines()
    for option in options():
        (line,) = [line for line in lines if line.startswith(f"| `{option.name}` |")]
        _, _, default, told, _ = (cell.strip() for cell in line.split("|"))
        assert told.startswith(option.help)
        value = option.default
        shown = (
            ""
            if value in (None, ())
            else f"`{str(value).lower() if isinstance(value, bool) else value}`"
        )
        assert default == shown
