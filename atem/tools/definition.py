"""One tool as its caller declared it.

Rules: plain frozen data. Reading the many forms of a declaration is
:mod:`~atem.tools.declare`'s work, reading a Python signature
:mod:`~atem.tools.function`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ..errors import InvalidArguments, InvalidTool
from ..wire import dotted

if TYPE_CHECKING:
    from .schema import Checker

CUSTOM_INPUT: Final = "input"
"""The one parameter of a custom tool."""

Kind: TypeAlias = Literal["function", "custom"]
"""A "custom" tool takes free text: one string parameter called ``input``."""

Convert: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""JSON arguments to a function's keyword arguments; raises InvalidArguments."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the model may call.

    ``parameters`` is a JSON Schema of the arguments object (None: no schema);
    it is kept as given, not copied, and must not be changed afterwards.
    ``function`` is what :meth:`call` runs, ``convert`` what turns JSON
    arguments into its keyword arguments (without it they are passed on once
    the schema accepts them). A name with a dot may be declared flat
    (``Tool("ledger.post")``) or in a namespace (``Tool("post",
    namespace="ledger")``): the model sees the same name.
    """

    name: str
    description: str = ""
    parameters: dict[str, Any] | None = None
    namespace: str | None = None
    function: Callable[..., Any] | None = None
    kind: Kind = "function"
    namespace_description: str = ""
    convert: Convert | None = field(default=None, compare=False, repr=False)
    # A frozen slotted class has nowhere else to keep what is compiled once.
    _checker: Checker | None = field(default=None, init=False, compare=False, repr=False)

    def __hash__(self) -> int:
        return hash((self.name, self.namespace))

    @property
    def wire_name(self) -> str:
        """The name that the model sees and writes: ``namespace.name``, or ``name``."""
        return dotted(self.namespace, self.name)

    @property
    def checker(self) -> Checker:
        """The compiled schema; made on first use, which raises whatever a broken schema raises."""
        if self._checker is None:
            from .schema import Checker

            object.__setattr__(self, "_checker", Checker(self.parameters or {}))
        assert self._checker is not None
        return self._checker

    @classmethod
    def from_function(
        cls,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
    ) -> Tool:
        """A tool from a typed function or bound method.

        The schema comes from the annotations, the description from the
        docstring. Raises InvalidTool if the signature has no JSON form.
        """
        from .function import from_function

        return from_function(function, name=name, description=description)

    def call(self, arguments: dict[str, Any]) -> Any:
        """Run the tool's function on JSON ``arguments``; an async function gives its awaitable.

        Raises InvalidArguments if they don't fit, InvalidTool if the tool has
        no function; what the function raises passes through.
        """
        if self.function is None:
            raise InvalidTool(
                f"tool {self.wire_name!r} has no function to run: it was declared by schema alone; "
                "run it yourself, or declare it from a Python function"
            )
        return self.function(**self._keywords(arguments))

    def _keywords(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if self.convert is not None:
            return self.convert(arguments)
        from .validation import validate

        if violations := validate(self, arguments):
            raise InvalidArguments(self.wire_name, violations)
        return arguments
