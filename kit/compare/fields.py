"""Which fields of two runs differ, and what each difference means for a comparison in one factor.

Everything that a run says about itself is compared, field by field. What belongs to the factor may differ; titles and
what cannot move a number by much are noted; anything else refuses the comparison, so a field that nobody has heard of
does too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kit.analysis import spec_of
from kit.records import FAULT, RunFacts
from kit.sglang import effective_config, trace_plugin

__all__ = ["Differences", "Factor", "FieldDifference", "differences"]

ABSENT = "absent"
STATED = "stated"
_ARMS = "spec.arms."


class Factor(StrEnum):
    """What two runs may differ in."""

    BACKEND = "backend"
    SGLANG = "sglang"
    DAY = "day"
    HOST = "host"


_PACKAGES = ("sglang", "torch", "triton", "flashinfer-python", "sglang-kernel")
_ENGINE_PACKAGES = tuple(f"host.packages.{name}" for name in _PACKAGES)
_IMAGE = ("spec.engine.image", "spec.engine.container.image", "host.image")
_OWN_BACKEND = ".server.attention_backend"
_FACTOR = {
    Factor.BACKEND: ("spec.server.attention_backend", *_IMAGE),
    Factor.SGLANG: ("spec.engine.sglang", "answered", *_IMAGE, *_ENGINE_PACKAGES),
    Factor.DAY: (),
    Factor.HOST: ("host",),
}
# Their values show whether the factor was varied at all; a host or a day need not say that it is another one.
_DECISIVE = {
    Factor.BACKEND: "attention_backend",
    Factor.SGLANG: "sglang",
}
# Titles, places and patience.
_FREE = (
    "spec.name",
    "spec.title",
    "spec.question",
    "spec.notes",
    "spec.host",
    "spec.workload.files",
    "spec.engine.startup_timeout_s",
    "spec.engine.urls",
    "host.simulated_truth",
)
# What identifies neither hardware nor engine, and the state that a GPU was in when it was asked.
_NOTED = (
    "host.platform",
    "host.python",
    "host.visible_gpus",
    "host.memory_gib",
    "host.kit_commit",
    "host.engine",
    "host.packages",
    "kit_version",
)
_STATE_OF_GPU = ".pcie.link.gen.current"


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One field and its value in either run, as JSON text."""

    field: str
    first: str
    second: str

    def __str__(self) -> str:
        return f"{self.field}: {self.first} | {self.second}"


@dataclass(frozen=True, slots=True)
class Differences:
    """Fields that differ: in the factor, without weight, or where nothing may differ."""

    of_factor: tuple[FieldDifference, ...]
    noted: tuple[FieldDifference, ...]
    refused: tuple[FieldDifference, ...]

    def varied(self, factor: Factor) -> bool:
        """Whether the factor itself differs, as far as runs can tell."""
        name = _DECISIVE.get(factor)
        return name is None or any(one.field.endswith(name) for one in self.of_factor)


def differences(first: RunFacts, second: RunFacts, *, factor: Factor) -> Differences:
    """Every field in which two runs differ, by what it means for a comparison in `factor`."""
    mine, theirs = dict(_fields(first)), dict(_fields(second))
    _merge_arms(mine, theirs)
    found = [
        FieldDifference(name, one, other)
        for name in dict.fromkeys((*mine, *theirs))
        if (one := mine.get(name, ABSENT)) != (other := theirs.get(name, ABSENT)) and not _within(name, _FREE)
    ]
    of_factor = tuple(one for one in found if _of_factor(one.field, factor))
    noted = tuple(one for one in found if one not in of_factor and _noted(one.field))
    refused = tuple(one for one in found if one not in of_factor and one not in noted)
    return Differences(of_factor, noted, refused)


def _merge_arms(mine: dict[str, str], theirs: dict[str, str]) -> None:
    """An arm that only one side has is one difference, not one a field."""
    for one, other in ((mine, theirs), (theirs, mine)):
        arms = {name.split(".")[2] for name in other if name.startswith(_ARMS)}
        for name in [name for name in one if name.startswith(_ARMS) and name.split(".")[2] not in arms]:
            del one[name]
            one[f"{_ARMS}{name.split('.')[2]}"] = STATED


def _fields(facts: RunFacts) -> Iterator[tuple[str, str]]:
    """(dotted name, JSON text) of everything by which a run can be told from another."""
    header = facts.header
    spec = spec_of(facts).model_dump(mode="json")
    # By name: the same arm may stand elsewhere in the list.
    spec["arms"] = {arm["name"]: arm for arm in spec["arms"]}
    host = dict(header.host)
    host["gpus"] = dict(enumerate(host.get("gpus") or ()))
    infos = [launch.server_info for launch in facts.launches if launch.server_info]
    yield from _flat(
        {
            "origin": header.origin.value,
            "spec": spec,
            "workload_sha256": header.workload_hash,
            "rules_version": header.rules_version,
            "answered": _answered(infos),
            "faults": [said for said in header.declarations if said.startswith(FAULT)],
            "host": host,
            "kit_version": header.kit_version,
        }
    )


def _answered(infos: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Versions that servers told of themselves and of what is installed beside them."""
    found: dict[str, set[str]] = {"sglang": {str(effective_config(info).get("version")) for info in infos}}
    for plugin in map(trace_plugin, infos):
        for name, version in plugin.packages if plugin else ():
            found.setdefault(name, set()).add(version)
    return {name: sorted(versions) for name, versions in found.items()}


def _flat(value: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, item in value.items():
        if isinstance(item, Mapping) and item:
            yield from _flat(item, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", json.dumps(item, sort_keys=True, ensure_ascii=False)


def _of_factor(name: str, factor: Factor) -> bool:
    if factor is Factor.BACKEND and name.startswith("spec.arms.") and name.endswith(_OWN_BACKEND):
        return True
    # Another SGLang on another host would be two factors.
    engine = factor is Factor.HOST and _within(name, _ENGINE_PACKAGES)
    return _within(name, _FACTOR[factor]) and not engine


def _noted(name: str) -> bool:
    if _within(name, _ENGINE_PACKAGES):
        return False
    return _within(name, _NOTED) or (name.startswith("host.gpus.") and name.endswith(_STATE_OF_GPU))


def _within(name: str, places: tuple[str, ...]) -> bool:
    return any(name == place or name.startswith(f"{place}.") for place in places)
