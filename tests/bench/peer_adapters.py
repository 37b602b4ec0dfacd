"""The released parsers, each driven as its own server drives it.

Rules: a peer's public classes are called as they are; where its server chains
two parsers, so does its adapter. A peer that is not installed raises
ImportError in ``load`` and is left out. ``peers.py`` fetches them.
"""

from __future__ import annotations

import logging
import sys
import uuid
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

from adapters import Adapter, Event, Tools
from isolate import hollow, stub
from peers import LIBRARIES, PEERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


def enter(distribution: str) -> Path:
    """Put a peer's libraries on the path; the folder it is unpacked in."""
    peer = PEERS[distribution]
    if not (peer.folder.exists() and LIBRARIES.exists()):
        raise ImportError(f"{distribution} {peer.version} is not installed")
    sys.path.insert(0, str(LIBRARIES))
    logging.disable(logging.CRITICAL)  # what a peer logs would be measured as parsing
    return peer.folder


def texts(reasoning: str | None, content: str | None) -> list[Event]:
    """Events of two texts, either of which may be missing."""
    pairs = (("reasoning", reasoning), ("content", content))
    return [(kind, text) for kind, text in pairs if text]


def call(index: Any, name: str | None, text: str | None) -> list[Event]:
    """Events of one delta of a call."""
    events: list[Event] = [("call", index, name)] if name else []
    return [*events, ("args", index, text)] if text else events


def chat_calls(calls: Iterable[dict[str, Any]] | None) -> list[Event]:
    """Events of deltas in the chat API's form."""
    return [
        event
        for item in calls or ()
        for event in call(
            item["index"], item["function"].get("name"), item["function"].get("arguments")
        )
    ]


# --------------------------------------------------------------------- vLLM


class VLLM(Adapter):
    """vLLM's ``DelegatingParser`` with its two parsers for this model.

    The tokenizer is a stand-in whose ``decode`` joins pieces, which is cheaper
    than a real one.
    """

    name = "vllm"
    profile: ClassVar[str] = "muse_glimmer"
    parser: ClassVar[Any]

    stubs = (
        *("torch", "xgrammar", "triton", "llguidance", "outlines_core", "compressed_tensors"),
        *("cv2", "vllm._C", "vllm.platforms", "vllm.config", "vllm.multimodal", "vllm.lora"),
        *("vllm.transformers_utils", "vllm.tokenizers", "vllm.model_executor", "vllm.inputs"),
        *("vllm.sampling_params", "vllm.renderers", "vllm.utils.mistral"),
        *("vllm.parser.engine.adapters", "vllm.entrypoints.mcp", "vllm.tool_parsers.streaming"),
        *("vllm.entrypoints.openai.chat_completion.protocol", "vllm.tool_parsers.utils"),
        "vllm.entrypoints.openai.responses.protocol",
        "vllm.tool_parsers.structural_tag_registry",
    )
    hollows = (
        *("vllm", "vllm.parser", "vllm.parser.engine", "vllm.reasoning", "vllm.tool_parsers"),
        *("vllm.entrypoints", "vllm.entrypoints.openai", "vllm.entrypoints.generate"),
        *("vllm.entrypoints.openai.chat_completion", "vllm.entrypoints.openai.responses"),
        *("vllm.entrypoints.generate.base", "vllm.entrypoints.serve"),
        "vllm.entrypoints.serve.engine",
    )

    @classmethod
    def load(cls) -> str:
        """Import both parsers and join them as its server does."""
        folder = enter("vllm")
        stub(*cls.stubs)
        hollow(folder, *cls.hollows)
        # Its data models take this as a default factory, so it has to be real.
        ids = import_module("vllm.renderers.chat_utils")
        vars(ids)["make_tool_call_id"] = lambda *_, **__: "call-" + uuid.uuid4().hex
        base = import_module("vllm.parser.abstract_parser").DelegatingParser
        camel = cls.profile.title().replace("_", "")
        reasoning = import_module(f"vllm.reasoning.{cls.profile}_reasoning_parser")
        tool = import_module(f"vllm.tool_parsers.{cls.profile}_tool_parser")
        members = {
            "reasoning_parser_cls": getattr(reasoning, f"{camel}ReasoningParser"),
            "tool_parser_cls": getattr(tool, f"{camel}ToolParser"),
        }
        cls.parser = type("Parser", (base,), members)
        return PEERS["vllm"].version

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self.pieces: list[str] = []
        self.machine = self.parser(Pieces(self.pieces), None)
        self.request = SimpleNamespace(
            tools=[as_object(tool) for tool in tools],
            tool_choice="auto",
            include_reasoning=True,
            messages=[],
        )

    def step(self, delta: str, *, finished: bool) -> Sequence[Event]:
        """One delta of text, as the id of a new piece."""
        first = not self.pieces
        ids = []
        if delta:
            ids.append(len(self.pieces))
            self.pieces.append(delta)
        prompt: list[int] | None = [] if first else None
        message = self.machine.parse_delta(delta, ids, self.request, prompt, finished=finished)
        if message is None:
            return ()
        return texts(message.reasoning, message.content) + [
            event for item in message.tool_calls or () for event in self.one_call(item)
        ]

    def one_call(self, item: Any) -> list[Event]:
        """Events of one call's delta, whose function may be a model or a dict."""
        function = item.function
        if function is None:
            return []
        fields = function if isinstance(function, dict) else vars(function)
        return call(item.index, fields.get("name"), fields.get("arguments"))

    def feed(self, delta: str) -> Sequence[Event]:
        """One delta."""
        return self.step(delta, finished=False)

    def close(self) -> Sequence[Event]:
        """The end, which its server sends as an empty delta."""
        return self.step("", finished=True)


