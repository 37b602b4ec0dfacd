"""Which device, which number type, and what its memory errors look like.

Rules: an option that can't be had is refused, never replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch

from ...errors import OptionError
from ..memory import available_memory

if TYPE_CHECKING:
    from ..checkpoint import Checkpoint

DTYPES: Final = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def device_of(name: str) -> torch.device:
    """The device called ``name``; "auto" is the first CUDA device, else the CPU."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise OptionError(f"device={name!r} is none of auto, cpu, cuda, cuda:0, ...") from error
    if device.type not in ("cpu", "cuda"):
        raise OptionError(f"device={name!r}; this engine runs on cpu and cuda")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise OptionError(
            f"device={name!r}, and torch {torch.__version__} sees {torch.cuda.device_count()} CUDA "
            "devices; install a build of torch for CUDA, or use device='cpu'"
        )
    return device


def dtype_of(name: str, device: torch.device, checkpoint: Checkpoint) -> str:
    """float32 or bfloat16; "auto" is float32 on the CPU and for weights that are stored so."""
    if name == "auto":
        wide = all(info.encoding == "F32" for info in checkpoint.tensors.values())
        return "float32" if device.type == "cpu" or wide else "bfloat16"
    if name not in DTYPES:
        raise OptionError(f"dtype={name!r} is none of auto, {', '.join(DTYPES)}")
    return name


def free_memory(device: torch.device) -> int | None:
    """Bytes that the device can still give, None where nobody says."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return available_memory()


def is_out_of_memory(error: BaseException) -> bool:
    """Whether torch, or Python, means by ``error`` that memory has ended."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text: Any = str(error).lower()
    return isinstance(error, RuntimeError) and any(words in text for words in _ENDED)


_ENDED: Final = ("out of memory", "can't allocate memory", "cannot allocate memory")
"""What torch says where it has no type for it: the CPU's allocator, a recording, a library."""
