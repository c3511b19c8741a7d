"""What each SGLang version accepts, answers and can be hooked at, extracted from its own source.

`sglang-VERSION.json` beside this module is written by `speckit contract extract` and never by hand; `load`
gives a typed view of one of them. A request or a command line is checked here before a GPU is asked for
anything, because SGLang answers a wrong one with an empty 500, a cut stream, or silence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kit.contract.argv import check_argv
from kit.contract.extract import SCHEMA_VERSION, dump, extract
from kit.contract.model import Field, Flag, Hook, Problem, Values
from kit.contract.requests import RequestRules
from kit.errors import SpecError

__all__ = ["Contract", "Field", "Flag", "Hook", "Problem", "Values", "dump", "extract", "load", "versions"]

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Contract:
    """One SGLang version.

    `flags` is keyed by every spelling of an option, aliases included; `server_fields` names every server
    argument as `/server_info` reports it, `endpoints` maps paths to methods, `hooks` dotted targets to
    signature and digest. `facts` holds what was read from SGLang's logic (`kit/contract/reviewed.toml`).
    """

    version: str
    sources_sha256: str
    rules: RequestRules
    flags: Mapping[str, Flag]
    server_fields: frozenset[str]
    endpoints: Mapping[str, tuple[str, ...]]
    hooks: Mapping[str, Hook]
    plugin_group: str
    adaptive_ladder: Mapping[str, Mapping[str, Any]]
    facts: Mapping[str, object]

    @property
    def sampling_keys(self) -> frozenset[str]:
        """Keys a client may send in `sampling_params`."""
        return frozenset(self.rules.sampling)

    @property
    def ladder(self) -> tuple[int, ...]:
        """Draft lengths of the adaptive controller's own ladder, over all batch sizes, ascending."""
        slots = self.adaptive_ladder.values()
        return tuple(sorted({steps for slot in slots for steps in slot["candidate_steps"]}))

    def flag(self, name: str) -> Flag | None:
        """The option of that spelling, with its dashes; None when this version has none."""
        return self.flags.get(name)

    def check_request(self, payload: Mapping[str, object]) -> tuple[Problem, ...]:
        """What is wrong with a `/generate` body; empty when SGLang takes it and means what it says."""
        return tuple(self.rules.check(payload))

    def check_flags(self, argv: Sequence[str]) -> tuple[Problem, ...]:
        """What is wrong with the server's arguments; empty when SGLang takes them."""
        return tuple(check_argv(argv, self.flags, version=self.version))


def versions() -> tuple[str, ...]:
    """Versions with a contract, oldest first."""
    names = [path.stem.removeprefix("sglang-") for path in _FOLDER.glob("sglang-*.json")]
    return tuple(sorted(names, key=lambda name: [int(part) for part in re.findall(r"\d+", name)]))


@cache
def load(version: str) -> Contract:
    """The contract of one SGLang version.

    Raises:
        SpecError: no contract for that version; names those there are.
    """
    if version not in versions():
        raise SpecError(
            f"no contract for SGLang {version}, only for {', '.join(versions())}; "
            "write one with: speckit contract extract"
        )
    document = json.loads((_FOLDER / f"sglang-{version}.json").read_text(encoding="utf-8"))
    if document["schema_version"] != SCHEMA_VERSION:
        raise SpecError(
            f"the contract for SGLang {version} has schema {document['schema_version']}, this kit reads "
            f"{SCHEMA_VERSION}; extract it again"
        )
    return _contract(document)


def _contract(document: dict[str, Any]) -> Contract:
    facts = {name: entry["value"] for name, entry in document["reviewed"].items()}
    primary = [_flag(name, entry) for name, entry in document["flags"].items()]
    return Contract(
        version=document["sglang"],
        sources_sha256=document["sources_sha256"],
        rules=_rules(document, facts["sampling_limits"]),
        flags=MappingProxyType({spelling: flag for flag in primary for spelling in (flag.name, *flag.aliases)}),
        server_fields=frozenset(document["server_fields"]),
        endpoints=MappingProxyType({path: tuple(methods) for path, methods in document["endpoints"].items()}),
        hooks=MappingProxyType({name: Hook(target=name, **hook) for name, hook in document["hooks"].items()}),
        plugin_group=document["plugin_group"],
        adaptive_ladder=MappingProxyType(document["adaptive_ladder"]),
        facts=MappingProxyType(facts),
    )


def _rules(document: dict[str, Any], sampling_limits: dict[str, Any]) -> RequestRules:
    return RequestRules(
        version=document["sglang"],
        request=_fields(document["request"]),
        sampling=_fields(document["sampling"]),
        internal=_fields(document["sampling_internal"]),
        limits=MappingProxyType(sampling_limits["limits"]),
        exclusive=tuple(sampling_limits["at_most_one_of"]),
        reserved_rid_prefix=document["reserved_rid_prefix"],
    )


def _fields(entries: dict[str, dict[str, Any]]) -> Mapping[str, Field]:
    return MappingProxyType(
        {name: Field(type=entry["type"], default=entry.get("default")) for name, entry in entries.items()}
    )


def _flag(name: str, entry: dict[str, Any]) -> Flag:
    return Flag(
        name=name,
        field=entry["field"],
        type=entry["type"],
        values=Values(entry["values"]),
        default=entry.get("default"),
        required=entry.get("required", False),
        choices=tuple(map(str, entry["choices"])) if "choices" in entry else None,
        aliases=tuple(entry.get("aliases", ())),
        parser=entry.get("parser", ""),
        replacement=entry.get("replacement", ""),
    )
