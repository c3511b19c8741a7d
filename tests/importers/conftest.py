"""Fixtures: the recorded captures."""

from __future__ import annotations

import pytest

from kit.records import RunFacts
from tests.captures import CPU, H200, facts_of


@pytest.fixture
def h200() -> RunFacts:
    """One H200, bf16, with client times."""
    return facts_of(H200)


@pytest.fixture
def cpu() -> RunFacts:
    """A CPU engine in float32, without client times."""
    return facts_of(CPU)
