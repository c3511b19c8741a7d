"""Settings for every test: property tests try fewer examples by default and never fail because a machine is busy."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("fast", max_examples=50, deadline=None)
settings.load_profile("fast")
