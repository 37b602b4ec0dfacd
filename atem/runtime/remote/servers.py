"""The servers that are known by name: how each spells what the others spell otherwise.

Rules: facts, as one table; nothing here sends anything. What a server can't do
as ``Sampling`` defines it is no feature of it, so that a request for it is
refused and not answered with something else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ... import wire
from ...errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...engine import Feature

PromptKind: TypeAlias = Literal["ids", "text", "messages"]
Rest: TypeAlias = Literal["null", "context", "omit", "ask"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One kind of server.

    ``owned_by`` is what its model list says. ``prompts`` are the kinds of
    prompt that its completions take, best first. ``sampling`` has its word for
    each field of ``Sampling`` beyond temperature and ``top_p``. ``off`` is its
    value for a ``top_k`` that is off. ``completions`` and ``chat`` are always
    sent. ``rest`` is how completions, ``chat_rest`` how chat says "as far as
    the context goes" to one whose prompt can't be counted here: null, the whole
    context, nothing at all, or not at all. ``stops`` and ``ids`` say whether it
    takes stop tokens by id and can answer with ids. ``health`` is where it says
    that it works, at little cost. ``keep`` tells a user how
    special tokens survive.
    """

    name: str
    owned_by: str = ""
    version: str = ""
    path: str = "/v1/completions"
    limit: str = "max_tokens"
    prompts: tuple[PromptKind, ...] = ("ids", "text")
    features: frozenset[Feature] = frozenset({"stop"})
    chat_features: frozenset[Feature] = frozenset({"chat"})
    sampling: Mapping[str, str] = field(default_factory=dict)
    off: int = 0
    completions: Mapping[str, Any] = field(default_factory=dict)
    chat: Mapping[str, Any] = field(default_factory=dict)
    rest: Rest = "ask"
    chat_rest: Rest = "omit"
    ids: bool = False
    stops: bool = False
    health: str = "/health"
    keep: str


VLLM: Final = Server(
    name="vllm",
    owned_by="vllm",
    version="/version",
    features=frozenset({"logprobs", "min_p", "penalties", "seed", "stop", "top_k"}),
    chat_features=frozenset({"chat", "min_p", "penalties", "seed", "top_k"}),
    sampling={
        "top_k": "top_k", "min_p": "min_p", "repetition_penalty": "repetition_penalty",
        "presence_penalty": "presence_penalty", "frequency_penalty": "frequency_penalty",
        "seed": "seed",
    },
    off=-1,
    completions={
        "skip_special_tokens": False, "spaces_between_special_tokens": False,
        "add_special_tokens": False, "include_stop_str_in_output": True,
    },
    chat={"skip_special_tokens": False, "spaces_between_special_tokens": False},
    rest="null",
    ids=True,
    stops=True,
    keep="vLLM keeps them by skip_special_tokens=false in the request, which was sent",
)  # fmt: skip

SGLANG: Final = Server(
    name="sglang",
    owned_by="sglang",
    version="/get_server_info",
    # It counts penalties over other tokens, and obeys a seed in its deterministic mode alone.
    features=frozenset({"min_p", "stop", "top_k"}),
    chat_features=frozenset({"chat", "min_p", "top_k"}),
    sampling={"top_k": "top_k", "min_p": "min_p"},
    off=-1,
    completions={"skip_special_tokens": False, "no_stop_trim": True},
    chat={"skip_special_tokens": False},
    rest="null",
    ids=True,
    stops=True,
    keep="SGLang keeps them by skip_special_tokens=false in the request, which was sent",
)

LLAMA_CPP: Final = Server(
    name="llama.cpp",
    owned_by="llamacpp",
    version="/props",
    path="/completion",
    limit="n_predict",
    # Its penalties count the prompt too.
    features=frozenset({"logprobs", "min_p", "seed", "stop", "top_k"}),
    chat_features=frozenset({"chat", "min_p", "seed", "top_k"}),
    sampling={"top_k": "top_k", "min_p": "min_p", "seed": "seed"},
    completions={
        "return_tokens": True, "timings_per_token": True, "cache_prompt": True,
        "repeat_penalty": 1.0, "preserved_tokens": list(wire.CONTROL),
        "samplers": ["top_k", "temperature", "top_p", "min_p"],
    },
    chat={"samplers": ["top_k", "temperature", "top_p", "min_p"]},
    rest="context",
    ids=True,
    keep="start llama-server with --special, or pass tokenizer= for an answer in ids",
)  # fmt: skip

MLX: Final = Server(
    name="mlx",
    prompts=("text",),
    features=frozenset({"min_p", "seed", "stop", "top_k"}),
    chat_features=frozenset({"chat", "min_p", "seed", "top_k"}),
    sampling={"top_k": "top_k", "min_p": "min_p", "seed": "seed"},
    rest="context",
    chat_rest="context",
    keep="mlx_lm.server and mlx_vlm.server keep them on /v1/completions unless the model's "
    "tokenizer settings say otherwise; mlx_vlm takes skip_special_tokens=false",
)

OPENAI: Final = Server(
    name="openai",
    health="/v1/models",
    completions={"skip_special_tokens": False},
    keep="look for an option like skip_special_tokens=false of the server, or name it by server=",
)

KNOWN: Final[Mapping[str, Server]] = {
    server.name: server for server in (VLLM, SGLANG, LLAMA_CPP, MLX, OPENAI)
}


def named(name: str) -> Server:
    """The server called ``name``. Raises OptionError if there is none."""
    if name not in KNOWN:
        raise OptionError(f"server={name!r}; it is auto or one of {', '.join(KNOWN)}")
    return KNOWN[name]


def recognised(models: Sequence[Mapping[str, Any]], header: str) -> Server:
    """The server that answers with ``models`` and the ``Server`` header ``header``.

    One that can't be told is the plain ``openai``.
    """
    owners = {str(model.get("owned_by", "")).lower() for model in models}
    for server in KNOWN.values():
        if server.owned_by and server.owned_by in owners:
            return server
    if header.lower().startswith("llama.cpp"):
        return LLAMA_CPP
    # mlx_lm.server is Python's own HTTP server, and its models belong to nobody.
    return MLX if header.startswith("BaseHTTP") and owners <= {""} else OPENAI
