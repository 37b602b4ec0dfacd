"""The packaged MLX artefact: q and gate fused head by head, absolute norms (model.md 4.2).

Rules: its marker in the configuration decides, and names that it can't have
are an error. It usually names a Python file, which nobody needs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ...errors import LayoutError
from ..quoting import show, some
from ..schemas.flat import FORMAT
from .assembly import Form
from .layout import Named
from .names import PACKED
from .rope import flat_style

if TYPE_CHECKING:
    from .source import Source

MARKER: Final = "muse_glimmer_mlx_format"
FOREIGN: Final = re.compile(r"output_gate_proj|rotary_emb|language_model|vision_")
"""What no name of an artefact contains."""


def _has_marker(source: Source) -> bool:
    return MARKER in source.config


def _check(source: Source) -> None:
    version = source.config[MARKER]
    if type(version) is not int or version != FORMAT:
        raise LayoutError(
            f"{source.path}: {MARKER} is {show(version)}, and the version that is read is {FORMAT}"
        )
    foreign = sorted(name for name in source.stored if FOREIGN.search(name))
    if foreign:
        raise LayoutError(
            f"{source.path}: config.json has the marker {MARKER}, but {len(foreign)} names are not"
            f" of that layout ({some(foreign)}): the marker is on the wrong folder, remove"
            " it from config.json or take the configuration that belongs to these weights"
        )


_FORM: Final = Form(name="packed", names=PACKED, absolute_norms=True, fused_gate=True)

LAYOUTS: Final = (Named(_FORM, _has_marker, flat_style, _check),)
