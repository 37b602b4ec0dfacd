"""What the invokes of a decided tool body are worth, told as events.

Rules: every ``CallEnd`` and every verdict of a ``CallRejected`` comes from
here, and from nowhere else. Only what :func:`settle` finds complete, well
formed, addressed to a declared tool and not barred may run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ..messages import RejectedCall, RejectReason, Span, ToolCall, Violation
from .events import ArgumentsDelta, CallEnd, CallRejected, ContentDelta, Problem
from .provisional import announce
from .states import Place
from .values import to_json

if TYPE_CHECKING:
    from ..tools import Tool
    from .calls import Invoke
    from .context import Context
    from .provisional import Live
    from .tool_body import Candidate, ToolBody, View


class Ending(NamedTuple):
    """How a tool body came to its end.

    ``cut``: this message was the last one, and the stream was closed with
    "length" or in the middle of a tag. ``unfinished``: the stream ended inside
    the body, ``in_tag``: in the middle of a tag. ``barred``: the body was
    undecided when it was cut, or is not trusted (wire_format 4, 5.4).
    """

    cut: bool = False
    unfinished: bool = False
    in_tag: bool = False
    barred: bool = False


def settle(context: Context, body: ToolBody, candidate: Candidate, ending: Ending) -> None:
    """Emit the events that end the calls of ``body`` at ``candidate``."""
    _Verdict(context, body, candidate, ending).tell()


def too_long(context: Context, body: ToolBody) -> None:
    """Reject a body that has grown past ``max_call_chars``."""
    _reject_message(context, body, "malformed", None, body.limit)
    context.out.put(
        Problem,
        "call_too_long",
        f"a tool message passed max_call_chars={context.options.max_call_chars}; "
        "it was rejected and its rest is not kept",
    )


def _reject_message(
    context: Context, body: ToolBody, reason: RejectReason, name: str | None, end: int
) -> None:
    """One verdict for the whole message; it takes back the call announced last."""
    announced = list(body.provisional.announced.values())
    body.provisional.announced.clear()
    for live in announced[:-1]:
        context.out.put(CallRejected, live.index, None)
    rejected = _rejected(body, reason, name, (body.start, end))
    _put_rejection(context, announced[-1] if announced else None, rejected)


def _rejected(
    body: ToolBody, reason: RejectReason, name: str | None, span: Span, **more: Any
) -> RejectedCall:
    text = body.rope.slice(*span)
    more.setdefault("arguments", None)
    return RejectedCall(reason, None, name or body.recipient or "", text=text, span=span, **more)


def _put_rejection(context: Context, live: Live | None, rejected: RejectedCall) -> None:
    index = None
    if live is not None:
        index, rejected = live.index, replace(rejected, id=live.id)
    context.out.put(CallRejected, index, rejected, end=rejected.span[1])


def _shape(invoke: Invoke) -> tuple[object, ...]:
    """What two readings must agree on to close an invoke at the same place."""
    return (invoke.start, invoke.end, *invoke.parameters)


class _Verdict:
    """The verdict on one body. The problems it notes are told behind its calls."""

    def __init__(
        self, context: Context, body: ToolBody, candidate: Candidate, ending: Ending
    ) -> None:
        self.context = context
        self.options = context.options
        self.body = body
        self.candidate = candidate
        self.ending = ending
        self.view = candidate.chosen
        self.invokes = [] if self.view is None else self.view.invokes
        self.addressed = context.resolve(body.recipient or "")
        self.problems: list[tuple[str, str]] = []

    def tell(self) -> None:
        """Emit the verdict, then the problems."""
        view = self.view
        if self.body.headerless and not self._is_nothing_but_calls():
            self._put_content()
        elif self.body.too_long:
            return
        elif view is None:
            self._malformed()
        elif not self.invokes:
            self._no_call(view)
        elif self._breaks_a_rule(view):
            self._malformed()
        elif self._is_content():
            self._put_content()
        else:
            self._tell_invokes(view)
        for code, message in self.problems:
            self.context.out.put(Problem, code, message)

    # -- the message as a whole ----------------------------------------------

    def _breaks_a_rule(self, view: View) -> bool:
        """Rules by which all calls of a message fall together (wire_format 5.3, 5.6)."""
        if self.body.misquotes(view, in_tag=self.ending.in_tag):
            return True
        if self.options.one_invoke_per_message and len(self.invokes) > 1:
            return True
        return self.options.strict_recipient and not all(
            self.addressed is not None and self.addressed is self.context.resolve(invoke.name)
            for invoke in self.invokes
        )

    def _malformed(self) -> None:
        seen = self.candidate.first.invokes
        name = seen[-1].name if seen else None
        _reject_message(self.context, self.body, "malformed", name, self.candidate.end)

    def _no_call(self, view: View) -> None:
        """A message without a call: text to nobody is told, a tool's is rejected."""
        body, end = self.body, self.candidate.end
        if self.addressed is None:
            text = body.rope.slice(body.start, end)
            self.problems.append(
                ("undeclared_channel", f"text to undeclared recipient {body.recipient!r}: {text}")
            )
            return
        lost = self.ending.cut or (self.ending.unfinished and view.wrapped)
        _reject_message(self.context, body, "incomplete" if lost else "malformed", None, end)

    def _is_content(self) -> bool:
        """Whether ``unknown="content"`` makes the body answer text: none of its calls is known."""
        return self.options.unknown == "content" and all(
            self.context.resolve(invoke.name) is None for invoke in self.invokes
        )

    def _put_content(self) -> None:
        text = self.body.rope.slice(self.body.start, self.candidate.end)
        self.context.out.put(ContentDelta, text, end=self.candidate.end)

    def _is_nothing_but_calls(self) -> bool:
        """Whether a block without header may be recovered (wire_format 5.6)."""
        return (
            self.view is not None
            and self.candidate.whole
            and self.view.place is Place.AFTER
            and bool(self.invokes)
            and not self.ending.barred
            and all(i.wrapped and self.context.resolve(i.name) for i in self.invokes)
        )

    # -- invoke by invoke -----------------------------------------------------

    def _tell_invokes(self, view: View) -> None:
        if view is not self.candidate.first:
            self.body.provisional.withdraw()
        allowed = self._closed_alike(view) if self._strict(view) else None
        # What follows a recovered call decides whether it was a quotation (5.3): nobody saw it.
        unseen = self.ending.cut or (self.ending.unfinished and (view.is_open or view.wrapped))
        barred = self.ending.barred or (self.body.recovered and unseen)
        for invoke in self.invokes:
            doubtful = allowed is not None and _shape(invoke) not in allowed
            self._tell_invoke(invoke, view, barred=barred or doubtful)
        self._flag_ambiguity(view)

    def _flag_ambiguity(self, view: View) -> None:
        """Tell where the other reading is whole too, and another one (wire_format 5.5)."""
        other = self.candidate.second
        if view is not self.candidate.first or other is view:
            return
        if other.place in (Place.AFTER, Place.BLOCK) and other.invokes != view.invokes:
            text = f"a value in the message to {self.body.recipient!r} can be read in two ways"
            self.problems.append(("ambiguous_value", text))

    def _strict(self, view: View) -> bool:
        """Whether the cut rule asks for both readings (wire_format 4)."""
        open_at_end = view.wrapped or view.is_open or view.place is Place.TRAIL
        return self.ending.cut or (self.ending.unfinished and open_at_end)

    def _closed_alike(self, view: View) -> set[tuple[object, ...]]:
        other = self.candidate.second if view is self.candidate.first else self.candidate.first
        return set(map(_shape, other.invokes))

    def _tell_invoke(self, invoke: Invoke, view: View, *, barred: bool) -> None:
        tool = self.context.resolve(invoke.name)
        if invoke.end is None:
            self._reject(invoke, "incomplete")
            return
        arguments = self._arguments(invoke, tool)
        errors = self._violations(tool, arguments)
        if tool is None and self.options.unknown != "forward":
            self._unknown(invoke, arguments)
        elif barred:
            self._reject(invoke, "incomplete")
        elif errors and self.options.validate == "reject":
            self._reject(invoke, "invalid_arguments", arguments=arguments, errors=errors)
        else:
            self._flag_recipient(invoke, tool)
            self._call(invoke, tool, arguments, errors, self._reach(invoke, view))

    def _call(
        self,
        invoke: Invoke,
        tool: Tool | None,
        arguments: dict[str, Any],
        errors: tuple[Violation, ...],
        reach: int,
    ) -> None:
        out, text, end = self.context.out, to_json(arguments), invoke.end or reach
        live = self._live(invoke)
        if live is None:
            live = announce(self.context, invoke, tool, self.body.recipient)
            out.put(ArgumentsDelta, live.index, text, end=end)
        call = ToolCall(
            index=self.context.calls,
            id=live.id,
            name=invoke.name if tool is None else tool.name,
            namespace=None if tool is None else tool.namespace,
            raw_name=invoke.name,
            recipient=self.body.recipient,
            arguments=arguments,
            arguments_json=text,
            errors=errors,
            span=(invoke.start, end),
        )
        self.context.calls += 1
        out.put(CallEnd, live.index, call, end=reach)

    def _reach(self, invoke: Invoke, view: View) -> int:
        """How far the ``CallEnd`` of ``invoke`` accounts for closing tags.

        The tags behind the last invoke belong to the first event that follows them.
        """
        last = self.invokes[-1]
        all_told = self.context.out.mark >= (last.end or last.start)
        return view.reach if all_told or invoke is last else invoke.end or view.reach

    def _unknown(self, invoke: Invoke, arguments: dict[str, Any]) -> None:
        suggestions = self.options.tools.suggest(invoke.name)
        rejected = self._reject(
            invoke, "unknown_tool", arguments=arguments, suggestions=suggestions
        )
        if self.options.unknown == "raise":
            self.context.unknown.append(rejected)

    def _reject(self, invoke: Invoke, reason: RejectReason, **more: Any) -> RejectedCall:
        span = (invoke.start, self.candidate.end if invoke.end is None else invoke.end)
        rejected = _rejected(self.body, reason, invoke.name, span, **more)
        _put_rejection(self.context, self._live(invoke), rejected)
        return rejected

    def _live(self, invoke: Invoke) -> Live | None:
        return self.body.provisional.announced.pop(invoke.start, None)

    def _arguments(self, invoke: Invoke, tool: Tool | None) -> dict[str, Any]:
        """The typed arguments; of a repeated parameter the last value, at the first one's place."""
        types = self.context.types(tool)
        spans: dict[str, Span] = {}
        for key, start, end in invoke.parameters:
            if key in spans:
                text = f"{invoke.name}: {key!r} was given more than once; the last value counts"
                self.problems.append(("duplicate_parameter", text))
            spans[key] = (start, end)
        return {key: types[key].decode(self.body.rope.slice(*span)) for key, span in spans.items()}

    def _violations(self, tool: Tool | None, arguments: dict[str, Any]) -> tuple[Violation, ...]:
        if tool is None or tool.parameters is None or self.options.validate == "off":
            return ()
        from ..tools.validation import validate  # jsonschema loads with the first call

        return validate(tool, arguments)

    def _flag_recipient(self, invoke: Invoke, tool: Tool | None) -> None:
        if tool is not None and self.addressed is not None and self.addressed is not tool:
            text = f"a call to {invoke.name!r} in the channel of {self.body.recipient!r}"
            self.problems.append(("recipient_mismatch", text))
