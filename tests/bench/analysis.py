"""How long judging takes and what it needs, from twenty thousand to two million rounds: `make bench-analysis`.

Each size runs in its own process, so that memory is its own. Time is that of `judge` alone; facts are made before.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

from kit.verdict import judge
from tests.bench.facts import run_of

__all__ = ["main"]

SIZES = (1_000, 10_000, 100_000)
"""Requests, about 20 rounds each."""


def main() -> None:
    """Print one line a size; with a size as argument, measure that one in this process."""
    if len(sys.argv) > 1:
        _measure(int(sys.argv[1]))
        return
    print(
        f"{'requests':>9} {'rounds':>10} {'wall s':>8} {'CPU s':>8} {'us/round':>9} {'judge MiB':>10} {'peak MiB':>9}"
    )
    for size in SIZES:
        subprocess.run([sys.executable, "-m", "tests.bench.analysis", str(size)], check=True)


def _measure(requests: int) -> None:
    facts = run_of(requests)
    held, wall, cpu = _peak_mib(), time.perf_counter(), time.process_time()
    judge(facts)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    rounds, peak = len(facts.trace.rounds), _peak_mib()
    line = f"{len(facts.requests):>9,} {rounds:>10,} {wall:>8.1f} {cpu:>8.1f} {1e6 * cpu / rounds:>9.1f}"
    print(f"{line} {peak - held:>10,.0f} {peak:>9,.0f}", flush=True)


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