class VLLMMuse(VLLM):
    """The same release's newer profile, for Muse Spark and Glimmer."""

    name = "vllm-muse"
    profile = "muse"


class Pieces:
    """A tokenizer over the pieces fed so far."""

    def __init__(self, pieces: list[str]) -> None:
        self.pieces = pieces

    def decode(self, ids: list[int], **_: Any) -> str:
        """The pieces' text."""
        return "".join([self.pieces[i] for i in ids])

    def get_vocab(self) -> dict[str, int]:
        """Empty: the parsers fall back to text."""
        return {}


def as_object(tool: dict[str, Any]) -> SimpleNamespace:
    """A declaration with attributes."""
    function = tool["function"]
    inner = SimpleNamespace(name=function["name"], parameters=function["parameters"])
    return SimpleNamespace(type="function", function=inner)


# ------------------------------------------------------------------- SGLang


class SGLang(Adapter):
    """SGLang's reasoning detector, then its tool detector, as its chat route chains them."""

    name = "sglang"
    classes: ClassVar[tuple[Any, Any, Any, Any]]

    @classmethod
    def load(cls) -> str:
        """Import both detectors."""
        folder = enter("sglang")
        stub("torch", "sglang.utils")
        hollow(
            folder,
            *("sglang", "sglang.srt", "sglang.srt.function_call", "sglang.srt.parser"),
            *("sglang.srt.entrypoints", "sglang.srt.entrypoints.openai"),
        )
        protocol = import_module("sglang.srt.entrypoints.openai.protocol")
        calls = import_module("sglang.srt.function_call.muse_glimmer_detector")
        reasoning = import_module("sglang.srt.parser.reasoning_parser")
        cls.classes = (
            reasoning.MuseGlimmerDetector,
            calls.MuseGlimmerDetector,
            protocol.Tool,
            protocol.Function,
        )
        return PEERS["sglang"].version

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        reasoning, calls, tool, function = self.classes
        self.reasoning, self.calls = reasoning(tool_call_parser_active=True), calls()
        self.declared = [
            tool(type="function", function=function(**item["function"])) for item in tools
        ]

    def second(self, result: Any) -> list[Event]:
        """Events of the tool detector's result."""
        return texts(None, result.normal_text) + [
            event
            for item in result.calls
            for event in call(item.tool_index, item.name, item.parameters)
        ]

    def both(self, first: Any) -> list[Event]:
        """Events of the reasoning detector's result, its text sent through the tool detector."""
        events = texts(first.reasoning_text, None)
        if first.normal_text:
            result = self.calls.parse_streaming_increment(first.normal_text, self.declared)
            events += self.second(result)
        return events

    def feed(self, delta: str) -> Sequence[Event]:
        """One delta."""
        return self.both(self.reasoning.parse_streaming_increment(delta))

    def close(self) -> Sequence[Event]:
        """Both detectors' ends."""
        events = self.both(self.reasoning.finish())
        return events + self.second(self.calls.finish(self.declared))


# ---------------------------------------------------------------- FreeToken


