"""The GPUs: as many and as new as the spec needs, with nobody else on them. Settings are read, never changed."""

from __future__ import annotations

from collections.abc import Iterator

from kit.doctor.results import Finding, State
from kit.runtime import gpu_rows
from kit.spec import Spec

__all__ = ["gpu_findings"]

_FIELDS = (
    *("name", "driver_version", "compute_cap", "memory.total", "memory.free"),
    *("clocks.sm", "clocks.max.sm", "power.limit", "power.default_limit", "persistence_mode", "ecc.mode.current"),
)
# What the pinned sglang-kernel holds code for (docs/containers.md); 8.6 runs the code for 8.0.
_CAPABILITIES = ("8.0", "8.6", "8.9", "9.0", "10.0", "10.3", "12.0")
_DRIVER = "580"
_FREE_SHARE = 0.95

Row = dict[str, str]


def gpu_findings(spec: Spec | None) -> Iterator[Finding]:
    """Every finding about GPUs; without a need for any, their absence is no problem."""
    needed = spec.host.gpus if spec is not None and not spec.engine.simulated else 0
    rows = gpu_rows(*_FIELDS)
    if not rows:
        found = "nvidia-smi is not here" if rows is None else "nvidia-smi shows none"
        fix = "measure on a host with GPUs, or the stand-in: `speckit run specs/quickstart.yaml`" if needed else ""
        yield Finding("GPUs", State.BLOCKS if needed else State.OK, f"{found}; {needed} needed", fix)
        return
    state = State.OK if len(rows) >= needed else State.BLOCKS
    names = ", ".join(sorted({row["name"] for row in rows}))
    yield Finding(
        "GPUs", state, f"{len(rows)} x {names}; {needed} needed", "" if state is State.OK else "use more GPUs"
    )
    yield _product(rows, spec)
    yield _driver(rows, (spec.host.min_driver if spec else None) or _DRIVER)
    yield _capability(rows)
    yield _memory(rows)
    yield _users()
    yield from _settings(rows)


def _product(rows: list[Row], spec: Spec | None) -> Finding:
    wanted, found = spec.host.gpu if spec else None, {row["name"] for row in rows}
    if wanted is None or found == {wanted}:
        return Finding("product", State.OK, "as the spec expects" if wanted else "the spec expects none in particular")
    return Finding("product", State.WARNING, f"the spec expects {wanted}", "the report will name what was there")


def _driver(rows: list[Row], least: str) -> Finding:
    found = rows[0]["driver_version"]
    if int(found.split(".")[0]) >= int(least.split(".")[0]):
        return Finding("driver", State.OK, f"{found}, at least {least} is needed")
    fix = "update it, or build on CUDA 12.9 (`make image BASE=cu129`); CUDA 13 ends here in error 804"
    return Finding("driver", State.BLOCKS, f"{found} is older than {least}", fix)


def _capability(rows: list[Row]) -> Finding:
    found = sorted({row["compute_cap"] for row in rows})
    unknown = [capability for capability in found if capability not in _CAPABILITIES]
    if not unknown:
        return Finding("compute capability", State.OK, f"{', '.join(found)}: the image holds kernels for it")
    fix = f"the image holds code for {', '.join(_CAPABILITIES)}: use one of these GPUs"
    return Finding("compute capability", State.BLOCKS, f"{', '.join(unknown)} has no kernels in the image", fix)


def _memory(rows: list[Row]) -> Finding:
    used = [row for row in rows if _number(row["memory.free"]) < _FREE_SHARE * _number(row["memory.total"])]
    if not used:
        return Finding("GPU memory", State.OK, f"{rows[0]['memory.free']} of {rows[0]['memory.total']} free on each")
    worst = min(used, key=lambda row: _number(row["memory.free"]))
    found = f"{worst['memory.free']} of {worst['memory.total']} free"
    return Finding("GPU memory", State.WARNING, found, "stop what uses it: the KV pool is sized by what is free")


def _users() -> Finding:
    rows = gpu_rows("pid", "process_name", query="compute-apps") or []
    if not rows:
        return Finding("other GPU users", State.OK, "none")
    found = ", ".join(f"{row['process_name']} ({row['pid']})" for row in rows[:3])
    return Finding("other GPU users", State.WARNING, f"{len(rows)}: {found}", "stop them while measuring")


def _settings(rows: list[Row]) -> Iterator[Finding]:
    """What moves speeds between runs; read for the reader, and changed by nobody here."""
    for what, now, usual in (
        ("power limit", "power.limit", "power.default_limit"),
        ("SM clock", "clocks.sm", "clocks.max.sm"),
    ):
        yield Finding(what, State.OK, "; ".join(sorted({f"{row[now]} now, {row[usual]} at most" for row in rows})))
    for what, field in (("persistence mode", "persistence_mode"), ("ECC", "ecc.mode.current")):
        yield Finding(what, State.OK, ", ".join(sorted({row[field] for row in rows})))


def _number(text: str) -> float:
    """The number in front of a unit; 0 where the driver has none."""
    word = text.split()[0] if text.split() else ""
    return float(word) if word.replace(".", "", 1).isdigit() else 0.0
