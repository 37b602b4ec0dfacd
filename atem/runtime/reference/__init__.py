"""The model in NumPy: the executable specification that the other engines are compared with.

Rules: read beside model.md 1, so clarity comes before speed; at most 300 lines
together. Needs numpy and no tensor library.
"""

from .engine import ReferenceEngine
from .model import Model

__all__ = ["Model", "ReferenceEngine"]
