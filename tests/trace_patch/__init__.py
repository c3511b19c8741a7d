"""Tests of docker/trace, which is a distribution of its own and so has to be put on the path first."""

import sys
from pathlib import Path

PLUGIN = Path(__file__).parents[2] / "docker" / "trace"

sys.path.insert(0, str(PLUGIN))
