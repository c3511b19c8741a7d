"""What a stand-in shall get wrong, asked for on the command line and written into the run's header."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kit.errors import SpecError
from kit.spec import Spec
from kit.standin.faults import parse_faults

__all__ = ["faults_by_arm"]


def faults_by_arm(given: Sequence[str], spec: Spec) -> Mapping[str, Sequence[str]]:
    """Faults of each arm, from `NAME[=VALUE]` (every arm) and `ARM:NAME[=VALUE]`.

    Raises SpecError for a spec of another runtime, an arm that the spec does not have, and a fault that there is not.
    """
    if given and spec.engine.runtime != "standin":
        kind = spec.engine.runtime
        raise SpecError(f"--fault: engine.runtime is {kind}, and only a stand-in gets something wrong when asked to")
    names = [arm.name for arm in spec.arms]
    found: dict[str, list[str]] = {}
    for text in given:
        arm, named, fault = text.partition(":") if ":" in text.partition("=")[0] else ("", "", text)
        if named and arm not in names:
            raise SpecError(f"--fault {text}: no arm {arm}; the spec has {', '.join(names)}")
        parse_faults([fault])
        for name in [arm] if named else names:
            found.setdefault(name, []).append(fault)
    return found
