"""A private Docker engine for tests, and commands to it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".ci" / "engine"
BASE = "speckit-standin-base"


class NoEngineError(Exception):
    """No engine can be had here; says why."""


@dataclass(frozen=True)
class Engine:
    """One that answers; `folder` is None for one that was there before."""

    env: Mapping[str, str]
    folder: Path | None

    def docker(self, *words: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """A docker command, as a person would type it."""
        done = subprocess.run(("docker", *map(str, words)), env=self.env, capture_output=True, text=True, timeout=600)
        assert not check or done.returncode == 0, (words, done.stdout, done.stderr)
        return done

    def speckit(self, *words: str | Path, cwd: Path, timeout_s: float = 300) -> subprocess.CompletedProcess[str]:
        """The kit on this host, talking to this engine."""
        command = (sys.executable, "-m", "kit", *map(str, words))
        env = {**self.env, "PYTHONPATH": str(ROOT)}
        return subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, timeout=timeout_s)


@contextmanager
def engine(*, private: bool = False) -> Iterator[Engine]:
    """The machine's engine, or one started for the block; NoEngineError when there is none and none can be started."""
    wanted = {"SPECKIT_ENGINE_PRIVATE": "1"} if private else {}
    started = subprocess.run((SCRIPT, "start"), env=os.environ | wanted, stdout=subprocess.PIPE, text=True)
    if started.returncode != 0:
        raise NoEngineError("no Docker engine answers and .ci/engine could not start one")
    told = dict(word.split("=", 1) for word in started.stdout.split() if "=" in word)
    folder = told.get("SPECKIT_ENGINE")
    env = {**os.environ, **told, "DOCKER_BUILDKIT": "0"}
    try:
        yield Engine(env, Path(folder) if folder else None)
    finally:
        if folder:
            subprocess.run((SCRIPT, "stop"), env=env, check=True)
