"""Docstrings in the three common styles, and text that only looks like one."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import Field

from atem.tools import Tool
from atem.tools.docstring import split

NOTES = {"path": "where the file is", "count": "how many lines, at most"}

GOOGLE = """Read a file.

    From the start.

    Args:
        path (str): where the file is
        count: how many lines,
            at most

    Returns:
        path: not a parameter here
    """

NUMPY = """Read a file.

    From the start.

    Parameters
    ----------
    path : str
        where the file is
    count : int, optional
        how many lines,
        at most

    Returns
    -------
    str
        The text.
    """

SPHINX = """Read a file.

    From the start.

    :param str path: where the file is
    :param count: how many lines,
        at most
    :type count: int
    :returns: the text
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_the_three_styles_say_the_same(text):
    assert split(text) == ("Read a file.\n\nFrom the start.", NOTES)


@pytest.mark.parametrize(
    "text",
    [
        "Note: this is prose.",
        "Two lines:\n\n- one\n- two",
        "Times like 10:30 or a: b",
        "",
        "Path -- see\n---\nrule",
    ],
)
def test_text_without_a_section_is_description_whole(text):
    assert split(text) == (text, {})


def test_a_section_of_something_else_ends_the_description():
    assert split("Do it.\n\nRaises:\n    ValueError: if not\n") == ("Do it.", {})


def documented(
    path: str, count: Annotated[int, Field(description="from the annotation")], other: int
): ...


documented.__doc__ = GOOGLE


def test_notes_become_descriptions_and_an_annotation_wins_over_them():
    parameters = Tool.from_function(documented).parameters["properties"]
    assert parameters["path"]["description"] == "where the file is"
    assert parameters["count"]["description"] == "from the annotation"
    assert "description" not in parameters["other"]
