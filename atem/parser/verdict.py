"""What the invokes of a decided tool body are worth, told as events.

Rules: every ``CallEnd`` and every verdict of a ``CallRejected`` comes from
here, and from nowhere else. Only what :func:`settle` finds complete, well
formed, addressed to a declared tool and not barred may run (design 2.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..messages import RejectedCall, RejectReason, ToolCall, Violation
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
    limit = context.options.max_call_chars
    text = body.rope.slice(body.start, body.limit)
    _reject_all(context, body, _rejected(body, "malformed", None, text, (body.start, body.limit)))
    context.out.put(
        Problem,
        "call_too_long",
        f"a tool message passed max_call_chars={limit}; it was rejected and its rest is not kept",
    )


def _rejected(
    body: ToolBody, reason: RejectReason, name: str | None, text: str, span: tuple[int, int]
) -> RejectedCall:
    return RejectedCall(reason, None, name or body.recipient or "", None, text, span=span)


def _reject_all(context: Context, body: ToolBody, rejected: RejectedCall) -> None:
    """One verdict for the whole message; it takes back the call announced last."""
    announced = list(body.provisional.announced.values())
    body.provisional.announced.clear()
    for live in announced[:-1]:
        context.out.put(CallRejected, live.index, None)
    _put_rejection(context, announced[-1] if announced else None, rejected)


def _put_rejection(context: Context, live: Live | None, rejected: RejectedCall) -> None:
    if live is not None:
        rejected = _with(rejected, id=live.id)
    context.out.put(
        CallRejected, None if live is None else live.index, rejected, end=rejected.span[1]
    )


def _with(rejected: RejectedCall, **changes: Any) -> RejectedCall:
    from dataclasses import replace  # only rejections pay for it

    return replace(rejected, **changes)


class _Verdict:
    """The verdict on one body. The problems it notes are told behind its calls (design 4.2)."""

    def __init__(
        self, context: Context, body: ToolBody, candidate: Candidate, ending: Ending
    ) -> None:
        self.context = context
        self.options = context.options
        self.body = body
        self.candidate = candidate
        self.ending = ending
        self.problems: list[tuple[str, str]] = []

    def tell(self) -> None:
        view = self.candidate.chosen
        if self.body.headerless and not self._is_nothing_but_calls(view):
            self._put_content()
        elif self.body.too_long:
            return
        elif view is None:
            self._malformed()
        elif not view.begun:
            self._no_call(view)
        elif self._breaks_a_rule(view):
            self._malformed()
        elif self._is_content(view):
            self._put_content()
        else:
            self._invokes(view)
        for code, message in self.problems:
            self.context.out.put(Problem, code, message)

    # -- the message as a whole ----------------------------------------------

    def _breaks_a_rule(self, view: View) -> bool:
        """Rules by which all calls of a message fall together (wire_format 5.3, 10)."""
        if self.body.misquotes(view, in_tag=self.ending.in_tag):
            return True
        if self.options.one_invoke_per_message and len(view.invokes) > 1:
            return True
        return self.options.strict_recipient and any(
            self._mismatch(invoke) for invoke in view.invokes
        )

    def _mismatch(self, invoke: Invoke) -> bool:
        addressed = self.context.resolve(self.body.recipient or "")
        return addressed is None or addressed is not self.context.resolve(invoke.name)

    def _malformed(self) -> None:
        seen = self.candidate.first.invokes
        name = seen[-1].name if seen else None
        _reject_all(self.context, self.body, self._whole("malformed", name))

    def _no_call(self, view: View) -> None:
        body, recipient = self.body, self.body.recipient or ""
        if self.context.resolve(recipient) is None:
            text = body.rope.slice(body.start, self.candidate.end)
            self.problems.append(
                ("undeclared_channel", f"text to undeclared recipient {recipient!r}: {text}")
            )
            return
        lost = self.ending.cut or (self.ending.unfinished and view.wrapped)
        _put_rejection(self.context, None, self._whole("incomplete" if lost else "malformed", None))

    def _is_content(self, view: View) -> bool:
        """Whether ``unknown="content"`` makes the body answer text: none of its calls is known."""
        return self.options.unknown == "content" and all(
            self.context.resolve(invoke.name) is None for invoke in view.invokes
        )

    def _put_content(self) -> None:
        text = self.body.rope.slice(self.body.start, self.candidate.end)
        self.context.out.put(ContentDelta, text, end=self.candidate.end)

    def _is_nothing_but_calls(self, view: View | None) -> bool:
        """Whether a block without header may be recovered (wire_format 5.6)."""
        return (
            view is not None
            and self.candidate.whole
            and view.place is Place.AFTER
            and view.begun > 0
            and not self.ending.barred
            and all(i.wrapped and self.context.resolve(i.name) for i in view.invokes)
        )

    def _whole(self, reason: RejectReason, name: str | None) -> RejectedCall:
        span = (self.body.start, self.candidate.end)
        return _rejected(self.body, reason, name, self.body.rope.slice(*span), span)

    # -- invoke by invoke -----------------------------------------------------

    def _invokes(self, view: View) -> None:
        if view is not self.candidate.first:
            self.body.provisional.withdraw()
        allowed = self._closed_alike(view) if self._strict(view) else None
        for invoke in view.invokes:
            if invoke.end is None:
                self._incomplete(invoke)
            else:
                doubtful = allowed is not None and (invoke.start, invoke.end) not in allowed
                self._complete(invoke, invoke.end, barred=self.ending.barred or doubtful)

    def _strict(self, view: View) -> bool:
        """Whether the cut rule asks for both readings (wire_format 4)."""
        if self.ending.cut:
            return True
        return self.ending.unfinished and (
            view.wrapped or view.is_open or view.place is Place.TRAIL
        )

    def _closed_alike(self, view: View) -> set[tuple[int, int | None]]:
        other = self.candidate.second if view is self.candidate.first else self.candidate.first
        return {(invoke.start, invoke.end) for invoke in other.invokes}

    def _incomplete(self, invoke: Invoke) -> None:
        end = self.candidate.end if invoke.end is None else invoke.end
        text = self.body.rope.slice(invoke.start, end)
        rejected = _rejected(self.body, "incomplete", invoke.name, text, (invoke.start, end))
        _put_rejection(self.context, self._live(invoke), rejected)

    def _complete(self, invoke: Invoke, end: int, *, barred: bool) -> None:
        tool = self.context.resolve(invoke.name)
        arguments = self._arguments(invoke, tool)
        if tool is None and self.options.unknown != "forward":
            self._unknown(invoke, arguments)
            return
        if barred:
            self._incomplete(invoke)
            return
        errors = self._violations(tool, arguments)
        if errors and self.options.validate == "reject":
            self._invalid(invoke, arguments, errors)
            return
        self._flag_recipient(invoke, tool)
        self._call(invoke, tool, arguments, errors, end)

    def _call(
        self,
        invoke: Invoke,
        tool: Tool | None,
        arguments: dict[str, Any],
        errors: tuple[Violation, ...],
        end: int,
    ) -> None:
        out, text = self.context.out, to_json(arguments)
        live = self._live(invoke)
        if live is None:
            live = announce(self.context, invoke, tool, self.body.recipient, invoke.tag_end)
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
        out.put(CallEnd, live.index, call, end=self._reach(invoke, end))

    def _reach(self, invoke: Invoke, end: int) -> int:
        """How far the ``CallEnd`` of ``invoke`` accounts for the closing tags (design 4.2).

        The tags behind the last invoke belong to the first event that follows them.
        """
        view = self.candidate.chosen
        if view is None:
            return end
        last = view.invokes[-1]
        all_told = self.context.out.mark >= (last.end or last.start)
        return view.reach if all_told or invoke is last else end

    def _unknown(self, invoke: Invoke, arguments: dict[str, Any]) -> None:
        rejected = self._one(
            invoke,
            "unknown_tool",
            arguments=arguments,
            suggestions=self.options.tools.suggest(invoke.name),
        )
        _put_rejection(self.context, self._live(invoke), rejected)
        if self.options.unknown == "raise":
            self.context.unknown.append(rejected)

    def _invalid(
        self, invoke: Invoke, arguments: dict[str, Any], errors: tuple[Violation, ...]
    ) -> None:
        rejected = self._one(invoke, "invalid_arguments", arguments=arguments, errors=errors)
        _put_rejection(self.context, self._live(invoke), rejected)

    def _one(self, invoke: Invoke, reason: RejectReason, **more: Any) -> RejectedCall:
        span = (invoke.start, invoke.end or self.candidate.end)
        text = self.body.rope.slice(*span)
        return _with(_rejected(self.body, reason, invoke.name, text, span), **more)

    def _live(self, invoke: Invoke) -> Live | None:
        return self.body.provisional.announced.pop(invoke.start, None)

    def _arguments(self, invoke: Invoke, tool: Tool | None) -> dict[str, Any]:
        """The typed arguments; of a repeated parameter the last value, at the first one's place."""
        types = self.context.types(tool)
        spans = {}
        for key, start, end in invoke.parameters:
            if key in spans:
                self.problems.append(
                    (
                        "duplicate_parameter",
                        f"{invoke.name}: {key!r} was given more than once; the last value counts",
                    )
                )
            spans[key] = (start, end)
        return {key: types[key].decode(self.body.rope.slice(*span)) for key, span in spans.items()}

    def _violations(self, tool: Tool | None, arguments: dict[str, Any]) -> tuple[Violation, ...]:
        if tool is None or tool.parameters is None or self.options.validate == "off":
            return ()
        from ..tools.validation import validate  # jsonschema loads with the first call

        return validate(tool, arguments)

    def _flag_recipient(self, invoke: Invoke, tool: Tool | None) -> None:
        addressed = self.context.resolve(self.body.recipient or "")
        if addressed is not None and tool is not None and addressed is not tool:
            self.problems.append(
                (
                    "recipient_mismatch",
                    f"a call to {invoke.name!r} in the channel of {self.body.recipient!r}",
                )
            )
