"""The options of the server: one table for flags, environment and file.

Rules: a field of :class:`Settings` is an option; its type says how a text is
read, its annotation what it does. A flag wins over ``ATEM_SERVE_<NAME>``, that
over the TOML file, that over the default. What can't work is refused at the
start, with the name of the option and where it came from.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, get_args, get_origin
from typing import get_type_hints as hints_of

from ..errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PREFIX: Final = "ATEM_SERVE_"

Heartbeat: TypeAlias = Literal["in_progress", "keepalive", "comment", "off"]
StoreKind: TypeAlias = Literal["sqlite", "memory", "postgres", "redis", "off"]
OnDisconnect: TypeAlias = Literal["abort", "finish"]
OnRejected: TypeAlias = Literal["message", "retry"]
EventNames: TypeAlias = Literal["openai", "openresponses"]
Arguments: TypeAlias = Literal["whole", "stream"]
ChatReasoning: TypeAlias = Literal["reasoning_content", "reasoning", "both"]
Form: TypeAlias = Literal["auto", "completions", "chat"]
Access: TypeAlias = Literal["key", "open", "off"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What a server is started with. Raises OptionError for a value that can't work."""

    engine: Annotated[str | None, "nano, a checkpoint, a server's address, or scripted:FILE."] = (
        None
    )
    backend: Annotated[str | None, "torch, reference or remote; else by itself."] = None
    device: Annotated[str | None, "For torch: cpu, cuda, cuda:1, ..."] = None
    dtype: Annotated[str | None, "For torch: float32 or bfloat16."] = None
    context: Annotated[int | None, "Tokens of prompt and answer together."] = None
    tokenizer: Annotated[str | None, "For a server: tokenizer.json, to speak in ids."] = None
    server_model: Annotated[str | None, "For a server with several models."] = None
    form: Annotated[
        Form | None, "For a server: completions is our prompt, chat its own template."
    ] = None
    timeout: Annotated[float | None, "For a server: seconds without a byte; else 600."] = None
    retries: Annotated[int | None, "For a server: further tries if no answer came; else 2."] = None
    model_name: Annotated[tuple[str, ...], "Names it answers to, with * as a wildcard."] = ()
    host: Annotated[str, "Address to listen on; one that others reach needs a key."] = "127.0.0.1"
    port: Annotated[int, "Port to listen on; 0 takes a free one."] = 8420
    allowed_host: Annotated[tuple[str, ...], "Names it is asked by where there is no key."] = ()
    api_key: Annotated[tuple[str, ...], "Keys that clients send, or sha256:<hex> of them."] = ()
    api_key_file: Annotated[str | None, "File with a key on each line."] = None
    blob_key_file: Annotated[str | None, "File with the key that reasoning is sealed with."] = None
    store: Annotated[StoreKind, "Where responses are kept."] = "sqlite"
    store_path: Annotated[
        str | None, "File of the SQLite store, else ~/.local/state/atem/responses.db."
    ] = None
    store_url: Annotated[str | None, "Address of the Postgres or the Redis."] = field(
        default=None, repr=False
    )
    store_name: Annotated[str, "Schema in Postgres, begin of all keys in Redis."] = "atem"
    store_days: Annotated[float, "Days that a response is kept."] = 30.0
    store_bytes: Annotated[int, "Bytes that are kept; the oldest go first."] = 1 << 30
    lease_seconds: Annotated[float, "Seconds of silence that a server is taken for dead by."] = 15.0
    running: Annotated[int | None, "Generations at once; by default what the engine shares."] = None
    queue: Annotated[int, "Requests that may wait; more are answered 429."] = 64
    key_requests: Annotated[int | None, "Requests a minute from one key; more: 429."] = None
    key_running: Annotated[int | None, "Responses at once for one key; more: 429."] = None
    heartbeat: Annotated[Heartbeat, "What a silent stream sends."] = "in_progress"
    heartbeat_seconds: Annotated[float, "Seconds of silence before a heartbeat."] = 10.0
    slow_reader_seconds: Annotated[float, "Seconds a reader may take nothing."] = 30.0
    drain_seconds: Annotated[float, "Seconds to finish after SIGTERM."] = 30.0
    on_disconnect: Annotated[OnDisconnect, "What becomes of a reply nobody reads."] = "abort"
    on_rejected: Annotated[OnRejected, "What becomes of a call that must not run."] = "message"
    arguments: Annotated[Arguments, "Show a call when it is whole, or while it is written."] = (
        "whole"
    )
    event_names: Annotated[EventNames, "Names of the events of reasoning."] = "openai"
    chat_reasoning: Annotated[ChatReasoning, "Key of the reasoning in Chat Completions."] = (
        "reasoning_content"
    )
    current_date: Annotated[str, "What the model takes for today: today, a YYYY-MM-DD, or off."] = (
        "today"
    )
    websocket: Annotated[bool, "Answer WebSockets on /v1/responses."] = True
    cors_origin: Annotated[tuple[str, ...], "Web origins that browsers may call from."] = ()
    metrics: Annotated[Access, "Who may read /metrics."] = "key"
    inspect: Annotated[bool, "Serve the inspector page at /inspect."] = True
    inspect_last: Annotated[int, "Responses whose raw text is kept for the inspector page."] = 0
    max_body: Annotated[int, "Bytes of a request's body."] = 32 << 20
    log_level: Annotated[LogLevel, "What is logged."] = "info"

    def __post_init__(self) -> None:
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise OptionError(f"{name}={value!r}; it is from {least} to {most}")
        if self.current_date not in (TODAY, NO_DATE):
            _check_date(self.current_date)
        if "*" in self.cors_origin:
            raise OptionError('cors_origin="*" lets every web page in; name the origins')
        if (self.store in SHARED) != (self.store_url is not None):
            wants = "needs" if self.store in SHARED else "has no"
            raise OptionError(f"store={self.store!r} {wants} store_url")


