"""A recorded capture (requests, one trace, log and server info an arm) as the facts of a run.

Layout: `requests.jsonl.xz`, and for each arm `trace_<arm>.jsonl.xz`, `server_<arm>.log.xz` and, for at least one,
`server_info_<arm>.json[.xz]`; the fields stand in `capture_rows` and `jsonl_trace`. A capture was not made by the kit,
so what it breaks of the kit's own rules is declared in the header. All is read and checked before any is returned.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kit import __version__
from kit.errors import ImportFileError
from kit.importers.capture_rows import Row, arm_name, read_rows, request_record
from kit.importers.capture_rules import declarations
from kit.importers.capture_spec import capture_spec
from kit.importers.jsonl import read_object, read_text
from kit.importers.jsonl_trace import joined, read_jsonl_trace
from kit.importers.server_log import LogSpan, log_span
from kit.records import Cell, Launch, LaunchStatus, Origin, Phase, Repetition, RequestRecord, Role, RunFacts, RunHeader
from kit.sglang import redact
from kit.spec import RULES_VERSION, Spec, canonical_json, expanded_json, prereg_hash, registered
from kit.units import NS_PER_S

__all__ = ["import_capture"]


@dataclass(frozen=True, slots=True)
class _ArmFiles:
    """What the files of one arm say; `server_info` is None where the capture has none."""

    label: str
    server_info: Mapping[str, Any] | None
    log: str
    span: LogSpan


def import_capture(directory: Path) -> RunFacts:
    """The facts in `directory`. ImportFileError names file, line, field and value of the first thing that is wrong."""
    if not directory.is_dir():
        raise ImportFileError(f"{directory}: not a folder; give the folder that holds requests.jsonl.xz")
    rows = read_rows(directory / "requests.jsonl.xz")
    arms = _arms_in_order(directory, rows)
    traces = tuple(
        read_jsonl_trace(directory / f"trace_{arm.label}.jsonl.xz", launch=at) for at, arm in enumerate(arms)
    )
    infos = {arm.label: arm.server_info for arm in arms}
    spec = capture_spec(rows, infos=infos, logs={arm.label: arm.log for arm in arms}, name=directory.name)
    declared = declarations(rows, infos=infos, spans={arm.label: arm.span for arm in arms}, spec=spec)
    cells = _cells(rows, arms)
    return RunFacts(
        header=_header(rows, spec=spec, arms=arms, declared=declared, directory=directory),
        launches=tuple(_launch(arm, at) for at, arm in enumerate(arms)),
        cells=cells,
        repetitions=tuple(_repetition(cell, _of_cell(rows, arms, cell)) for cell in cells),
        requests=tuple(_requests(rows, arms, cells, spec)),
        trace=joined(traces),
    )


def _arms_in_order(directory: Path, rows: Sequence[Row]) -> tuple[_ArmFiles, ...]:
    """Arms by the first stamp of their logs; arms that started in the same second stay in the order of the rows."""
    labels = list(dict.fromkeys(row.arm for row in rows))
    arms = [_read_arm(directory, label) for label in labels]
    if all(arm.server_info is None for arm in arms):
        raise ImportFileError(f"{directory / f'server_info_{labels[0]}.json'}: missing, and so is that of every arm")
    return tuple(sorted(arms, key=lambda arm: arm.span.first))


def _read_arm(directory: Path, label: str) -> _ArmFiles:
    info = next(
        (
            path
            for path in (directory / f"server_info_{label}.json", directory / f"server_info_{label}.json.xz")
            if path.exists()
        ),
        None,
    )
    log_path = directory / f"server_{label}.log.xz"
    log = read_text(log_path)
    return _ArmFiles(label, read_object(info) if info else None, log, log_span(log, path=log_path))


def _header(
    rows: Sequence[Row], *, spec: Spec, arms: Sequence[_ArmFiles], declared: tuple[str, ...], directory: Path
) -> RunHeader:
    workload = _workload_hash(rows)
    return RunHeader(
        run_id=f"imported-{_capture_hash(rows)[:12]}",
        origin=Origin.IMPORTED,
        spec_name=spec.name,
        spec_json=expanded_json(spec),
        spec_hash=prereg_hash(registered(spec, workload_hash=workload)),
        workload_hash=workload,
        rules_version=RULES_VERSION,
        kit_version=__version__,
        created_utc=arms[0].span.first,
        host={"capture": directory.name, "device": _device(arms)},
        declarations=declared,
    )


def _workload_hash(rows: Sequence[Row]) -> str:
    """The prompts' own text is not in a capture: what identifies them is index, class and length."""
    prompts = sorted(
        {(row.index, row.prompt_class, row.meta.prompt_tokens if row.meta else None) for row in rows}, key=str
    )
    return hashlib.sha256(canonical_json(prompts).encode()).hexdigest()


