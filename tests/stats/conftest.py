"""Property tests here are arithmetic: fewer examples suffice, and a busy machine must not fail them."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("statistics", max_examples=50, deadline=None)
settings.load_profile("statistics")
