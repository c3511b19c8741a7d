"""Do two GPUs talk to each other? An all-reduce with a time limit: on some PCIe hosts the first one hangs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

from kit.doctor.results import Finding, State
from kit.runtime import gpu_rows, local_python
from kit.spec import Spec
from kit.units import Seconds

__all__ = ["allreduce_finding", "try_allreduce"]

_LIMIT_S = 90.0
_RANK = """
import os, sys
import torch, torch.distributed as dist
rank, backend = int(sys.argv[1]), sys.argv[2]
place = f"cuda:{rank}" if backend == "nccl" else "cpu"
dist.init_process_group(backend, rank=rank, world_size=2)
one = torch.ones(1 << 20, device=place)
dist.all_reduce(one)
agreed = float(one[-1]) == 2.0
dist.barrier()
# Tearing a process group down can abort in a thread of its own; what was asked is known by now.
os._exit(0 if agreed else 3)
"""


def allreduce_finding(spec: Spec | None) -> Finding | None:
    """What came of it; None where there are not two GPUs, or the spec's server uses one."""
    gpus = len(gpu_rows("name") or ())
    if gpus < 2 or spec is None or spec.server.tensor_parallel_size < 2:
        return None
    return try_allreduce(local_python(), backend="nccl", limit_s=_LIMIT_S)


def try_allreduce(python: Path, *, backend: str, limit_s: Seconds) -> Finding:
    """Two ranks started by `python`, which needs torch; both are ended at the limit."""
    what = f"all-reduce ({backend})"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    command = (str(python), "-c", _RANK)
    ranks = [
        subprocess.Popen(
            (*command, str(rank), backend), env=env, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        for rank in (0, 1)
    ]
    try:
        said = [rank.communicate(timeout=limit_s)[1] for rank in ranks]
    except subprocess.TimeoutExpired:
        fix = "NCCL_P2P_DISABLE=1 in server.env gets by and costs bandwidth; the cause is usually IOMMU or ACS"
        return Finding(what, State.BLOCKS, f"two ranks have not met within {limit_s:g} s", fix)
    finally:
        _end(ranks)
    if all(rank.returncode == 0 for rank in ranks):
        return Finding(what, State.OK, "two ranks agree")
    last = next((text.strip().splitlines()[-1] for text in said if text.strip()), "no message")
    if "No module named" in last:
        return Finding(what, State.WARNING, f"not tried: {last}", "name a Python with torch in SPECKIT_PYTHON")
    return Finding(what, State.BLOCKS, last, "look at NCCL_DEBUG=INFO")


def _end(ranks: list[subprocess.Popen[str]]) -> None:
    for rank in ranks:
        if rank.poll() is None:
            os.killpg(rank.pid, signal.SIGKILL)
        rank.wait()
        if rank.stderr is not None:
            rank.stderr.close()
