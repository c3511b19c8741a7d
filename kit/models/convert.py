"""A SmolLM2 GGUF as a Hugging Face folder that SGLang serves, with the weights dequantised to bfloat16.

Byte for byte what transformers 5.12 makes of the file, but for two things. What the GGUF says about its tokenizer is
not enough for a chat model: the end-of-sequence token that follows from it is not the one that ends a turn, so the four
special tokens are stated. And `rope_theta` stands at the top level too, where older readers look for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kit.models.gguf import Floats, Gguf, read_gguf

__all__ = ["convert"]

_END, _START, _TURN = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
_TOKENIZER = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": _START,
    "eos_token": _TURN,
    "pad_token": _TURN,
    "unk_token": _END,
    "model_max_length": 8192,
    "clean_up_tokenization_spaces": False,
}
_SPECIAL = 3
_LAYER = re.compile(r"blk\.(\d+)\.(\w+)\.weight")
_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_k": "self_attn.k_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q": "self_attn.q_proj",
    "attn_v": "self_attn.v_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_up": "mlp.up_proj",
}


def convert(gguf: Path, folder: Path) -> None:
    """Write weights, tokenizer and configuration of `gguf` into `folder`. ValueError for another form of file."""
    source = read_gguf(gguf)
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "config.json", _config(source.facts))
    _write(folder / "tokenizer_config.json", _TOKENIZER)
    tokenizer = json.dumps(_tokenizer(source.facts), indent=2, ensure_ascii=False)
    (folder / "tokenizer.json").write_text(tokenizer, encoding="utf-8")
    _write_weights(folder / "model.safetensors", source)


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _config(facts: Mapping[str, Any]) -> dict[str, Any]:
    llama = {key.removeprefix("llama."): value for key, value in facts.items()}
    heads, width = llama["attention.head_count"], llama["embedding_length"]
    theta = llama["rope.freq_base"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": facts["tokenizer.ggml.bos_token_id"],
        "dtype": "bfloat16",
        "eos_token_id": facts["tokenizer.ggml.eos_token_id"],
        "head_dim": width // heads,
        "hidden_act": "silu",
        "hidden_size": width,
        "initializer_range": 0.02,
        "intermediate_size": llama["feed_forward_length"],
        "max_position_embeddings": llama["context_length"],
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": heads,
        "num_hidden_layers": llama["block_count"],
        "num_key_value_heads": llama["attention.head_count_kv"],
        "pad_token_id": facts["tokenizer.ggml.padding_token_id"],
        "pretraining_tp": 1,
        "rms_norm_eps": llama["attention.layer_norm_rms_epsilon"],
        "rope_parameters": {"rope_theta": theta, "rope_type": "default"},
        "tie_word_embeddings": True,
        "transformers_version": "5.12.1",
        "unk_token_id": facts["tokenizer.ggml.unknown_token_id"],
        "use_cache": True,
        "vocab_size": llama["vocab_size"],
        "rope_theta": theta,
    }


def _tokenizer(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Byte-level BPE in the form of the tokenizers library."""
    tokens, kinds = facts["tokenizer.ggml.tokens"], facts["tokenizer.ggml.token_type"]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
    first, second = ({"Sequence": {"id": name, "type_id": at}} for at, name in enumerate("AB"))
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": at, "content": token, **flags}
            for at, (token, kind) in enumerate(zip(tokens, kinds, strict=True))
            if kind == _SPECIAL
        ],
        "normalizer": {"type": "Sequence", "normalizers": []},
        "pre_tokenizer": byte_level,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [first],
            "pair": [first, second],
            "special_tokens": {},
        },
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                byte_level | {"add_prefix_space": True, "trim_offsets": True},
            ],
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": _END,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": {token: at for at, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in facts["tokenizer.ggml.merges"]],
        },
    }


def _write_weights(path: Path, source: Gguf) -> None:
    """A safetensors file: length of the header, header, tensors in the order of their names."""
    arrays = {_name(name): _bfloat16(_unpermuted(name, read(), source.facts)) for name, read in source.tensors.items()}
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name in sorted(arrays):
        start, end = end, end + arrays[name].nbytes
        header[name] = {"dtype": "BF16", "shape": list(arrays[name].shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in sorted(arrays):
            file.write(arrays[name].tobytes())


def _name(name: str) -> str:
    """The name of a tensor in transformers."""
    if found := _LAYER.fullmatch(name):
        return f"model.layers.{found[1]}.{_NAMES[found[2]]}.weight"
    return {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}[name]


def _unpermuted(name: str, weight: Floats, facts: Mapping[str, Any]) -> Floats:
    """GGUF interleaves the two halves of each head of Q and K, transformers keeps them one after the other."""
    heads = {"attn_q": facts["llama.attention.head_count"], "attn_k": facts["llama.attention.head_count_kv"]}
    count = heads.get(name.split(".")[-2])
    if count is None:
        return weight
    rows = len(weight) // count // 2
    return weight.reshape(count, rows, 2, -1).swapaxes(1, 2).reshape(weight.shape)


def _bfloat16(weight: Floats) -> npt.NDArray[np.uint16]:
    """The upper half of each float32, rounded to nearest, ties to even."""
    bits = np.ascontiguousarray(weight).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")
