"""A SmolLM2 GGUF as a Hugging Face folder that SGLang serves: `python -m speckit_sglang_cpu.convert GGUF FOLDER`.

The weights are dequantised to bfloat16. What the GGUF says about its tokenizer is not enough for a chat model: the
end-of-sequence token that transformers derives is not the one that ends a turn, so the four special tokens are stated.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

__all__ = ["convert"]

_TOKENIZER = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": "<|im_start|>",
    "eos_token": "<|im_end|>",
    "pad_token": "<|im_end|>",
    "unk_token": "<|endoftext|>",
    "model_max_length": 8192,
    "clean_up_tokenization_spaces": False,
}
_ROPE_THETA = 100_000.0


def convert(gguf: Path, folder: Path) -> None:
    """Write weights, tokenizer and configuration of `gguf` into `folder`."""
    # Nothing may be looked up on a hub: everything is in the file.
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(folder)
    template = json.loads((folder / "tokenizer_config.json").read_text()).get("chat_template")
    _write(folder / "tokenizer_config.json", _TOKENIZER | ({"chat_template": template} if template else {}))
    config = json.loads((folder / "config.json").read_text()) | {"rope_theta": _ROPE_THETA}
    _write(folder / "config.json", {key: value for key, value in config.items() if not key.startswith("_")})


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