def _capture_hash(rows: Sequence[Row]) -> str:
    content = [[row.arm, row.concurrency, row.index, row.ids] for row in rows]
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def _device(arms: Sequence[_ArmFiles]) -> str | None:
    return next((arm.server_info.get("device") for arm in arms if arm.server_info), None)


def _launch(arm: _ArmFiles, at: int) -> Launch:
    """Every arm was launched once, so the capture is one block."""
    return Launch(
        launch=at,
        block=0,
        position=at,
        arm=arm_name(arm.label),
        role=Role.MEASURE,
        command=(),
        started_utc=arm.span.first,
        status=LaunchStatus.COMPLETED,
        server_info=redact(arm.server_info),
        log=arm.log,
    )


def _cells(rows: Sequence[Row], arms: Sequence[_ArmFiles]) -> tuple[Cell, ...]:
    pairs = [
        (at, level)
        for at, arm in enumerate(arms)
        for level in dict.fromkeys(row.concurrency for row in rows if row.arm == arm.label)
    ]
    first = {at: i for i, (at, _) in reversed(list(enumerate(pairs)))}
    return tuple(Cell(cell=i, launch=at, concurrency=c, position=i - first[at]) for i, (at, c) in enumerate(pairs))


def _of_cell(rows: Sequence[Row], arms: Sequence[_ArmFiles], cell: Cell) -> list[Row]:
    label = arms[cell.launch].label
    return [row for row in rows if row.arm == label and row.concurrency == cell.concurrency]


def _repetition(cell: Cell, rows: Sequence[Row]) -> Repetition:
    """The one timed pass. Without client times it lasts 0 ns, which analysis reads as "no clock"."""
    begin = _origin_ns(rows)
    ended = max((row.ended_s for row in rows if row.ended_s is not None), default=0.0)
    return Repetition(
        repetition=cell.cell,
        cell=cell.cell,
        phase=Phase.TIMED,
        started_utc=_utc(begin),
        started_ns=begin,
        ended_ns=begin + round(ended * NS_PER_S),
        client={"source": "recorded capture", "times": any(row.ended_s is not None for row in rows)},
    )


def _origin_ns(rows: Sequence[Row]) -> int:
    """Wall clock at which the cell began: the server's stamp of each answer minus the client's own, the middle one.

    It only puts cells in order on one axis; durations come from the client's stamps alone.
    """
    starts = sorted(
        row.answered_s - row.ended_s for row in rows if row.ended_s is not None and row.answered_s is not None
    )
    return round(starts[len(starts) // 2] * NS_PER_S) if starts else 0


def _utc(wall_ns: int) -> str:
    return datetime.fromtimestamp(wall_ns // NS_PER_S, UTC).isoformat() if wall_ns else ""


def _requests(rows: Sequence[Row], arms: Sequence[_ArmFiles], cells: Sequence[Cell], spec: Spec) -> list[RequestRecord]:
    cap = spec.workload.max_output_tokens
    records: list[RequestRecord] = []
    for cell in cells:
        mine = _of_cell(rows, arms, cell)
        origin = _origin_ns(mine)
        ordered = sorted(mine, key=lambda row: (row.sent_s or 0.0, row.index))
        records += [
            request_record(row, repetition=cell.cell, index=at, origin_ns=origin, max_new_tokens=cap)
            for at, row in enumerate(ordered)
        ]
    return records
