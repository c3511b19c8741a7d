"""Faults of a whole launch: what is changed behind the back of the flags and of the world."""

from __future__ import annotations

import argparse
from dataclasses import replace

from kit.standin.faults import Faults
from kit.standin.settings import Settings
from kit.standin.world import World

__all__ = ["sabotage_flags", "sabotage_settings", "sabotage_world"]

_CHAIN = {
    "speculative_algorithm": "EAGLE3",
    "speculative_draft_model_path": "draft",
    "speculative_num_steps": 3,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 4,
}
_ADAPTIVE_OFF = (
    "speculative_adaptive disabled: enable_dp_attention is not supported. Falling back to static speculative params."
)


def sabotage_flags(flags: argparse.Namespace, faults: Faults) -> argparse.Namespace:
    """The flags that the server acts on instead of those it was given."""
    changed = dict(vars(flags))
    if faults.speculating_baseline:
        changed |= _CHAIN
    if faults.adaptive_off:
        changed["speculative_adaptive"] = False
    if faults.cap_48:
        changed["max_running_requests"] = 48
    if faults.retract is not None:
        changed["max_total_tokens"] = faults.retract
    return argparse.Namespace(**changed)


def sabotage_settings(settings: Settings, faults: Faults) -> Settings:
    """The resolved launch as it turns out."""
    arguments, limits, dialect = settings.arguments, settings.limits, settings.dialect
    if faults.wrong_model is not None:
        arguments = arguments | {"model_path": faults.wrong_model, "served_model_name": faults.wrong_model}
    if faults.retract is not None:
        limits = replace(limits, share=0.0)
    if faults.length_before_stop:
        dialect = replace(dialect, stop_first=False)
    warnings = (*settings.warnings, _ADAPTIVE_OFF) if faults.adaptive_off else settings.warnings
    return replace(settings, arguments=arguments, limits=limits, dialect=dialect, warnings=warnings)


def sabotage_world(world: World, faults: Faults) -> World:
    """The world as it turns out."""
    startup_s = world.startup_s + (faults.slow_start or 0)
    draft = world.draft.model_copy(update={"accept": (0.0, 0.0)}) if faults.dead_draft else world.draft
    return world.model_copy(update={"startup_s": startup_s, "draft": draft})
