"""Functions as tools: pydantic's own reading of the signature is the oracle."""

from __future__ import annotations

import asyncio
import datetime as dt
import functools
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field, TypeAdapter
from typing_extensions import TypedDict  # pydantic asks for this one before Python 3.12

import atem.tools
from atem.errors import InvalidArguments, InvalidTool
from atem.tools import Tool, ToolSet, tool


class Colour(Enum):
    RED = "red"


class Place(BaseModel):
    """Where."""

    city: str
    at: tuple[float, float] | None = None


@dataclass
class Point:
    x: int
    y: int = 0


class Options(TypedDict, total=False):
    deep: bool


def plain(path: str, count: int = 3, *, flag: bool = False): ...
def optional(a: Optional[int], b: str | None = None): ...  # noqa: UP045 - both spellings are in use
def literal(mode: Literal["r", "w"] = "r", colour: Colour = Colour.RED): ...
def bounded(n: Annotated[int, Field(ge=1, le=9, description="how many")] = 2): ...
def nested(place: Place, points: list[Point], options: Options, extra: dict[str, Any]): ...
def reserved(json: str, schema: int, copy: bool, model_config: str, self_: int, _private: int): ...
def dates(day: dt.date, when: dt.datetime | None = None): ...
def nothing(): ...


SIGNATURES = [plain, optional, literal, bounded, nested, reserved, dates, nothing]


def without_titles(schema):
    if isinstance(schema, dict):
        return {
            key: without_titles(value)
            for key, value in schema.items()
            if key != "title" or isinstance(value, dict)
        }
    return [without_titles(item) for item in schema] if isinstance(schema, list) else schema


@pytest.mark.parametrize("function", SIGNATURES)
def test_the_schema_is_what_pydantic_itself_reads_from_the_signature(function):
    parameters = Tool.from_function(function).parameters
    theirs = TypeAdapter(function).json_schema()
    assert without_titles(parameters) == without_titles(theirs)
    ToolSet([function]).check()


def test_titles_made_from_names_are_left_out_of_the_prompt():
    parameters = Tool.from_function(nested).parameters
    assert "title" not in parameters
    assert "title" not in parameters["properties"]["place"]
    assert "title" not in parameters["$defs"]["Place"]["properties"]["city"]


@tool
def weather(place: Place, day: dt.date, colours: set[Colour] = frozenset(), unit: str = "C"):
    """Ask for the weather.

    Second paragraph.
    """
    return place, day, colours, unit


def test_a_decorated_function_stays_the_function_it_was():
    place, day = Place(city="Brest"), dt.date(2026, 1, 2)
    assert weather(place, day) == (place, day, frozenset(), "C")
    assert weather.__name__ == "weather"


def test_call_converts_json_arguments_to_the_annotated_types():
    (declared,) = ToolSet([weather])
    found = declared.call(
        {"day": "2026-01-02", "place": {"city": "Brest", "at": [1, 2]}, "colours": ["red"]}
    )
    assert found == (
        Place(city="Brest", at=(1.0, 2.0)),
        dt.date(2026, 1, 2),
        {Colour.RED},
        "C",
    )


def test_call_converts_where_nothing_is_lost_and_refuses_where_something_is():
    declared = Tool.from_function(plain)
    assert declared.convert({"path": "p", "count": "4"}) == {"path": "p", "count": 4}
    for count in ("4.5", 4.5, "many", None, []):
        with pytest.raises(InvalidArguments):
            declared.call({"path": "p", "count": count})


def test_bad_arguments_raise_every_violation_with_the_path_in_the_arguments():
    (declared,) = ToolSet([weather])
    with pytest.raises(InvalidArguments) as caught:
        declared.call(
            {"place": {"city": "B", "at": [1, "x"]}, "colours": ["red", "blue"], "new/one": 1}
        )
    assert [violation.path for violation in caught.value.violations] == [
        "/colours/1",
        "/day",
        "/new~1one",
        "/place/at/1",
    ]
    assert "weather" in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_paths_leave_out_what_pydantic_adds_for_members_of_a_union():
    def either(x: int | list[int]): ...

    with pytest.raises(InvalidArguments) as caught:
        Tool.from_function(either).call({"x": "word"})
    assert {violation.path for violation in caught.value.violations} == {"/x"}


