"""How long a run file takes to read and judge, and what that needs, up to two million rounds: `make bench-analysis`.

Each size runs in its own process after another one has written its file, so that time and memory are those of a report.
CPU time stands beside wall time, because it says the same on a busy host.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from kit.store import read_run, write_facts
from kit.verdict import judge
from tests.bench.facts import run_of

__all__ = ["main"]

SIZES = (1_000, 10_000, 100_000)
"""Requests, about 20 rounds each."""


def main() -> None:
    """Print one line a size; `write N FILE` and `judge FILE` are the two halves of a line."""
    match sys.argv[1:]:
        case ["write", requests, path]:
            write_facts(Path(path), run_of(int(requests)))
        case ["judge", path]:
            _measure(Path(path))
        case _:
            _all()


def _all() -> None:
    print(
        f"{'requests':>9} {'rounds':>10} {'wall s':>7} {'read, CPU':>11} {'judge, CPU':>12} {'us/round':>9} {'MiB':>7}"
    )
    with TemporaryDirectory() as folder:
        for size in SIZES:
            path = f"{folder}/{size}.duckdb"
            for step in (["write", str(size), path], ["judge", path]):
                subprocess.run([sys.executable, "-m", "tests.bench.analysis", *step], check=True)


def _measure(path: Path) -> None:
    wall, begun = time.perf_counter(), time.process_time()
    facts = read_run(path)
    read = time.process_time()
    judge(facts)
    wall, judged = time.perf_counter() - wall, time.process_time()
    rounds, peak = len(facts.trace.rounds), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    line = f"{len(facts.requests):>9,} {rounds:>10,} {wall:>7.1f} {read - begun:>11.1f} {judged - read:>12.1f}"
    print(f"{line} {1e6 * (judged - begun) / rounds:>9.1f} {peak:>7,.0f}", flush=True)


if __name__ == "__main__":
    main()
