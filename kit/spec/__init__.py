"""The spec: what a user writes, validated once into frozen values, and hashed before the first request.

In this code `spec` always means the YAML file; speculative decoding is spelled `speculative`.
"""

from kit.spec.arms import AdaptiveArm, Arm, BaselineArm, Eagle3Arm, Server, ServerOverrides
from kit.spec.load import load_spec, parse_spec
from kit.spec.model import KIT_MODEL, Container, Spec
from kit.spec.registration import RULES_VERSION, canonical_json, expanded_json, prereg_hash, registered, registered_part
from kit.spec.schema import SCHEMA_FILE, schema_text
from kit.spec.service import Arrival, Limits
from kit.spec.workload import Workload

__all__ = [
    "KIT_MODEL",
    "RULES_VERSION",
    "SCHEMA_FILE",
    "AdaptiveArm",
    "Arm",
    "Arrival",
    "BaselineArm",
    "Container",
    "Eagle3Arm",
    "Limits",
    "Server",
    "ServerOverrides",
    "Spec",
    "Workload",
    "canonical_json",
    "expanded_json",
    "load_spec",
    "parse_spec",
    "prereg_hash",
    "registered",
    "registered_part",
    "schema_text",
]
