"""What the GPUs did while they were measured: NVML's clocks, power, temperature and reasons for slowing down.

The only user of pynvml. Nothing is ever set. Where there is no driver there are no samples, and nothing is claimed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from types import TracebackType
from typing import Any, Self

import pynvml  # type: ignore[import-untyped]

from kit.records import GpuSample

__all__ = ["GpuWatch", "visible_gpus"]

_PERIOD_S = 1.0


def visible_gpus(environment: str | None, count: int) -> tuple[int, ...]:
    """Indices of the GPUs that CUDA_VISIBLE_DEVICES (`environment`) leaves of `count`: all of them where it is unset.

    A name that is no index (a UUID, a MIG slice) cannot be told here: then all are watched.
    """
    if environment == "":
        return ()
    names = [name.strip() for name in environment.split(",")] if environment is not None else []
    if not names or not all(name.isdecimal() for name in names):
        return tuple(range(count))
    return tuple(int(name) for name in names if int(name) < count)


class GpuWatch:
    """Samples every GPU that the server can see, at once, every second and at the end, in a thread of its own.

    Used as a context manager around a pass; `samples` are complete after it.
    """

    def __init__(self, repetition: int) -> None:
        self.samples: list[GpuSample] = []
        self._repetition = repetition
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="gpu-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        handles = _handles()
        if handles:
            self._sample(handles)
            while not self._over.wait(_PERIOD_S):
                self._sample(handles)
            self._sample(handles)

    def _sample(self, handles: Sequence[tuple[int, Any]]) -> None:
        self.samples.extend(_sample(self._repetition, gpu, handle) for gpu, handle in handles)


@cache
def _handles() -> tuple[tuple[int, Any], ...]:
    """The visible GPUs; none without a driver. Once a process, because starting NVML takes longer than asking it."""
    try:
        pynvml.nvmlInit()
        gpus = visible_gpus(os.environ.get("CUDA_VISIBLE_DEVICES"), pynvml.nvmlDeviceGetCount())
        return tuple((gpu, pynvml.nvmlDeviceGetHandleByIndex(gpu)) for gpu in gpus)
    except pynvml.NVMLError:
        return ()


def _sample(repetition: int, gpu: int, handle: Any) -> GpuSample:
    clock = pynvml.nvmlDeviceGetClockInfo
    return GpuSample(
        repetition=repetition,
        gpu=gpu,
        at_ns=time.monotonic_ns(),
        sm_mhz=_read(lambda: clock(handle, pynvml.NVML_CLOCK_SM)),
        memory_mhz=_read(lambda: clock(handle, pynvml.NVML_CLOCK_MEM)),
        power_mw=_read(lambda: pynvml.nvmlDeviceGetPowerUsage(handle)),
        energy_mj=_read(lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)),
        temperature_c=_read(lambda: pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)),
        slowdown=_read(lambda: pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)),
        used_mib=_read(lambda: int(pynvml.nvmlDeviceGetMemoryInfo(handle).used) >> 20),
        busy_percent=_read(lambda: int(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)),
        processes=_read(lambda: len(pynvml.nvmlDeviceGetComputeRunningProcesses(handle))),
    )


def _read(ask: Callable[[], int]) -> int | None:
    """What NVML says; None for what this GPU, driver or container does not tell."""
    try:
        return int(ask())
    except pynvml.NVMLError:
        return None
