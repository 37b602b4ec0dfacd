"""transformers' own Muse Glimmer, on canonical weights: what the runtimes are compared with.

Rules: nothing of atem's runtime computes anything here; weights go in under HF names and logits
come out. The vision tower is made as small as it can be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from transformers import MuseGlimmerConfig, MuseGlimmerForConditionalGeneration

from atem.testing.tiny import hf_config, hf_name

if TYPE_CHECKING:
    import numpy as np

    from atem.runtime.config import ModelConfig
    from atem.testing.tiny import Weights

VISION = {
    "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "pos_emb_height": 2, "pos_emb_width": 2, "max_position_embeddings": 4,
}  # fmt: skip


def oracle(config: ModelConfig, weights: Weights, dtype: torch.dtype = torch.float32) -> Any:
    """The model in eval mode; weights are rounded to ``dtype`` as a checkpoint's would be."""
    raw = hf_config(config)
    text = {k: v for k, v in raw["text_config"].items() if k != "model_type"}
    if text["final_logit_softcapping"] is None:
        # transformers knows no model without a cap; one this high is none, to seven digits.
        text["final_logit_softcapping"] = 1e6
    model = MuseGlimmerForConditionalGeneration(
        MuseGlimmerConfig(
            text_config=text,
            vision_config=VISION,
            out_hidden_size=64,
            projector_hidden_size=16,
            image_token_id=raw["image_token_id"],
            video_token_id=raw["video_token_id"],
        )
    ).to(dtype)
    state = {hf_name(name): torch.from_numpy(values).to(dtype) for name, values in weights.items()}
    state.setdefault("lm_head.weight", state[hf_name("embed")])
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected
    assert all("vision" in name for name in missing), missing
    return model.eval()


def oracle_logits(model: Any, ids: list[int]) -> np.ndarray:
    """Logits [T, V] of one pass over ``ids``, in float32."""
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids])).logits[0].float().numpy()