def test_defaults_are_the_functions_own():
    sentinel: list[int] = []

    def keeps(x: list[int] = sentinel):
        return x

    assert Tool.from_function(keeps).call({}) is sentinel


def test_an_error_inside_the_function_passes_through():
    def breaks(x: int):
        Place.model_validate({"wrong": x})

    with pytest.raises(ValueError, match="validation error for Place") as caught:
        Tool.from_function(breaks).call({"x": 1})
    assert not isinstance(caught.value, InvalidArguments)


def test_an_async_function_gives_its_awaitable():
    async def double(x: int):
        return 2 * x

    assert asyncio.run(Tool.from_function(double).call({"x": 21})) == 42


class Counter:
    def __init__(self):
        self.total = 0

    def add(self, amount: int = 1):
        """Add to the total."""
        self.total += amount
        return self.total


def test_a_bound_method_is_a_tool_as_it_is():
    counter = Counter()
    (declared,) = ToolSet([counter.add])
    assert (declared.name, declared.description) == ("add", "Add to the total.")
    assert set(declared.parameters["properties"]) == {"amount"}
    assert declared.call({"amount": 5}) == counter.total == 5


def test_a_wrapper_around_a_marked_function_is_not_bypassed():
    @tool
    def inner(x: int):
        return x

    @functools.wraps(inner)
    def outer(x: int):
        return -inner(x)

    (declared,) = ToolSet([outer])
    assert declared.call({"x": 1}) == -1


def test_name_and_description_can_be_given():
    @tool(name="fetch", description="Fetch it.")
    def anything(x: int):
        """Not this."""

    (declared,) = ToolSet([anything])
    assert (declared.name, declared.description) == ("fetch", "Fetch it.")
    assert atem.tools.Tool.from_function(plain, name="other").name == "other"


def stars(*args: int): ...
def keywords(**options: int): ...
def positional(x: int, /): ...
def bare(x): ...
def opaque(x: Counter): ...
def impossible(x: Annotated[int, Field(discriminator="kind")]): ...
def broken(x: Annotated[str, Field(pattern="(")]): ...
def unreadable(x: Missing): ...  # noqa: F821 - the point
def fielded(x: int = Field(3)): ...


REFUSED = [
    (stars, "parameter 'args'.*name each"),
    (keywords, "parameter 'options'.*name each"),
    (positional, "parameter 'x'.*remove the '/'"),
    (bare, "parameter 'x'.*annotate it"),
    (Counter.add, r"parameter 'self'.*tools=\[object.method\]"),
    (opaque, "no JSON form"),
    (impossible, "no JSON form"),
    (broken, "no JSON form"),
    (unreadable, "annotations can't be read.*module level"),
    (fielded, r"parameter 'x'.*Annotated\[type, Field"),
    (Counter(), "not a Python function"),
    (functools.partial(plain, "x"), "not a Python function"),
]


@pytest.mark.parametrize(("function", "message"), REFUSED)
def test_a_signature_without_a_json_form_is_refused_with_what_to_do(function, message):
    with pytest.raises(InvalidTool, match=message):
        tool(function)


def test_a_bound_method_cannot_be_marked_and_the_refusal_says_what_to_do():
    with pytest.raises(InvalidTool, match="put it in the list of tools as it is"):
        tool(Counter().add)


def test_an_alias_in_the_annotation_is_the_name_on_the_wire():
    def mail(sender: Annotated[str, Field(alias="from")]):
        return sender

    declared = Tool.from_function(mail)
    assert list(declared.parameters["properties"]) == ["from"]
    assert declared.call({"from": "me"}) == "me"


def test_a_tool_without_a_function_says_so():
    with pytest.raises(InvalidTool, match="'read' has no function"):
        Tool("read").call({})


def test_a_function_under_a_schema_of_its_own_is_called_only_with_what_the_schema_accepts():
    declared = Tool(
        "add", parameters={"properties": {"x": {"type": "integer"}}}, function=lambda x: x + 1
    )
    assert declared.call({"x": 1}) == 2
    with pytest.raises(InvalidArguments, match="/x"):
        declared.call({"x": "1"})
