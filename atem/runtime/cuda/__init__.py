"""The model in torch, on a CUDA device or the CPU: continuous batching, caches, CUDA graphs.

Rules: what runs next is decided in plain Python over ints and lists
(``schedule``), tensors live in one ``Runner``, and what a request means is
decided in ``generation``. Nothing of torch's global state is changed.
"""

from .engine import TorchEngine

__all__ = ["TorchEngine"]
