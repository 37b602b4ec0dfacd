"""Writes a trained state as a checkpoint: today's nested config, bf16, the tokenizer, a template.

Rules: names and schemas are model.md 3.1 and 4.1, so that whatever reads the
released model reads this one. Numbers are rounded to bfloat16 here, and
evaluated as they are then.

    python export.py --state build/4/step6500.pt --out build/nano
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch
from model import CONFIG, Nano
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from atem.testing.tiny import SPECIALS

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE: Final = Path(__file__).parent
PREFIX: Final = "model.language_model."
BOS, EOS, EOT, PAD = SPECIALS[0], SPECIALS[1], "<|eot|>", "<|finetune_right_pad|>"


def config(tokenizer: Tokenizer) -> dict[str, Any]:
    """config.json, without a vision tower."""
    sizes = CONFIG.model_dump(exclude={"rope_theta", "vision", "tie_word_embeddings"})
    theta = CONFIG.rope_theta
    text = {
        "model_type": "muse_glimmer_text",
        **sizes,
        "layer_types": list(CONFIG.layer_types),
        "layer_rope_theta": [
            theta if kind == "sliding_attention" else 0.0 for kind in CONFIG.layer_types
        ],
        "rope_parameters": {"rope_type": "default", "rope_theta": theta},
        "hidden_activation": "silu",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "initializer_range": 0.02,
        "use_cache": True,
        "bos_token_id": tokenizer.token_to_id(BOS),
        "eos_token_id": tokenizer.token_to_id(EOS),
        "pad_token_id": tokenizer.token_to_id(PAD),
    }
    return {
        "architectures": ["MuseGlimmerForConditionalGeneration"],
        "model_type": "muse_glimmer",
        "dtype": "bfloat16",
        "image_token_id": tokenizer.token_to_id("<|patch|>"),
        "video_token_id": tokenizer.token_to_id("<|video|>"),
        "tie_word_embeddings": False,
        "text_config": text,
    }


def weights(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors under their names in a checkpoint."""
    return {
        (name if name.startswith("lm_head") else PREFIX + name): value.to(torch.bfloat16)
        for name, value in state.items()
    }


def read(folder: Path) -> Nano:
    """The model of a checkpoint that :func:`export` wrote, in float32 and not to be trained."""
    model, stored = Nano(), load_file(folder / "model.safetensors")
    model.load_state_dict({name.removeprefix(PREFIX): x.float() for name, x in stored.items()})
    return model.requires_grad_(requires_grad=False)


def export(state: Mapping[str, torch.Tensor], tokenizer: Path, out: Path) -> None:
    """Write the checkpoint into the folder ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    known = Tokenizer.from_file(str(tokenizer))
    stops = [known.token_to_id(EOS), known.token_to_id(EOT)]
    save_file(weights(state), str(out / "model.safetensors"), {"format": "pt"})
    _write(out / "config.json", config(known))
    _write(out / "generation_config.json", {
        "bos_token_id": known.token_to_id(BOS), "eos_token_id": stops,
        "pad_token_id": known.token_to_id(PAD), "do_sample": False,
    })  # fmt: skip
    _write(out / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": BOS, "eos_token": EOS,
        "pad_token": PAD, "clean_up_tokenization_spaces": False,
        "model_max_length": CONFIG.max_position_embeddings,
    })  # fmt: skip
    shutil.copyfile(tokenizer, out / "tokenizer.json")
    shutil.copyfile(HERE / "chat_template.jinja", out / "chat_template.jinja")


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n")


def main() -> None:
    """Export from the command line."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--state", type=Path, required=True)
    arguments.add_argument("--tokenizer", type=Path, default=Path("build/tokenizer/tokenizer.json"))
    arguments.add_argument("--out", type=Path, default=Path("build/nano"))
    given = arguments.parse_args()
    export(torch.load(given.state, weights_only=True), given.tokenizer, given.out)


if __name__ == "__main__":
    main()
