"""What a running server says about itself: its real configuration, and whether it is the one that was launched."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from kit.spec import KIT_MODEL, AdaptiveArm, Arm, BaselineArm, Eagle3Arm, Spec
from kit.units import Seconds

__all__ = ["effective_config", "identity_problem", "leftover_problem", "named_models", "redact"]

_SECRET_WORDS = ("api_key", "password", "secret", "authorization", "hf_token", "auth_token", "access_token")

# Importing torch alone takes longer.
_FASTEST_START_S = 1.0


def effective_config(server_info: Mapping[str, Any]) -> dict[str, Any]:
    """What the server really runs with: `internal_states[0]` wins over the top level, which is what was asked for."""
    states = server_info.get("internal_states") or [{}]
    top = {key: value for key, value in server_info.items() if key != "internal_states"}
    return {**top, **states[0]}


def named_models(value: Any, spec: Spec) -> Any:
    """`value` with the folder of every model that the spec calls kit:NAME put back under that name.

    Where it lay differs from host to host and is nobody's business: any text may hold it, also within a command line.
    """
    if isinstance(value, Mapping):
        return {key: named_models(item, spec) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(named_models(item, spec) for item in value)
    if isinstance(value, str):
        for path in (spec.models.target.path, spec.models.draft.path if spec.models.draft else ""):
            if path.startswith(KIT_MODEL):
                value = re.sub(rf"[^\s\"']*/{re.escape(path.removeprefix(KIT_MODEL))}(?![\w.-])", path, value)
    return value


def identity_problem(server_info: Mapping[str, Any], spec: Spec, arm: Arm) -> str | None:
    """Why the server that answers cannot be the one launched for `arm`; None when it can."""
    found = effective_config(named_models(server_info, spec))
    expected: dict[str, Any] = {"model_path": spec.models.target.path, "speculative_algorithm": None}
    if not isinstance(arm, BaselineArm):
        expected |= {"speculative_algorithm": "EAGLE3", "speculative_eagle_topk": _topk(arm)}
    # Only a fixed depth stays what it was at launch.
    if isinstance(arm, Eagle3Arm) and arm.num_steps:
        shape = {"speculative_num_steps": arm.num_steps, "speculative_num_draft_tokens": arm.draft_tokens}
        expected |= {name: value for name, value in shape.items() if name in found}
    wrong = [
        f"{name} is {found.get(name)!r} instead of {value!r}"
        for name, value in expected.items()
        if found.get(name) != value
    ]
    return f"another server answers for arm `{arm.name}`: {'; '.join(wrong)}" if wrong else None


def _topk(arm: Eagle3Arm | AdaptiveArm) -> int:
    return arm.topk if isinstance(arm, Eagle3Arm) else 1


def leftover_problem(
    server_info: Mapping[str, Any], *, command: Sequence[str], started_utc: str, startup_s: Seconds | None
) -> str | None:
    """Why the server that answers must have been there before the launch; None when nothing says so.

    `command` and `started_utc` are those of the launch, `startup_s` the time until something answered, None where that
    says nothing (a simulated server starts at once).
    """
    reasons = [
        *_another_port(server_info, command),
        *_earlier_start(server_info, started_utc),
        *_too_soon(server_info, startup_s),
    ]
    return f"an older server answers: {'; '.join(reasons)}" if reasons else None


def _another_port(server_info: Mapping[str, Any], command: Sequence[str]) -> Iterator[str]:
    asked = dict(pairwise(command)).get("--port")
    found = server_info.get("port")
    if asked is not None and found is not None and str(found) != asked:
        yield f"it says that it listens on port {found}, not {asked}"


def _earlier_start(server_info: Mapping[str, Any], started_utc: str) -> Iterator[str]:
    stated = server_info.get("started_at")
    if isinstance(stated, str):
        before = (_moment(started_utc) - _moment(stated)).total_seconds()
        # A stamp without fractions lies up to a second early.
        if before > 1:
            yield f"it started at {stated}, {before / 60:.0f} minutes before this launch"


def _too_soon(server_info: Mapping[str, Any], startup_s: Seconds | None) -> Iterator[str]:
    if startup_s is None:
        return
    times = server_info.get("startup_time")
    own = times.get("tokenizer_e2e") if isinstance(times, Mapping) else None
    if isinstance(own, int | float) and own > startup_s + 1:
        yield f"it took {own:.1f} s to start and answered {startup_s:.1f} s after this launch"
    elif startup_s < _FASTEST_START_S:
        yield f"it was ready {startup_s:.1f} s after this launch, sooner than SGLang can be imported"


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def redact(server_info: Any) -> Any:
    """`server_info` without the values of keys that can hold a secret."""
    if isinstance(server_info, Mapping):
        return {k: _hidden(k, v) for k, v in server_info.items()}
    if isinstance(server_info, list):
        return [redact(value) for value in server_info]
    return server_info


def _hidden(key: str, value: Any) -> Any:
    secret = isinstance(value, str) and value and any(word in key.lower() for word in _SECRET_WORDS)
    return "REDACTED" if secret else redact(value)
