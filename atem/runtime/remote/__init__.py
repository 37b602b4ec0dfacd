"""Any OpenAI-style server as an engine: SGLang, vLLM, llama.cpp, mlx servers and their like.

Rules: nothing here parses the model's text or knows a checkpoint. What a server
says is untrusted: sizes are bounded, and what is not understood is an error,
never a guess.
"""

from .engine import RemoteEngine
from .patience import Patience
from .probe import Probe

__all__ = ["Patience", "Probe", "RemoteEngine"]