DAY: Final = 86400
TODAY: Final = "today"
NO_DATE: Final = "off"
SHARED: Final = frozenset({"postgres", "redis"})
"""Stores that several servers can share."""

_MOST: Final = 1 << 50
_RANGES: Final[dict[str, tuple[float, float]]] = {
    "port": (0, 65535),
    "store_days": (0.0001, 36500),
    "store_bytes": (1, _MOST),
    "lease_seconds": (1, 3600),
    "running": (1, 4096),
    "queue": (0, 1 << 20),
    "key_requests": (1, 1 << 30),
    "key_running": (1, 1 << 20),
    "heartbeat_seconds": (0.05, 3600),
    "slow_reader_seconds": (0.05, 3600),
    "drain_seconds": (0, 86400),
    "inspect_last": (0, 1000),
    "max_body": (1, _MOST),
    "context": (1, _MOST),
    "timeout": (0.05, DAY),
    "retries": (0, 1000),
}


def _check_date(text: str) -> None:
    try:
        valid = date.fromisoformat(text).isoformat() == text  # other spellings would be shown so
    except ValueError:
        valid = False
    if not valid:
        raise OptionError(
            f"current_date={text!r}; it is {TODAY}, {NO_DATE}, or a date as 2026-08-10"
        )


NO_FLAG: Final = frozenset({"api_key"})
"""Not on a command line, which everybody on the machine can read."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option as a command line or a page of documentation needs it."""

    name: str
    help: str
    default: Any
    choices: tuple[str, ...]
    many: bool
    switch: bool

    @property
    def flag(self) -> str:
        """Its name on the command line."""
        return "--" + self.name.replace("_", "-")


@cache
def options() -> tuple[Option, ...]:
    """All options, in the order of :class:`Settings`."""
    return tuple(_option(field.name, field.default) for field in fields(Settings))


def _option(name: str, default: Any) -> Option:
    kind = _kind(name)
    return Option(
        name,
        hints_of(Settings, include_extras=True)[name].__metadata__[0],
        default,
        choices=get_args(kind) if get_origin(kind) is Literal else (),
        many=get_origin(kind) is tuple,
        switch=kind is bool,
    )


def _kind(name: str) -> Any:
    """The type of an option, without its None."""
    kind = hints_of(Settings)[name]
    if type(None) in get_args(kind):
        (kind,) = (each for each in get_args(kind) if each is not type(None))
    return kind


def read_settings(
    flags: Mapping[str, Any], environment: Mapping[str, str], file: str | Path | None = None
) -> Settings:
    """The settings of these three; ``flags`` that are None or () were not given.

    Raises OptionError for a value that can't be read, an unknown name, and a
    file that can't be read.
    """
    values: dict[str, Any] = {}
    for name, value in _in_file(file).items():
        values[name] = _read(name, value, f"{file}: {name}")
    for name, text in _in_environment(environment).items():
        values[name] = _read(name, text, PREFIX + name.upper())
    for name, value in flags.items():
        if value is not None and value != ():
            values[name] = _read(name, value, f"--{name.replace('_', '-')}")
    return Settings(**values)


def _in_file(file: str | Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        with Path(file).open("rb") as opened:
            return tomllib.load(opened)
    except (OSError, ValueError) as error:
        raise OptionError(f"{file} can't be read as settings: {error}") from error


def _in_environment(environment: Mapping[str, str]) -> dict[str, str]:
    named = {key: text for key, text in environment.items() if key.startswith(PREFIX)}
    return {key.removeprefix(PREFIX).lower(): text for key, text in named.items()}


def _read(name: str, value: Any, where: str) -> Any:
    if name not in Settings.__dataclass_fields__:
        raise OptionError(f"{where}: there is no option {name!r}; atem-serve --help lists them")
    kind = _kind(name)
    reader: Callable[[Any, Any], Any] = _READERS.get(get_origin(kind) or kind, _text)
    try:
        return reader(value, kind)
    except (TypeError, ValueError, KeyError):
        # Never the value: it may be a key.
        wanted = _WANTED.get(get_origin(kind) or kind, "a text, and not an empty one")
        choices = f": {', '.join(get_args(kind))}" if get_origin(kind) is Literal else ""
        raise OptionError(f"{where}: it is {wanted}{choices}") from None


def _text(value: Any, _: Any) -> str:
    _require(isinstance(value, str) and value != "")
    return str(value)


def _whole(value: Any, _: Any) -> int:
    _require(isinstance(value, int | str) and not isinstance(value, bool))
    return int(value)


def _number(value: Any, _: Any) -> float:
    _require(isinstance(value, int | float | str) and not isinstance(value, bool))
    return float(value)


_SWITCH: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def _switch(value: Any, _: Any) -> bool:
    return _SWITCH[str(value).lower()]


def _choice(value: Any, kind: Any) -> Any:
    _require(value in get_args(kind))
    return value


def _many(value: Any, kind: Any) -> tuple[str, ...]:
    """A list, or in the environment a text with commas."""
    parts = value.split(",") if isinstance(value, str) else value
    _require(isinstance(parts, list | tuple))
    return tuple(_text(part.strip() if isinstance(part, str) else part, kind) for part in parts)


def _require(holds: object) -> None:
    if not holds:
        raise ValueError


_READERS: Final[dict[Any, Callable[[Any, Any], Any]]] = {
    int: _whole,
    float: _number,
    bool: _switch,
    Literal: _choice,
    tuple: _many,
}

_WANTED: Final[dict[Any, str]] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    Literal: "one of these",
    tuple: "a list of texts, none of them empty",
}
