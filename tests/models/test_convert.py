"""A GGUF becomes the Hugging Face folder that transformers would make of it."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kit.models.convert import convert
from kit.models.gguf import read_gguf

WIDTH, HEADS, KV_HEADS = 32, 4, 2
FACTS = {
    "llama.attention.head_count": HEADS,
    "llama.attention.head_count_kv": KV_HEADS,
    "llama.attention.layer_norm_rms_epsilon": 0.5,
    "llama.block_count": 1,
    "llama.context_length": 64,
    "llama.embedding_length": WIDTH,
    "llama.feed_forward_length": 16,
    "llama.rope.freq_base": 100.0,
    "llama.vocab_size": 3,
    "tokenizer.ggml.bos_token_id": 0,
    "tokenizer.ggml.eos_token_id": 1,
    "tokenizer.ggml.merges": ["a b"],
    "tokenizer.ggml.padding_token_id": 1,
    "tokenizer.ggml.token_type": [3, 1, 1],
    "tokenizer.ggml.tokens": ["<|endoftext|>", "a", "ab"],
    "tokenizer.ggml.unknown_token_id": 0,
}
Q_ROWS = np.arange(WIDTH * WIDTH, dtype=np.float32).reshape(WIDTH, WIDTH)


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def value(of: Any) -> bytes:
    if isinstance(of, str):
        return struct.pack("<I", 8) + text(of)
    if isinstance(of, float):
        return struct.pack("<If", 6, of)
    if isinstance(of, list):
        items = [value(item) for item in of]
        return struct.pack("<I", 9) + items[0][:4] + struct.pack("<Q", len(of)) + b"".join(i[4:] for i in items)
    return struct.pack("<II", 4, of)


def write(path: Path, tensors: dict[str, tuple[tuple[int, ...], int, bytes]]) -> Path:
    """A GGUF of these tensors: shape with rows first, number of the block format, bytes."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(FACTS))
    head += b"".join(text(key) + value(of) for key, of in FACTS.items())
    body = b""
    for name, (shape, kind, data) in tensors.items():
        head += (
            text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1]) + struct.pack("<IQ", kind, len(body))
        )
        body += data + b"\0" * (-len(data) % 32)
    path.write_bytes(head + b"\0" * (-len(head) % 32) + body)
    return path


def q4_1() -> bytes:
    """Scale 2, minimum -1, and the numbers 0 to 15 twice."""
    return struct.pack("<ee", 2.0, -1.0) + bytes(at | at << 4 for at in range(16))


def q8_0() -> bytes:
    return struct.pack("<e", 0.5) + np.arange(-16, 16, dtype=np.int8).tobytes()


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    return write(
        tmp_path / "tiny.gguf",
        {
            "token_embd.weight": ((1, 32), 8, q8_0()),
            "output_norm.weight": ((3,), 0, np.array([1.0, 1.00390625, 1.01171875], np.float32).tobytes()),
            "blk.0.attn_q.weight": ((WIDTH, WIDTH), 0, Q_ROWS.tobytes()),
            "blk.0.ffn_up.weight": ((1, 32), 3, q4_1()),
        },
    )


def weights(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Every tensor of a safetensors file as float32."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = {key: of for key, of in json.loads(data[8 : 8 + size]).items() if key != "__metadata__"}
    found = {}
    for name, entry in header.items():
        start, end = (8 + size + at for at in entry["data_offsets"])
        raw = np.frombuffer(data[start:end], "<u2").astype(np.uint32) << 16
        found[name] = raw.view(np.float32).reshape(entry["shape"])
    return found


def test_blocks_are_dequantised_as_their_format_says(gguf: Path) -> None:
    tensors = read_gguf(gguf).tensors
    assert tensors["blk.0.ffn_up.weight"]().tolist() == [[2.0 * at - 1.0 for at in (*range(16), *range(16))]]
    assert tensors["token_embd.weight"]().tolist() == [[at / 2 for at in range(-16, 16)]]


def test_weights_get_transformers_names_and_round_to_even(gguf: Path, tmp_path: Path) -> None:
    convert(gguf, tmp_path / "model")
    found = weights(tmp_path / "model" / "model.safetensors")
    assert sorted(found) == [
        "model.embed_tokens.weight",
        "model.layers.0.mlp.up_proj.weight",
        "model.layers.0.self_attn.q_proj.weight",
        "model.norm.weight",
    ]
    # 1.00390625 and 1.01171875 lie exactly between two bfloat16 numbers.
    assert found["model.norm.weight"].tolist() == [1.0, 1.0, 1.015625]


def test_the_halves_of_a_head_come_apart_again(gguf: Path, tmp_path: Path) -> None:
    convert(gguf, tmp_path / "model")
    rows = weights(tmp_path / "model" / "model.safetensors")["model.layers.0.self_attn.q_proj.weight"][:, 0]
    head = WIDTH // HEADS
    expected = [head * h + at for h in range(HEADS) for at in (*range(0, head, 2), *range(1, head, 2))]
    assert [round(float(row)) // WIDTH for row in rows[:head]] == expected[:head]


def test_configuration_and_tokenizer_say_what_the_file_says(gguf: Path, tmp_path: Path) -> None:
    convert(gguf, tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert (config["head_dim"], config["num_key_value_heads"], config["rope_theta"]) == (8, KV_HEADS, 100.0)
    tokenizer = json.loads((tmp_path / "model" / "tokenizer.json").read_text())
    assert [token["content"] for token in tokenizer["added_tokens"]] == ["<|endoftext|>"]
    assert (tokenizer["model"]["vocab"]["ab"], tokenizer["model"]["merges"]) == (2, [["a", "b"]])


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"not a GGUF at all")
    with pytest.raises(ValueError, match="not a GGUF"):
        read_gguf(tmp_path / "x.gguf")
    with pytest.raises(ValueError, match="block format 2; there are 0, 3, 8"):
        read_gguf(write(tmp_path / "y.gguf", {"token_embd.weight": ((1, 32), 2, q8_0())}))