class FreeToken(Adapter):
    """FreeToken's reasoning parser, then its function call parser, as its server chains them."""

    name = "freetoken"
    classes: ClassVar[tuple[Any, Any]]

    @classmethod
    def load(cls) -> str:
        """Import both parsers."""
        hollow(enter("freetoken"), "freetoken", "freetoken.server")
        reasoning = import_module("freetoken.server.reasoning_parser").ReasoningParser
        calls = import_module("freetoken.server.function_call_parser").FunctionCallParser
        cls.classes = reasoning, calls
        return PEERS["freetoken"].version

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        reasoning, calls = self.classes
        self.reasoning = reasoning("muse_glimmer", force_reasoning=False)
        self.calls = calls(tools, "muse_glimmer", turn_starts_open=False)

    def both(self, reasoning: str, text: str) -> list[Event]:
        """Events of the first parser's two texts, the second sent through the other parser."""
        events = texts(reasoning, None)
        for kind, payload in self.calls.parse_stream_events(text) if text else ():
            events += texts(None, payload) if kind == "text" else self.items(payload)
        return events

    def items(self, items: Iterable[Any]) -> list[Event]:
        """Events of its call items."""
        return [
            event for item in items for event in call(item.tool_index, item.name, item.parameters)
        ]

    def feed(self, delta: str) -> Sequence[Event]:
        """One delta."""
        return self.both(*self.reasoning.parse_stream_chunk(delta))

    def close(self) -> Sequence[Event]:
        """Both parsers' ends, with the calls that its server recovers under fresh indices."""
        events = self.both(*self.reasoning.flush())
        events += self.items(self.calls.finalize_stream())
        for number, item in enumerate(self.calls.recover_truncated_call()):
            events += call(("recovered", number), item.name, item.parameters)
        return events + texts(None, self.calls.finish_stream())


# ---------------------------------------------------------------- Rapid-MLX


class Rapid(Adapter):
    """Rapid-MLX's reasoning parser on the raw text, its tool parser on the content."""

    name = "rapid-mlx"
    classes: ClassVar[tuple[Any, Any]]

    @classmethod
    def load(cls) -> str:
        """Import both parsers."""
        sys.path.insert(0, str(enter("rapid-mlx")))
        reasoning = import_module("rapid_mlx.reasoning.muse_parser").MuseReasoningParser
        calls = import_module("rapid_mlx.tool_parsers.muse_tool_parser").MuseToolParser
        cls.classes = reasoning, calls
        return PEERS["rapid-mlx"].version

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        reasoning, calls = self.classes
        self.reasoning, self.calls = reasoning(None), calls(None)
        self.calls.reset()
        self.raw = self.text = ""

    def both(self, message: Any) -> list[Event]:
        """Events of the reasoning parser's message, its content sent through the tool parser."""
        if message is None:
            return []
        events = texts(message.reasoning, None)
        if message.content:
            before, self.text = self.text, self.text + message.content
            result = self.calls.extract_tool_calls_streaming(
                before, self.text, message.content, request={"tools": self.tools}
            )
            if result:
                events += texts(None, result.get("content"))
                events += chat_calls(result.get("tool_calls"))
        return events

    def feed(self, delta: str) -> Sequence[Event]:
        """One delta; the parsers want all text before and after it."""
        before, self.raw = self.raw, self.raw + delta
        return self.both(self.reasoning.extract_reasoning_streaming(before, self.raw, delta))

    def close(self) -> Sequence[Event]:
        """Both parsers' ends."""
        events = self.both(self.reasoning.finalize_streaming(self.raw))
        return events + texts(None, self.calls.flush_held_content(self.text))


# ------------------------------------------------------------------ mlx-vlm


class MlxVlm(Adapter):
    """mlx-vlm's stream states per delta, and its parse of the whole text at the end."""

    name = "mlx-vlm"
    modules: ClassVar[tuple[Any, Any, Any]]

    @classmethod
    def load(cls) -> str:
        """Import the states and the parser."""
        folder = enter("mlx-vlm")
        stub("mlx", "mlx_lm", "mlx_vlm.prompt_utils")
        hollow(folder, "mlx_vlm", "mlx_vlm.server")
        states = import_module("mlx_vlm.server.responses_state")
        process = import_module("mlx_vlm.tools").process_tool_calls
        cls.modules = states, import_module("mlx_vlm.tools.parsers.atem"), process
        return PEERS["mlx-vlm"].version

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        states, parser, _ = self.modules
        self.thinking = states.ThinkingStreamState(False, None, None)  # noqa: FBT003 - its API
        self.calls = states.ToolCallStreamState(parser.tool_call_start, parser.tool_call_end)
        self.parts: list[str] = []

    def feed(self, delta: str) -> Sequence[Event]:
        """One delta."""
        self.parts.append(delta)
        first = self.thinking.feed(delta)
        return texts(first.reasoning, self.calls.feed(first.content))

    def close(self) -> Sequence[Event]:
        """Both states' ends, then the calls."""
        states, parser, process = self.modules
        events = texts(*states.finish_content_streams(self.thinking, self.calls))
        return events + chat_calls(process("".join(self.parts), parser, self.tools).calls)


PEER_ADAPTERS: tuple[type[Adapter], ...] = (FreeToken, SGLang, VLLM, VLLMMuse, Rapid, MlxVlm)
