"""Codex CLI: a profile and a model catalogue.

Rules: Codex offers a model apply_patch and the search for tools only if its
catalogue says so, and without an entry it warns. What is printed is a shell
script that writes both files into Codex's folder, under names that are ours.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from .endpoint import KEY_VARIABLE

if TYPE_CHECKING:
    from .endpoint import Endpoint

PROFILE: Final = "atem.config.toml"
CATALOGUE: Final = "atem-models.json"

SCRIPT: Final = """\
# Codex CLI: run this with sh, or copy the two files into ~/.codex by hand; then: codex -p atem
folder="${{CODEX_HOME:-$HOME/.codex}}"
mkdir -p "$folder"

cat > "$folder/{profile_name}" <<'EOF'
{profile}EOF

cat > "$folder/{catalogue_name}" <<'EOF'
{catalogue}EOF
"""


def codex(endpoint: Endpoint) -> str:
    """The script."""
    return SCRIPT.format(
        profile_name=PROFILE,
        profile=_profile(endpoint),
        catalogue_name=CATALOGUE,
        catalogue=json.dumps(_catalogue(endpoint), indent=1, ensure_ascii=False) + "\n",
    )


def _profile(endpoint: Endpoint) -> str:
    # A TOML string is a JSON string.
    top: dict[str, Any] = {
        "model": endpoint.model,
        "model_provider": "atem",
        "model_catalog_json": CATALOGUE,
        "web_search": "disabled",
    }
    provider: dict[str, Any] = {
        "name": "atem-serve",
        "base_url": endpoint.url,
        "wire_api": "responses",
        "supports_websockets": endpoint.websocket,
    }
    if endpoint.keyed:
        provider["env_key"] = KEY_VARIABLE
    return f"{_lines(top)}\n[model_providers.atem]\n{_lines(provider)}"


def _lines(values: dict[str, Any]) -> str:
    shown = {name: json.dumps(value, ensure_ascii=False) for name, value in values.items()}
    return "".join(f"{name} = {value}\n" for name, value in shown.items())


def _catalogue(endpoint: Endpoint) -> dict[str, Any]:
    folder = files(__package__)
    catalogue = json.loads((folder / "codex_models.json").read_text("utf-8"))
    (model,) = catalogue["models"]
    model |= {
        "slug": endpoint.model,
        "display_name": endpoint.model,
        "context_window": endpoint.context,
        "base_instructions": (folder / "codex_instructions.md").read_text("utf-8"),
    }
    return dict(catalogue)
