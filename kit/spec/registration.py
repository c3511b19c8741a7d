"""Canonical JSON and the hash that is fixed before the first request (docs/method.md 2.7)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from kit.spec.model import Spec

__all__ = ["RULES_VERSION", "canonical_json", "expanded_json", "prereg_hash", "registered", "registered_part"]

RULES_VERSION = 1
"""Version of the verdict's rules. History: 1 = first rules."""

_UNREGISTERED = ("title", "question", "notes", "host")
# Fields that are younger than the first published hashes: left out where they say what was so before.
_YOUNGER = {"quotas": None, "mix": "interleaved"}
_UNREGISTERED_ENGINE = ("runtime", "image", "startup_timeout_s", "container", "urls")


def canonical_json(value: Any) -> str:
    """`value` as JSON with sorted keys, no spaces and ASCII escapes. ValueError on NaN or infinity."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def prereg_hash(spec: Mapping[str, Any]) -> str:
    """SHA-256 (hex) of the canonical JSON of `spec`."""
    return hashlib.sha256(canonical_json(spec).encode("utf-8")).hexdigest()


def expanded_json(spec: Spec) -> str:
    """The whole spec, defaults filled in, as canonical JSON."""
    return canonical_json(spec.model_dump(mode="json"))


def registered(spec: Spec, *, workload_hash: str) -> dict[str, Any]:
    """What the hash of `spec` covers: everything that can move a number or a word, and nothing else."""
    return registered_part(spec.model_dump(mode="json"), workload_hash=workload_hash)


def registered_part(expanded: Mapping[str, Any], *, workload_hash: str) -> dict[str, Any]:
    """The same of an expanded spec as it was stored, whatever fields specs have had since.

    Titles, notes, paths of files and the runtime are left out: the same experiment may be run by Docker here and
    as a subprocess there. The workload enters by its content. A simulated world stays in: it decides every number,
    and so does the budget: when to stop must not depend on what was seen.
    """
    data = {name: value for name, value in expanded.items() if name not in _UNREGISTERED}
    data["engine"] = {k: v for k, v in data["engine"].items() if k not in _UNREGISTERED_ENGINE}
    workload = {k: v for k, v in data["workload"].items() if k != "files" and (k not in _YOUNGER or v != _YOUNGER[k])}
    data["workload"] = workload | {"sha256": workload_hash}
    return data | {"rules_version": RULES_VERSION}
